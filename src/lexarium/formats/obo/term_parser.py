"""Parse OBO terms as records."""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace

from lexarium.domain.identifiers import find_target_problem, has_prefix
from lexarium.domain.labels import Alias, AliasScope, is_language_tag
from lexarium.domain.record import RecordState, Relation
from lexarium.domain.schema.collections import (
    DEFINITION_FIELDS,
    MAIN_COLLECTIONS,
    MAIN_RELATION_TYPES,
    MAPPING_TYPES,
    RELATED,
    RELATION_TYPES,
    Collection,
    Fields,
)
from lexarium.domain.schema.relation_types import Side
from lexarium.domain.text.timestamps import format_timestamp, parse_timestamp
from lexarium.formats.foreign_ids import escape_iri, parse_integer, parse_own_id
from lexarium.formats.obo import syntax
from lexarium.formats.obo.syntax import Clause, Stanza
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions, WarningCounter

SKOS_NAMESPACE = "http://www.w3.org/2004/02/skos/core#"
# The synonym type of a hidden alias: OBO has no such scope.
HIDDEN_SYNONYM_TYPE = "hidden"
SCOPE_BY_KEYWORD: dict[str, AliasScope] = {"EXACT": "exact", "NARROW": "narrow", "BROAD": "broad", "RELATED": "related"}
# Relation types that are `is_a` in OBO.
HIERARCHY_NAMES = {entry.hierarchy_type.name for entry in MAIN_COLLECTIONS.values() if entry.hierarchy_type}
# OBO names of relation types other than the hierarchy, which is `is_a`.
RELATIONSHIP_TYPES = {
    entry.name: entry.label.replace(" ", "_")
    for entry in MAIN_RELATION_TYPES.values()
    if not entry.is_mapping and entry.name not in HIERARCHY_NAMES
}
# Fields without a clause in OBO.
PROPERTY_FIELDS = sorted(
    {
        name
        for entry in MAIN_COLLECTIONS.values()
        for name in entry.core_fields
        if entry.fields[name].editable and name not in ("name", entry.alias_field, entry.definition_field)
    }
)
XREF_TAG = "xref"

# Properties of the OBO Foundry: "has obsolescence reason", "terms merged".
OBSOLESCENCE_REASON, TERMS_MERGED = "IAO:0000231", "IAO:0000227"
USER_PREFIXES = ("usr",)
MAPPING_NAMES = {entry.name for entry in MAPPING_TYPES}
# Parsed before the other clauses of a term.
_TERM_TAGS = ("id", "namespace")
_FIELD_BY_TAG = {
    XREF_TAG: "closeMatch",
    **{label: name for name, label in RELATIONSHIP_TYPES.items()},
    "BFO:0000050": "PARTOF",
    "OBO_REL:part_of": "PARTOF",
    **{f"{prefix}{entry.name}": entry.name for entry in MAPPING_TYPES for prefix in ("skos:", SKOS_NAMESPACE)},
    **{f"{prefix}related": "RELATED" for prefix in ("skos:", SKOS_NAMESPACE)},
    **{name: name for name in PROPERTY_FIELDS},
}


@dataclass
class OboContext:
    """The properties of a file that its terms depend on."""

    options: ReadOptions
    term_ids: set[str]
    # Relations and properties that the file declares or uses.
    used_properties: set[str]
    namespace: str = ""
    ontology: str = ""
    # Default scopes by synonym type.
    scopes: dict[str, AliasScope] = field(default_factory=dict)
    warnings: WarningCounter = field(default_factory=WarningCounter)

    def __post_init__(self) -> None:
        self.field_by_tag: Mapping[str, str] = {**_FIELD_BY_TAG, **self.options.column_mapping}
        self.language = self.options.vocabulary.language
        # Relations and fields that the file states completely.
        complete_fields = {self.field_by_tag.get(name, "") for name in self.used_properties}
        self.defaults = {name: _list_defaults(entry, complete_fields) for name, entry in MAIN_COLLECTIONS.items()}

    def resolve_id(self, name: str) -> str:
        """Return our id, or the CURIE or IRI of a term."""
        return self.parse_own_id(name) or self.to_foreign_id(name)

    def parse_own_id(self, name: str) -> str | None:
        """Return our id; None if the name is none."""
        return parse_own_id(name, self.options.vocabulary)

    def to_foreign_id(self, name: str) -> str:
        """Return the CURIE or IRI of a term."""
        foreign_id = escape_iri(name)
        if find_target_problem(foreign_id) is None:
            return foreign_id
        # The IRI that the OBO Foundry gives to a name without a prefix.
        return f"http://purl.obolibrary.org/obo/{escape_iri(self.ontology) or 'local'}#{foreign_id}"


