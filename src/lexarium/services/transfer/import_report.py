"""Report of an import: counts, affected records, conflicts and warnings."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Literal, TypeVar

from lexarium.domain.errors import FieldProblem, ImportRejected
from lexarium.domain.record import Relation

T = TypeVar("T")

MAX_KEPT = 1_000
# Records and relations of each kind.
MAX_LISTED = 100

AffectedKind = Literal["created", "updated", "retired", "refused"]


@dataclass
class BoundedList(Generic[T]):
    """A list that keeps its first items and counts all."""

    items: list[T] = field(default_factory=list)
    count: int = 0

    def append(self, item: T) -> None:
        """Count an item, and keep it if there is room."""
        self.count += 1
        if len(self.items) < MAX_KEPT:
            self.items.append(item)


class ProblemList(BoundedList[FieldProblem]):
    """Problems or warnings, each with its location in a file."""

    def add(self, location: str, message: str) -> None:
        """Append a problem."""
        self.append(FieldProblem(location, message))

    def raise_if_any(self) -> None:
        """Raise ImportRejected if there are problems."""
        if self.count:
            count = "1 problem" if self.count == 1 else f"{self.count:,} problems"
            raise ImportRejected(f"Nothing was imported: {count}.", self.items)


@dataclass(frozen=True)
class ImportConflict:
    """A field that a file and people have both changed since the last import."""

    where: str
    record: str
    field: str
    ours: Any
    theirs: Any


@dataclass(frozen=True)
class AffectedRecord:
    """A record that an import creates, changes, retires or skips."""

    id: str
    collection: str
    name: str
    fields: Sequence[str] = ()


@dataclass
class ImportReport:
    """Result of an import or a dry run. The changes after `base_revision`, up to `last_revision`, are the import's."""

    dry_run: bool
    # Slug of the vocabulary that the import creates, if it does.
    created_vocabulary: str | None = None
    base_revision: int = 0
    last_revision: int = 0
    created: Counter[str] = field(default_factory=Counter)
    updated: Counter[str] = field(default_factory=Counter)
    retired: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    # Each one has a warning.
    skipped: int = 0
    relations_added: int = 0
    relations_removed: int = 0
    affected: dict[AffectedKind, list[AffectedRecord]] = field(
        default_factory=lambda: {"created": [], "updated": [], "retired": [], "refused": []}
    )
    added_relations: list[Relation] = field(default_factory=list)
    removed_relations: list[Relation] = field(default_factory=list)
    # Names of the records that the listed relations connect, by id.
    names: dict[str, str] = field(default_factory=dict)
    warnings: ProblemList = field(default_factory=ProblemList)
    conflicts: BoundedList[ImportConflict] = field(default_factory=BoundedList)

    def has_room(self, kind: AffectedKind) -> bool:
        """Return whether another record of a kind would be listed."""
        return len(self.affected[kind]) < MAX_LISTED

    def add_record(
        self, kind: AffectedKind, record_id: str, collection: str, name: str, fields: Sequence[str] = ()
    ) -> None:
        """Count a record, and list it with its changed fields if there is room."""
        if kind == "refused":
            self.skipped += 1
        else:
            getattr(self, kind)[collection] += 1
        if self.has_room(kind):
            self.affected[kind].append(AffectedRecord(record_id, collection, name, fields))

    def add_relations(self, added: Sequence[Relation], removed: Sequence[Relation]) -> None:
        """Count relations, and list those for which there is room."""
        self.relations_added += len(added)
        self.relations_removed += len(removed)
        self.added_relations += added[: MAX_LISTED - len(self.added_relations)]
        self.removed_relations += removed[: MAX_LISTED - len(self.removed_relations)]

    @property
    def has_changes(self) -> bool:
        """Whether the import changes the catalogue."""
        return bool(self.created or self.updated or self.retired or self.relations_added or self.relations_removed)


def serialize_report(report: ImportReport) -> dict[str, object]:
    """Return the JSON of a report."""
    return {
        "dry_run": report.dry_run,
        "created_vocabulary": report.created_vocabulary,
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
    return {**relation._asdict(), **names}


def serialize_problems(problems: Sequence[FieldProblem]) -> list[dict[str, str]]:
    """Return the JSON of problems or warnings."""
    return [{"where": problem.field, "what": problem.detail} for problem in problems]
