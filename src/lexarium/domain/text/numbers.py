"""Numbers in text for people."""

from lexarium.domain.text.nouns import pluralize


def format_count(count: int, singular: str, plural: str | None = None) -> str:
    """Format a count with its noun, as in "3 records"."""
    return f"{count:,} {singular if count == 1 else plural or pluralize(singular)}"
