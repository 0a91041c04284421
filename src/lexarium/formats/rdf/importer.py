"""Build records from RDF: group the triples of each resource, and convert them to labels, relations and fields."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from io import BufferedReader
from typing import IO, NamedTuple, TypeVar, cast

from pyoxigraph import RdfFormat

from lexarium.domain.identifiers import find_target_problem, has_prefix
from lexarium.domain.labels import Alias, AliasScope, is_language_tag
from lexarium.domain.record import RecordState, Relation
from lexarium.domain.schema.collections import MAIN_COLLECTIONS, MAPPING_TYPES, PARTOF, RELATED, Collection
from lexarium.domain.schema.relation_types import Side
from lexarium.domain.text.timestamps import format_timestamp, is_timestamp, parse_timestamp
from lexarium.formats.foreign_ids import parse_integer
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions, WarningCounter
from lexarium.formats.rdf import predicates
from lexarium.formats.rdf.graph import SubjectTriples, TripleStore
from lexarium.formats.rdf.parser import ParsedTriple, RdfLiteral, detect_syntax, parse_triples
from lexarium.formats.rdf.predicates import (
    BROADER,
    BROADER_GENERIC,
    BROADER_TRANSITIVE,
    UNSCOPED,
    expand_curie,
    expand_curies,
    to_curie,
)
from lexarium.formats.reading import open_seekable

Node = str | RdfLiteral

_RDF_TYPE = expand_curie("rdf:type")
_ID_PREDICATE = expand_curie("oboInOwl:id")
_OWL_IMPORTS = expand_curie("owl:imports")
_LITERAL_FORM = expand_curies("skosxl:literalForm rdf:value")
_ON_PROPERTY, _SOME_VALUES = expand_curie("owl:onProperty"), expand_curie("owl:someValuesFrom")
_ANNOTATED_PROPERTY = expand_curie("owl:annotatedProperty")
_LICENCE_PREDICATES = expand_curies("dct:license dct:rights dc:rights dct:accessRights")
_SOURCE_PREDICATES = expand_curies("oboInOwl:hasDbXref dct:source dc:source")
_COLLECTION_TYPES = expand_curies("skos:Collection skos:OrderedCollection")
_HEADER_TYPES = expand_curies("skos:ConceptScheme owl:Ontology")
_MAPPING_NAMES = tuple(mapping.name for mapping in MAPPING_TYPES)
_BROADER_KINDS = {BROADER, BROADER_GENERIC, BROADER_TRANSITIVE}
_TEXT_ROLES = ("alias", "definition", "note")

# Properties of a label, note or expression: thousands of records may share one, and each reads all of them.
_MAX_NODE_PROPERTIES = 100

Value = TypeVar("Value")
# By role: targets and objects.
PropertiesByRole = dict[str, list[tuple[str, Node]]]


class RdfProfile(NamedTuple):
    """The resources of a document that are records, and the predicates of their names."""

    record_type: str
    # Predicates that only records have, whatever their type.
    membership_predicates: tuple[str, ...]
    # The best first.
    name_predicates: tuple[str, ...]
    # Another type, and the format that reads it.
    other_type: str
    other_format: str


_CONCEPT, _CLASS = expand_curies("skos:Concept owl:Class")
SKOS_PROFILE = RdfProfile(
    _CONCEPT,
    expand_curies("skos:inScheme skos:topConceptOf"),
    expand_curies("skos:prefLabel skosxl:prefLabel rdfs:label"),
    _CLASS,
    "owl",
)
OWL_PROFILE = RdfProfile(_CLASS, (), expand_curies("rdfs:label skos:prefLabel"), _CONCEPT, "skos")


def import_records(stream: BufferedReader, options: ReadOptions, profile: RdfProfile) -> Iterator[ParsedRecord]:
    """Yield the records of a document, and last the warnings about the whole document; raise ParseError."""
    syntax = detect_syntax(stream.peek())
    with (
        open_seekable(stream) if syntax == RdfFormat.JSON_LD else nullcontext(stream) as file,
        closing(TripleStore()) as graph,
    ):
        if syntax == RdfFormat.JSON_LD:
            syntax = RdfFormat.STREAMING_JSON_LD if is_streamable_jsonld(file) else RdfFormat.JSON_LD
            file.seek(0)
        yield from _RdfImporter(graph, options, profile).run(parse_triples(file, syntax))


def is_streamable_jsonld(file: IO[bytes]) -> bool:
    """Return whether a JSON-LD document can be parsed without keeping all of it in memory."""
    try:
        deque(parse_triples(file, RdfFormat.STREAMING_JSON_LD), maxlen=0)
    except ParseError:
        return False
    return True


class _RdfImporter:
    def __init__(self, graph: TripleStore, options: ReadOptions, profile: RdfProfile) -> None:
        self._graph = graph
        self._options = options
        self._vocabulary = options.vocabulary
        self._profile = profile
        # Catalogues whose ids are ours: this one, and those that the document was exported from.
        self._catalogues = [options.vocabulary]
        self._predicate_map = predicates.build_predicate_map(options.vocabulary, options.column_mapping)
        self._warnings = WarningCounter()
        # Ids of resources that do not follow from their IRIs.
        self._declared_ids: dict[str, str] = {}
        # Relation types, fields and roles that the document states anywhere.
        self._stated_roles: set[str] = set()
        self._oversized_nodes: set[str] = set()
        self._has_other_records = self._has_vocabulary_header = False

    def run(self, triples: Iterable[ParsedTriple]) -> Iterator[ParsedRecord]:
        self._graph.add(self._normalize_triples(triples))
        for predicate in self._graph.predicate_numbers.keys() & self._predicate_map.keys():
            mapping = self._predicate_map[predicate]
            self._stated_roles.add(mapping.target or mapping.role)
        has_records = False
        for name in self._graph:
            subject = self._graph.get_subject(name)
            if self._is_record(name, subject):
                has_records = True
                record = self._build_record(name, subject)
                if record is not None:
                    yield record
            else:
                self._inspect_other_resource(name, subject)
        if not has_records and self._has_other_records:
            message = f"it holds nothing that this format reads: try --format {self._profile.other_format}"
            raise ParseError(message, 1, 1)
        if not has_records and self._graph.predicate_numbers and not self._has_vocabulary_header:
            raise ParseError(f"nothing that it speaks of is a {to_curie(self._profile.record_type)}", 1, 1)
        yield from self._warnings.to_parsed_records()

    def _normalize_triples(self, triples: Iterable[ParsedTriple]) -> Iterator[ParsedTriple]:
        """Yield the triples with inverse predicates replaced; collect ids, catalogues and roles from them."""
        for triple in triples:
            line, subject, predicate, value = triple
            if predicate in predicates.INVERSE_PREDICATES and isinstance(value, str):
                yield ParsedTriple(line, value, predicates.INVERSE_PREDICATES[predicate], subject)
            else:
                yield triple
            if predicate == _ID_PREDICATE and isinstance(value, RdfLiteral):
                if value.text != predicates.to_obo_curie(subject):
                    self._declared_ids[subject] = value.text
            elif predicate == _RDF_TYPE and isinstance(value, str):
                self._add_catalogue(predicates.find_catalogue_base(subject, value))
            elif predicate == _ON_PROPERTY and (mapping := self._predicate_map.get(_iri_or_empty(value))) is not None:
                self._stated_roles.add(mapping.target)

    def _add_catalogue(self, base: str | None) -> None:
        """Recognize the ids of the catalogue at this base."""
        if base is not None and all(known.base != base for known in self._catalogues):
            catalogue = replace(self._vocabulary, base=base)
            self._catalogues.append(catalogue)
            own_map = predicates.build_predicate_map(catalogue, self._options.column_mapping)
            self._predicate_map = own_map | self._predicate_map

    def _parse_own_id(self, name: str) -> str | None:
        return next(filter(None, (catalogue.parse_record_iri(name) for catalogue in self._catalogues)), None)

    def _is_record(self, name: str, subject: SubjectTriples) -> bool:
        types = [value for predicate, value in subject.properties if predicate == _RDF_TYPE]
        if name.startswith("_:") or any(value in _COLLECTION_TYPES for value in types):
            return False
        return self._profile.record_type in types or any(
            predicate in self._profile.membership_predicates for predicate, _ in subject.properties
        )

    def _inspect_other_resource(self, name: str, subject: SubjectTriples) -> None:
        """Warn about what is not imported; look for a header, and for records of another format."""
        for predicate, value in subject.properties:
            if predicate == _RDF_TYPE and value == self._profile.other_type:
                self._has_other_records = True
            elif predicate == _RDF_TYPE and value in _COLLECTION_TYPES:
                self._warnings.add(f"a {to_curie(_node_text(value))} is not kept", name)
            elif predicate == _RDF_TYPE and value in _HEADER_TYPES:
                self._has_vocabulary_header = True
            elif predicate == _OWL_IMPORTS:
                self._warnings.add("what it imports is not fetched", _node_text(value))
            elif predicate in _LICENCE_PREDICATES and not name.startswith(self._vocabulary.base):
                self._warnings.add("it has terms of its own, to which the catalogue's should fit", _node_text(value))

    def _build_record(self, name: str, subject: SubjectTriples) -> ParsedRecord | None:
        record = ParsedRecord(subject.line, foreign_id=self._get_id(name))
        properties = self._group_by_role(subject)
        collection = self._choose_collection(properties, subject.line)
        record.collection = collection.name
        own_id = self._parse_own_id(name)
        if own_id is not None:
            record.foreign_id, record.fields["id"] = "", own_id
        elif find_target_problem(record.foreign_id):
            self._warnings.add("what has no IRI of its own was left out", name)
            return None
        self._set_names(record, properties)
        if not own_id and "name" not in record.fields:
            self._warnings.add("what has no label was left out", name)
            return None
        self._set_definition(collection, record, properties)
        self._set_sources(record, properties)
        self._set_relations(collection, record, properties)
        self._set_fields(collection, record, properties)
        self._set_dates(collection, record, properties)
        self._set_state(record, properties)
        return record

    def _get_id(self, value: Node) -> str:
        """Return the id of a resource: ours, a declared one, a CURIE or its IRI; the text of a literal."""
        if isinstance(value, RdfLiteral):
            return value.text
        return self._parse_own_id(value) or self._declared_ids.get(value) or predicates.to_obo_curie(value)

    def _group_by_role(self, subject: SubjectTriples) -> PropertiesByRole:
        properties: PropertiesByRole = defaultdict(list)
        names: dict[str, list[RdfLiteral]] = {name: [] for name in self._profile.name_predicates}
        for predicate, value in _drop_duplicates(subject.properties):
            mapping = self._predicate_map.get(predicate)
            if mapping is None:
                message = f"{to_curie(predicate)} is not known and was left out; --map can say what it means"
                self._warnings.add(message)
            elif mapping.role == "name":
                names.setdefault(predicate, []).extend(self._get_literals(predicate, value))
            elif mapping.role == "notation":
                codes = self._get_literals(predicate, value)
                properties["alias"] += [("hidden", RdfLiteral(code.text, predicates.NO_LANGUAGE)) for code in codes]
            elif mapping.role in _TEXT_ROLES:
                properties[mapping.role] += [(mapping.target, text) for text in self._get_literals(predicate, value)]
            else:
                properties[mapping.role].append((mapping.target, value))
        properties["name"] = [("", text) for texts in names.values() for text in texts]
        return properties

    def _get_literals(self, predicate: str, value: Node) -> list[RdfLiteral]:
        """Return the texts of a label or note, which may be a resource of its own."""
        if isinstance(value, RdfLiteral):
            return [value]
        details = self._get_node_properties(value)
        texts = [text for detail, text in details if detail in _LITERAL_FORM and isinstance(text, RdfLiteral)]
        if not texts:
            self._warnings.add(f"{to_curie(predicate)} is not a text, and was left out", _node_text(value))
        return texts

    def _get_node_properties(self, name: str) -> list[tuple[str, Node]]:
        """Return the properties of a resource that is no record; none if there are too many."""
        if name in self._oversized_nodes:
            return []
        properties = self._graph.get_subject(name).properties
        if len(properties) > _MAX_NODE_PROPERTIES:
            self._oversized_nodes.add(name)
            self._warnings.add(f"a label of which more than {_MAX_NODE_PROPERTIES} things are said was left out", name)
            return []
        return properties

    def _choose_collection(self, properties: PropertiesByRole, line: int) -> Collection:
        names = (
            value.text if isinstance(value, RdfLiteral) else value.removeprefix(catalogue.base)
            for _, value in properties["collection"]
            for catalogue in self._catalogues
        )
        stated = next((MAIN_COLLECTIONS[name] for name in names if name in MAIN_COLLECTIONS), None)
        return self._options.choose_collection(stated, line)

    def _set_names(self, record: ParsedRecord, properties: PropertiesByRole) -> None:
        language = self._vocabulary.language
        names = list(dict.fromkeys(_filter_literals(properties["name"])))
        name = _select_label(names, language)
        if name is not None:
            record.fields["name"] = name.text
            if _matches_language(name, language):
                names = [label for label in names if label.text != name.text or not _matches_language(label, language)]
            else:
                self._warnings.add(f"no label is in {language}, and one in another language is the name", name.text)
        labels = [(UNSCOPED, text) for text in names]
        labels += [(scope, text) for scope, text in properties["alias"] if isinstance(text, RdfLiteral)]
        # An unscoped label is exact, and is dropped if the same label has a scope.
        scoped_literals = {literal for scope, literal in labels if scope not in (UNSCOPED, "hidden")}
        aliases = (
            _build_alias(literal, "exact" if scope == UNSCOPED else scope, language)
            for scope, literal in labels
            if literal.text and (scope != UNSCOPED or literal not in scoped_literals)
        )
        record.aliases = _unique_if_foreign(record, aliases)

    def _set_definition(self, collection: Collection, record: ParsedRecord, properties: PropertiesByRole) -> None:
        texts = _filter_literals(properties["definition"]) or _filter_literals(properties["note"])
        literals = list(dict.fromkeys(texts))
        language = self._vocabulary.language
        definition = _select_label(literals, language)
        field = collection.definition_field
        if definition is not None and field is None:
            self._warnings.add(f"a {collection.name} has no definition; it was left out")
        elif definition is not None and field is not None:
            record.fields[field] = definition.text
            if not _matches_language(definition, language):
                self._warnings.add(f"no definition is in {language}, and one in another language is taken")
        if len(literals) > 1:
            self._warnings.add("only one of several definitions, or notes, is taken")

    def _set_sources(self, record: ParsedRecord, properties: PropertiesByRole) -> None:
        sources = [*(value for _, value in properties["source"]), *self._iter_axiom_sources(properties)]
        if record.fields.get("id") or "source" in self._stated_roles or sources:
            texts = (_node_text(value) for value in sources if not _is_blank(value))
            record.sources = _unique_if_foreign(record, filter(None, texts))

    def _iter_axiom_sources(self, properties: PropertiesByRole) -> Iterator[Node]:
        """Yield the sources of the definition that an axiom about it states."""
        for _, axiom in properties["axiom"]:
            axiom_properties = self._get_node_properties(axiom) if isinstance(axiom, str) else []
            annotated = (_iri_or_empty(value) for name, value in axiom_properties if name == _ANNOTATED_PROPERTY)
            mappings = map(self._predicate_map.get, annotated)
            if any(mapping is not None and mapping.role == "definition" for mapping in mappings):
                yield from (value for name, value in axiom_properties if name in _SOURCE_PREDICATES)

    def _set_relations(self, collection: Collection, record: ParsedRecord, properties: PropertiesByRole) -> None:
        record_id = record.fields.get("id") or record.foreign_id
        targets: dict[str, list[Node]] = defaultdict(list)
        for relation_kind, value in properties["relation"]:
            relation, target = self._resolve_part_of(relation_kind, value)
            targets[relation].append(target)
        partitive = set(targets[PARTOF.name])
        broader = [target for target in targets.pop(BROADER, []) if target not in partitive]
        transitive = [target for target in targets.pop(BROADER_TRANSITIVE, []) if target not in partitive]
        generic = targets.pop(BROADER_GENERIC, []) + broader
        if collection.hierarchy_type is not None:
            targets[collection.hierarchy_type.name] += generic or transitive
        elif generic or transitive:
            self._warnings.add(f"a {collection.name} is not a kind of another; that was left out", record_id)
        candidates = (
            self._build_relation(collection, record, relation, target)
            for relation in targets
            for target in targets[relation]
        )
        relations = filter(None, dict.fromkeys(candidates))
        record.relations = [
            relation for relation in relations if relation.source != relation.target or not record.foreign_id
        ]
        record.complete_relations = self._list_complete_relations(collection, is_own="id" in record.fields)

    def _resolve_part_of(self, relation: str, value: Node) -> tuple[str, Node]:
        """Return PARTOF and its target for an expression "part of some X"; other relations unchanged."""
        if relation in (BROADER, BROADER_GENERIC) and isinstance(value, str) and _is_blank(value):
            node_properties = dict(self._get_node_properties(value))
            mapping = self._predicate_map.get(_iri_or_empty(node_properties.get(_ON_PROPERTY)))
            filler = node_properties.get(_SOME_VALUES)
            if mapping is not None and mapping.target == PARTOF.name and filler is not None:
                return PARTOF.name, filler
        return relation, value

    def _build_relation(
        self, collection: Collection, record: ParsedRecord, relation: str, value: Node
    ) -> Relation | None:
        record_id = record.fields.get("id") or record.foreign_id
        if relation == RELATED.name and relation not in collection.relation_types:
            self._warnings.add(f"a {collection.name} is not related to others; that is kept as relatedMatch", record_id)
            relation = "relatedMatch"
        if relation in _MAPPING_NAMES:
            target = _node_text(value)
            if not find_target_problem(target):
                return Relation(record_id, relation, target)
            message = "mappings to what is neither an IRI nor a CURIE were left out"
            self._warnings.add(message, f"{record_id} to {target}")
            return None
        if relation not in collection.relation_types:
            self._warnings.add(f"a {collection.name} cannot be the source of {relation}; that was left out", record_id)
            return None
        if _is_blank(value):
            self._warnings.add("relations to expressions, and to what has no IRI, were left out", record_id)
            return None
        target = self._get_id(value)
        if relation == RELATED.name and (record.foreign_id or self._parse_own_id(_node_text(value)) is None):
            # It is symmetric, and other vocabularies state it once or twice.
            record_id, target = sorted((record_id, target))
        return Relation(record_id, relation, target)

    def _list_complete_relations(self, collection: Collection, is_own: bool) -> list[tuple[str, Side]]:
        """Return the relation types that are stated completely: all for our records, else those that are used."""
        complete_relations: list[tuple[str, Side]] = []
        for relation in collection.relation_types.values():
            is_stated = relation.name in self._stated_roles or (
                relation == collection.hierarchy_type and _BROADER_KINDS & self._stated_roles
            )
            if is_own or is_stated:
                complete_relations.append((relation.name, "source"))
                if relation == RELATED and not is_own:
                    complete_relations.append((relation.name, "target"))
        return complete_relations

    def _set_fields(self, collection: Collection, record: ParsedRecord, properties: PropertiesByRole) -> None:
        for field, value in properties["field"]:
            text = self._get_id(value)
            if field not in collection.field_types:
                self._warnings.add(f"{field} is not a field of {collection.name}; it was left out")
            elif collection.field_types[field] is str:
                record.fields[field] = text
            elif (number := parse_integer(text)) is not None:
                record.fields[field] = number
            else:
                record.problems.append(f"{field} is not a whole number that can be kept: {text[:50]}")

    def _set_dates(self, collection: Collection, record: ParsedRecord, properties: PropertiesByRole) -> None:
        fields = record.fields
        for literal in _filter_literals(properties["created"])[:1]:
            text, timestamp = literal.text, parse_timestamp(literal.text)
            if timestamp is None:
                self._warnings.add("a date that is not one was left out", text)
            elif "event_stamp" in collection.field_types:
                fields.setdefault("event_stamp", text if is_timestamp(text) else format_timestamp(timestamp))
                if "creation_time" in collection.field_types:
                    fields.setdefault("creation_time", timestamp)
        for literal in _filter_literals(properties["modified"])[:1]:
            timestamp = parse_timestamp(literal.text)
            if timestamp is not None and "last_updated" in collection.field_types:
                fields.setdefault("last_updated", timestamp)
        for literal in _filter_literals(properties["creator"]):
            if has_prefix(literal.text, ("usr",)) and "id_user" in collection.field_types:
                fields.setdefault("id_user", literal.text)

    def _set_state(self, record: ParsedRecord, properties: PropertiesByRole) -> None:
        replacements = [value for _, value in properties["replaced_by"]]
        stated = [literal.text for literal in _filter_literals(properties["state"])]
        is_deprecated = any(literal.text in ("true", "1") for literal in _filter_literals(properties["deprecated"]))
        default = RecordState.RETIRED if is_deprecated or replacements else RecordState.PUBLISHED
        record.state = next((RecordState(state) for state in stated if state in list(RecordState)), default)
        if replacements:
            record.replaced_by = self._get_id(replacements[0])
        if len(replacements) > 1:
            self._warnings.add("only the first of several replacements is kept", record.foreign_id)


def _drop_duplicates(properties: Iterable[tuple[str, Node]]) -> Iterator[tuple[str, Node]]:
    """Yield the properties without repeated resources; a literal or a source may be repeated."""
    seen: set[tuple[str, Node]] = set()
    for pair in properties:
        if pair not in seen:
            yield pair
        if isinstance(pair[1], str) and pair[0] not in _SOURCE_PREDICATES:
            seen.add(pair)


def _unique_if_foreign(record: ParsedRecord, values: Iterable[Value]) -> tuple[Value, ...]:
    """Return values without duplicates; with them for a record of ours, which may have some."""
    return tuple(dict.fromkeys(values) if record.foreign_id else values)


def _filter_literals(properties: list[tuple[str, Node]]) -> list[RdfLiteral]:
    return [value for _, value in properties if isinstance(value, RdfLiteral)]


def _iri_or_empty(node: Node | None) -> str:
    return node if isinstance(node, str) else ""


def _is_blank(node: Node) -> bool:
    return isinstance(node, str) and node.startswith("_:")


def _node_text(value: Node) -> str:
    return value.text if isinstance(value, RdfLiteral) else value


_OTHER_LANGUAGE = 3


def _language_rank(literal: RdfLiteral, language: str) -> int:
    """Rank a literal by its language: this one, none, a variety of this one, another."""
    tag, language = literal.language.lower(), language.lower()
    if tag == language:
        return 0
    if not tag:
        return 1
    return 2 if tag.startswith(f"{language}-") else _OTHER_LANGUAGE


def _select_label(literals: Iterable[RdfLiteral], language: str) -> RdfLiteral | None:
    return min(literals, key=lambda literal: _language_rank(literal, language), default=None)


def _matches_language(literal: RdfLiteral, language: str) -> bool:
    return _language_rank(literal, language) < _OTHER_LANGUAGE


def _build_alias(literal: RdfLiteral, scope: str, language: str) -> Alias:
    """Build an alias; `language` is the default for a literal without a valid language."""
    tag = _normalize_language_tag(literal.language)
    lang = tag if is_language_tag(tag) else language
    return Alias.model_construct(text=literal.text, lang=lang, scope=cast(AliasScope, scope))


def _normalize_language_tag(tag: str) -> str:
    """Return a tag in the case that BCP 47 recommends; RDF ignores case."""
    parts: list[str] = []
    for subtag in tag.lower().split("-"):
        # Region in upper case, script in title case, unless it is first or follows a singleton.
        if not parts or min(map(len, parts)) < 2:
            parts.append(subtag)
        else:
            parts.append(subtag.upper() if len(subtag) == 2 else subtag.title() if len(subtag) == 4 else subtag)
    return "-".join(parts)
