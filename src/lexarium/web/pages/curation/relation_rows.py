"""Rows of relations in the form of a new record: a type, and the name or id of a target."""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.identifiers import get_local_id, qualify_id
from lexarium.domain.schema.collections import Collection
from lexarium.domain.schema.predicates import IMPLIED_PREDICATES
from lexarium.domain.schema.relation_types import RelationType
from lexarium.domain.text.characters import find_control_char, name_key
from lexarium.services.records.lookup import find_existing_ids
from lexarium.services.records.relation_groups import sort_relation_types
from lexarium.store.position import Snapshot
from lexarium.web.pages.curation.record_picker import find_choices
from lexarium.web.pages.form_fields import FormValues, get_text
from lexarium.web.site import Site

_EMPTY_ROWS = 3
_MAX_ROWS = 100
# As the completion of a name fills it in: memory [trm_123].
_NAME_WITH_ID = re.compile(r".*\[([^\[\]]+)\]\s*", re.DOTALL)


@dataclass(frozen=True)
class RelationRow:
    """A row of the form."""

    type_name: str
    target: str


def list_types(collection: Collection, used: Container[str], *, is_mapping: bool = False) -> dict[str, RelationType]:
    """Return the relation types to offer, the most important first: mappings, or those to records of the vocabulary.

    Those that follow from others are offered only if they are used.
    """
    types = collection.relation_types
    return {
        name: types[name]
        for name in sort_relation_types(types)
        if types[name].is_mapping == is_mapping and (types[name].predicate not in IMPLIED_PREDICATES or name in used)
    }


def parse_rows(fields: FormValues) -> list[RelationRow]:
    """Return the rows of a form that have a target."""
    rows = [
        RelationRow(
            get_text(fields, f"relations.{number}.type"), get_text(fields, f"relations.{number}.target").strip()
        )
        for number in range(_MAX_ROWS)
    ]
    return [row for row in rows if row.target]


def add_empty_rows(rows: Sequence[RelationRow], types: Mapping[str, RelationType]) -> list[RelationRow]:
    """Return the rows to show: those with a target, and empty ones, of which the first is for a parent."""
    if not types:
        return []
    parent_type = next((name for name, item in types.items() if item.is_hierarchical), next(iter(types)))
    return [*rows, *[RelationRow(parent_type, "")] * _EMPTY_ROWS]


def resolve(
    site: Site, snapshot: Snapshot, collection: Collection, rows: Sequence[RelationRow]
) -> dict[str, list[str]]:
    """Return the relations of a draft; raise InvalidInput for targets that are no record, or may be several."""
    relations: dict[str, list[str]] = {}
    problems = []
    for row in rows:
        found = _find_targets(site, snapshot, collection, row)
        if len(found) == 1:
            relations.setdefault(row.type_name, []).append(found[0])
        elif found:
            problems.append(f"{row.target} is the name of several records: {', '.join(found)}. Enter the ID of one.")
        else:
            problems.append(f"{row.target} was not found. Enter the name or ID of a record.")
    if problems:
        raise InvalidInput("Invalid relations.", [FieldProblem("relations", " ".join(problems))])
    return relations


def _find_targets(site: Site, snapshot: Snapshot, collection: Collection, row: RelationRow) -> list[str]:
    relation_type = collection.relation_types.get(row.type_name)
    if relation_type is None or relation_type.is_mapping:
        return []
    match = _NAME_WITH_ID.fullmatch(row.target)
    for local_id in [match.group(1)] if match else []:
        if _exists(snapshot, collection, local_id):
            return [local_id]
    if _exists(snapshot, collection, row.target):
        return [row.target]
    choices = find_choices(site, row.target, relation_type.targets[collection.name], "")
    return [get_local_id(item.id) for item in choices if name_key(item.name) == name_key(row.target)]


def _exists(snapshot: Snapshot, collection: Collection, local_id: str) -> bool:
    return not find_control_char(local_id) and bool(
        find_existing_ids(snapshot, [qualify_id(collection.vocabulary, local_id)])
    )
