"""Record at one version, and its document in the change log."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import starmap
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from lexarium.domain import cache_tags
from lexarium.domain.cache_tags import CacheTag
from lexarium.domain.identifiers import MAX_TARGET_BYTES, get_local_id, qualify_id, split_id
from lexarium.domain.labels import DEFAULT_LANGUAGE, Alias, AliasScope, build_alias, parse_aliases, split_alias_texts
from lexarium.domain.rendering import RenderedRecord, render_fields
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection, Fields, get_collection
from lexarium.domain.schema.relation_types import Side
from lexarium.domain.statement import (
    INTEGER,
    Node,
    Reference,
    Statement,
    Text,
    Value,
    ValueIndex,
    load_statements,
    normalize,
    pack_statements,
)
from lexarium.domain.text.characters import name_key

T = TypeVar("T")

SOURCE = "dcterms:source"
ALTERNATIVE_ID = "oboInOwl:hasAlternativeId"
TYPE = "rdf:type"
# Predicates of references that are no relations.
OTHER_REFERENCES = frozenset({SOURCE, TYPE})
# Mappings that are written as texts.
TEXT_MAPPINGS = frozenset({"oboInOwl:hasDbXref"})
ALIAS_PREDICATES: dict[AliasScope, str] = {
    "exact": "skos:altLabel",
    "narrow": "oboInOwl:hasNarrowSynonym",
    "broad": "oboInOwl:hasBroadSynonym",
    "related": "oboInOwl:hasRelatedSynonym",
    "hidden": "skos:hiddenLabel",
}
# Scopes of all predicates that hold aliases.
ALIAS_SCOPES: dict[str, AliasScope] = {
    **{predicate: scope for scope, predicate in ALIAS_PREDICATES.items()},
    "oboInOwl:hasExactSynonym": "exact",
    "IAO:0000118": "exact",
    "skosxl:altLabel": "exact",
    "skosxl:hiddenLabel": "hidden",
}
# Predicates of the text of a label or note that is a node of its own.
NODE_TEXTS = ("skosxl:literalForm", "rdf:value")


class _View(Generic[T]):
    """Property of a record that is computed once.

    That of `functools` takes a lock before Python 3.12, and often as long as the computation.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, record: object, owner: type) -> T:
        value = record.__dict__[self._name] = self._compute(record)
        return value


class Relation(NamedTuple):
    """Relation between two records, which may not exist yet."""

    source: str
    relation: str
    target: str


class RelatedRecord(NamedTuple):
    """Record at the other end of a relation."""

    id: str
    # None if it does not exist or is not published.
    name: str | None
    type_name: str
    # Side of the record that it is related to.
    side: Side
    # None likewise.
    collection: str | None


def sort_related(related: Iterable[RelatedRecord]) -> list[RelatedRecord]:
    """Sort by relation type, name ignoring case, and id."""
    records = list(related)
    if len(records) == 1:  # most often, in exports
        return records
    return sorted(records, key=lambda other: (other.type_name, other.side, (other.name or "").casefold(), other.id))


class RecordState(StrEnum):
    """State of a record."""

    PUBLISHED = "published"
    RETIRED = "retired"
    MERGED = "merged"


_STATES = {state.value: state for state in RecordState}


@dataclass(frozen=True)
class ListQuery:
    """List of records at a revision. None means any value."""

    collection: str
    revision: int
    sort: str = "name"
    descending: bool = False
    state: RecordState | None = RecordState.PUBLISHED
    ids: tuple[str, ...] | None = None
    name_key: str | None = None
    class_id: str | None = None
    owner: str | None = None
    flagged: bool | None = None
    updated_since: int | None = None

    @property
    def is_unfiltered(self) -> bool:
        """Return whether the list has all records of a collection in a state."""
        return replace(self, sort="name", descending=False) == ListQuery(
            self.collection, self.revision, state=self.state
        )


@dataclass(frozen=True)
class ProposalOrigin:
    """Proposal behind an accepted change, and its author. Part of the stored document."""

    proposal: str
    by: str


