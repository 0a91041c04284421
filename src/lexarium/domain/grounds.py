"""What an answer rests on, and what a change shakes: where the two have nothing in common, the answer still holds."""

Ground = tuple[str, ...]


def of_record(identifier: str) -> Ground:
    """Shaken when this record changes, or what it is related to."""
    return "record", identifier


def of_collection(collection: str) -> Ground:
    """Shaken when any record of this collection changes."""
    return "collection", collection


def of_name(collection: str, name_key: str) -> Ground:
    """Shaken when some record of this collection has this name after a change."""
    return "name", collection, name_key
