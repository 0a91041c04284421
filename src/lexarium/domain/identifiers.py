"""Identifiers: a prefix for the kind, an underscore and an alphanumeric suffix."""

import re
import secrets

SYSTEM_USER_ID = "usr_0000000000"


# Fits into an index of every engine, together with other columns.
MAX_ID_BYTES = 500


def mint_id(prefix: str) -> str:
    """Return a new identifier with 64 random bits."""
    return f"{prefix}_{secrets.token_hex(8)}"


def has_prefix(record_id: str, prefixes: tuple[str, ...]) -> bool:
    """Return whether an id has the form `<prefix>_<alphanumeric suffix>` with one of these prefixes."""
    prefix, _, suffix = record_id.partition("_")
    return prefix in prefixes and suffix.isascii() and suffix.isalnum()


def is_id_too_long(record_id: str) -> bool:
    """Return whether an id is too long for the store."""
    # A character has at most four bytes, so most ids need not be encoded.
    return len(record_id) * 4 > MAX_ID_BYTES and len(record_id.encode(errors="surrogatepass")) > MAX_ID_BYTES


# Fits into an index of every engine, together with the source.
MAX_TARGET_BYTES = 2_000


# A scheme or prefix, then `//` and a host or something else, without characters that no IRI may have (RFC 3987).
_EXTERNAL_TARGET = re.compile(
    r"""(https?://(?=[\w\[])|(?!https?:)[a-z_][\w.+-]*:(?://(?=[\w\[])|(?!//)))"""
    r"""[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff<>"{}|\\^`]+""",
    re.IGNORECASE,
)


# Dangerous as links, and no vocabulary uses them.
_UNSAFE_SCHEMES = ("javascript:", "vbscript:", "data:", "blob:", "file:", "about:")


def find_target_problem(target: str) -> str | None:
    """Return the reason why a text is not a valid external target, or None."""
    if len(target.encode(errors="replace")) > MAX_TARGET_BYTES:
        return f"should have at most {MAX_TARGET_BYTES:,} bytes."
    if _EXTERNAL_TARGET.fullmatch(target) and not target.lower().startswith(_UNSAFE_SCHEMES):
        return None
    return "is neither an IRI, like https://example.org/1, nor a CURIE, like DOID:3324."
