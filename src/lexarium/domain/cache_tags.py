"""Cache tags: a response depends on some, and a change invalidates some."""

CacheTag = tuple[str, ...]


def record_tag(record_id: str) -> CacheTag:
    """Return the tag that a change of a record, or of one related to it, invalidates."""
    return "record", record_id


def collection_tag(collection: str) -> CacheTag:
    """Return the tag that a change of any record of a collection invalidates."""
    return "collection", collection


def name_tag(collection: str, name_key: str) -> CacheTag:
    """Return the tag that is invalidated when a record of a collection has a name after a change."""
    return "name", collection, name_key
