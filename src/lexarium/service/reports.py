"""What an import tells of itself."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lexarium.domain.errors import ImportRefused, Problem
from lexarium.domain.relations import Edge

KEPT = 1_000
"""How many warnings and problems are kept word by word; past that they are only counted."""
SHOWN = 100
"""How many records and relations of each kind are shown one by one; past that they are only counted."""
_KINDS = ("created", "updated", "retired", "refused")


@dataclass
class Notes:
    """Things to tell, the first of them word by word."""

    kept: list[Problem] = field(default_factory=list)
    count: int = 0

    def add(self, where: str, what: str) -> None:
        """Note something about a place."""
        self.count += 1
        if len(self.kept) < KEPT:
            self.kept.append(Problem(where, what))


@dataclass(frozen=True)
class Conflict:
    """A field that a file and people have both changed since the last import."""

    where: str
    record: str
    field: str
    ours: Any
    """What it is, and stays unless the file's is preferred."""
    theirs: Any


@dataclass
class Conflicts:
    """Conflicts, the first of them one by one."""

    kept: list[Conflict] = field(default_factory=list)
    count: int = 0

    def add(self, conflict: Conflict) -> None:
        """Note one."""
        self.count += 1
        if len(self.kept) < KEPT:
            self.kept.append(conflict)


@dataclass(frozen=True)
class Touched:
    """A record that an import creates, changes, retires or leaves out."""

    id: str
    collection: str
    name: str
    fields: Sequence[str] = ()
    """What of it changes."""


@dataclass
class Report:
    """What an import did, or with `dry_run` would do."""

    dry_run: bool
    revision: int = 0
    """Of the catalogue that it was compared with."""
    until: int = 0
    """The revision that it came to: the changes after the other, up to this one, are the import's."""
    created: Counter[str] = field(default_factory=Counter)
    updated: Counter[str] = field(default_factory=Counter)
    retired: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    """Records that were left out, each with a warning."""
    relations_added: int = 0
    relations_removed: int = 0
    touched: dict[str, list[Touched]] = field(default_factory=lambda: {name: [] for name in _KINDS})
    """The first records of those counts, by what these are called."""
    related: list[Edge] = field(default_factory=list)
    """The first relations that were added, and those that were removed."""
    unrelated: list[Edge] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """What the records at their ends are called, by id."""
    warnings: Notes = field(default_factory=Notes)
    conflicts: Conflicts = field(default_factory=Conflicts)

    def shows(self, kind: str) -> bool:
        """Whether one more record of a kind would be shown."""
        return len(self.touched[kind]) < SHOWN

    def show(self, kind: str, identifier: str, collection: str, name: str, fields: Sequence[str] = ()) -> None:
        """Have a record shown, with what of it changes, as long as few are."""
        if self.shows(kind):
            self.touched[kind].append(Touched(identifier, collection, name, fields))

    def relate(self, added: Sequence[Edge], removed: Sequence[Edge]) -> None:
        """Count relations that come and go, and have the first shown."""
        self.relations_added += len(added)
        self.relations_removed += len(removed)
        self.related += added[: SHOWN - len(self.related)]
        self.unrelated += removed[: SHOWN - len(self.unrelated)]

    @property
    def changed(self) -> bool:
        """Whether anything is other than before."""
        return bool(self.created or self.updated or self.retired or self.relations_added or self.relations_removed)


def refuse(problems: Notes) -> None:
    """Raise every problem there is."""
    if problems.count:
        count = "1 problem" if problems.count == 1 else f"{problems.count:,} problems"
        raise ImportRefused(f"Nothing was imported: {count}.", problems.kept)


def report_view(report: Report) -> dict[str, object]:
    """What an import did, for scripts."""
    return {
        "dry_run": report.dry_run,
        "changed": report.changed,
        "since": report.revision,
        "until": report.until,
        "created": report.created,
        "updated": report.updated,
        "retired": report.retired,
        "unchanged": report.unchanged,
        "refused": report.refused,
        "relations_added": report.relations_added,
        "relations_removed": report.relations_removed,
        "records": {kind: [asdict(each) for each in several] for kind, several in report.touched.items()},
        "relations": {
            "added": [_edge_view(report, edge) for edge in report.related],
            "removed": [_edge_view(report, edge) for edge in report.unrelated],
        },
        "conflict_count": report.conflicts.count,
        "conflicts": [asdict(each) for each in report.conflicts.kept],
        "warning_count": report.warnings.count,
        "warnings": notes_view(report.warnings.kept),
    }


def _edge_view(report: Report, edge: Edge) -> dict[str, str | None]:
    ends = {"source_name": report.names.get(edge.source), "target_name": report.names.get(edge.target)}
    return {**asdict(edge), **ends}


def notes_view(problems: Sequence[Problem]) -> list[dict[str, str]]:
    """Warnings or problems, for scripts."""
    return [{"where": each.field, "what": each.detail} for each in problems]
