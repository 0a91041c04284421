"""What an import tells of itself."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lexarium.domain.errors import FieldProblem, ImportRejected
from lexarium.domain.record import Relation

MAX_KEPT = 1_000
"""How many warnings and problems are kept word by word; past that they are only counted."""
MAX_LISTED = 100
"""How many records and relations of each kind are shown one by one; past that they are only counted."""
_KINDS = ("created", "updated", "retired", "refused")


@dataclass
class ProblemList:
    """Things to tell, the first of them word by word."""

    items: list[FieldProblem] = field(default_factory=list)
    count: int = 0

    def add(self, location: str, message: str) -> None:
        """Note something about a place."""
        self.count += 1
        if len(self.items) < MAX_KEPT:
            self.items.append(FieldProblem(location, message))


@dataclass(frozen=True)
class ImportConflict:
    """A field that a file and people have both changed since the last import."""

    where: str
    record: str
    field: str
    ours: Any
    """What it is, and stays unless the file's is preferred."""
    theirs: Any


@dataclass
class ConflictList:
    """Conflicts, the first of them one by one."""

    items: list[ImportConflict] = field(default_factory=list)
    count: int = 0

    def add(self, conflict: ImportConflict) -> None:
        """Note one."""
        self.count += 1
        if len(self.items) < MAX_KEPT:
            self.items.append(conflict)


@dataclass(frozen=True)
class AffectedRecord:
    """A record that an import creates, changes, retires or leaves out."""

    id: str
    collection: str
    name: str
    fields: Sequence[str] = ()
    """What of it changes."""


@dataclass
class ImportReport:
    """What an import did, or with `dry_run` would do."""

    dry_run: bool
    base_revision: int = 0
    """Of the catalogue that it was compared with."""
    last_revision: int = 0
    """The revision that it came to: the changes after the other, up to this one, are the import's."""
    created: Counter[str] = field(default_factory=Counter)
    updated: Counter[str] = field(default_factory=Counter)
    retired: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    skipped: int = 0
    """Records that were left out, each with a warning."""
    relations_added: int = 0
    relations_removed: int = 0
    affected: dict[str, list[AffectedRecord]] = field(default_factory=lambda: {name: [] for name in _KINDS})
    """The first records of those counts, by what these are called."""
    added_relations: list[Relation] = field(default_factory=list)
    """The first relations that were added, and those that were removed."""
    removed_relations: list[Relation] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """What the records at their ends are called, by id."""
    warnings: ProblemList = field(default_factory=ProblemList)
    conflicts: ConflictList = field(default_factory=ConflictList)

    def has_room(self, kind: str) -> bool:
        """Whether one more record of a kind would be shown."""
        return len(self.affected[kind]) < MAX_LISTED

    def add_record(self, kind: str, record_id: str, collection: str, name: str, fields: Sequence[str] = ()) -> None:
        """Have a record shown, with what of it changes, as long as few are."""
        if self.has_room(kind):
            self.affected[kind].append(AffectedRecord(record_id, collection, name, fields))

    def count_relations(self, added: Sequence[Relation], removed: Sequence[Relation]) -> None:
        """Count relations that come and go, and have the first shown."""
        self.relations_added += len(added)
        self.relations_removed += len(removed)
        self.added_relations += added[: MAX_LISTED - len(self.added_relations)]
        self.removed_relations += removed[: MAX_LISTED - len(self.removed_relations)]

    @property
    def has_changes(self) -> bool:
        """Whether anything is other than before."""
        return bool(self.created or self.updated or self.retired or self.relations_added or self.relations_removed)


def raise_if_problems(problems: ProblemList) -> None:
    """Raise every problem there is."""
    if problems.count:
        count = "1 problem" if problems.count == 1 else f"{problems.count:,} problems"
        raise ImportRejected(f"Nothing was imported: {count}.", problems.items)


def serialize_report(report: ImportReport) -> dict[str, object]:
    """What an import did, for scripts."""
    return {
        "dry_run": report.dry_run,
        "changed": report.has_changes,
        "since": report.base_revision,
        "until": report.last_revision,
        "created": report.created,
        "updated": report.updated,
        "retired": report.retired,
        "unchanged": report.unchanged,
        "refused": report.skipped,
        "relations_added": report.relations_added,
        "relations_removed": report.relations_removed,
        "records": {kind: [asdict(item) for item in affected] for kind, affected in report.affected.items()},
        "relations": {
            "added": [_serialize_relation(report, relation) for relation in report.added_relations],
            "removed": [_serialize_relation(report, relation) for relation in report.removed_relations],
        },
        "conflict_count": report.conflicts.count,
        "conflicts": [asdict(item) for item in report.conflicts.items],
        "warning_count": report.warnings.count,
        "warnings": serialize_problems(report.warnings.items),
    }


def _serialize_relation(report: ImportReport, relation: Relation) -> dict[str, str | None]:
    names = {"source_name": report.names.get(relation.source), "target_name": report.names.get(relation.target)}
    return {**asdict(relation), **names}


def serialize_problems(problems: Sequence[FieldProblem]) -> list[dict[str, str]]:
    """Warnings or problems, for scripts."""
    return [{"where": problem.field, "what": problem.detail} for problem in problems]