def _list_defaults(collection: Collection, complete_fields: Container[str]) -> tuple[Fields, list[tuple[str, Side]]]:
    """Return the fields and the complete relations of a term that states nothing."""
    fields = {
        name: collection.field_defaults[name]
        for name in collection.core_fields
        if name in ("name", collection.definition_field)
        or (name in complete_fields and name in collection.editable_fields)
    }
    complete_relations: list[tuple[str, Side]] = [
        (relation_type.name, "source")
        for relation_type in collection.relation_types.values()
        if relation_type == collection.hierarchy_type or relation_type.name in complete_fields
    ]
    return fields, complete_relations


def parse_term(stanza: Stanza, context: OboContext) -> Iterator[ParsedRecord]:
    """Yield the record of a term, and the errors of its clauses."""
    id_clauses = [clause for clause in stanza.clauses if clause.tag == "id"]
    if not id_clauses:
        yield ParsedRecord(stanza.line, problems=["the term has no id"])
        return
    namespaces = [syntax.parse_unquoted(clause) for clause in stanza.clauses if clause.tag == "namespace"]
    stated = MAIN_COLLECTIONS.get(namespaces[0] if namespaces else context.namespace)
    collection = context.options.choose_collection(stated, stanza.line)
    try:
        parser = _TermParser(context, collection, stanza.line, syntax.parse_identifier(id_clauses[0])[0])
    except ParseError as error:
        yield error.to_parsed_record()
        return
    yield from syntax.parse_clauses(stanza, parser.parse_clause)
    yield parser.build()


