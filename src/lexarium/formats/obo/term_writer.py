"""Write records as OBO stanzas."""

from collections.abc import Iterator

from lexarium.domain.identifiers import has_prefix
from lexarium.domain.labels import Alias
from lexarium.domain.record import Record, RecordState
from lexarium.domain.timestamps import is_timestamp
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.foreign_ids import format_id
from lexarium.formats.obo import syntax
from lexarium.formats.obo.term_parser import (
    HIDDEN_SYNONYM_TYPE,
    MAPPING_NAMES,
    OBSOLESCENCE_REASON,
    PROPERTY_FIELDS,
    RELATIONSHIP_TYPES,
    TERMS_MERGED,
    USER_PREFIXES,
)


def format_term(record: Record, vocabulary: Vocabulary) -> Iterator[str]:
    """A record as a term, clause by clause in the order that the format asks for."""
    yield "[Term]"
    yield f"id: {_format_id(record.id, vocabulary)}"
    if record.fields["name"]:
        yield f"name: {syntax.format_unquoted(record.fields['name'])}"
    yield f"namespace: {record.collection.name}"
    definition = record.fields.get(record.collection.definition_field or "", "")
    if definition or record.sources:
        yield f"def: {syntax.format_quoted(definition)} [{', '.join(map(syntax.format_xref, record.sources))}]"
    for alias in record.aliases:
        yield _format_synonym(alias, vocabulary)
    yield from _format_mappings(record)
    if record.state is RecordState.MERGED:
        yield f"property_value: {OBSOLESCENCE_REASON} {TERMS_MERGED}"
    yield from _format_relations(record, vocabulary)
    if has_prefix(record.fields.get("id_user", ""), USER_PREFIXES):
        yield f"created_by: {record.fields['id_user']}"
    if is_timestamp(record.fields.get("event_stamp", "")):
        yield f"creation_date: {record.fields['event_stamp']}"
    if record.state is not RecordState.PUBLISHED:
        yield "is_obsolete: true"
    if record.replaced_by is not None:
        yield f"replaced_by: {_format_id(record.replaced_by, vocabulary)}"


def _format_id(record_id: str, vocabulary: Vocabulary) -> str:
    return syntax.format_identifier(format_id(record_id, vocabulary))


def _format_synonym(alias: Alias, vocabulary: Vocabulary) -> str:
    scope = f"RELATED {HIDDEN_SYNONYM_TYPE}" if alias.scope == "hidden" else alias.scope.upper()
    language = f' {{lang="{alias.lang}"}}' if alias.lang != vocabulary.language else ""
    return f"synonym: {syntax.format_quoted(alias.text)} {scope} []{language}"


def _format_mappings(record: Record) -> Iterator[str]:
    mappings = [relation for relation in sorted(record.relations) if relation.relation in MAPPING_NAMES]
    # Also where programs look that know no other mapping.
    for target in dict.fromkeys(
        relation.target for relation in mappings if relation.relation in ("exactMatch", "closeMatch")
    ):
        yield f"xref: {syntax.format_identifier(target)}"
    for name in PROPERTY_FIELDS:
        if name in record.fields and record.fields[name] != record.collection.fields[name].get_default():
            yield f"property_value: {name} {syntax.format_quoted(str(record.fields[name]))} xsd:string"
    for relation in mappings:
        yield f"property_value: skos:{relation.relation} {syntax.format_identifier(relation.target)}"


def _format_relations(record: Record, vocabulary: Vocabulary) -> Iterator[str]:
    relations = [relation for relation in sorted(record.relations) if relation.relation not in MAPPING_NAMES]
    for relation in relations:
        if relation.relation not in RELATIONSHIP_TYPES:
            yield f"is_a: {_format_id(relation.target, vocabulary)}"
    for relation in relations:
        if relation.relation in RELATIONSHIP_TYPES:
            yield f"relationship: {RELATIONSHIP_TYPES[relation.relation]} {_format_id(relation.target, vocabulary)}"
