"""How pages say things: numbers, moments, names of collections, addresses."""

from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from lexarium.domain.change import Action
from lexarium.domain.schema.collections import DEFINITION_FIELDS
from lexarium.domain.timestamps import format_timestamp, parse_timestamp

_ACTION_LABELS = {
    Action.CREATE: "added",
    Action.UPDATE: "changed",
    Action.RETIRE: "retired",
    Action.MERGE: "merged",
    Action.REVERT: "set back",
}
_FIELD_LABELS = {
    **dict.fromkeys(DEFINITION_FIELDS, "Definition"),
    "id_concept_class": "Class",
    "id_protocol": "Source vocabulary",
    "flag_for_curator": "Waits for a curator",
    "replaced_by": "To be used instead",
    "id_user": "Author",
}
"""What those fields are called whose names do not say it."""


def to_singular(collection: str) -> str:
    """What one record of a collection is called."""
    return collection.replace("_", " ")


def to_plural(collection: str) -> str:
    """What the records of a collection are called."""
    word = to_singular(collection)
    return word + ("es" if word.endswith("s") else "s")


def field_label(field: str) -> str:
    """What a field of a record, or of a form, is called."""
    return _FIELD_LABELS.get(field) or field.replace("_", " ").capitalize()


def format_number(value: int) -> str:
    """A number with its thousands apart."""
    return f"{value:,}"


def format_count(count: int, singular: str, plural: str | None = None) -> str:
    """So many of something."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def action_label(action: str) -> str:
    """What a change did."""
    return _ACTION_LABELS[Action(action)]


def format_iso(at: int | str) -> str:
    """A point in time for programs."""
    return at if isinstance(at, str) else format_timestamp(at) + "Z"


def format_date(at: int | str) -> str:
    """The day of a point in time, in words; a stamp that is none as it is."""
    milliseconds = parse_timestamp(at) if isinstance(at, str) else at
    if milliseconds is None:
        return str(at)
    try:
        dt = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return format_timestamp(milliseconds)
    return f"{dt.day} {dt:%B} {dt.year}"


def format_datetime(at: int) -> str:
    """A point in time to the minute, in words."""
    return f"{format_date(at)}, {format_timestamp(at)[11:16]} UTC"


def format_month(month: str) -> str:
    """`2024-12` in words."""
    return f"{datetime.strptime(month, '%Y-%m').replace(tzinfo=UTC):%B %Y}"


def split_paragraphs(text: str) -> list[list[str]]:
    """A text as paragraphs, each as its lines."""
    return [paragraph.splitlines() for paragraph in text.split("\n\n") if paragraph.strip()]


def record_path(record_id: str) -> str:
    """Where a record's page is."""
    return "/id/" + quote(record_id, safe="")


def add_query(path: str, **parameters: object) -> str:
    """An address with those parameters that have a value."""
    query = urlencode({name.rstrip("_"): value for name, value in parameters.items() if value not in (None, "", False)})
    return f"{path}?{query}" if query else path
