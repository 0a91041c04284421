"""Queries for relations."""

from collections import defaultdict
from collections.abc import Collection as Items
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection, Select, bindparam, select, union_all

from lexarium.domain.cache_tags import record_tags
from lexarium.domain.identifiers import MAIN_VOCABULARY, qualify_id, split_id
from lexarium.domain.record import RecordState, RelatedRecord, Relation, sort_related
from lexarium.domain.schema.collections import DERIVED_PATHS, EXACT_MATCH, RELATION_TYPES
from lexarium.domain.schema.relation_types import Side
from lexarium.domain.vocabulary import VOCABULARIES, find_defining_id
from lexarium.store.dependencies import add_cache_tags, depend_on
from lexarium.store.engine.position_queries import SELECT_POSITION
from lexarium.store.position import Position
from lexarium.store.records import (
    IS_PUBLISHED,
    STREAM_OPTIONS,
    RecordRow,
    batched,
    count_rows,
    find_collections_and_names,
    find_existing_ids,
    find_names,
)
from lexarium.store.schema import catalogue_table, record_table, relation_table
from lexarium.store.vocabularies import find_by_alternative_ids

# Sort key and id of a record in its collection.
SortKey = tuple[str, str]

_record, _relation = record_table.c, relation_table.c
_POSITION_LENGTH = len(Position._fields)


def find_by_sources(connection: Connection, source_ids: Items[str]) -> dict[str, frozenset[Relation]]:
    """Return the relations of sources (at most BATCH_SIZE), by source."""
    relations_by_source: dict[str, set[Relation]] = defaultdict(set)
    for relation in _iter_relations(connection, _relation.source.in_(source_ids)):
        relations_by_source[relation.source].add(relation)
    return {source_id: frozenset(relations) for source_id, relations in relations_by_source.items()}


def find_touching(connection: Connection, record_ids: Items[str]) -> set[Relation]:
    """Return the relations that have one of these ids as source or target."""
    relations = set(_iter_relations(connection, _relation.source.in_(record_ids)))
    relations.update(_iter_relations(connection, _relation.target.in_(record_ids)))
    return relations


def count_referrers(connection: Connection, target_id: str) -> int:
    """Return the number of other published records that have a relation to this one."""
    return count_rows(connection, _select_referrers(target_id).subquery())


def list_referrers(connection: Connection, target_id: str, limit: int) -> list[str]:
    """Return the ids of these records by name."""
    query = _select_referrers(target_id).order_by(_record.name_key, _record.id).limit(limit)
    return list(connection.execute(query).scalars())


def _select_referrers(target_id: str) -> Select[Any]:
    source_ids = select(_relation.source).where(_relation.target == target_id, _relation.source != target_id)
    return select(_record.id).where(_record.id.in_(source_ids), IS_PUBLISHED)


def iter_inner_relations(connection: Connection, type_names: Items[str]) -> Iterator[Relation]:
    """Yield the relations of these types whose source is also the target of one. Leaves have none."""
    child = relation_table.alias().c
    has_children = sa.exists().where(child.target == _relation.source, child.relation.in_(type_names))
    return _iter_relations(connection, _relation.relation.in_(type_names) & has_children)


def has_any(connection: Connection) -> bool:
    """Return whether there are any relations."""
    return connection.execute(select(_relation.source).limit(1)).first() is not None


class ExactMatch(NamedTuple):
    """Record that has an exact match to an external target."""

    id: str
    collection: str


def find_exact_matches(connection: Connection, targets: Items[str]) -> dict[str, list[ExactMatch]]:
    """Return the records with an exact match to targets (at most BATCH_SIZE), by target; published ones first."""
    query = select(_relation.target, _record.id, _record.collection).join(record_table, _record.id == _relation.source)
    query = query.where(_relation.target.in_(targets), _relation.relation == EXACT_MATCH.name)
    query = query.where(_record.state != RecordState.MERGED).order_by(~IS_PUBLISHED, _record.id)
    matches: dict[str, list[ExactMatch]] = defaultdict(list)
    for target, record_id, collection in connection.execute(query):
        matches[target].append(ExactMatch(record_id, collection))
    return matches


def walk_hierarchy(
    connection: Connection, start: str, type_names: Items[str], *, upward: bool, max_depth: int
) -> dict[str, int]:
    """Return the ids reached from a record along these relations, each with its smallest depth.

    The walk goes level by level and visits each record once, so cycles end it.
    """
    near, far = (_relation.source, _relation.target) if upward else (_relation.target, _relation.source)
    reached: dict[str, int] = {}
    level = [start]
    for depth in range(1, max_depth + 1):
        next_ids: set[str] = set()
        for batch in batched(level):
            query = select(far).where(near.in_(batch), _relation.relation.in_(type_names))
            next_ids.update(connection.execute(query).scalars())
        level = sorted(next_ids - reached.keys())
        if not level:
            break
        reached.update(dict.fromkeys(level, depth))
    return reached


