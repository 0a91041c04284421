"""Items of a record list."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lexarium.domain.change import Change
from lexarium.domain.record import Record
from lexarium.services.records.class_colors import ColoredClass
from lexarium.services.records.lookup import find_names
from lexarium.store.position import Snapshot

_MAX_EXCERPT_CHARS = 220


@dataclass(frozen=True)
class RecordListItem:
    """A record in a list, with an excerpt of its definition."""

    record: Record
    class_: ColoredClass | None
    excerpt: str
    replacement_name: str | None


def build_list_items(
    snapshot: Snapshot, changes: Iterable[Change], classes: Mapping[str, ColoredClass]
) -> list[RecordListItem]:
    """Return the records that changes made, as list items."""
    listed = [change.to_record() for change in changes]
    names = find_names(snapshot, [record.replaced_by for record in listed if record.replaced_by])
    return [
        RecordListItem(
            record,
            classes.get(record.fields.get("id_concept_class", "")),
            _truncate_text(record.definition),
            names.get(record.replaced_by or ""),
        )
        for record in listed
    ]


def _truncate_text(text: str) -> str:
    """Return the beginning of a text on one line, cut between words."""
    line = " ".join(text[: 2 * _MAX_EXCERPT_CHARS].split())
    return line if len(line) <= _MAX_EXCERPT_CHARS else line[:_MAX_EXCERPT_CHARS].rpartition(" ")[0] + " …"
