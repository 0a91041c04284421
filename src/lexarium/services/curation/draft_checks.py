"""Validate drafts of records against the catalogue."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lexarium.domain import validation
from lexarium.domain.edit import to_draft
from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.identifiers import find_target_problem
from lexarium.domain.record import Record, RecordState, Relation, build_relations
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.relation_types import HIERARCHICAL_TYPES, RelationType
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.store import records, relations, revisions
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

MAX_HIERARCHY_DEPTH = 1_000


def list_retirement_warnings(connection: Snapshot, record: Record) -> Iterator[str]:
    """What to tell of the published records that name one which is retired, or is to be."""
    related_count = relations.count_referrers(connection, record.id)
    if related_count:
        yield f"{_format_count(related_count)} still related to it."
    member_count = revisions.count_class_members(connection, record.id) if record.collection.is_class_collection else 0
    if member_count:
        yield f"{_format_count(member_count)} still in this class."


def _format_count(number: int) -> str:
    return "1 record is" if number == 1 else f"{number:,} records are"


def require_replacement(connection: Snapshot, record_id: str, replaced_by: str | None) -> None:
    """Raise `Invalid` where one record, which is not None, cannot stand in for another."""
    if replaced_by is None:
        return
    replacement = None if find_unstorable_char(replaced_by) else records.find(connection, replaced_by)
    if replacement is None or replacement.state != RecordState.PUBLISHED or replaced_by == record_id:
        raise InvalidInput(
            "The record cannot be retired so.", [FieldProblem("replaced_by", "names no other published record.")]
        )


def check_draft(
    transaction: Transaction, collection: Collection, draft: Mapping[str, Any], current: Record | None = None
) -> dict[str, Any]:
    """A draft of v1, held to the rules, with every record it refers to looked up. All problems at once.

    Of an old record, only what is changed is held to them.
    """
    current_draft = to_draft(current) if current else None
    problems: list[FieldProblem] = []
    checked_draft: dict[str, Any] = {}
    try:
        checked_draft = validation.validate_draft(collection, draft, current_draft)
    except InvalidInput as error:
        problems += error.problems
    invalid_fields = {problem.field.split("/")[0] for problem in problems}
    problems += find_reference_problems(
        transaction, collection, {k: v for k, v in draft.items() if k not in invalid_fields}, current_draft or {}
    )
    if "relations" in draft and "relations" not in invalid_fields:
        current_relations = build_relations(current.id, current.relation_targets) if current else frozenset()
        problems += _find_relation_problems(
            transaction, collection, current.id if current else None, draft["relations"], current_relations
        )
    if problems:
        raise InvalidInput(f"This is not a valid {collection.name}.", problems)
    return checked_draft


def find_reference_problems(
    transaction: Transaction, collection: Collection, draft: Mapping[str, Any], current_draft: Mapping[str, Any]
) -> list[FieldProblem]:
    """What is wrong with the fields that name other records, where they are not as `kept` says."""
    problems = []
    for name, id_field in collection.id_fields.items():
        value = draft.get(name)
        if id_field.collection and isinstance(value, str) and value and value != current_draft.get(name):
            row = records.find(transaction.connection, value)
            if row is None or row.collection != id_field.collection or row.state != RecordState.PUBLISHED:
                problems.append(FieldProblem(name, f"names no {id_field.collection} that is in the catalogue."))
    return problems


def _find_relation_problems(
    transaction: Transaction,
    collection: Collection,
    record_id: str | None,
    targets_by_type: Mapping[str, Sequence[str]],
    current_relations: frozenset[Relation],
) -> list[FieldProblem]:
    problems = []
    for type_name, targets in targets_by_type.items():
        relation_type = collection.relation_types.get(type_name)
        if relation_type is None:
            problems.append(FieldProblem(f"relations/{type_name}", format_unknown_type(collection)))
            continue
        for index, target in enumerate(targets):
            if record_id is None or Relation(record_id, type_name, target) not in current_relations:
                problem = find_relation_problem(transaction, relation_type, record_id, target)
                if problem:
                    problems.append(FieldProblem(f"relations/{type_name}/{index}", problem))
    return problems


def format_unknown_type(collection: Collection) -> str:
    """Describe a relation type that the collection does not have."""
    return f"is no relation of a {collection.name}; there are {', '.join(collection.relation_types)}."


def find_relation_problem(
    transaction: Transaction, relation_type: RelationType, source: str | None, target: str
) -> str | None:
    """Why a relation cannot be made, or None."""
    if relation_type.target_collection is None:
        return find_target_problem(target)
    row = None if find_unstorable_char(target) else records.find(transaction.connection, target)
    if row is None or row.collection != relation_type.target_collection or row.state != RecordState.PUBLISHED:
        return f"names no {relation_type.target_collection} that is in the catalogue."
    if source == target:
        return "is the record itself, which cannot be related to itself."
    if relation_type.is_hierarchical and source is not None:
        ancestors = relations.walk_hierarchy(
            transaction.connection, target, HIERARCHICAL_TYPES, upward=True, max_depth=MAX_HIERARCHY_DEPTH
        )
        if source in ancestors:
            return f"would close a circle: {target} is below {source} already."
    return None
