"""How pages say things: numbers, moments, names of collections, addresses."""

from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from lexarium.domain.changes import Action
from lexarium.domain.collections import DEFINITIONS
from lexarium.domain.stamps import milliseconds_of, text_of

_DONE = {
    Action.CREATE: "added",
    Action.UPDATE: "changed",
    Action.RETIRE: "retired",
    Action.MERGE: "merged",
    Action.REVERT: "set back",
}
_LABELS = {
    **dict.fromkeys(DEFINITIONS, "Definition"),
    "id_concept_class": "Class",
    "id_protocol": "Source vocabulary",
    "flag_for_curator": "Waits for a curator",
    "replaced_by": "To be used instead",
    "id_user": "Author",
}
"""What those fields are called whose names do not say it."""


def singular(collection: str) -> str:
    """What one record of a collection is called."""
    return collection.replace("_", " ")


def plural(collection: str) -> str:
    """What the records of a collection are called."""
    word = singular(collection)
    return word + ("es" if word.endswith("s") else "s")


def label(field: str) -> str:
    """What a field of a record, or of a form, is called."""
    return _LABELS.get(field) or field.replace("_", " ").capitalize()


def number(value: int) -> str:
    """A number with its thousands apart."""
    return f"{value:,}"


def several(count: int, one: str, more: str | None = None) -> str:
    """So many of something."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def done(action: str) -> str:
    """What a change did."""
    return _DONE[Action(action)]


def stamp(moment: int | str) -> str:
    """A point in time for programs."""
    return moment if isinstance(moment, str) else text_of(moment) + "Z"


def day(moment: int | str) -> str:
    """The day of a point in time, in words; a stamp that is none as it is."""
    milliseconds = milliseconds_of(moment) if isinstance(moment, str) else moment
    if milliseconds is None:
        return str(moment)
    try:
        when = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return text_of(milliseconds)
    return f"{when.day} {when:%B} {when.year}"


def minute(moment: int) -> str:
    """A point in time to the minute, in words."""
    return f"{day(moment)}, {text_of(moment)[11:16]} UTC"


def month(name: str) -> str:
    """`2024-12` in words."""
    return f"{datetime.strptime(name, '%Y-%m').replace(tzinfo=UTC):%B %Y}"


def paragraphs(text: str) -> list[list[str]]:
    """A text as paragraphs, each as its lines."""
    return [part.splitlines() for part in text.split("\n\n") if part.strip()]


def path_of(identifier: str) -> str:
    """Where a record's page is."""
    return "/id/" + quote(identifier, safe="")


def with_query(path: str, **parameters: object) -> str:
    """An address with those parameters that have a value."""
    query = urlencode({name.rstrip("_"): value for name, value in parameters.items() if value not in (None, "", False)})
    return f"{path}?{query}" if query else path