def find_related(
    connection: Connection, record_ids: Items[str], readable: Items[str] | None = None
) -> dict[str, list[RelatedRecord]]:
    """Return the records related to each of these, by relation type, name ignoring case, and id.

    Related records that do not exist or are not published have no name. An id that its own vocabulary does not have
    means the record of the vocabulary that defines its prefix. Only `readable` vocabularies are looked into for that;
    without them, those that everyone may read.
    """
    rows = _load_related(connection, list(record_ids))
    if len(VOCABULARIES) == 1:
        return _group_related(rows)
    if readable is None:
        readable = [slug for slug, item in VOCABULARIES.items() if not item.is_private and not item.is_removed]
    resolved = _resolve_targets(connection, [tuple(row) for row in rows], readable)
    return _group_related([*resolved, *_iter_foreign_referrers(connection, record_ids, readable)])


def _load_related(connection: Connection, record_ids: Items[str]) -> Sequence[Any]:
    with depend_on(record_tags(record_ids)):
        rows = connection.execute(_RELATED_BY_IDS, {"identifiers": record_ids}).all()
    add_cache_tags(record_tags(row[2] for row in rows))
    return rows


def _resolve_targets(
    connection: Connection, rows: Sequence[tuple[Any, ...]], readable: Items[str]
) -> Iterator[tuple[Any, ...]]:
    """Yield rows of related records, with those of defining vocabularies in place of targets that do not exist."""
    candidates = {
        far: defining_id
        for side, _, far, _, name, _ in rows
        if side == "source" and name is None
        if (defining_id := find_defining_id(far)) and split_id(defining_id)[0] in readable
    }
    existing = find_existing_ids(connection, list(candidates)) if candidates else set()
    wanted = {far: defining_id for far, defining_id in candidates.items() if far not in existing}
    found = find_collections_and_names(connection, list(wanted.values())) if wanted else {}
    for row in rows:
        defining_id = wanted.get(row[2], "")
        if row[0] == "source" and defining_id in found:
            collection, name = found[defining_id]
            yield row[0], row[1], defining_id, row[3], name, collection
        else:
            yield row


def _iter_foreign_referrers(
    connection: Connection, record_ids: Items[str], readable: Items[str]
) -> Iterator[tuple[Any, ...]]:
    """Yield rows of the records of other vocabularies that refer to these by a prefix that theirs define."""
    aliases = {
        qualify_id(slug, local_id): record_id
        for record_id in record_ids
        for own_slug, local_id in (split_id(record_id),)
        if local_id.partition(":")[0] in VOCABULARIES[own_slug].defines
        for slug in readable
        if slug != own_slug
    }
    if not aliases:
        return
    rows = [row for row in _load_related(connection, list(aliases)) if row[0] == "target"]
    existing = find_existing_ids(connection, list({row[1] for row in rows})) if rows else set()
    for side, near, *rest in rows:
        if near not in existing:
            yield side, aliases[near], *rest


def find_relation_labels(connection: Connection, vocabulary: str, type_names: Items[str]) -> dict[str, str]:
    """Return the labels of relation types: of the slot, else of the record of the vocabulary that defines the type.

    What neither has is labelled by another vocabulary, or a bundled table, or is the name itself.
    """
    undeclared = [name for name in type_names if name not in RELATION_TYPES] if vocabulary != MAIN_VOCABULARY else []
    record_ids = {name: [qualify_id(vocabulary, name)] for name in undeclared}
    for name, found in (find_by_alternative_ids(connection, undeclared) if undeclared else {}).items():
        record_ids[name] += [record_id for record_id in found if split_id(record_id)[0] == vocabulary]
    names = find_names(connection, [item for group in record_ids.values() for item in group]) if undeclared else {}
    labels = {name: next(filter(None, map(names.get, group)), None) for name, group in record_ids.items()}
    return {name: labels.get(name) or RELATION_TYPES[name].label for name in type_names}


class RecordWithRelated(NamedTuple):
    """Record with the records related to it."""

    row: RecordRow
    related: list[RelatedRecord]


def find_with_related(connection: Connection, record_id: str) -> tuple[Position, RecordWithRelated | None]:
    """Return the position and, in any collection and state, a record with its related records of v-alpha, or None."""
    rows = connection.execute(_SELECT_WITH_POSITION, {"identifier": record_id}).all()
    record_row, ends = None, []
    for row in rows:
        *end, state, version, body = row[_POSITION_LENGTH:]
        if body is not None:
            record_row = RecordRow(record_id, end[-1], state, version, body)
        elif end[0] is not None:
            ends.append(end)
    position = Position._make(rows[0][:_POSITION_LENGTH])
    if record_row is None:
        return position, None
    return position, RecordWithRelated(record_row, _group_related(ends).get(record_id, []))