@dataclass(frozen=True)
class Record:
    """Record at one version: a set of statements. Fields, aliases, sources and relations are views of them.

    A record may have further classes. They are statements of `rdf:type`, and the values that it has as a member of one
    are statements with that class as a qualifier.
    """

    collection: Collection
    # Unique in the database.
    id: str
    # Those with one predicate stand together.
    statements: tuple[Statement, ...] = ()
    state: RecordState = RecordState.PUBLISHED
    # IRI that its owner gave it, if any.
    iri: str | None = None
    # Replacement of a retired or merged record.
    replaced_by: str | None = None
    # Values of v-alpha that the server made up, since no statement has them. They are part of no other format.
    assigned: Fields = field(default_factory=dict)

    @property
    def is_head(self) -> bool:
        """Return whether this is the head record of a vocabulary, which is related to nothing and found by its slug."""
        return not self.collection.vocabulary

    @property
    def local_id(self) -> str:
        """Id in its vocabulary, as its owner gave it."""
        return get_local_id(self.id)

    @_View
    def own_statements(self) -> list[Statement]:
        """Statements without those that are values of a further class."""
        return [statement for statement in self.statements if not statement[2] or not _has_class(statement)]

    @_View
    def further_collections(self) -> tuple[Collection, ...]:
        """Collections of its further classes."""
        types = [value for predicate, value, _ in self.statements if predicate == TYPE]
        uris = [value.target for value in types if isinstance(value, Reference)]
        return find_further_collections(self.collection, uris) if uris else ()

    @_View
    def fields(self) -> Fields:
        """All fields of the collection, in the order of v-alpha."""
        values = {predicate: value for predicate, value, _ in reversed(self.own_statements)}
        fields: Fields = {"id": self.local_id}
        for name in self.collection.translated_fields:
            predicate = self.collection.field_predicates[name]
            value = values.get(predicate)
            # Most texts have no language.
            is_plain = value is None or (type(value) is Text and not value[1])
            if not is_plain and not self._is_in_default_language(values[predicate]):
                values[predicate] = self._find_shown_statement(predicate).value
        assigned = self.assigned
        for name, predicate, field_type, default in self.collection.field_views:
            value = values.get(predicate)
            if value is None:
                fields[name] = assigned.get(name, default)
            elif field_type is str and isinstance(value, Text):
                fields[name] = value[0]
            else:
                fields[name] = to_field(value, field_type)
        if not fields.get("name"):
            others = (values[predicate] for predicate in self.collection.name_predicates if predicate in values)
            fields["name"] = next((to_field(value, str) for value in others), "")
        return fields

    @property
    def class_id(self) -> str:
        """Id of the class that it is sorted into, unique in the database; empty if there is none."""
        local_id = self.fields.get(self.collection.class_field or "")
        return self._qualify(local_id) if local_id else ""

    @_View
    def rendered(self) -> RenderedRecord:
        """Bytes and keys of the fields, as stored."""
        return render_fields(self.collection, self.fields)

    @property
    def definition(self) -> str:
        """Definition, or an empty text if its collection has none."""
        text: str = self.fields.get(self.collection.definition_field or "", "")
        return text

    @_View
    def stored_aliases(self) -> tuple[Alias, ...]:
        """Aliases with statements of their own, each once, though statements of it may differ in qualifiers."""
        parts = [self._parse_alias(item) for item in self.own_statements if item[0] in ALIAS_SCOPES]
        return tuple(starmap(build_alias, dict.fromkeys(filter(None, parts)))) if parts else ()

    @property
    def has_qualified_aliases(self) -> bool:
        """Whether statements of aliases have qualifiers, such as references."""
        return any(item.qualifiers and item.predicate in ALIAS_SCOPES for item in self.own_statements)

    def _parse_alias(self, statement: Statement) -> tuple[str, str, AliasScope] | None:
        """Return the text, language and scope of an alias, or None if a statement is none."""
        scope, text = ALIAS_SCOPES.get(statement.predicate), get_text(statement.value)
        if scope is None or text is None:
            return None
        return text.text, text.lang or self.collection.language, scope

    @_View
    def aliases(self) -> tuple[Alias, ...]:
        """All aliases. The field `alias` has those in the default language, unless they have their own statements."""
        stored = self.stored_aliases
        if any(alias.lang == self.collection.language for alias in stored):
            return stored
        return parse_aliases(self.fields.get(self.collection.alias_field or "", "")) + stored

    @_View
    def alternative_ids(self) -> tuple[str, ...]:
        """IRI of its own, and ids that redirect to this record, each as its source has it."""
        if self.is_head:
            return ()
        ids = [value for predicate, value, _ in self.own_statements if predicate == ALTERNATIVE_ID]
        texts = dict.fromkeys(value[0] for value in ids if not isinstance(value, Node))
        return tuple(texts if self.iri is None else {self.iri: None, **texts})

    @_View
    def translated_names(self) -> dict[str, str]:
        """Names in other languages than the default one, by language."""
        names: dict[str, str] = {}
        for predicate, value, _ in () if self.is_head else self.own_statements:
            if predicate in self.collection.name_predicates and not self._is_in_default_language(value):
                text = get_text(value)
                if text is not None:
                    names.setdefault(text.lang, text.text)
        return names

    @_View
    def sources(self) -> tuple[str, ...]:
        """References of the definition."""
        values = [value for predicate, value, _ in self.own_statements if predicate == SOURCE]
        return tuple([value[0] for value in values if not isinstance(value, Node)])

    @_View
    def relations(self) -> frozenset[Relation]:
        """Relations that have this record as their source."""
        if self.is_head:
            return frozenset()
        # Most statements are texts, and most of those are no mappings.
        candidates = [item for item in self.own_statements if type(item[1]) is not Text or item[0] in TEXT_MAPPINGS]
        targets = [(item[0], target) for item in candidates if (target := self._find_target(item)) is not None]
        if not targets:
            return frozenset()
        names = self.collection.relation_names
        for collection in self.further_collections:
            names = collection.relation_names | names
        relations = []
        for predicate, target in targets:
            name = names.get(predicate, predicate)
            is_mapping = RELATION_TYPES[name].is_mapping
            relations.append(Relation(self.id, name, target if is_mapping else self._qualify(target)))
        return frozenset(relations)

    def _qualify(self, local_id: str) -> str:
        return qualify_id(self.collection.vocabulary, local_id)

    @_View
    def other_statements(self) -> tuple[Statement, ...]:
        """Statements of its own that are in none of the other views."""
        shown: dict[str, Statement | None] = {}
        field_predicates = self.collection.stated_predicates
        for statement in self.own_statements:
            if statement[0] in field_predicates:
                # None if there are several.
                shown[statement[0]] = statement if statement[0] not in shown else None
        for predicate in [predicate for predicate, statement in shown.items() if statement is None]:
            shown[predicate] = self._find_shown_statement(predicate)
        others = []
        for statement in self.own_statements:
            predicate, value, _ = statement
            if shown.get(predicate) is statement:
                continue
            is_plain = type(value) is Text and predicate not in TEXT_MAPPINGS
            has_place = predicate in ALIAS_SCOPES or predicate in OTHER_REFERENCES
            if isinstance(value, Node) or not (has_place or (not is_plain and self._is_relation(statement))):
                others.append(statement)
        return tuple(others)

    def _find_target(self, statement: Statement) -> str | None:
        """Return the target of a relation: a reference, or a cross-reference that is written as a text."""
        predicate, value, _ = statement
        is_target = isinstance(value, Reference)
        if isinstance(value, Text) and predicate in TEXT_MAPPINGS:
            # What fits into no index is another statement.
            is_target = 0 < len(value.text.encode(errors="surrogatepass")) <= MAX_TARGET_BYTES
        is_other = predicate in self.collection.id_predicates or predicate in OTHER_REFERENCES
        if isinstance(value, Node) or not is_target or is_other or _has_class(statement):
            return None
        return value[0]

    def _is_relation(self, statement: Statement) -> bool:
        return self._find_target(statement) is not None

    def _is_mapping(self, predicate: str) -> bool:
        return RELATION_TYPES[self.collection.relation_names.get(predicate, predicate)].is_mapping

    @property
    def relation_targets(self) -> dict[str, list[str]]:
        """Targets by relation type, as the ids that their owner gave them."""
        return group_targets(self.relations)

    @property
    def cache_tags(self) -> set[CacheTag]:
        """Tags that are invalidated when a record becomes this one."""
        tags = {
            cache_tags.record_tag(self.id),
            cache_tags.collection_tag(self.collection.name),
            cache_tags.name_tag(self.collection.name, name_key(self.fields["name"])),
        }
        tags.update(map(cache_tags.alternative_id_tag, self.alternative_ids))
        return tags | {cache_tags.record_tag(relation.target) for relation in self.relations}

    def has_text(self, field: str, text: str) -> bool:
        """Return whether a field has a text where an integer belongs, which `fields` has as 0."""
        predicate = self.collection.field_predicates.get(field)
        is_integer = predicate is not None and self.collection.field_types[field] is int
        return is_integer and any(item[:2] == (predicate, Text(text)) for item in self.own_statements)

    def with_state(self, state: RecordState, replaced_by: str | None) -> "Record":
        """Return the record in a state."""
        # Itself if it can be, since it may have computed its views.
        is_same = (self.state, self.replaced_by) == (state, replaced_by)
        return self if is_same else replace(self, state=state, replaced_by=replaced_by)

    def state_fields(self, values: Fields) -> "Record":
        """Return the record with statements that give fields these values."""
        changed = {name: value for name, value in values.items() if self.fields[name] != value or name in self.assigned}
        if not changed:
            return self
        statements, empty = _split_values(self.collection, changed)
        shown = self._find_shown(self.collection.field_predicates[name] for name in changed)
        record = self._replace(shown.__contains__, statements)
        return replace(record, assigned={**self._keep_assigned(changed), **empty})

    def _find_shown(self, predicates: Iterable[str]) -> set[Statement]:
        """Return the statements that fields show: one of each predicate, without translations."""
        stated = {statement.predicate for statement in self.own_statements}
        shown = {self._find_shown_statement(predicate) for predicate in predicates if predicate in stated}
        translated = {self.collection.field_predicates[name] for name in self.collection.translated_fields}
        return {
            statement
            for statement in shown
            if statement.predicate not in translated or self._is_in_default_language(statement.value)
        }

    def _find_shown_statement(self, predicate: str) -> Statement:
        """Return the first statement of a predicate in the default language, else the first of all."""
        statements = [statement for statement in self.own_statements if statement.predicate == predicate]
        in_default_language = (item for item in statements if self._is_in_default_language(item.value))
        return next(in_default_language, statements[0])

    def _is_in_default_language(self, value: Value) -> bool:
        text = get_text(value)
        return text is None or text.lang in ("", self.collection.language)

    def drop_fields(self, names: Iterable[str]) -> "Record":
        """Return the record without statements or assigned values of these fields."""
        record = self._restate({self.collection.field_predicates[name] for name in names})
        return replace(record, assigned=self._keep_assigned(names))

    def _keep_assigned(self, names: Iterable[str]) -> Fields:
        dropped = set(names)
        return {name: value for name, value in self.assigned.items() if name not in dropped}

    def assign_fields(self, values: Fields) -> "Record":
        """Return the record with values that the server sets. Where a statement has the field, it is replaced."""
        stated = {statement.predicate for statement in self.own_statements}
        predicates = self.collection.field_predicates
        own = {name: value for name, value in values.items() if predicates[name] not in stated}
        record = self.state_fields({name: value for name, value in values.items() if name not in own})
        return replace(record, assigned={**record.assigned, **own})

    def with_aliases(self, aliases: Iterable[Alias]) -> "Record":
        """Return the record with other aliases. Statements of those that stay are kept. The field `alias` stays."""
        existing: dict[Alias, list[Statement]] = {}
        for statement in self.own_statements:
            if (parts := self._parse_alias(statement)) is not None:
                existing.setdefault(build_alias(*parts), []).append(statement)
        statements: list[Statement] = []
        for alias in dict.fromkeys(aliases):
            added = Statement(get_alias_predicate(self.collection, alias.scope), Text(alias.text, alias.lang))
            statements += existing.get(alias, [added])
        replaced = {statement for group in existing.values() for statement in group}
        return self._replace(replaced.__contains__, statements)

    def with_sources(self, sources: Iterable[str]) -> "Record":
        """Return the record with other sources. Statements of those that stay are kept."""
        wanted = tuple(sources)
        if wanted == self.sources:
            return self
        stated = [item for item in self.own_statements if item.predicate == SOURCE and not isinstance(item.value, Node)]
        existing: dict[str, list[Statement]] = {}
        for item in stated:
            existing.setdefault(str(item.value[0]), []).append(item)
        restated = [existing[text].pop(0) if existing.get(text) else Statement(SOURCE, Text(text)) for text in wanted]
        return self._replace(stated.__contains__, restated)

    def with_relations(self, relations: Iterable[Relation]) -> "Record":
        """Return the record with other relations. Statements of those that stay are kept."""
        wanted = frozenset(relations)
        if wanted == self.relations:
            return self
        predicates = self.collection.relation_predicates
        for collection in self.further_collections:
            predicates = collection.relation_predicates | predicates

        def to_pair(relation: Relation) -> tuple[str, str]:
            return predicates.get(relation.relation, relation.relation), get_local_id(relation.target)

        dropped = set(map(to_pair, self.relations - wanted))
        added = [
            Statement(predicate, Text(target) if predicate in TEXT_MAPPINGS else Reference(target))
            for predicate, target in map(to_pair, sorted(wanted - self.relations))
        ]
        return self._replace(lambda item: (item.predicate, self._find_target(item)) in dropped, added)

    def redirect_references(self, targets: Mapping[str, str]) -> "Record":
        """Return the record with other targets of its references; relations to itself are dropped."""
        statements = []
        local_targets = {get_local_id(before): get_local_id(after) for before, after in targets.items()}
        for statement in self.statements:
            predicate, value, _ = statement
            is_id = isinstance(value, Reference) and value.target in local_targets
            if is_id and predicate not in OTHER_REFERENCES and not self._is_mapping(predicate):
                target = local_targets[str(value[0])]
                if target == self.local_id and self._is_relation(statement):
                    continue
                statements.append(statement._replace(value=Reference(target)))
            else:
                statements.append(statement)
        return replace(self, statements=normalize(statements))

    def adopt_qualifiers(self, other: "Record") -> "Record":
        """Return the record with the qualifiers that another edition of it has of the same statements.

        A text without a tag is one in the default language.
        """
        if not any(item.qualifiers for item in other.statements):
            return self
        # Those without qualifiers win: what is stated both with and without them stays as both.
        stated = sorted(other.statements, key=lambda item: not item.qualifiers)
        index = ValueIndex(stated, self.collection.language)
        statements = []
        for item in self.statements:
            same = index.find(item)
            statements.append(same if same and same.qualifiers and not item.qualifiers else item)
        return replace(self, statements=normalize(statements))

    def add_statements(self, statements: Iterable[Statement]) -> "Record":
        """Return the record with further statements."""
        return replace(self, statements=normalize((*self.statements, *statements)))

    def replace_statements(self, replaced: Iterable[Statement], statements: Sequence[Statement]) -> "Record":
        """Return the record with others instead of these statements."""
        removed = frozenset(replaced)
        return self._arrange([item for item in self.statements if item not in removed], statements)

    def with_class(self, collection: Collection, fields: Fields) -> "Record":
        """Return the record as one of a further class too, with these values there."""
        type_statement = _state_class(collection)
        qualifiers = (type_statement,)
        statements, _ = _split_values(collection, fields)
        predicates = {collection.field_predicates[name] for name in fields if name in collection.field_predicates}
        return self._replace(
            lambda item: item == type_statement or (item.qualifiers == qualifiers and item.predicate in predicates),
            [type_statement, *(statement._replace(qualifiers=qualifiers) for statement in statements)],
        )

    def as_member(self, collection: Collection) -> "Record":
        """Return the record as its collection or one of its further classes has it.

        A relation belongs to its collection if that declares it, else to the further classes.
        """
        if collection is self.collection:
            return self
        qualifiers, slots = (_state_class(collection),), self.collection.schema_class.slots_by_predicate
        statements = [
            statement._replace(qualifiers=()) if statement.qualifiers == qualifiers else statement
            for statement in self.statements
            if statement.qualifiers == qualifiers or (self._is_relation(statement) and statement.predicate not in slots)
        ]
        return replace(self, collection=collection, statements=tuple(statements), assigned={})

    def _restate(self, predicates: Container[str], statements: Sequence[Statement] = ()) -> "Record":
        """Return the record with other statements of these predicates."""
        return self._replace(lambda item: item.predicate in predicates and not _has_class(item), statements)

    def _replace(self, is_replaced: Callable[[Statement], bool], statements: Sequence[Statement]) -> "Record":
        """Return the record with others instead of some of its statements. Equal values keep their qualifiers."""
        kept: list[Statement] = []
        originals: set[Statement] = set()
        replaced: dict[tuple[str, Value], Statement] = {}
        for statement in self.statements:
            if is_replaced(statement):
                originals.add(statement)
                replaced[statement.predicate, statement.value] = statement
            else:
                kept.append(statement)
        restated = [
            statement if statement in originals else replaced.get((statement.predicate, statement.value), statement)
            for statement in statements
        ]
        return self._arrange(kept, restated)

    def _arrange(self, kept: Sequence[Statement], added: Sequence[Statement]) -> "Record":
        """Return the record with these statements, of which predicates stay where they were."""
        # Values of further classes come after those of the collection.
        places = {statement.predicate: place for place, statement in enumerate(self.statements)}
        ordered = sorted([*kept, *added], key=lambda item: (places.get(item.predicate, len(places)), _has_class(item)))
        return replace(self, statements=normalize(ordered))

    def to_document(self, origin: ProposalOrigin | None = None, summary: str = "") -> bytes:
        """Return the JSON document for the log, with the proposal behind the change and its summary, if any."""
        document: dict[str, Any] = {
            "id": self.local_id,
            "state": self.state,
            "statements": pack_statements(self.statements),
        }
        if self.iri is not None:
            document["iri"] = self.iri
        if self.assigned:
            document["assigned"] = self.assigned
        if self.replaced_by is not None:
            document["replaced_by"] = get_local_id(self.replaced_by)
        if origin is not None:
            document["proposed"] = origin
        if summary:
            document["summary"] = summary
        return orjson.dumps(document)


