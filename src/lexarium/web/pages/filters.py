"""Jinja filters for numbers, dates, labels and URLs."""

from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from lexarium.domain.change import Action
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.timestamps import format_timestamp, parse_timestamp

_ACTION_LABELS = {
    Action.CREATE: "added",
    Action.UPDATE: "changed",
    Action.RETIRE: "retired",
    Action.MERGE: "merged",
    Action.REVERT: "set back",
}
# Labels of what forms and histories show besides the fields of a collection.
_OTHER_LABELS = {"replaced_by": "to be used instead"}


def to_singular(collection: str) -> str:
    """Return the noun for one record of a collection."""
    return COLLECTIONS[collection].label


def to_plural(collection: str) -> str:
    """Return the noun for several records of a collection."""
    return COLLECTIONS[collection].plural


def capitalize_first(text: str) -> str:
    """Return a text that begins with a capital letter; the rest stays, as in "PubMed id"."""
    return text[:1].upper() + text[1:]


def field_label(field: str, collection: str = "") -> str:
    """Return the label of a field of a record or form, as the schema has it."""
    slots = COLLECTIONS[collection].fields if collection else {}
    if field in slots:
        return slots[field].label
    return _OTHER_LABELS.get(field) or field.replace("_", " ")


def format_number(value: int) -> str:
    """Format a number with thousands separators."""
    return f"{value:,}"


def action_label(action: str) -> str:
    """Return the past participle of a change's action."""
    return _ACTION_LABELS[Action(action)]


def format_iso(at: int | str) -> str:
    """Format a time for the `datetime` attribute."""
    return at if isinstance(at, str) else format_timestamp(at) + "Z"


def format_date(at: int | str) -> str:
    """Format a time as a date, as in "5 May 2024"; return text that is not a timestamp unchanged."""
    milliseconds = parse_timestamp(at) if isinstance(at, str) else at
    if milliseconds is None:
        return str(at)
    try:
        dt = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return format_timestamp(milliseconds)
    return f"{dt.day} {dt:%B} {dt.year}"


def format_datetime(at: int) -> str:
    """Format a time to the minute, as in "5 May 2024, 13:10 UTC"."""
    return f"{format_date(at)}, {format_timestamp(at)[11:16]} UTC"


def format_month(month: str) -> str:
    """Format `2024-12` as "December 2024"."""
    return f"{datetime.strptime(month, '%Y-%m').replace(tzinfo=UTC):%B %Y}"


def split_paragraphs(text: str) -> list[list[str]]:
    """Split a text into paragraphs of lines."""
    return [paragraph.splitlines() for paragraph in text.split("\n\n") if paragraph.strip()]


def record_path(record_id: str) -> str:
    """Return the path of a record's page."""
    return "/id/" + quote(record_id, safe="")


def add_query(path: str, **parameters: object) -> str:
    """Add the parameters that have a value to a path; `class_` becomes `class`."""
    query = urlencode({name.rstrip("_"): value for name, value in parameters.items() if value not in (None, "", False)})
    return f"{path}?{query}" if query else path
