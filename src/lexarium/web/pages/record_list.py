"""Items of a record list."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lexarium.domain.change import Change
from lexarium.domain.record import Record
from lexarium.domain.record_texts import RecordText, choose_text
from lexarium.services.records.class_colors import ColoredClass
from lexarium.services.records.lookup import find_names
from lexarium.store.position import Snapshot

_MAX_EXCERPT_CHARS = 220


@dataclass(frozen=True)
class RecordListItem:
    """A record in a list, with an excerpt of its definition."""

    record: Record
    # In the language that suits the visitor best.
    name: RecordText
    definition_lang: str
    class_: ColoredClass | None
    excerpt: str
    replacement_name: str | None


def build_list_items(
    snapshot: Snapshot,
    changes: Iterable[Change],
    classes: Mapping[str, ColoredClass],
    languages: Sequence[str] = (),
) -> list[RecordListItem]:
    """Return the records that changes made, as list items."""
    listed = [change.to_record() for change in changes]
    names = find_names(snapshot, [record.replaced_by for record in listed if record.replaced_by])
    items = []
    for record in listed:
        definition = choose_text(record, record.collection.definition_field or "", languages)
        items.append(
            RecordListItem(
                record,
                choose_text(record, "name", languages),
                definition.lang,
                classes.get(record.class_id),
                _truncate_text(definition.text),
                names.get(record.replaced_by or ""),
            )
        )
    return items


def _truncate_text(text: str) -> str:
    """Return the beginning of a text on one line, cut between words."""
    line = " ".join(text[: 2 * _MAX_EXCERPT_CHARS].split())
    return line if len(line) <= _MAX_EXCERPT_CHARS else line[:_MAX_EXCERPT_CHARS].rpartition(" ")[0] + " …"
