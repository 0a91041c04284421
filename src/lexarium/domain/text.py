"""How text is compared, and what text may not hold."""

import re
import unicodedata

# Only these two cannot be stored in every engine and sent in every JSON document.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def name_key(name: str) -> str:
    """The key under which a name is looked up: equal for names that differ only in case or in Unicode form."""
    if name.isascii():
        return name.casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def unstorable(text: str) -> str | None:
    """The first character that can never be stored (NUL or a lone surrogate), named as `U+0000`, or None."""
    return _named(_UNSTORABLE.search(text))


def forbidden(text: str) -> str | None:
    """The first character that people may not write: a control character other than tab and line breaks."""
    return _named(_CONTROL.search(text))


def plain(text: str) -> str:
    """The text itself; raises `ValueError` where it holds a character that people may not write."""
    char = forbidden(text)
    if char:
        allowed = "of control characters, only tab and line breaks are"
        raise ValueError(f"holds the character {char}, which is not allowed: {allowed}.")
    return text


def _named(match: re.Match[str] | None) -> str | None:
    return f"U+{ord(match.group()):04X}" if match else None
