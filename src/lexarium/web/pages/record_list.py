"""Records as the rows of a list."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lexarium.domain.change import Change
from lexarium.domain.record import Record
from lexarium.services.records.class_colors import ColoredClass
from lexarium.store import records
from lexarium.store.position import Snapshot

_MAX_CHARS = 220


@dataclass(frozen=True)
class RecordListItem:
    """A record in a list."""

    record: Record
    class_: ColoredClass | None
    excerpt: str
    """The beginning of its definition."""
    replacement_name: str | None = None
    """The name of what stands in for one that is gone."""

    @property
    def name(self) -> str:
        """Its name."""
        name: str = self.record.fields["name"]
        return name


def build_list_items(
    snapshot: Snapshot, changes: Iterable[Change], classes: Mapping[str, ColoredClass]
) -> list[RecordListItem]:
    """These records as rows."""
    listed_records = [change.to_record() for change in changes]
    replacement_names = records.find_names(
        snapshot, [record.replaced_by for record in listed_records if record.replaced_by]
    )
    return [
        RecordListItem(
            record,
            classes.get(record.fields.get("id_concept_class", "")),
            truncate_text(record.definition),
            replacement_names.get(record.replaced_by or ""),
        )
        for record in listed_records
    ]


def truncate_text(text: str) -> str:
    """The beginning of a text, in one line, up to a word's end."""
    line = " ".join(text[: 2 * _MAX_CHARS].split())
    return line if len(line) <= _MAX_CHARS else line[:_MAX_CHARS].rpartition(" ")[0] + " …"
