"""Vocabularies and records of them, written as imports do."""

from collections.abc import Mapping
from typing import Any

from lexarium.domain.change import Action
from lexarium.domain.identifiers import SYSTEM_USER_ID, qualify_id
from lexarium.domain.record import ALTERNATIVE_ID, Record
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.domain.statement import Reference, Statement, Text
from lexarium.services.vocabularies import head_records
from lexarium.store import change_log, vocabularies
from lexarium.store.change_log import RecordWrite
from lexarium.store.database import Database


def create_vocabulary(database: Database, slug: str, **values: Any) -> None:
    with database.write() as transaction:
        head_records.create_vocabulary(transaction, SYSTEM_USER_ID, slug, {"schema": "skos", **values})


def update_vocabulary(database: Database, slug: str, **values: Any) -> None:
    with database.write() as transaction:
        head_records.update_vocabulary(transaction, SYSTEM_USER_ID, slug, values)


def remove_vocabulary(database: Database, slug: str) -> None:
    with database.write() as transaction:
        head_records.remove_vocabulary(transaction, SYSTEM_USER_ID, slug)


def restore_vocabulary(database: Database, slug: str) -> None:
    with database.write() as transaction:
        head_records.restore_vocabulary(transaction, SYSTEM_USER_ID, slug)


def purge_vocabulary(database: Database, slug: str) -> None:
    with database.write() as transaction:
        head_records.purge_vocabulary(transaction, slug)


def add_concept(
    database: Database,
    slug: str,
    local_id: str,
    names: Mapping[str, str],
    *,
    collection: str = "concept",
    definitions: Mapping[str, str] | None = None,
    iri: str | None = None,
    alternative_ids: tuple[str, ...] = (),
    broader: str | None = None,
) -> None:
    """Write a record with names and definitions by language."""
    owner = COLLECTIONS[qualify_name(slug, collection)]
    statements = [Statement(owner.name_predicates[0], Text(text, tag)) for tag, text in names.items()]
    definition = owner.field_predicates[owner.definition_field or ""]
    statements += [Statement(definition, Text(text, tag)) for tag, text in (definitions or {}).items()]
    statements += [Statement(ALTERNATIVE_ID, Text(text)) for text in alternative_ids]
    if broader is not None:
        statements.append(Statement(owner.relation_predicates["broader"], Reference(broader)))
    record = Record(owner, qualify_id(slug, local_id), tuple(statements), iri=iri)
    with database.write() as transaction:
        change_log.save_records(transaction, [RecordWrite(record, 1, Action.CREATE)], actor=SYSTEM_USER_ID, at=1)
        change_log.update_relations(transaction, record.relations, ())
        vocabularies.update_derived_rows(transaction, (), [record])
