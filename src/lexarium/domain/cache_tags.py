"""Cache tags: a response depends on some, and a change invalidates some."""

from collections.abc import Iterable, Iterator

CacheTag = tuple[str, ...]


def record_tag(record_id: str) -> CacheTag:
    """Return the tag that a change of a record, or of one related to it, invalidates."""
    return "record", record_id


def record_tags(record_ids: Iterable[str]) -> Iterator[CacheTag]:
    """Return the same for several records."""
    return map(record_tag, record_ids)


def collection_tag(collection: str) -> CacheTag:
    """Return the tag that a change of any record of a collection invalidates."""
    return "collection", collection


def name_tag(collection: str, name_key: str) -> CacheTag:
    """Return the tag that is invalidated when a record of a collection has a name after a change."""
    return "name", collection, name_key


def alternative_id_tag(name: str) -> CacheTag:
    """Return the tag that is invalidated when a record has an alternative id or an IRI after a change."""
    return "alternative id", name


CATALOGUE_TAG: CacheTag = ("catalogue",)
"""Invalidated by every change of the log."""
UNLOGGED_TAG: CacheTag = ("unlogged",)
"""Invalidated by changes that are not in the log: of accounts, tokens, releases and comments."""
