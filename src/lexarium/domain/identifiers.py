"""Identifiers: what owners call a record, what it is called in the database, and how new ones are minted."""

import re
import secrets

SYSTEM_USER_ID = "usr_0000000000"

# Vocabulary of the records that a database had before it could have several. Their ids in the database are their own.
MAIN_VOCABULARY = "main"
# Between the vocabulary and the id in the ids of all other records. No text that people write may have it.
_SEPARATOR = "\x1f"


def qualify_id(vocabulary: str, local_id: str) -> str:
    """Return the id of a record that is unique in the database, given its id in its vocabulary.

    Whatever a client sends as an id, this is never that of a record in another vocabulary.
    """
    if _SEPARATOR in local_id:
        local_id = local_id.replace(_SEPARATOR, "\ufffd")
    return local_id if vocabulary == MAIN_VOCABULARY else f"{vocabulary}{_SEPARATOR}{local_id}"


def split_id(record_id: str) -> tuple[str, str]:
    """Return the vocabulary of a record and its id there."""
    vocabulary, separator, local_id = record_id.partition(_SEPARATOR)
    return (vocabulary, local_id) if separator else (MAIN_VOCABULARY, record_id)


def get_local_id(record_id: str) -> str:
    """Return the id of a record in its vocabulary, as its owner gave it."""
    return record_id.rpartition(_SEPARATOR)[2]


def format_record_id(record_id: str) -> str:
    """Return the id of a record for messages, with its vocabulary unless that is the main one."""
    vocabulary, local_id = split_id(record_id)
    if vocabulary == MAIN_VOCABULARY:
        return local_id
    return f"{local_id} in {vocabulary}" if vocabulary else f"the vocabulary {local_id}"


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
        return f"must have at most {MAX_TARGET_BYTES:,} bytes."
    if _EXTERNAL_TARGET.fullmatch(target) and not target.lower().startswith(_UNSAFE_SCHEMES):
        return None
    return "must be an IRI such as https://example.org/1 or a CURIE such as DOID:3324."
