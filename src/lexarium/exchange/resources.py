"""The resources of a graph as records: what is said of each, made into names, relations and fields."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import IO, BinaryIO, TypeVar, cast

from pyoxigraph import RdfFormat

from lexarium.domain.aliases import Scope
from lexarium.domain.changes import State
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.identifiers import has_prefix
from lexarium.domain.relations import MAPPINGS, PARTOF, RELATED, RELATIONS, Edge, Side, why_not_outside
from lexarium.domain.stamps import is_stamp, milliseconds_of, text_of
from lexarium.exchange import labels
from lexarium.exchange.graph import Graph, Subject
from lexarium.exchange.incoming import Incoming, Malformed, Reading, no_collection
from lexarium.exchange.meanings import (
    ALTERNATIVE,
    BROADER,
    GENERIC,
    INVERSES,
    TRANSITIVE,
    Kind,
    home,
    meanings,
)
from lexarium.exchange.namespaces import curie, expanded, shortened
from lexarium.exchange.notions import whole_number
from lexarium.exchange.rdf import Document, Statement, Text, statements
from lexarium.exchange.remarks import Remarks
from lexarium.exchange.twice import kept

Node = str | Text

TYPE = expanded("rdf:type")
_IDENTIFIED = expanded("oboInOwl:id")
_IMPORTS = expanded("owl:imports")
_WORDED = (expanded("skosxl:literalForm"), expanded("rdf:value"))
_ON_PROPERTY, _SOME_VALUES = expanded("owl:onProperty"), expanded("owl:someValuesFrom")
_ANNOTATED = expanded("owl:annotatedProperty")
_TERMS = tuple(expanded(name) for name in ("dct:license", "dct:rights", "dc:rights", "dct:accessRights"))
_MAPPED = tuple(mapping.name for mapping in MAPPINGS)
_UPWARD = {BROADER, GENERIC, TRANSITIVE}
_TEXTUAL = ("alias", "definition", "note")
_ORIGINS = tuple(expanded(name) for name in ("oboInOwl:hasDbXref", "dct:source", "dc:source"))

_GROUPS: tuple[Node, ...] = (expanded("skos:Collection"), expanded("skos:OrderedCollection"))
_HEADS: tuple[Node, ...] = (expanded("skos:ConceptScheme"), expanded("owl:Ontology"))

_MOST_DETAILS = 100
"""What may be said of a label, note or expression: thousands of records may share one, and each takes all of it."""

Value = TypeVar("Value")
Gathered = dict[Kind, list[tuple[str, Node]]]
"""What is said of a resource: by kind, details and objects."""


@dataclass(frozen=True)
class Dialect:
    """Which resources are records, and how they are named."""

    types: tuple[Node, ...]
    """What a record is an instance of."""
    members: tuple[str, ...]
    """Predicates that only records have, whatever they are an instance of."""
    names: tuple[str, ...]
    """Predicates of names, the best first."""
    others: dict[Node, str]
    """What a document may hold instead, and the format that reads it."""


def records(stream: BinaryIO, reading: Reading, dialect: Dialect) -> Iterator[Incoming]:
    """The records of a document, and last what there is to tell of it. Raises `Malformed`."""
    document = Document(stream)
    if document.syntax != RdfFormat.JSON_LD:
        with Graph() as graph:
            yield from _Resources(graph, reading, dialect).read(statements(document, document.syntax))
        return
    with kept(document) as copy, Graph() as graph:
        syntax = RdfFormat.STREAMING_JSON_LD if _is_ordered(copy) else RdfFormat.JSON_LD
        copy.seek(0)
        yield from _Resources(graph, reading, dialect).read(statements(copy, syntax))


def _is_ordered(file: IO[bytes]) -> bool:
    """Whether a document in JSON-LD can be read without having all of it in memory."""
    try:
        deque(statements(file, RdfFormat.STREAMING_JSON_LD), maxlen=0)
    except Malformed:
        return False
    return True


class _Resources:
    def __init__(self, graph: Graph, reading: Reading, dialect: Dialect) -> None:
        self._graph = graph
        self._reading = reading
        self._about = reading.about
        self._dialect = dialect
        self._homes = [reading.about]
        """Whose records are ours: this catalogue's, and those of the ones that the document was exported from."""
        self._meanings = meanings(reading.about, reading.map)
        self._remarks = Remarks()
        self._identified: dict[str, str] = {}
        """What resources are called, where that does not follow from their IRI."""
        self._said: set[str] = set()
        """Of which relations, and what else, the document says something somewhere."""
        self._crowded: set[str] = set()
        """Labels and the like of which more is said than is taken."""
        self._other: str | None = None
        """The format that reads what this document holds instead of records."""
        self._headed = False
        """Whether it speaks of a vocabulary that records could be of."""

    def read(self, said: Iterable[Statement]) -> Iterator[Incoming]:
        self._graph.add(self._turned(said))
        used = [meaning for predicate, meaning in self._meanings.items() if predicate in self._graph.uses]
        self._said |= {meaning.detail or meaning.kind for meaning in used}
        found = False
        for name in self._graph:
            subject = self._graph.about(name)
            if self._is_record(name, subject):
                found = True
                incoming = self._incoming(name, subject)
                if incoming is not None:
                    yield incoming
            else:
                self._look_at(name, subject)
        if not found and self._other:
            raise Malformed(f"it holds nothing that this format reads: try --format {self._other}", 1, 1)
        if not found and self._graph.uses and not self._headed:
            wanted = ", ".join(shortened(_shown(each)) for each in self._dialect.types)
            raise Malformed(f"nothing that it speaks of is a {wanted}", 1, 1)
        yield from self._remarks.incoming()

    def _turned(self, said: Iterable[Statement]) -> Iterator[Statement]:
        """The statements, each made of what it tells something of that a record holds."""
        for statement in said:
            line, subject, predicate, value = statement
            if predicate in INVERSES and isinstance(value, str):
                yield Statement(line, value, INVERSES[predicate], subject)
            else:
                yield statement
            if predicate == _IDENTIFIED and isinstance(value, Text) and value.text != curie(subject):
                self._identified[subject] = value.text
            elif predicate == TYPE and isinstance(value, str) and (base := home(subject, value)) is not None:
                self._settle(base)
            elif predicate == _ON_PROPERTY and (meaning := self._meanings.get(_name(value))) is not None:
                self._said.add(meaning.detail)

    def _settle(self, base: str) -> None:
        """Know the records of the catalogue at this base by their own ids."""
        if all(each.base != base for each in self._homes):
            there = replace(self._about, base=base)
            self._homes.append(there)
            self._meanings = {**meanings(there, self._reading.map), **self._meanings}

    def _own(self, name: str) -> str | None:
        """The id of ours that a resource has."""
        return next(filter(None, (each.identifier(name) for each in self._homes)), None)

    def _is_record(self, name: str, subject: Subject) -> bool:
        return (
            not name.startswith("_:")
            and any(
                value in self._dialect.types if predicate == TYPE else predicate in self._dialect.members
                for predicate, value in subject.said
            )
            and not any(predicate == TYPE and value in _GROUPS for predicate, value in subject.said)
        )

    def _look_at(self, name: str, subject: Subject) -> None:
        """What is no record may still say something that is to be told."""
        for predicate, value in subject.said:
            if predicate == TYPE and value in self._dialect.others:
                self._other = self._dialect.others[value]
            elif predicate == TYPE and value in _GROUPS:
                self._remarks.add(f"a {shortened(_shown(value))} is not kept", name)
            elif predicate == TYPE and value in _HEADS:
                self._headed = True
            elif predicate == _IMPORTS:
                self._remarks.add("what it imports is not fetched", _shown(value))
            elif predicate in _TERMS and not name.startswith(self._about.base):
                self._remarks.add("it has terms of its own, to which the catalogue's should fit", _shown(value))

    def _incoming(self, name: str, subject: Subject) -> Incoming | None:
        incoming = Incoming(subject.line, foreign=self._called(name))
        said = self._gathered(subject)
        kind = self._collection(said, subject.line)
        incoming.collection = kind.name
        identifier = self._own(name)
        if identifier is not None:
            incoming.foreign, incoming.fields["id"] = "", identifier
        elif why_not_outside(incoming.foreign):
            self._remarks.add("what has no IRI of its own was left out", name)
            return None
        self._label(incoming, said)
        if not identifier and "name" not in incoming.fields:
            self._remarks.add("what has no label was left out", name)
            return None
        self._define(kind, incoming, said)
        self._relate(kind, incoming, said)
        self._fill(kind, incoming, said)
        self._date(kind, incoming, said)
        self._end(incoming, said)
        return incoming

    def _called(self, name: str) -> str:
        """What a resource is called: by its id where it is one of ours."""
        return self._own(name) or self._identified.get(name) or curie(name)

    def _gathered(self, subject: Subject) -> Gathered:
        said: Gathered = defaultdict(list)
        names: dict[str, list[Text]] = defaultdict(list)
        for predicate, value in _once(subject.said):
            meaning = self._meanings.get(predicate)
            if meaning is None:
                self._unknown(predicate)
            elif meaning.kind == "name":
                names[predicate] += self._text(predicate, value)
            elif meaning.kind == "notation":
                codes = self._text(predicate, value)
                said["alias"] += [("hidden", Text(code.text, labels.NO_LANGUAGE)) for code in codes]
            elif meaning.kind in _TEXTUAL:
                said[meaning.kind] += [(meaning.detail, text) for text in self._text(predicate, value)]
            else:
                said[meaning.kind].append((meaning.detail, value))
        best_first = [*self._dialect.names, *(name for name in names if name not in self._dialect.names)]
        said["name"] = [("", text) for predicate in best_first for text in names.get(predicate, ())]
        return said

    def _unknown(self, predicate: str) -> None:
        self._remarks.add(f"{shortened(predicate)} is not known and was left out; --map can say what it means")

    def _text(self, predicate: str, value: Node) -> list[Text]:
        """The text of a label or note, which may be a resource of its own; nothing where there is none."""
        if isinstance(value, Text):
            return [value]
        texts = [text for each, text in self._details(value) if each in _WORDED and isinstance(text, Text)]
        if not texts:
            self._remarks.add(f"{shortened(predicate)} is not a text, and was left out", _shown(value))
        return texts

    def _details(self, name: str) -> list[tuple[str, Node]]:
        """What is said of something that records only mention; nothing where that is more than any should need."""
        if name in self._crowded:
            return []
        said = self._graph.about(name).said
        if len(said) > _MOST_DETAILS:
            self._crowded.add(name)
            self._remarks.add(f"a label of which more than {_MOST_DETAILS} things are said was left out", name)
            return []
        return said

    def _collection(self, said: Gathered, line: int) -> Collection:
        if self._reading.collection is not None:
            return self._reading.collection
        for _, value in said["collection"]:
            for each in self._homes:
                told = value.text if isinstance(value, Text) else value.removeprefix(each.base)
                if told in COLLECTIONS:
                    return COLLECTIONS[told]
        if self._reading.fallback is None:
            raise no_collection(line)
        return self._reading.fallback

    def _label(self, incoming: Incoming, said: Gathered) -> None:
        language = self._about.language
        names = list(dict.fromkeys(_texts(said["name"])))
        name = labels.best(names, language)
        if name is not None:
            incoming.fields["name"] = name.text
            if labels.is_in(name, language):
                names = [each for each in names if each.text != name.text or not labels.is_in(each, language)]
            else:
                self._remarks.add(f"no label is in {language}, and one in another language is the name", name.text)
        others = labels.scoped(
            [(ALTERNATIVE, text) for text in names]
            + [(scope, text) for scope, text in said["alias"] if isinstance(text, Text)],
            ALTERNATIVE,
        )
        found = (labels.alias(text, cast(Scope, scope), language) for scope, text in others if text.text)
        incoming.aliases = _kept(incoming, found)

    def _define(self, kind: Collection, incoming: Incoming, said: Gathered) -> None:
        texts = list(dict.fromkeys(_texts(said["definition"]) or _texts(said["note"])))
        definition = labels.best(texts, self._about.language)
        field = kind.definition
        if definition is not None and field is None:
            self._remarks.add(f"a {kind.name} has no definition; it was left out")
        elif definition is not None and field is not None:
            incoming.fields[field] = definition.text
            if not labels.is_in(definition, self._about.language):
                self._remarks.add(f"no definition is in {self._about.language}, and one in another language is taken")
        if len(texts) > 1:
            self._remarks.add("only one of several definitions, or notes, is taken")
        sources = [*said["source"], *self._annotated(said)]
        if incoming.fields.get("id") or "source" in self._said or sources:
            found = (_shown(value) for _, value in sources if isinstance(value, Text) or not value.startswith("_:"))
            incoming.sources = _kept(incoming, filter(None, found))

    def _annotated(self, said: Gathered) -> Iterator[tuple[str, Node]]:
        """Where a definition is from, as an axiom about it says."""
        for _, axiom in said["axiom"]:
            notes = self._details(axiom) if isinstance(axiom, str) else []
            about = [self._meanings.get(_name(value)) for predicate, value in notes if predicate == _ANNOTATED]
            if any(meaning is not None and meaning.kind == "definition" for meaning in about):
                yield from (("", value) for predicate, value in notes if predicate in _ORIGINS)

    def _relate(self, kind: Collection, incoming: Incoming, said: Gathered) -> None:
        own = incoming.fields.get("id") or incoming.foreign
        targets: dict[str, list[Node]] = defaultdict(list)
        for detail, value in said["relation"]:
            relation, target = self._part(detail, value)
            targets[relation].append(target)
        parts = set(targets[PARTOF.name])
        wide = [target for target in targets.pop(BROADER, []) if target not in parts]
        far = [target for target in targets.pop(TRANSITIVE, []) if target not in parts]
        kinds = targets.pop(GENERIC, []) + wide
        upward = kind.hierarchy
        if upward is not None:
            targets[upward.name] += kinds or far
        elif kinds or far:
            self._remarks.add(f"a {kind.name} is not a kind of another; that was left out", own)
        found = (self._edge(kind, incoming, relation, target) for relation in targets for target in targets[relation])
        edges = [edge for edge in dict.fromkeys(found) if edge is not None]
        incoming.edges = [edge for edge in edges if edge.source != edge.target or not incoming.foreign]
        incoming.told = self._telling(kind, ours="id" in incoming.fields)

    def _part(self, detail: str, value: Node) -> tuple[str, Node]:
        """A relation and its target, where an expression says that all of these are part of some of those."""
        if detail not in (BROADER, GENERIC) or not isinstance(value, str) or not value.startswith("_:"):
            return detail, value
        notes = dict(self._details(value))
        through, some = self._meanings.get(_name(notes.get(_ON_PROPERTY))), notes.get(_SOME_VALUES)
        if through is None or through.detail != PARTOF.name or some is None:
            return detail, value
        return PARTOF.name, some

    def _edge(self, kind: Collection, incoming: Incoming, relation: str, value: Node) -> Edge | None:
        own = incoming.fields.get("id") or incoming.foreign
        if relation == RELATED.name and kind.name != RELATED.source:
            self._remarks.add(f"a {kind.name} is not related to others; that is kept as relatedMatch", own)
            relation = "relatedMatch"
        if relation in _MAPPED:
            return self._mapping(own, relation, value)
        if RELATIONS[relation].source != kind.name:
            self._remarks.add(f"a {kind.name} cannot be the source of {relation}; that was left out", own)
            return None
        if isinstance(value, str) and value.startswith("_:"):
            self._remarks.add("relations to expressions, and to what has no IRI, were left out", own)
            return None
        other = value.text if isinstance(value, Text) else self._called(value)
        if relation == RELATED.name and (incoming.foreign or self._own(_shown(value)) is None):
            # It goes both ways, and others say it once or twice.
            own, other = sorted((own, other))
        return Edge(own, relation, other)

    def _mapping(self, own: str, relation: str, value: Node) -> Edge | None:
        target = value.text if isinstance(value, Text) else value
        if why_not_outside(target):
            self._remarks.add("mappings to what is neither an IRI nor a CURIE were left out", f"{own} to {target}")
            return None
        return Edge(own, relation, target)

    def _telling(self, kind: Collection, ours: bool) -> list[tuple[str, Side]]:
        """The relations of which all is told: of records of ours any, of others those that the document uses."""
        told: list[tuple[str, Side]] = []
        upward = kind.hierarchy
        for relation in kind.relations.values():
            said = relation.name in self._said or (relation == upward and _UPWARD & self._said)
            if ours or said:
                told.append((relation.name, "source"))
                if relation is RELATED and not ours:
                    told.append((relation.name, "target"))
        return told

    def _fill(self, kind: Collection, incoming: Incoming, said: Gathered) -> None:
        for field, value in said["field"]:
            text = value.text if isinstance(value, Text) else self._called(value)
            if field not in kind.types:
                self._remarks.add(f"{field} is not a field of {kind.name}; it was left out")
            elif kind.types[field] is str:
                incoming.fields[field] = text
            elif (number := whole_number(text)) is not None:
                incoming.fields[field] = number
            else:
                incoming.problems.append(f"{field} is not a whole number that can be kept: {text[:50]}")

    def _date(self, kind: Collection, incoming: Incoming, said: Gathered) -> None:
        fields = incoming.fields
        for text in _texts(said["created"])[:1]:
            moment = milliseconds_of(text.text)
            if moment is None:
                self._remarks.add("a date that is not one was left out", text.text)
            elif "event_stamp" in kind.types:
                fields.setdefault("event_stamp", text.text if is_stamp(text.text) else text_of(moment))
                if "creation_time" in kind.types:
                    fields.setdefault("creation_time", moment)
        for text in _texts(said["modified"])[:1]:
            moment = milliseconds_of(text.text)
            if moment is not None and "last_updated" in kind.types:
                fields.setdefault("last_updated", moment)
        for text in _texts(said["creator"]):
            if has_prefix(text.text, ("usr",)) and "id_user" in kind.types:
                fields.setdefault("id_user", text.text)

    def _end(self, incoming: Incoming, said: Gathered) -> None:
        """Where the record stands in its life."""
        named = [text.text for text in _texts(said["state"]) if text.text in list(State)]
        gone = any(text.text in ("true", "1") for text in _texts(said["deprecated"])) or bool(said["replaced_by"])
        incoming.state = State(named[0]) if named else State.RETIRED if gone else State.PUBLISHED
        for _, value in said["replaced_by"][:1]:
            incoming.replaced_by = value.text if isinstance(value, Text) else self._called(value)
        if len(said["replaced_by"]) > 1:
            self._remarks.add("only the first of several replacements is kept", incoming.foreign)


def _once(said: Iterable[tuple[str, Node]]) -> Iterator[tuple[str, Node]]:
    """What is said, without the resources that are mentioned again; a text, or a source, may well be there twice."""
    mentioned: set[tuple[str, Node]] = set()
    for each in said:
        if each not in mentioned:
            yield each
        if isinstance(each[1], str) and each[0] not in _ORIGINS:
            mentioned.add(each)


def _kept(incoming: Incoming, values: Iterable[Value]) -> tuple[Value, ...]:
    """Values without repetition; as they are in a record of ours, which may hold one twice."""
    return tuple(dict.fromkeys(values) if incoming.foreign else values)


def _texts(said: list[tuple[str, Node]]) -> list[Text]:
    return [value for _, value in said if isinstance(value, Text)]


def _name(node: Node | None) -> str:
    return node if isinstance(node, str) else ""


def _shown(value: Node) -> str:
    return value.text if isinstance(value, Text) else value