def build_record(
    collection: Collection,
    fields: Fields,
    relations: Iterable[Relation] = (),
    aliases: Iterable[Alias] | None = None,
    sources: Iterable[str] = (),
) -> Record:
    """Return a record that states these fields, relations, aliases and sources."""
    statements, empty = _split_values(collection, fields)
    record = Record(collection, qualify_id(collection.vocabulary, fields["id"]), tuple(statements), assigned=empty)
    if aliases is not None:
        record = record.with_aliases(aliases)
    return record.with_sources(sources).with_relations(relations)


def find_further_collections(collection: Collection, class_uris: Iterable[str]) -> tuple[Collection, ...]:
    """Return the other collections of the vocabulary of a collection that classes belong to."""
    found = (COLLECTIONS.by_uri.get((collection.vocabulary, uri)) for uri in class_uris)
    return tuple(item for item in found if item and item is not collection)


def _state_class(collection: Collection) -> Statement:
    return Statement(TYPE, Reference(collection.schema_class.uri))


def _has_class(statement: Statement) -> bool:
    """Return whether a statement is a value of a further class."""
    return bool(statement.qualifiers) and any(qualifier.predicate == TYPE for qualifier in statement.qualifiers)


def _split_values(collection: Collection, values: Fields) -> tuple[list[Statement], Fields]:
    """Return the statements of fields, and the empty values of fields that have a default."""
    predicates = collection.field_predicates
    tags = dict.fromkeys(collection.translated_fields, collection.text_tag)
    statements = [
        _to_statement(predicates[name], value, collection, tags.get(name, ""))
        for name, value in values.items()
        if value not in ("", None) and name in predicates
    ]
    return statements, {
        name: "" for name, value in values.items() if value == "" and name in collection.assigned_fields
    }