def find_related_in_range(
    connection: Connection, collection: str, after: SortKey, last: SortKey
) -> dict[str, list[RelatedRecord]]:
    """Return the related records of v-alpha for those of a collection after one sort key and up to another.

    Much faster than by ids, each of which would be sent to the database.
    """
    bounds = {"after_key": after[0], "after_id": after[1], "until_key": last[0], "until_id": last[1]}
    return _group_related(connection.execute(_RELATED_IN_RANGE, {"collection": collection, **bounds}).all())


def _group_related(rows: Iterable[Sequence[Any]]) -> dict[str, list[RelatedRecord]]:
    # As sets: several ways along two relations may end at one record.
    related_by_id: dict[str, dict[RelatedRecord, None]] = defaultdict(dict)
    for side, near, far, type_name, name, collection in rows:
        related_by_id[near][RelatedRecord(far, name, type_name, side, collection)] = None
    return {record_id: sort_related(related) for record_id, related in related_by_id.items()}


def _select_ends(near: Side, far: Side) -> Select[Any]:
    side: ColumnElement[str] = sa.literal_column(f"'{near}'")
    columns = side, _relation[near], _relation[far], _relation.relation, _record.name, _record.collection
    is_far_end = (_record.id == _relation[far]) & IS_PUBLISHED
    return select(*columns).join_from(relation_table, record_table, is_far_end, isouter=True)


def _select_far_ends(path: str) -> Select[Any]:
    """Do the same for the records at the end of two relations, given as `FIRST/SECOND`."""
    first, second = path.split("/")
    next_table = relation_table.alias(f"next_{second.lower()}")
    following = next_table.c
    middle_table = record_table.alias(f"middle_{second.lower()}")
    middle = middle_table.c
    is_middle = (middle.id == _relation.target) & (middle.state == RecordState.PUBLISHED)
    is_next = (following.source == _relation.target) & (following.relation == second)
    is_far_end = (_record.id == following.target) & IS_PUBLISHED
    side: ColumnElement[str] = sa.literal_column("'source'")
    type_name: ColumnElement[str] = sa.literal_column(f"'{path}'")
    return (
        select(side, _relation.source, following.target, type_name, _record.name, _record.collection)
        .join_from(relation_table, middle_table, is_middle)
        .join(next_table, is_next)
        .join(record_table, is_far_end, isouter=True)
        .where(_relation.relation == first)
    )


# Joined selects of related records, by the side of the record itself.
_ENDS: dict[Side, Select[Any]] = {
    "source": _select_ends("source", "target"),
    "target": _select_ends("target", "source"),
}
# The same with those that v-alpha lists along two relations.
_VALPHA_ENDS: list[tuple[Side, Select[Any]]] = [
    *_ENDS.items(),
    *(("source", _select_far_ends(path)) for path in DERIVED_PATHS),
]
_own_table = record_table.alias("own")
_own_record = _own_table.c
_sort_key = sa.tuple_(_own_record.order_key, _own_record.id)
_IS_IN_RANGE = (
    (_own_record.collection == bindparam("collection"))
    & (_own_record.state == RecordState.PUBLISHED)
    & (_sort_key > sa.tuple_(bindparam("after_key"), bindparam("after_id")))
    & (_sort_key <= sa.tuple_(bindparam("until_key"), bindparam("until_id")))
)
# Built once: building a statement costs more than running it. Both sides are one round trip.
_RELATED_BY_IDS = union_all(
    *(ends.where(_relation[near].in_(bindparam("identifiers", expanding=True))) for near, ends in _ENDS.items())
)
_RELATED_IN_RANGE = union_all(
    *(ends.join(_own_table, _own_table.c.id == _relation[near]).where(_IS_IN_RANGE) for near, ends in _VALPHA_ENDS)
)
# With types, since PostgreSQL takes a null under DISTINCT for text.
_NO_VALUES = [sa.cast(sa.null(), column.type) for column in (_record.state, _record.version, _record.body)]
_RECORD_AND_RELATED = union_all(
    select(
        *(sa.null().label(name) for name in ("side", "near", "far", "relation", "name")),
        *(_record.collection, _record.state, _record.version, _record.body),
    ).where(_record.id == bindparam("identifier")),
    *(ends.add_columns(*_NO_VALUES).where(_relation[near] == bindparam("identifier")) for near, ends in _VALPHA_ENDS),
).subquery()
# Always at least one row, which has the position.
_SELECT_WITH_POSITION = SELECT_POSITION.add_columns(*_RECORD_AND_RELATED.c).join_from(
    catalogue_table, _RECORD_AND_RELATED, sa.true(), isouter=True
)


def _iter_relations(connection: Connection, condition: ColumnElement[bool]) -> Iterator[Relation]:
    query = select(_relation.source, _relation.relation, _relation.target).where(condition)
    with connection.execute(query, execution_options=STREAM_OPTIONS) as result:
        for row in result:
            yield Relation(*row)
