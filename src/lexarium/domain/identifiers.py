"""Identifiers: a prefix that tells the kind, an underscore, an alphanumeric suffix."""

import re
import secrets

SYSTEM_USER_ID = "usr_0000000000"


MAX_ID_BYTES = 500
"""In bytes: what an index of every engine can hold, with room for what stands beside it."""


def mint_id(prefix: str) -> str:
    """A new identifier that nobody has used: 64 random bits."""
    return f"{prefix}_{secrets.token_hex(8)}"


def has_prefix(record_id: str, prefixes: tuple[str, ...]) -> bool:
    """Whether the identifier has the form `<prefix>_<alphanumeric suffix>` with one of these prefixes."""
    prefix, _, suffix = record_id.partition("_")
    return prefix in prefixes and suffix.isascii() and suffix.isalnum()


def is_id_too_long(record_id: str) -> bool:
    """Whether it is longer than the store can keep."""
    # A character has at most four bytes: most need not be counted.
    return len(record_id) * 4 > MAX_ID_BYTES and len(record_id.encode(errors="surrogatepass")) > MAX_ID_BYTES


MAX_TARGET_BYTES = 2_000
"""In bytes: what an index of every engine can hold beside the source."""


# A scheme or a prefix, then a host after `//`, or something else; never what no IRI may hold (RFC 3987), or a file that
# names it could not be read again.
_EXTERNAL_TARGET = re.compile(
    r"""(https?://(?=[\w\[])|(?!https?:)[a-z_][\w.+-]*:(?://(?=[\w\[])|(?!//)))"""
    r"""[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff<>"{}|\\^`]+""",
    re.IGNORECASE,
)


_UNSAFE_SCHEMES = ("javascript:", "vbscript:", "data:", "blob:", "file:", "about:")
"""What runs, or is only here: no vocabulary is named so, and a page that links to it would do harm."""


def find_target_problem(target: str) -> str | None:
    """Why a text does not point to something in another vocabulary, or None where it does."""
    if len(target.encode(errors="replace")) > MAX_TARGET_BYTES:
        return f"should have at most {MAX_TARGET_BYTES:,} bytes."
    if _EXTERNAL_TARGET.fullmatch(target) and not target.lower().startswith(_UNSAFE_SCHEMES):
        return None
    return "is neither an IRI, like https://example.org/1, nor a CURIE, like DOID:3324."