class _TermParser:
    """Parse one term, clause by clause."""

    def __init__(self, context: OboContext, collection: Collection, line: int, name: str) -> None:
        self._context = context
        self._collection = collection
        self._definition = collection.definition_field
        self._term_id = context.resolve_id(name)
        self._aliases: list[Alias] = []
        self._xrefs: list[str] = []
        self._is_obsolete = self._is_merged = False
        fields, complete = context.defaults[collection.name]
        self._record = ParsedRecord(
            line, collection.name, fields={**fields}, sources=(), complete_relations=[*complete]
        )
        if context.parse_own_id(name) is None:
            self._record.foreign_id = self._term_id
        else:
            self._record.fields["id"] = self._term_id

    def parse_clause(self, clause: Clause) -> None:
        """Parse a clause; raise ParseError."""
        parse = _CLAUSE_PARSERS.get(clause.tag)
        if clause.tag in self._context.options.column_mapping:
            self._set_mapped_value(clause.tag, syntax.parse_unquoted(clause), clause)
        elif parse is not None:
            parse(self, clause)
        elif clause.tag not in _TERM_TAGS:
            self._warn_dropped(f"the clause `{clause.tag}` is not kept", clause)

    def build(self) -> ParsedRecord:
        """Return the record, after all clauses have been parsed."""
        record = self._record
        mapped_targets = {relation.target for relation in record.relations if relation.relation in MAPPING_NAMES}
        for target in self._xrefs:
            if target not in mapped_targets:
                self._append_relation(self._context.field_by_tag[XREF_TAG], target)
        record.relations = list(dict.fromkeys(record.relations))
        record.aliases = tuple(self._aliases)
        unpublished_state = RecordState.MERGED if self._is_merged and record.replaced_by else RecordState.RETIRED
        record.state = unpublished_state if self._is_obsolete else RecordState.PUBLISHED
        if not record.fields["name"]:
            record.warnings.append(f"{self._term_id} has an empty name")
        return record

    def _warn_dropped(self, message: str, clause: Clause) -> None:
        self._context.warnings.add(message, f"on line {clause.line}")

    def _append_relation(self, relation: str, target: str) -> None:
        self._record.relations.append(Relation(self._term_id, relation, target))

    def _set_mapped_value(self, tag: str, value: str, clause: Clause) -> None:
        """Set the value of a relation, property or clause that is mapped to a field."""
        target_field = self._context.field_by_tag.get(tag, "")
        name = self._definition if target_field in DEFINITION_FIELDS else target_field
        if target_field in MAPPING_NAMES:
            self._add_mapping(target_field, value, clause)
        elif target_field in RELATION_TYPES:
            self._add_relation(target_field, value, clause)
        elif target_field in ("alias", "aliases"):
            self._aliases.append(self._build_alias(value, "exact", {}, clause))
        elif target_field == "sources":
            self._record.sources = (*(self._record.sources or ()), value)
        elif name in self._collection.core_fields:
            self._set_field(name, value)
        elif not target_field:
            self._warn_dropped(f"the {clause.tag} `{tag}` is not kept", clause)
        else:
            self._warn_dropped(f"the {clause.tag} `{tag}` means nothing for a {self._collection.name}", clause)

    def _add_mapping(self, relation: str, value: str, clause: Clause) -> None:
        target = escape_iri(value)
        if find_target_problem(target) is None:
            self._append_relation(relation, target)
        else:
            self._warn_dropped(f"the {clause.tag} {value} is neither an IRI nor a CURIE, like DOID:3324", clause)

    def _add_relation(self, relation: str, name: str, clause: Clause) -> None:
        context = self._context
        if relation in self._collection.relation_types:
            self._append_relation(relation, context.resolve_id(name))
        elif relation == RELATED.name:
            own_id = context.parse_own_id(name)
            target = context.options.vocabulary.record_iri(own_id) if own_id else context.to_foreign_id(name)
            self._append_relation("relatedMatch", target)
            self._warn_dropped(f"`{clause.tag}` of a {self._collection.name} is kept as relatedMatch", clause)
        else:
            self._warn_dropped(f"`{clause.tag}` means nothing for a {self._collection.name}", clause)

    def _set_field(self, name: str, value: str) -> None:
        parsed = value if self._collection.field_types[name] is str else parse_integer(value)
        if parsed is not None:
            self._record.fields[name] = parsed
        else:
            self._record.problems.append(f"{name} of {self._term_id} is not a whole number: {value[:50]}")

    def parse_name(self, clause: Clause) -> None:
        if self._record.fields["name"]:
            self._warn_dropped("a term has several names; the first is kept", clause)
        else:
            self._record.fields["name"] = syntax.parse_unquoted(clause)

    def parse_def(self, clause: Clause) -> None:
        text, rest = syntax.parse_quoted(clause)
        self._record.sources = tuple(syntax.parse_trailer(rest)[1])
        if self._definition is not None:
            self._record.fields[self._definition] = text
        elif text:
            self._warn_dropped(f"a {self._collection.name} has no definition; it is not kept", clause)

    def parse_synonym(self, clause: Clause) -> None:
        text, rest = syntax.parse_quoted(clause)
        words, xrefs, qualifiers = syntax.parse_trailer(rest)
        keywords = words.split(None, 2)[:2]
        types = [word for word in keywords if word not in SCOPE_BY_KEYWORD]
        scope: AliasScope = SCOPE_BY_KEYWORD.get(clause.tag.removesuffix("_synonym").upper(), "related")
        scope = SCOPE_BY_KEYWORD.get(keywords[0], self._context.scopes.get(keywords[0], scope)) if keywords else scope
        for synonym_type in types:
            if synonym_type == HIDDEN_SYNONYM_TYPE:
                scope = "hidden"
            else:
                self._warn_dropped(f"the type of synonym {synonym_type[:50]} is not kept", clause)
        alias = self._build_alias(text, scope, qualifiers, clause)
        # Published files repeat a synonym for each of its sources.
        if text and not (xrefs and alias in self._aliases):
            self._aliases.append(alias)

    def _build_alias(self, text: str, scope: AliasScope, qualifiers: Mapping[str, str], clause: Clause) -> Alias:
        languages = [value for name, value in qualifiers.items() if name.endswith("lang")]
        if languages and not is_language_tag(languages[0]):
            self._warn_dropped(f"{languages[0][:50]} is not the tag of a language, such as en or pt-BR", clause)
            languages = []
        return Alias.model_construct(text=text, lang=languages[0] if languages else self._context.language, scope=scope)

    def parse_is_a(self, clause: Clause) -> None:
        target = self._context.resolve_id(syntax.parse_identifier(clause)[0])
        if self._collection.hierarchy_type is None:
            self._warn_dropped(f"`is_a` means nothing for a {self._collection.name}", clause)
        else:
            self._append_relation(self._collection.hierarchy_type.name, target)

    def parse_relationship(self, clause: Clause) -> None:
        relationship, rest = syntax.parse_identifier(clause)
        target, _ = syntax.parse_identifier(replace(clause, value=rest))
        self._set_mapped_value(relationship, target, clause)

    def parse_property_value(self, clause: Clause) -> None:
        name, rest = syntax.parse_identifier(clause)
        parse = syntax.parse_quoted if rest.startswith('"') else syntax.parse_identifier
        value, _ = parse(replace(clause, value=rest))
        if name == OBSOLESCENCE_REASON:
            self._is_merged = value == TERMS_MERGED
        else:
            self._set_mapped_value(name, value, clause)

    def parse_xref(self, clause: Clause) -> None:
        name = syntax.parse_xref(clause)
        target = escape_iri(name)
        if find_target_problem(target) is None:
            self._xrefs.append(target)
        else:
            self._warn_dropped(f"the xref {name[:100]} is neither an IRI nor a CURIE, like DOID:3324", clause)

    def parse_alt_id(self, clause: Clause) -> None:
        alt_id = syntax.parse_identifier(clause)[0]
        if alt_id in self._context.term_ids:
            self._warn_dropped(f"the alt_id {alt_id} is a term of its own", clause)
        elif self._context.parse_own_id(alt_id):
            self._warn_dropped(f"the alt_id {alt_id} is an id of this catalogue; it is not kept", clause)
        else:
            self._append_relation("exactMatch", self._context.to_foreign_id(alt_id))

    def parse_is_obsolete(self, clause: Clause) -> None:
        self._is_obsolete = syntax.parse_unquoted(clause).lower() == "true"

    def parse_replaced_by(self, clause: Clause) -> None:
        if self._record.replaced_by is None:
            self._record.replaced_by = self._context.resolve_id(syntax.parse_identifier(clause)[0])
        else:
            self._warn_dropped("several terms replace one; the first is kept", clause)

    def parse_consider(self, clause: Clause) -> None:
        self._add_relation(RELATED.name, syntax.parse_identifier(clause)[0], clause)

    def parse_creation_date(self, clause: Clause) -> None:
        timestamp = parse_timestamp(syntax.parse_unquoted(clause))
        if timestamp is not None and "event_stamp" in self._collection.field_types:
            self._record.fields["event_stamp"] = format_timestamp(timestamp)
        else:
            self._warn_dropped("a `creation_date` is not kept", clause)

    def parse_created_by(self, clause: Clause) -> None:
        creator = syntax.parse_unquoted(clause)
        if has_prefix(creator, USER_PREFIXES) and "id_user" in self._collection.field_types:
            self._record.fields["id_user"] = creator
        else:
            self._warn_dropped("the clause `created_by` is not kept", clause)


_CLAUSE_PARSERS: dict[str, Callable[[_TermParser, Clause], None]] = {
    "name": _TermParser.parse_name,
    "def": _TermParser.parse_def,
    "synonym": _TermParser.parse_synonym,
    # Tags of OBO 1.0.
    **{f"{scope}_synonym": _TermParser.parse_synonym for scope in ("exact", "narrow", "broad", "related")},
    **dict.fromkeys((XREF_TAG, "xref_analog", "xref_unknown"), _TermParser.parse_xref),
    "is_a": _TermParser.parse_is_a,
    "relationship": _TermParser.parse_relationship,
    "property_value": _TermParser.parse_property_value,
    "alt_id": _TermParser.parse_alt_id,
    "is_obsolete": _TermParser.parse_is_obsolete,
    "replaced_by": _TermParser.parse_replaced_by,
    "use_term": _TermParser.parse_replaced_by,
    "consider": _TermParser.parse_consider,
    "creation_date": _TermParser.parse_creation_date,
    "created_by": _TermParser.parse_created_by,
}
