"""Report what does not conform in a vocabulary: names, hierarchy, references, values and translations."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from urllib.parse import quote

from lexarium.domain.hierarchy import find_cycles
from lexarium.domain.identifiers import get_local_id, qualify_id, split_id
from lexarium.domain.record import Record, Relation
from lexarium.domain.record_texts import list_language_texts
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection
from lexarium.domain.schema.model import Slot
from lexarium.domain.statement import Node, Statement
from lexarium.domain.vocabulary import Vocabulary
from lexarium.services.vocabularies.access import ReadScope
from lexarium.services.vocabularies.references import find_missing
from lexarium.store import records, relations
from lexarium.store.maintenance import integrity
from lexarium.store.position import Snapshot
from lexarium.store.queries import hierarchy_queries

# Findings of one kind that are listed; all are counted.
MAX_EXAMPLES = 50
_MAX_CYCLES = 10_000
_MAX_SHOWN_TEXT = 80

# Kinds of findings, with a heading for each.
KINDS = {
    "missing_name": "Without a name",
    "cycle": "Cycles in the hierarchy",
    "orphan": "Not in the hierarchy",
    "missing_target": "References to missing records",
    "repeated_name": "Duplicate names",
    "invalid_value": "Invalid values",
    "outdated_translation": "Outdated translations",
}
_PATTERNS = {
    "integer": (re.compile(r"[+-]?[0-9]+"), "not a whole number"),
    "boolean": (re.compile(r"true|false|1|0"), "not true or false"),
    "date": (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), "not a date"),
    "datetime": (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?"), "not a date and time"),
}
_NUMBERS = ("float", "double", "decimal")


@dataclass(frozen=True)
class Finding:
    """Something that does not conform."""

    # As the owner of the record gave it.
    id: str
    name: str
    detail: str
    # Page on which it can be mended.
    path: str


@dataclass
class FindingGroup:
    """Findings of one kind: their exact number, and the first of them."""

    kind: str
    title: str
    total: int = 0
    examples: list[Finding] = field(default_factory=list)


@dataclass
class ConformanceReport:
    """Conformance report of a vocabulary."""

    vocabulary: str
    # Number of records that were checked: the published ones.
    records: int = 0
    groups: dict[str, FindingGroup] = field(
        default_factory=lambda: {kind: FindingGroup(kind, title) for kind, title in KINDS.items()}
    )

    @property
    def total(self) -> int:
        """Number of findings of all kinds."""
        return sum(group.total for group in self.groups.values())

    def add(self, kind: str, record_id: str, name: str, detail: str) -> None:
        """Count a finding, and keep it unless there are enough of its kind."""
        group = self.groups[kind]
        group.total += 1
        if len(group.examples) < MAX_EXAMPLES:
            group.examples.append(Finding(get_local_id(record_id), name, detail, _build_edit_path(record_id)))


def _build_edit_path(record_id: str) -> str:
    slug, local_id = split_id(record_id)
    return f"/edit/{quote(local_id, safe='')}?vocabulary={slug}"


def check_conformance(snapshot: Snapshot, vocabulary: Vocabulary, readable: Sequence[str]) -> ConformanceReport:
    """Check the published records of a vocabulary. References may go to those vocabularies that are readable.

    Records are read in batches, so memory does not grow with their number.
    """
    report = ConformanceReport(vocabulary.slug)
    hierarchies: dict[tuple[str, ...], None] = {}
    for collection in vocabulary.collections:
        for changes in integrity.iter_published(snapshot, collection.name):
            batch = [change.to_record() for change in changes]
            report.records += len(batch)
            references = [list(_iter_references(record)) for record in batch]
            target_ids = {item.target for group in references for item in group}
            found = records.find_collections(snapshot, sorted(target_ids))
            missing = find_missing(snapshot, map(get_local_id, target_ids - found.keys()), ReadScope(tuple(readable)))
            for record, own_references in zip(batch, references, strict=True):
                _check_record(report, record, own_references, found, missing)
        for repeated in integrity.iter_repeated_names(snapshot, collection.name):
            detail = f"{repeated.number:,} records have this name."
            report.add("repeated_name", repeated.record_id, repeated.name, detail)
        if collection.hierarchical_types:
            hierarchies[collection.hierarchical_types] = None
            _check_orphans(snapshot, report, collection)
    for type_names in hierarchies:
        _check_hierarchy(snapshot, report, vocabulary.slug, type_names)
    return report


def _check_orphans(snapshot: Snapshot, report: ConformanceReport, collection: Collection) -> None:
    """Report the records without a place in a hierarchy that others of the collection are in."""
    arguments = snapshot, collection.name, collection.hierarchical_types, collection.top_types, MAX_EXAMPLES
    if not hierarchy_queries.find_roots(*arguments).total:
        return
    orphans = hierarchy_queries.find_orphans(*arguments)
    names = records.find_names(snapshot, orphans.ids)
    for record_id in orphans.ids:
        detail = f"This {collection.label} has neither a parent nor a child."
        report.add("orphan", record_id, names.get(record_id, ""), detail)
    report.groups["orphan"].total += orphans.total - len(orphans.ids)


def _check_hierarchy(snapshot: Snapshot, report: ConformanceReport, slug: str, type_names: Sequence[str]) -> None:
    inner = relations.iter_inner_relations(snapshot, type_names)
    cycles = find_cycles((relation for relation in inner if split_id(relation.source)[0] == slug), _MAX_CYCLES)
    names = records.find_names(snapshot, [cycle[0] for cycle in cycles])
    for cycle in cycles:
        report.add("cycle", cycle[0], names.get(cycle[0], ""), " → ".join(map(get_local_id, cycle)))


def _iter_references(record: Record) -> Iterator[Relation]:
    """Yield the relations of a record, with the fields that refer to records, but without mappings."""
    for relation in sorted(record.relations):
        if not RELATION_TYPES[relation.relation].is_mapping:
            yield relation
    for name in record.collection.class_fields:
        if record.fields[name]:
            yield Relation(record.id, name, qualify_id(record.collection.vocabulary, record.fields[name]))


def _check_record(
    report: ConformanceReport,
    record: Record,
    references: Iterable[Relation],
    targets: Mapping[str, str],
    missing: Set[str],
) -> None:
    """Check a record. Targets are the collections of records in its vocabulary; other ones may be elsewhere."""
    name, collection = record.fields["name"], record.collection
    if collection.name_predicates and not name.strip():
        report.add("missing_name", record.id, "", f"This {collection.label} has no name.")
    for _, type_name, target in references:
        label, local_id = RELATION_TYPES[type_name].label, get_local_id(target)
        allowed = _list_range(collection, type_name)
        if local_id in missing:
            # Values of slots for IRIs and CURIEs need not be records.
            if allowed or type_name not in collection.relation_types:
                report.add("missing_target", record.id, name, f"{label}: {local_id} does not exist.")
        elif allowed and target in targets and targets[target] not in allowed:
            labels = " or ".join(COLLECTIONS[item].label for item in allowed)
            found = COLLECTIONS[targets[target]].label if targets[target] in COLLECTIONS else "a record elsewhere"
            report.add("invalid_value", record.id, name, f"{label}: {local_id} is {found}, not {labels}.")
    for detail in _list_value_problems(record):
        report.add("invalid_value", record.id, name, detail)
    for text in list_language_texts(record):
        if text.is_outdated:
            detail = f"The {text.field} in {text.lang} translates an earlier text: {_shorten(text.text)}"
            report.add("outdated_translation", record.id, name, detail)


def _list_range(collection: Collection, type_name: str) -> Sequence[str]:
    """Return the collections that a relation type or a field allows as targets; none for any."""
    if type_name in collection.class_fields:
        return (collection.class_fields[type_name],)
    relation_type = collection.relation_types.get(type_name)
    return relation_type.targets[collection.name] if relation_type else ()


def _list_value_problems(record: Record) -> Iterator[str]:
    """Yield what is wrong with the values of slots: missing, several of one, or others than the schema allows."""
    by_predicate: dict[str, list[Statement]] = {}
    for statement in record.own_statements:
        by_predicate.setdefault(statement.predicate, []).append(statement)
    for slot in record.collection.schema_class.slots.values():
        statements = by_predicate.get(slot.predicate)
        if not statements:
            is_shown_elsewhere = slot.identifier or slot.name in record.assigned
            if slot.required and not is_shown_elsewhere and slot.editable:
                yield f"{slot.label} is required."
            continue
        if not slot.multivalued and len(statements) > 1:
            languages = {statement.value[1] if len(statement.value) == 3 else "" for statement in statements}
            if len(statements) > len(languages):
                yield f"{slot.label} has {len(statements)} values, but must have one."
        for statement in statements:
            problem = None if isinstance(statement.value, Node) else _find_value_problem(slot, statement.value[0])
            if problem:
                yield f"{slot.label}: {_shorten(str(statement.value[0]))} {problem}."


def _find_value_problem(slot: Slot, text: str) -> str | None:
    if slot.enum_values:
        values = [value.text for value in slot.enum_values]
        if text not in values:
            return f"is not one of {', '.join(values[:20])}"
    if slot.pattern and not re.fullmatch(slot.pattern, text):
        return f"does not match {slot.pattern}"
    pattern, description = _PATTERNS.get(slot.range, (None, ""))
    if pattern and not pattern.fullmatch(text):
        return f"is {description}"
    return "is not a number" if slot.range in _NUMBERS and not _is_number(text) else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN_TEXT else f"{text[:_MAX_SHOWN_TEXT]}…"
