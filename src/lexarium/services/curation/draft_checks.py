"""Validate drafts of records against the catalogue."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lexarium.domain.editing import validation
from lexarium.domain.editing.edit import get_target, to_draft
from lexarium.domain.errors import Conflict, FieldProblem, InvalidInput
from lexarium.domain.identifiers import (
    MAIN_VOCABULARY,
    find_target_problem,
    get_local_id,
    qualify_id,
    split_id,
)
from lexarium.domain.identity.minting import MintingKind, MintingRule, find_id_problem
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection, Fields
from lexarium.domain.schema.relation_types import RelationType
from lexarium.domain.text.characters import find_control_char
from lexarium.domain.text.nouns import add_article
from lexarium.domain.vocabulary import VOCABULARIES, find_defining_id
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


def find_replacement(snapshot: Snapshot, record: Record, replaced_by: str | None) -> str | None:
    """Return the record that an id in the same vocabulary means; raise InvalidInput unless it is another published one.

    Return None for None.
    """
    if replaced_by is None:
        return None
    vocabulary = record.collection.vocabulary
    replacement = qualify_id(vocabulary, replaced_by)
    if replacement == record.id or not _is_published(
        snapshot, vocabulary, replaced_by, COLLECTIONS.list_names(vocabulary)
    ):
        raise InvalidInput(
            "Cannot retire the record.", [FieldProblem("replaced_by", "must be another published record.")]
        )
    return replacement


def check_draft(
    transaction: Transaction, collection: Collection, draft: Mapping[str, Any], current: Record | None = None
) -> Fields:
    """Return a validated v1 draft; raise InvalidInput with all problems.

    Unchanged fields of the current record are not checked.
    """
    current_draft = to_draft(current) if current else {}
    if current and draft.get("id", current.local_id) != current.local_id:
        raise InvalidInput(f"Invalid {collection.local_name}.", [FieldProblem("id", "cannot be changed.")])
    return _check(
        collection,
        draft,
        lambda: validation.validate_draft(collection, draft, current_draft),
        lambda values: [
            *_find_reference_problems(transaction, collection, values, current_draft),
            *_find_relation_problems(transaction, collection, values.get("relations", {}), current),
        ],
    )


def may_have_id(collection: Collection) -> bool:
    """Return whether an author may choose the id of a new record. `main` mints all ids unless it has a rule."""
    return collection.vocabulary != MAIN_VOCABULARY or VOCABULARIES[MAIN_VOCABULARY].minting_rule is not None


def check_new_draft(transaction: Transaction, collection: Collection, draft: Mapping[str, Any]) -> Fields:
    """Return a validated v1 draft of a new record; raise InvalidInput with all problems, and Conflict for a taken id.

    The draft may have an `id`, and must where the vocabulary mints none. Ids of the main one follow its rule, if any.
    """
    if not may_have_id(collection):
        return check_draft(transaction, collection, draft)
    rule = VOCABULARIES[collection.vocabulary].minting_rule
    local_id = draft.get("id")
    problem = _find_new_id_problem(rule, local_id)
    values = {name: value for name, value in draft.items() if name != "id"}
    try:
        checked = check_draft(transaction, collection, values)
    except InvalidInput as error:
        problems = [] if problem is None else [FieldProblem("id", problem)]
        raise InvalidInput(str(error), [*problems, *error.problems]) from None
    if problem is not None:
        raise InvalidInput(f"Invalid {collection.label}.", [FieldProblem("id", problem)])
    if local_id is None:
        return checked
    if records.find(transaction.flush(), qualify_id(collection.vocabulary, local_id)) is not None:
        raise Conflict(f"ID {local_id} is already used. IDs are never reused.")
    return {"id": local_id, **checked}


def _find_new_id_problem(rule: MintingRule | None, local_id: Any) -> str | None:
    if local_id is None:
        is_required = rule is not None and rule.kind is MintingKind.NONE
        return "is required: this vocabulary has no pattern for new IDs." if is_required else None
    if not isinstance(local_id, str):
        return "must be text."
    problem = find_id_problem(local_id)
    number = None if problem or rule is None else rule.parse_number(local_id)
    if rule is not None and number is not None and rule.format_id(number) != local_id:
        return f"must be written {rule.format_id(number)}, according to the ID pattern of this vocabulary."
    return problem


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
        raise InvalidInput(f"Invalid {collection.label}.", problems)
    return draft


def _find_reference_problems(
    transaction: Transaction, collection: Collection, draft: Mapping[str, Any], current_draft: Mapping[str, Any]
) -> list[FieldProblem]:
    return [
        FieldProblem(name, f"is not a published {COLLECTIONS[class_collection].label}.")
        for name, class_collection in collection.class_fields.items()
        if isinstance(value := draft.get(name), str)
        and value not in ("", current_draft.get(name))
        and not _is_published(transaction.flush(), collection.vocabulary, value, [class_collection])
    ]


def _find_relation_problems(
    transaction: Transaction,
    collection: Collection,
    entries_by_type: Mapping[str, Sequence[Any]],
    current: Record | None,
) -> list[FieldProblem]:
    problems = []
    for type_name, entries in entries_by_type.items():
        targets = list(map(get_target, entries))
        relation_type = collection.relation_types.get(type_name)
        if relation_type is None:
            # One of a further class, or one that no slot declares, may stay.
            if current is not None and set(targets) <= set(current.relation_targets.get(type_name, ())):
                continue
            problems.append(FieldProblem(f"relations/{type_name}", format_unknown_type(collection)))
            continue
        for index, target in enumerate(targets):
            if current is None or target not in current.relation_targets.get(type_name, ()):
                source_id = current.id if current else None
                problem = find_relation_problem(transaction, collection, relation_type, source_id, target)
                if problem:
                    problems.append(FieldProblem(f"relations/{type_name}/{index}", problem))
    return problems


def format_unknown_type(collection: Collection) -> str:
    """Describe a relation type that the collection does not have."""
    return f"is not a relation of {add_article(collection.label)}; valid: {', '.join(collection.relation_types)}."


def find_relation_problem(
    transaction: Transaction, collection: Collection, relation_type: RelationType, source: str | None, target: str
) -> str | None:
    """Return the reason why a relation of a record of this collection cannot be added, or None.

    The target is an id in the vocabulary of the collection; of a mapping, an IRI or CURIE.
    """
    if relation_type.is_mapping:
        return find_target_problem(target)
    vocabulary, targets = collection.vocabulary, relation_type.targets[collection.name]
    target_id = qualify_id(vocabulary, target)
    # A range of none is that of IRIs and CURIEs.
    if targets and not _is_published(transaction.flush(), vocabulary, target, targets):
        is_any = len(targets) == len(COLLECTIONS.list_names(vocabulary))
        kinds = "record" if is_any else " or ".join(COLLECTIONS[name].label for name in targets)
        return f"is not a published {kinds}."
    if not targets and (problem := find_target_problem(target)):
        return problem
    if source == target_id:
        return "must not be the record itself."
    if relation_type.is_hierarchical and source is not None and is_ancestor(transaction.flush(), source, target_id):
        return f"would create a cycle: {target} is already below {get_local_id(source)}."
    return None


def is_ancestor(snapshot: Snapshot, record_id: str, descendant_id: str) -> bool:
    """Return True if a record is above another in the hierarchies."""
    return record_id in relations.walk_hierarchy(
        snapshot, descendant_id, RELATION_TYPES.hierarchical, upward=True, max_depth=_MAX_HIERARCHY_DEPTH
    )


def _is_published(snapshot: Snapshot, vocabulary: str, local_id: str, collections: Sequence[str]) -> bool:
    """Return whether an id is that of a published record of these collections.

    An id that its own vocabulary does not have may be that of a public one which defines its prefix.
    """
    if find_control_char(local_id):
        return False
    record_id = qualify_id(vocabulary, local_id)
    row = records.find(snapshot, record_id)
    if row is None and (defining_id := find_defining_id(record_id)):
        row = records.find(snapshot, defining_id)
        is_public = not VOCABULARIES[split_id(defining_id)[0]].is_private
        return is_public and row is not None and row.state == RecordState.PUBLISHED
    return row is not None and row.state == RecordState.PUBLISHED and row.collection in collections