def _to_statement(predicate: str, value: str | int, collection: Collection, lang: str) -> Statement:
    if isinstance(value, int):
        return Statement(predicate, Text(str(value), "", INTEGER))
    return Statement(predicate, Reference(value) if predicate in collection.id_predicates else Text(value, lang))


def get_text(value: Value) -> Text | None:
    """Return a text, or that of a label or note that is a node of its own; None for anything else."""
    if isinstance(value, Node):
        texts = (item.value for item in value.statements if item.predicate in NODE_TEXTS)
        return next((text for text in texts if isinstance(text, Text)), None)
    return value if isinstance(value, Text) else None


def to_field(value: Value, field_type: type) -> Any:
    """Return the value of a field. What is no text or no integer of 64 bits where one belongs counts as nothing."""
    if isinstance(value, Node):
        text = get_text(value)
        return field_type() if text is None or field_type is not str else text.text
    if field_type is str:
        return value[0]
    try:
        number = int(value[0])
    except ValueError:
        return 0
    return number if -(2**63) <= number < 2**63 else 0


def build_simple_document(collection: Collection, body: bytes, relations: frozenset[Relation]) -> bytes:
    """Return the same as `Record.to_document`, but faster, for a published record with only fields and relations."""
    fields = orjson.loads(body)
    predicates, id_predicates = collection.field_predicates, collection.id_predicates
    statements: dict[str, Any] = {}
    assigned: Fields = {}
    for name, value in fields.items():
        predicate = predicates.get(name)
        if predicate is None:
            continue
        if value != "":
            statements[predicate] = {"ref": value} if predicate in id_predicates else value
        elif name in collection.assigned_fields:
            assigned[name] = value
    if relations:
        for name, targets in group_targets(relations).items():
            references = [{"ref": get_local_id(target)} for target in targets]
            statements[collection.relation_predicates.get(name, name)] = (
                references[0] if len(references) == 1 else references
            )
    document: dict[str, Any] = {"id": fields["id"], "state": "published", "statements": statements}
    if assigned:
        document["assigned"] = assigned
    return orjson.dumps(document)


