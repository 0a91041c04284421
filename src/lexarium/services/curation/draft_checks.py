"""Validate drafts of records against the catalogue."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lexarium.domain import validation
from lexarium.domain.edit import list_local_targets, qualify_target, to_draft
from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.identifiers import find_target_problem, get_local_id, qualify_id, split_id
from lexarium.domain.record import Record, RecordState, Relation
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection, Fields
from lexarium.domain.schema.relation_types import RelationType
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.store import records, relations, revisions
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

_MAX_HIERARCHY_DEPTH = 1_000

# Checks take a transaction and not its connection: to take that flushes deferred rows, and most drafts need no query.


def list_retirement_warnings(snapshot: Snapshot, record: Record) -> Iterator[str]:
    """Yield warnings about published records that still refer to a retired one."""
    is_class = record.collection.is_class_collection
    for count, reference in (
        (relations.count_referrers(snapshot, record.id), "related to it"),
        (revisions.count_class_members(snapshot, record.id) if is_class else 0, "in this class"),
    ):
        if count:
            yield f"{'1 record is' if count == 1 else f'{count:,} records are'} still {reference}."


def require_replacement(snapshot: Snapshot, record_id: str, replaced_by: str | None) -> None:
    """Raise InvalidInput unless `replaced_by` is None or another published record."""
    collections = COLLECTIONS.list_names(split_id(record_id)[0])
    if replaced_by is not None and (replaced_by == record_id or not _is_published(snapshot, replaced_by, collections)):
        raise InvalidInput(
            "The record cannot be retired so.", [FieldProblem("replaced_by", "names no other published record.")]
        )


def check_draft(
    transaction: Transaction, collection: Collection, draft: Mapping[str, Any], current: Record | None = None
) -> Fields:
    """Return a validated v1 draft; raise InvalidInput with all problems.

    Unchanged fields of the current record are not checked.
    """
    current_draft = to_draft(current) if current else {}
    if current and draft.get("id", current.local_id) != current.local_id:
        raise InvalidInput(
            f"This is not a valid {collection.local_name}.", [FieldProblem("id", "stays as it is: ids do not change.")]
        )
    return _check(
        collection,
        draft,
        lambda: validation.validate_draft(collection, draft, current_draft),
        lambda values: [
            *_find_reference_problems(transaction, collection, values, current_draft),
            *_find_relation_problems(transaction, collection, values.get("relations", {}), current),
        ],
    )


def check_valpha_draft(
    transaction: Transaction, collection: Collection, values: Mapping[str, Any], *, from_form: bool
) -> Fields:
    """Return a validated v-alpha draft of a new record; raise InvalidInput with all problems."""
    return _check(
        collection,
        values,
        lambda: validation.validate_valpha_draft(collection, values, from_form=from_form),
        lambda values: _find_reference_problems(transaction, collection, values, {}),
    )


def _check(
    collection: Collection,
    values: Mapping[str, Any],
    validate: Callable[[], Fields],
    find_problems: Callable[[Mapping[str, Any]], Sequence[FieldProblem]],
) -> Fields:
    """Validate values by themselves, then the valid ones against the catalogue."""
    problems: list[FieldProblem] = []
    draft: Fields = {}
    try:
        draft = validate()
    except InvalidInput as error:
        problems += error.problems
    invalid_fields = {problem.field.split("/")[0] for problem in problems}
    problems += find_problems({name: value for name, value in values.items() if name not in invalid_fields})
    if problems:
        raise InvalidInput(f"This is not a valid {collection.local_name}.", problems)
    return draft


def _find_reference_problems(
    transaction: Transaction, collection: Collection, draft: Mapping[str, Any], current_draft: Mapping[str, Any]
) -> list[FieldProblem]:
    return [
        FieldProblem(name, f"names no {COLLECTIONS[class_collection].local_name} that is in the catalogue.")
        for name, class_collection in collection.class_fields.items()
        if isinstance(value := draft.get(name), str)
        and value not in ("", current_draft.get(name))
        and not _is_published(transaction.flush(), qualify_id(collection.vocabulary, value), [class_collection])
    ]


def _find_relation_problems(
    transaction: Transaction,
    collection: Collection,
    targets_by_type: Mapping[str, Sequence[str]],
    current: Record | None,
) -> list[FieldProblem]:
    problems = []
    for type_name, targets in targets_by_type.items():
        relation_type = collection.relation_types.get(type_name)
        if relation_type is None:
            # One of a further class, or one that no slot declares, may stay.
            if current is not None and set(targets) <= set(list_local_targets(current).get(type_name, ())):
                continue
            problems.append(FieldProblem(f"relations/{type_name}", format_unknown_type(collection)))
            continue
        for index, local_target in enumerate(targets):
            target = qualify_target(collection, type_name, local_target)
            if current is None or Relation(current.id, type_name, target) not in current.relations:
                source_id = current.id if current else None
                problem = find_relation_problem(transaction, collection, relation_type, source_id, target)
                if problem:
                    problems.append(FieldProblem(f"relations/{type_name}/{index}", problem))
    return problems


def format_unknown_type(collection: Collection) -> str:
    """Describe a relation type that the collection does not have."""
    return f"is no relation of a {collection.local_name}; there are {', '.join(collection.relation_types)}."


def find_relation_problem(
    transaction: Transaction, collection: Collection, relation_type: RelationType, source: str | None, target: str
) -> str | None:
    """Return the reason why a relation of a record of this collection cannot be added, or None."""
    if relation_type.is_mapping:
        return find_target_problem(target)
    targets = relation_type.targets[collection.name]
    if not _is_published(transaction.flush(), target, targets):
        names = [COLLECTIONS[name].local_name for name in targets]
        kinds = "record" if len(targets) == len(COLLECTIONS.list_names(collection.vocabulary)) else " or ".join(names)
        return f"names no {kinds} that is in the catalogue."
    if source == target:
        return "is the record itself, which cannot be related to itself."
    if relation_type.is_hierarchical and source is not None and is_ancestor(transaction.flush(), source, target):
        return f"would close a circle: {get_local_id(target)} is below {get_local_id(source)} already."
    return None


def is_ancestor(snapshot: Snapshot, record_id: str, descendant_id: str) -> bool:
    """Return True if a record is above another in the hierarchies."""
    return record_id in relations.walk_hierarchy(
        snapshot, descendant_id, RELATION_TYPES.hierarchical, upward=True, max_depth=_MAX_HIERARCHY_DEPTH
    )


def _is_published(snapshot: Snapshot, record_id: str, collections: Sequence[str]) -> bool:
    row = None if find_unstorable_char(record_id) else records.find(snapshot, record_id)
    return row is not None and row.state == RecordState.PUBLISHED and row.collection in collections
