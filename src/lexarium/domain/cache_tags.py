"""What an answer rests on, and what a change shakes: where the two have nothing in common, the answer still holds."""

CacheTag = tuple[str, ...]


def record_tag(record_id: str) -> CacheTag:
    """Shaken when this record changes, or what it is related to."""
    return "record", record_id


def collection_tag(collection: str) -> CacheTag:
    """Shaken when any record of this collection changes."""
    return "collection", collection


def name_tag(collection: str, name_key: str) -> CacheTag:
    """Shaken when some record of this collection has this name after a change."""
    return "name", collection, name_key
