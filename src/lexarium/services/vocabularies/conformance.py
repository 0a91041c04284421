"""Find the records of a vocabulary that do not conform to its schema."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lexarium.domain.errors import FieldProblem
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.nouns import add_article
from lexarium.domain.validation import find_slot_problems
from lexarium.store import records, rerendering
from lexarium.store.position import Snapshot

_MAX_LISTED = 20


@dataclass
class ConformanceReport:
    """Records that do not conform: their number, and the first ones with their problems."""

    count: int = 0
    first: list[tuple[Record, list[FieldProblem]]] = field(default_factory=list)


def check_conformance(snapshot: Snapshot, slug: str) -> ConformanceReport:
    """Check the published records of a vocabulary: required slots, patterns, enumerations, numbers and references."""
    report = ConformanceReport()
    for batch in rerendering.iter_records(snapshot, COLLECTIONS.list_names(slug)):
        published = [record for record in batch if record.state is RecordState.PUBLISHED]
        targets = {relation.target for record in published for relation in record.relations}
        collections = records.find_collections(snapshot, sorted(targets))
        for record in published:
            problems = [*find_slot_problems(record), *_find_range_problems(record, collections)]
            if problems:
                report.count += 1
                if len(report.first) < _MAX_LISTED:
                    report.first.append((record, problems))
    return report


def _find_range_problems(record: Record, collections: Mapping[str, str]) -> list[FieldProblem]:
    problems = []
    for relation in sorted(record.relations):
        relation_type = record.collection.relation_types.get(relation.relation)
        allowed = () if relation_type is None else relation_type.targets.get(record.collection.name, ())
        found = COLLECTIONS.get(collections.get(relation.target, ""))
        if allowed and found is not None and found.name not in allowed:
            target = f"{get_local_id(relation.target)} is {add_article(found.label)}"
            expected = ", ".join(COLLECTIONS[name].label for name in allowed)
            problems.append(FieldProblem(relation.relation, f"{target}, and should be one of {expected}."))
    return problems
