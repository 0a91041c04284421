"""Report of an import: counts, affected records, conflicts and warnings."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Literal, TypeVar, get_args

from lexarium.domain.editing.statement_merge import MergeConflict, diff_statements
from lexarium.domain.errors import FieldProblem, ImportRejected
from lexarium.domain.identifiers import MAIN_VOCABULARY, get_local_id
from lexarium.domain.record import Record, Relation, get_text
from lexarium.domain.schema.collections import Collection
from lexarium.domain.statement import Node, Statement, Text

T = TypeVar("T")

MAX_KEPT = 1_000
# Of warnings all are kept, within reason.
_MAX_WARNINGS = 100_000
# Examples of each kind of warning.
MAX_EXAMPLES = 3
# The parts of a message that differ between warnings of one kind: quoted texts, ids, paths and numbers.
_VARIABLE_PART = re.compile(
    r"'[^']*'|\"[^\"]*\"|<[^>]*>|(?<![\w:])[\w.-]+[:_][^\s,;()]+|(?<!\S)/[^\s,;]+|(?<!\w)\d[\d,.]*(?!\w)"
)
# Records of each kind, and relations.
_MAX_RECORDS = 10_000
_MAX_RELATIONS = 100

AffectedKind = Literal["adopted", "created", "updated", "retired", "refused"]


@dataclass
class BoundedList(Generic[T]):
    """A list that keeps its first items and counts all."""

    items: list[T] = field(default_factory=list)
    count: int = 0
    max_kept: int = MAX_KEPT

    def append(self, item: T) -> None:
        """Count an item, and keep it if there is room."""
        self.count += 1
        if len(self.items) < self.max_kept:
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


@dataclass
class WarningKind:
    """Warnings that differ only in what they are about."""

    message: str
    # Whether they are about what is in the file, but not in the catalogue.
    is_loss: bool
    count: int = 0
    # The first few.
    examples: list[FieldProblem] = field(default_factory=list)


@dataclass
class WarningList(BoundedList[FieldProblem]):
    """Warnings, each with its location, and how many there are of each kind."""

    max_kept: int = _MAX_WARNINGS
    _kinds: dict[str, WarningKind] = field(default_factory=dict)

    def add(self, location: str, message: str, subject: str = "", *, is_loss: bool = False) -> None:
        """Append a warning about a subject. Without one, the kind is the message without its ids and numbers."""
        problem = FieldProblem(location, f"{subject}: {message}" if subject else message)
        self.append(problem)
        name = message if subject else _VARIABLE_PART.sub("…", message)
        kind = self._kinds.setdefault(name, WarningKind(name, is_loss))
        kind.count += 1
        if len(kind.examples) < MAX_EXAMPLES:
            kind.examples.append(problem)

    @property
    def kinds(self) -> list[WarningKind]:
        """Kinds of warnings: those of a loss first, then the most frequent."""
        return sorted(self._kinds.values(), key=lambda kind: (not kind.is_loss, -kind.count))


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
    # Values of these fields that are removed and added, as texts; empty where only the names are known.
    changes: Sequence["ValueChange"] = ()


@dataclass(frozen=True)
class ValueChange:
    """Values of a field that an import removes and adds."""

    field: str
    removed: Sequence[str]
    added: Sequence[str]


@dataclass
class ImportReport:
    """Result of an import or a dry run. The changes after `base_revision`, up to `last_revision`, are the import's."""

    dry_run: bool
    # Slug of the vocabulary that the import writes to.
    vocabulary: str = MAIN_VOCABULARY
    is_new_vocabulary: bool = False
    # Slugs of the vocabularies that JSON Lines have created.
    new_vocabularies: list[str] = field(default_factory=list)
    base_revision: int = 0
    last_revision: int = 0
    # Records that got the id of a term. They are also among those that are updated, retired or unchanged.
    adopted: Counter[str] = field(default_factory=Counter)
    created: Counter[str] = field(default_factory=Counter)
    updated: Counter[str] = field(default_factory=Counter)
    retired: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    # Each one has a warning.
    skipped: int = 0
    # Changes of the metadata of a vocabulary that was there before.
    metadata: list[ValueChange] = field(default_factory=list)
    relations_added: int = 0
    relations_removed: int = 0
    affected: dict[AffectedKind, list[AffectedRecord]] = field(
        default_factory=lambda: {kind: [] for kind in get_args(AffectedKind)}
    )
    added_relations: list[Relation] = field(default_factory=list)
    removed_relations: list[Relation] = field(default_factory=list)
    # Names of the records that the listed relations connect, by id.
    names: dict[str, str] = field(default_factory=dict)
    warnings: WarningList = field(default_factory=WarningList)
    conflicts: BoundedList[ImportConflict] = field(default_factory=BoundedList)

    def has_room(self, kind: AffectedKind) -> bool:
        """Return whether another record of a kind would be listed."""
        return len(self.affected[kind]) < _MAX_RECORDS

    def add_record(  # noqa: PLR0913, PLR0917 (the attributes of a listed record)
        self,
        kind: AffectedKind,
        record_id: str,
        collection: str,
        name: str,
        fields: Sequence[str] = (),
        changes: Sequence[ValueChange] = (),
    ) -> None:
        """Count a record, and list it with its changed fields if there is room."""
        collection = collection.rpartition("/")[2]
        if kind == "refused":
            self.skipped += 1
        else:
            getattr(self, kind)[collection] += 1
        if self.has_room(kind):
            self.affected[kind].append(AffectedRecord(get_local_id(record_id), collection, name, fields, changes))

    def add_conflict(self, where: str, record: str, conflict: MergeConflict) -> None:
        """Add a conflict between statements of people and of a file."""
        first, *_ = conflict.theirs or conflict.ours
        ours, theirs = ("; ".join(map(format_value, side)) for side in conflict)
        self.conflicts.append(ImportConflict(where, record, first.predicate, ours, theirs))

    def add_relations(self, added: Sequence[Relation], removed: Sequence[Relation]) -> None:
        """Count relations, and list those for which there is room."""
        added, removed = ([_to_local(relation) for relation in relations] for relations in (added, removed))
        self.relations_added += len(added)
        self.relations_removed += len(removed)
        self.added_relations += added[: _MAX_RELATIONS - len(self.added_relations)]
        self.removed_relations += removed[: _MAX_RELATIONS - len(self.removed_relations)]

    @property
    def has_changes(self) -> bool:
        """Return whether the import changes the catalogue."""
        counts = self.adopted, self.created, self.updated, self.retired
        return any(counts) or bool(self.relations_added or self.relations_removed or self.metadata)


