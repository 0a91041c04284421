"""Identifiers: a prefix that tells the kind, an underscore, an alphanumeric suffix."""

import secrets

SYSTEM_USER = "usr_0000000000"


LONGEST = 500
"""In bytes: what an index of every engine can hold, with room for what stands beside it."""


def mint(prefix: str) -> str:
    """A new identifier that nobody has used: 64 random bits."""
    return f"{prefix}_{secrets.token_hex(8)}"


def has_prefix(identifier: str, prefixes: tuple[str, ...]) -> bool:
    """Whether the identifier has the form `<prefix>_<alphanumeric suffix>` with one of these prefixes."""
    prefix, _, suffix = identifier.partition("_")
    return prefix in prefixes and suffix.isascii() and suffix.isalnum()


def is_too_long(identifier: str) -> bool:
    """Whether it is longer than the store can keep."""
    # A character has at most four bytes: most need not be counted.
    return len(identifier) * 4 > LONGEST and len(identifier.encode(errors="surrogatepass")) > LONGEST