def parse_record(collection: str, document: bytes) -> Record:
    """Parse a document of the log, of the present form or an earlier one."""
    data, owner = orjson.loads(document), get_collection(collection)
    if "record" in data:
        return _parse_field_document(owner, data)
    replaced_by = data.get("replaced_by")
    return Record(
        collection=owner,
        id=qualify_id(owner.vocabulary, data["id"]),
        statements=load_statements(data["statements"]),
        state=_STATES[data["state"]],
        iri=data.get("iri"),
        replaced_by=None if replaced_by is None else qualify_id(owner.vocabulary, replaced_by),
        assigned=data.get("assigned", {}),
    )


def _parse_field_document(collection: Collection, data: dict[str, Any]) -> Record:
    """Parse a document of before records were statements."""
    aliases = data.get("aliases")
    record = build_record(
        collection,
        data["record"],
        build_relations(data["record"]["id"], data["relations"]),
        None if aliases is None else [Alias.model_construct(**alias) for alias in aliases],
        data.get("sources", ()),
    )
    return replace(record, state=RecordState(data["state"]), replaced_by=data.get("replaced_by"))


def parse_labels(collection: str, document: bytes) -> list[str]:
    """Return the names and aliases in a document of the log, the shown name first, without building the record."""
    data = orjson.loads(document)
    if "record" in data:
        fields, aliases = data["record"], data.get("aliases")
        name, alias, further_names = fields["name"], fields.get("alias", ""), list[str]()
        labels = [] if aliases is None else [(item["text"], item["lang"]) for item in aliases]
    else:
        statements, owner = data["statements"], get_collection(collection)
        stated_names = (statements[predicate] for predicate in owner.name_predicates if predicate in statements)
        names = [item for values in stated_names for item in _iter_texts(values)]
        in_default_language = (text for text, lang in names if lang in ("", owner.language))
        name = next(in_default_language, names[0][0] if names else "")
        further_names = [text for text, _ in names if text != name]
        alias_texts = _iter_texts(statements.get(owner.field_predicates.get(owner.alias_field or "", ""), ""))
        alias = next((text for text, _ in alias_texts), "")
        labels = [
            label
            for predicate in ALIAS_SCOPES
            if predicate in statements
            for label in _iter_texts(statements[predicate])
        ]
    if any(lang in ("", DEFAULT_LANGUAGE) for _, lang in labels):
        alias = ""
    return [name, *further_names, *split_alias_texts(alias), *(text for text, _ in labels)]


