"""Normalize and check characters of texts."""

import hashlib
import re
import unicodedata

# NUL and lone surrogates cannot be stored in every engine or sent as JSON.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# Embeddings, overrides and isolates can make a name look like another one. The marks U+200E, U+200F and U+061C are
# allowed: they only reorder neighbouring punctuation and digits, and Arabic and Hebrew names need them.
_DIRECTION_CONTROL = re.compile("[\u202a-\u202e\u2066-\u2069]")


# Fits into an index of every engine, together with other columns.
MAX_KEY_BYTES = 2_000


def name_key(name: str) -> str:
    """Return the key for looking up a name, which ignores case and Unicode form."""
    if name.isascii():
        return truncate_key(name.casefold())
    return truncate_key(unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold()))


def order_key(name: str) -> str:
    """Return the key for sorting by a name, which ignores case."""
    return truncate_key(name.casefold())


def truncate_key(key: str) -> str:
    """Shorten a key that is too long for an index, and append its digest."""
    if len(key) * 4 <= MAX_KEY_BYTES or len(encoded := key.encode(errors="surrogatepass")) <= MAX_KEY_BYTES:
        return key
    digest = hashlib.sha256(encoded).hexdigest()
    return encoded[: MAX_KEY_BYTES - len(digest)].decode(errors="ignore") + digest


def find_unstorable_char(text: str) -> str | None:
    """Return the first character that cannot be stored, as `U+0000`, or None."""
    # Most texts are ASCII, and a search for one character is faster.
    if text.isascii() and "\x00" not in text:
        return None
    return _format_code_point(_UNSTORABLE.search(text))


def find_control_char(text: str) -> str | None:
    """Return the first control character other than tab and line breaks, as `U+0000`, or None."""
    return _format_code_point(_CONTROL.search(text))


def remove_xml_forbidden(text: str) -> str:
    """Return a text without the characters that no XML document may contain."""
    return _NOT_IN_XML.sub("", text)


def reject_control_chars(text: str) -> str:
    """Return the text; raise ValueError if it contains a control character."""
    char = find_control_char(text)
    if char:
        allowed = "of control characters, only tab and line breaks are"
        raise ValueError(f"contains the character {char}, which is not allowed: {allowed}.")
    return text


def find_direction_control(text: str) -> str | None:
    """Return the first bidirectional embedding, override or isolate, as `U+202E`, or None."""
    return None if text.isascii() else _format_code_point(_DIRECTION_CONTROL.search(text))


def reject_direction_controls(name: str) -> str:
    """Return the name; raise ValueError if it contains a bidirectional embedding, override or isolate."""
    if char := find_direction_control(name):
        raise ValueError(f"contains the bidirectional control character {char}, which is not allowed in a name.")
    return name


def format_json_error(text: bytes, error: ValueError) -> str:
    """Return the reason why bytes are not JSON, to follow a subject."""
    try:
        text.decode()
    except UnicodeDecodeError as decode_error:
        # The JSON decoder would report the first character.
        line = text.count(b"\n", 0, decode_error.start) + 1
        return f"is not valid UTF-8 at byte {decode_error.start + 1}, line {line}."
    return f"is not valid JSON: {error}." if text.strip() else "is empty: JSON is expected."


def _format_code_point(match: re.Match[str] | None) -> str | None:
    return f"U+{ord(match.group()):04X}" if match else None