def _to_local(relation: Relation) -> Relation:
    return Relation(get_local_id(relation.source), relation.relation, get_local_id(relation.target))


def format_value(statement: Statement) -> str:
    """Return the value of a statement as a text for people."""
    text = get_text(statement.value)
    if text is not None:
        return text.text
    if isinstance(statement.value, Node):
        return statement.value.iri or "; ".join(map(format_value, statement.value.statements))
    return str(statement.value[0])


def list_value_changes(before: Record, after: Record) -> list[ValueChange]:
    """Return what differs between two versions, by the name of the slot or else the predicate."""
    changes = list_statement_changes(before.statements, after.statements, after.collection)
    if before.state != after.state:
        changes.append(ValueChange("state", [before.state], [after.state]))
    return changes


def list_statement_changes(
    before: Iterable[Statement], after: Iterable[Statement], collection: Collection
) -> list[ValueChange]:
    """Return which statements differ, by the name of the slot or else the predicate."""
    slots = collection.schema_class.slots_by_predicate
    removed, added = diff_statements(before, after)
    # These differ by their qualifiers only.
    alike = {item[:2] for item in removed} & {item[:2] for item in added}
    changes: dict[str, tuple[list[str], list[str]]] = {}
    for index, side in enumerate((removed, added)):
        for statement in side:
            slot = slots.get(statement.predicate)
            texts = changes.setdefault(slot.name if slot else statement.predicate, ([], []))
            lang = statement.value.lang if isinstance(statement.value, Text) else ""
            text = format_value(statement) + (f" ({lang})" if lang else "")
            if statement[:2] in alike and statement.qualifiers:
                qualifiers = (f"{item.predicate} {format_value(item)}" for item in statement.qualifiers)
                text += f" [{'; '.join(qualifiers)}]"
            texts[index].append(text)
    return [ValueChange(name, *sides) for name, sides in changes.items()]


def serialize_report(report: ImportReport, max_records: int = _MAX_RECORDS) -> dict[str, object]:
    """Return the JSON of a report, with at most so many records of each kind."""
    return {
        "dry_run": report.dry_run,
        "vocabulary": report.vocabulary,
        "created_vocabulary": report.vocabulary if report.is_new_vocabulary else None,
        "changed": report.has_changes,
        "since": report.base_revision,
        "until": report.last_revision,
        "adopted": report.adopted,
        "created": report.created,
        "updated": report.updated,
        "retired": report.retired,
        "unchanged": report.unchanged,
        "refused": report.skipped,
        "metadata": [asdict(change) for change in report.metadata],
        "relations_added": report.relations_added,
        "relations_removed": report.relations_removed,
        "records": {
            kind: [asdict(item) for item in affected[:max_records]] for kind, affected in report.affected.items()
        },
        "relations": {
            "added": [_serialize_relation(report, relation) for relation in report.added_relations],
            "removed": [_serialize_relation(report, relation) for relation in report.removed_relations],
        },
        "conflict_count": report.conflicts.count,
        "conflicts": [asdict(item) for item in report.conflicts.items],
        "warning_count": report.warnings.count,
        "warning_kinds": [
            {"what": kind.message, "count": kind.count, "examples": serialize_problems(kind.examples)}
            for kind in report.warnings.kinds
        ],
        "warnings": serialize_problems(report.warnings.items),
    }


def _serialize_relation(report: ImportReport, relation: Relation) -> dict[str, str | None]:
    names = {"source_name": report.names.get(relation.source), "target_name": report.names.get(relation.target)}
    return {**relation._asdict(), **names}


def serialize_problems(problems: Sequence[FieldProblem]) -> list[dict[str, str]]:
    """Return the JSON of problems or warnings."""
    return [{"where": problem.field, "what": problem.detail} for problem in problems]