def _iter_texts(values: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts of packed statements, each with its language, without values of further classes."""
    for value in values if isinstance(values, list) else (values,):
        if not isinstance(value, dict):
            yield str(value), ""
        elif "text" in value and TYPE not in value.get("qualifiers", ()):
            yield value["text"], value.get("lang", "")


def get_alias_predicate(collection: Collection, scope: AliasScope) -> str:
    """Return the predicate of new aliases of a scope: the first one that the collection has a slot for."""
    declared = collection.schema_class.slots_by_predicate
    own = (predicate for predicate, own_scope in ALIAS_SCOPES.items() if own_scope == scope and predicate in declared)
    return next(own, ALIAS_PREDICATES[scope])


def build_relations(source_id: str, targets_by_type: Mapping[str, Iterable[str]]) -> frozenset[Relation]:
    """Return the relations of a source, from the targets by relation type, which are ids in its vocabulary."""
    vocabulary = split_id(source_id)[0]
    return frozenset(
        Relation(
            source_id, type_name, target if RELATION_TYPES[type_name].is_mapping else qualify_id(vocabulary, target)
        )
        for type_name, targets in targets_by_type.items()
        for target in targets
    )


def group_targets(relations: Iterable[Relation]) -> dict[str, list[str]]:
    """Return the targets of relations, by relation type, as the ids that their owner gave them."""
    targets: dict[str, list[str]] = {}
    for relation in sorted(relations):
        targets.setdefault(relation.relation, []).append(get_local_id(relation.target))
    return targets
