"""Delete a vocabulary with all that belongs to it."""

from typing import Any

from sqlalchemy import Column, ColumnElement, delete, exists, func, select

from lexarium.domain.identifiers import MAIN_VOCABULARY, qualify_id
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.store.schema import (
    alternative_id_table,
    change_table,
    comment_table,
    import_base_table,
    import_statement_table,
    import_write_table,
    label_table,
    membership_table,
    proposal_table,
    record_table,
    relation_table,
    release_chunk_table,
    release_file_table,
    release_table,
)
from lexarium.store.transaction import Transaction

# Columns that hold ids of records, or names of releases, which are qualified like those.
_RECORD_COLUMNS = (
    record_table.c.id,
    relation_table.c.source,
    alternative_id_table.c.record,
    label_table.c.record,
    import_base_table.c.record,
    import_statement_table.c.record,
    change_table.c.record,
    proposal_table.c.record,
    comment_table.c.record,
    release_table.c.name,
    release_file_table.c.release,
    release_chunk_table.c.release,
)


def delete_vocabulary(transaction: Transaction, slug: str) -> int:
    """Delete the records of a vocabulary, their history, and the head record; return the number of records.

    The numbers of deleted changes are not used again.
    """
    is_own = _is_own_collection(record_table.c.collection, slug)
    count: int = transaction.execute(select(func.count()).select_from(record_table).where(is_own)).scalar_one()
    for column in _RECORD_COLUMNS:
        is_head = column == qualify_id("", slug)
        transaction.execute(delete(column.table).where(is_own_id(column, slug) | is_head))
    has_changes = exists().where(change_table.c.batch == import_write_table.c.batch)
    transaction.execute(delete(import_write_table).where(~has_changes))
    transaction.execute(delete(proposal_table).where(_is_own_collection(proposal_table.c.collection, slug)))
    transaction.execute(delete(membership_table).where(membership_table.c.vocabulary == slug))
    transaction.bump_accounts_revision()
    return count


def is_own_id(column: Column[Any], slug: str) -> ColumnElement[bool]:
    """Return the condition that a column holds an id of a record of a vocabulary."""
    if slug == MAIN_VOCABULARY:
        return column.not_like(f"%{qualify_id('', '')}%")
    return (column >= qualify_id(slug, "")) & (column <= qualify_id(slug, "\U0010ffff"))


def _is_own_collection(column: Column[Any], slug: str) -> ColumnElement[bool]:
    if slug == MAIN_VOCABULARY:
        return column.not_like("%/%")
    return column.startswith(qualify_name(slug, ""), autoescape=True)
