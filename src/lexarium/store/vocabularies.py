"""Read the vocabularies of a database, and names, alternative ids and roles that depend on them."""

from collections.abc import Iterable, Sequence
from itertools import chain

from sqlalchemy import Connection, delete, func, insert, select

from lexarium.domain.cache_tags import alternative_id_tag, record_tags
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.record import Record, parse_record
from lexarium.domain.schema.collections import VOCABULARY
from lexarium.domain.vocabulary import Vocabulary, parse_head_record
from lexarium.store.dependencies import add_cache_tags, depend_on
from lexarium.store.records import IS_PUBLISHED, batched
from lexarium.store.revisions import IS_CURRENT_CHANGE
from lexarium.store.schema import alternative_id_table, change_table, label_table, record_table
from lexarium.store.transaction import Transaction

_alternative, _label = alternative_id_table.c, label_table.c
_SELECT_HEADS = (
    select(change_table.c.document)
    .join(record_table, IS_CURRENT_CHANGE)
    .where(record_table.c.collection == VOCABULARY.name)
    .order_by(record_table.c.id)
)


def list_vocabularies(connection: Connection) -> list[Vocabulary]:
    """Return the vocabularies that have a head record, by slug."""
    documents = connection.execute(_SELECT_HEADS).scalars()
    return [parse_head_record(parse_record(VOCABULARY.name, document)) for document in documents]


def count_records(connection: Connection) -> dict[str, int]:
    """Return the number of published records of each collection that has any, by its name."""
    query = select(record_table.c.collection, func.count()).where(IS_PUBLISHED).group_by(record_table.c.collection)
    return dict(connection.execute(query).all())


def find_creation_seqs(connection: Connection) -> dict[str, int]:
    """Return the seq of the change that created each vocabulary, by slug."""
    is_first = (change_table.c.collection == VOCABULARY.name) & (change_table.c.version == 1)
    rows = connection.execute(select(change_table.c.record, change_table.c.seq).where(is_first))
    return {get_local_id(record_id): seq for record_id, seq in rows}


def find_by_alternative_ids(connection: Connection, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the ids of the records that have each of these IRIs or alternative ids, by that."""
    found: dict[str, list[str]] = {}
    with depend_on(map(alternative_id_tag, names)):
        for batch in batched(names):
            query = select(_alternative.name, _alternative.record).where(_alternative.name.in_(batch))
            for name, record_id in connection.execute(query.order_by(_alternative.record)):
                found.setdefault(name, []).append(record_id)
    add_cache_tags(record_tags(chain.from_iterable(found.values())))
    return found


def find_translated_names(
    connection: Connection, record_ids: Sequence[str], languages: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Return the names of records in languages, by record and language, without those that are shown by default."""
    names: dict[str, dict[str, str]] = {}
    with depend_on(record_tags(record_ids)):
        for batch in batched(record_ids):
            query = select(_label.record, _label.language, _label.name)
            query = query.where(_label.record.in_(batch), _label.language.in_(languages))
            for record_id, language, name in connection.execute(query):
                names.setdefault(record_id, {})[language] = name
    return names


def update_derived_rows(transaction: Transaction, before: Iterable[Record], after: Sequence[Record]) -> None:
    """Write the alternative ids and translated names of records whose former versions are given."""
    old_ids, old_labels = list_derived_rows(before)
    new_ids, new_labels = list_derived_rows(after)
    for table, removed, added in (
        (alternative_id_table, old_ids - new_ids, new_ids - old_ids),
        (label_table, old_labels - new_labels, new_labels - old_labels),
    ):
        columns = list(table.c)
        for row in removed:
            transaction.execute(
                delete(table).where(*(column == value for column, value in zip(columns, row, strict=True)))
            )
        if added:
            names = [column.name for column in columns]
            transaction.execute(insert(table), [dict(zip(names, row, strict=True)) for row in sorted(added)])


def replace_derived_rows(transaction: Transaction, records: Sequence[Record]) -> None:
    """Replace the rows of alternative ids and translated names of records."""
    for batch in batched([record.id for record in records]):
        for table, column in ((alternative_id_table, _alternative.record), (label_table, _label.record)):
            transaction.execute(delete(table).where(column.in_(batch)))
    update_derived_rows(transaction, (), records)


def list_derived_rows(records: Iterable[Record]) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
    """Return the rows of the alternative ids of records, and those of their translated names."""
    ids: set[tuple[str, ...]] = set()
    labels: set[tuple[str, ...]] = set()
    for record in records:
        ids.update((name, record.id) for name in record.alternative_ids)
        labels.update((record.id, language, name) for language, name in record.translated_names.items())
    return ids, labels
