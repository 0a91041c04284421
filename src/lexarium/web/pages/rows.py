"""Records as the rows of a list."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lexarium.domain.changes import Change, Whole
from lexarium.service.classes import Class
from lexarium.store import records
from lexarium.store.backend import Snapshot

_LONGEST = 220


@dataclass(frozen=True)
class Row:
    """A record in a list."""

    whole: Whole
    class_: Class | None
    excerpt: str
    """The beginning of its definition."""
    successor: str | None = None
    """The name of what stands in for one that is gone."""

    @property
    def name(self) -> str:
        """Its name."""
        name: str = self.whole.fields["name"]
        return name


def rows(snapshot: Snapshot, changes: Iterable[Change], classes: Mapping[str, Class]) -> list[Row]:
    """These records as rows."""
    wholes = [change.whole() for change in changes]
    names = records.names(snapshot, [whole.replaced_by for whole in wholes if whole.replaced_by])
    return [
        Row(
            whole,
            classes.get(whole.fields.get("id_concept_class", "")),
            excerpt(whole.definition),
            names.get(whole.replaced_by or ""),
        )
        for whole in wholes
    ]


def excerpt(text: str) -> str:
    """The beginning of a text, in one line, up to a word's end."""
    line = " ".join(text[: 2 * _LONGEST].split())
    return line if len(line) <= _LONGEST else line[:_LONGEST].rpartition(" ")[0] + " …"
