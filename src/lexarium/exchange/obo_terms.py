"""A record as a term of OBO, and a term as a record."""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from lexarium.domain.about import About
from lexarium.domain.aliases import Alias, Scope
from lexarium.domain.changes import State, Whole
from lexarium.domain.collections import COLLECTIONS, DEFINITIONS, Collection
from lexarium.domain.identifiers import has_prefix
from lexarium.domain.relations import MAPPINGS, RELATED, RELATIONS, Edge, Side, why_not_outside
from lexarium.domain.stamps import is_stamp, milliseconds_of, text_of
from lexarium.exchange import obo_syntax as syntax
from lexarium.exchange.incoming import Incoming, Malformed, Reading, no_collection
from lexarium.exchange.notions import (
    own_id,
    pointing,
    told_id,
    whole_number,
)
from lexarium.exchange.obo_syntax import Clause, Stanza
from lexarium.exchange.remarks import Remarks

SKOS = "http://www.w3.org/2004/02/skos/core#"
HIDDEN = "hidden"
"""The type of a synonym that is only for finding a term: OBO has no such scope."""
SCOPES: dict[str, Scope] = {"EXACT": "exact", "NARROW": "narrow", "BROAD": "broad", "RELATED": "related"}
RELATIONSHIPS = {
    each.name: each.label.replace(" ", "_")
    for each in RELATIONS.values()
    if each.target and each not in [collection.hierarchy for collection in COLLECTIONS.values()]
}
"""What relations are called in OBO, but for those that `is_a` says."""
PROPERTIES = sorted(
    {name for each in COLLECTIONS.values() for name in each.written if name not in ("name", "alias", each.definition)}
)
"""Fields that OBO has no clause for."""
XREF = "xref"

# Why a term is obsolete, and that it is because it was merged, as the OBO Foundry has it.
_REASON, _MERGED = "IAO:0000231", "IAO:0000227"
_USERS = ("usr",)
_MAPPINGS = {each.name for each in MAPPINGS}
_MEANINGS = {
    XREF: "closeMatch",
    **{label: name for name, label in RELATIONSHIPS.items()},
    "BFO:0000050": "PARTOF",
    "OBO_REL:part_of": "PARTOF",
    **{f"{start}{each.name}": each.name for each in MAPPINGS for start in ("skos:", SKOS)},
    **{f"{start}related": "RELATED" for start in ("skos:", SKOS)},
    **{name: name for name in PROPERTIES},
}


@dataclass
class Surroundings:
    """What the terms of a file have in common."""

    reading: Reading
    terms: set[str]
    """What its terms are called."""
    used: set[str]
    """What relations and properties it declares or uses, as it calls them."""
    namespace: str = ""
    ontology: str = ""
    language: str = ""
    scopes: dict[str, Scope] = field(default_factory=dict)
    """What a synonym's type says of its scope where it has none of its own."""
    remarks: Remarks = field(default_factory=Remarks)

    def __post_init__(self) -> None:
        self.meanings: Mapping[str, str] = {**_MEANINGS, **self.reading.map}
        self.told = {self.meanings.get(name, "") for name in self.used}
        """The relations and fields of which the file tells all there is."""
        self.language = self.language or self.reading.about.language
        self._kinds: dict[str, _Kind] = {}

    def kind_of(self, collection: Collection) -> "_Kind":
        """What all terms that are records of this kind say, of this file."""
        if collection.name not in self._kinds:
            self._kinds[collection.name] = _Kind(collection, self.told)
        return self._kinds[collection.name]

    def name_of(self, name: str) -> str:
        """An id of ours, or what the world calls a term."""
        return self.own(name) or self.outside(name)

    def own(self, name: str) -> str | None:
        """The id of ours that a name is, if it is one."""
        return own_id(name, self.reading.about)

    def outside(self, name: str) -> str:
        """What the world calls a term: a CURIE or an IRI."""
        outside = pointing(name)
        if why_not_outside(outside) is None:
            return outside
        # As the OBO Foundry makes an IRI of a name without a prefix.
        return f"http://purl.obolibrary.org/obo/{pointing(self.ontology) or 'local'}#{outside}"


class _Kind:
    """A collection, and what a term of it says by not saying it."""

    def __init__(self, collection: Collection, told: Container[str]) -> None:
        self.collection = collection
        self.definition = collection.definition
        self.hierarchy = collection.hierarchy
        self.fields = {
            name: "" if name == "name" else collection.fields[name].get_default()
            for name in collection.written
            if name in ("name", self.definition) or name in told
        }
        self.told: list[tuple[str, Side]] = [
            (each.name, "source")
            for each in collection.relations.values()
            if each is self.hierarchy or each.name in told
        ]


def incoming_of(stanza: Stanza, around: Surroundings) -> Iterator[Incoming]:
    """A term as a record, and what is wrong with its clauses."""
    names = [clause for clause in stanza.clauses if clause.tag == "id"]
    if not names:
        yield Incoming(stanza.line, problems=["the term has no id"])
        return
    kind = around.kind_of(_collection(stanza, around))
    try:
        term = _Term(around, kind, stanza.line, syntax.first_name(names[0])[0])
    except Malformed as error:
        yield error.incoming()
        return
    for clause in stanza.clauses:
        try:
            term.take(clause)
        except Malformed as error:
            yield error.incoming()
    yield term.finished()


def _collection(stanza: Stanza, around: Surroundings) -> Collection:
    told = [syntax.plain_text(clause) for clause in stanza.clauses if clause.tag == "namespace"]
    named = COLLECTIONS.get(told[0] if told else around.namespace)
    kind = around.reading.collection or named or around.reading.fallback
    if kind is None:
        raise no_collection(stanza.line)
    return kind


class _Term:
    """A term that is being read, clause by clause."""

    def __init__(self, around: Surroundings, kind: _Kind, line: int, name: str) -> None:
        self._around = around
        self._collection = kind.collection
        self._definition = kind.definition
        self._hierarchy = kind.hierarchy
        self._name = around.name_of(name)
        self._aliases: list[Alias] = []
        self._cross: list[str] = []
        self._obsolete = self._merged = False
        self._incoming = Incoming(line, kind.collection.name, fields=dict(kind.fields), sources=(), told=[*kind.told])
        if around.own(name) is None:
            self._incoming.foreign = self._name
        else:
            self._incoming.fields["id"] = self._name

    def take(self, clause: Clause) -> None:
        """Take what a clause says. Raises `Malformed`."""
        take = _CLAUSES.get(clause.tag)
        if clause.tag in self._around.reading.map:
            self.say(clause.tag, syntax.plain_text(clause), clause)
        elif take is not None:
            take(self, clause)
        else:
            self._left_out(f"the clause `{clause.tag}` is not kept", clause)

    def finished(self) -> Incoming:
        """The record, when every clause has been taken."""
        incoming = self._incoming
        mapped = {edge.target for edge in incoming.edges if edge.relation in _MAPPINGS}
        for target in self._cross:
            if target not in mapped:
                self._relate(self._around.meanings[XREF], target)
        incoming.edges = list(dict.fromkeys(incoming.edges))
        incoming.aliases = tuple(self._aliases)
        gone = State.MERGED if self._merged and incoming.replaced_by else State.RETIRED
        incoming.state = gone if self._obsolete else State.PUBLISHED
        if not incoming.fields["name"]:
            incoming.warnings.append(f"{self._name} has an empty name")
        return incoming

    def _left_out(self, what: str, clause: Clause) -> None:
        self._around.remarks.add(what, f"on line {clause.line}")

    def _relate(self, relation: str, target: str) -> None:
        self._incoming.edges.append(Edge(self._name, relation, target))

    def say(self, key: str, value: str, clause: Clause) -> None:
        """Take what a relation, a property or a clause of the file says, where it means something here."""
        meaning = self._around.meanings.get(key)
        name = self._definition if meaning in DEFINITIONS else meaning
        if meaning in _MAPPINGS:
            self._map(meaning, value, clause)
        elif meaning in RELATIONS:
            self._point(meaning, value, clause)
        elif meaning in ("alias", "aliases"):
            self._aliases.append(self._alias(value, "exact", {}, clause))
        elif meaning == "sources":
            self._incoming.sources = (*(self._incoming.sources or ()), value)
        elif name in self._collection.types:
            self._set(name, value)
        elif meaning is None:
            self._left_out(f"the {clause.tag} `{key}` is not kept", clause)
        else:
            self._left_out(f"the {clause.tag} `{key}` means nothing for a {self._collection.name}", clause)

    def _map(self, relation: str, value: str, clause: Clause) -> None:
        target = pointing(value)
        if why_not_outside(target) is None:
            self._relate(relation, target)
        else:
            self._left_out(f"the {clause.tag} {value} is neither an IRI nor a CURIE, like DOID:3324", clause)

    def _point(self, relation: str, name: str, clause: Clause) -> None:
        around = self._around
        if RELATIONS[relation].source == self._collection.name:
            self._relate(relation, around.name_of(name))
        elif relation == RELATED.name:
            own = around.own(name)
            self._relate("relatedMatch", around.reading.about.iri(own) if own else around.outside(name))
            self._left_out(f"`{clause.tag}` of a {self._collection.name} is kept as relatedMatch", clause)
        else:
            self._left_out(f"`{clause.tag}` means nothing for a {self._collection.name}", clause)

    def _set(self, name: str, value: str) -> None:
        taken = value if self._collection.types[name] is str else whole_number(value)
        if taken is not None:
            self._incoming.fields[name] = taken
        else:
            self._incoming.problems.append(f"{name} of {self._name} is not a whole number: {value[:50]}")

    def take_name(self, clause: Clause) -> None:
        if self._incoming.fields["name"]:
            self._left_out("a term has several names; the first is kept", clause)
        else:
            self._incoming.fields["name"] = syntax.plain_text(clause)

    def take_definition(self, clause: Clause) -> None:
        text, rest = syntax.quoted_text(clause)
        self._incoming.sources = tuple(syntax.listed(rest)[1])
        if self._definition is not None:
            self._incoming.fields[self._definition] = text
        elif text:
            self._left_out(f"a {self._collection.name} has no definition; it is not kept", clause)

    def take_synonym(self, clause: Clause) -> None:
        text, rest = syntax.quoted_text(clause)
        words, cross, qualifiers = syntax.listed(rest)
        told = words.split(None, 2)[:2]
        types = [word for word in told if word not in SCOPES]
        scope: Scope = SCOPES.get(clause.tag.removesuffix("_synonym").upper(), "related")
        scope = SCOPES.get(told[0], self._around.scopes.get(told[0], scope)) if told else scope
        for kind in types:
            if kind == HIDDEN:
                scope = "hidden"
            else:
                self._left_out(f"the type of synonym {kind[:50]} is not kept", clause)
        alias = self._alias(text, scope, qualifiers, clause)
        # Published files tell a synonym again for each of its sources.
        if text and not (cross and alias in self._aliases):
            self._aliases.append(alias)

    def _alias(self, text: str, scope: Scope, qualifiers: Mapping[str, str], clause: Clause) -> Alias:
        told = [value for name, value in qualifiers.items() if name.endswith("lang")]
        if told:
            try:
                Alias(text="x", lang=told[0], scope=scope)
            except ValidationError:
                self._left_out(f"{told[0][:50]} is not the tag of a language, such as en or pt-BR", clause)
                told = []
        return Alias.model_construct(text=text, lang=told[0] if told else self._around.language, scope=scope)

    def take_broader(self, clause: Clause) -> None:
        target = self._around.name_of(syntax.first_name(clause)[0])
        if self._hierarchy is None:
            self._left_out(f"`is_a` means nothing for a {self._collection.name}", clause)
        else:
            self._relate(self._hierarchy.name, target)

    def take_relationship(self, clause: Clause) -> None:
        kind, rest = syntax.first_name(clause)
        self.say(kind, syntax.first_name(Clause(clause.line, clause.column, clause.tag, rest))[0], clause)

    def take_property(self, clause: Clause) -> None:
        name, rest = syntax.first_name(clause)
        inner = Clause(clause.line, clause.column, clause.tag, rest)
        value = syntax.quoted_text(inner)[0] if rest.startswith('"') else syntax.first_name(inner)[0]
        if name == _REASON:
            self._merged = value == _MERGED
        else:
            self.say(name, value, clause)

    def take_xref(self, clause: Clause) -> None:
        name = syntax.cross_reference(clause)
        target = pointing(name)
        if why_not_outside(target) is None:
            self._cross.append(target)
        else:
            self._left_out(f"the xref {name[:100]} is neither an IRI nor a CURIE, like DOID:3324", clause)

    def take_other_id(self, clause: Clause) -> None:
        other = syntax.first_name(clause)[0]
        if other in self._around.terms:
            self._left_out(f"the alt_id {other} is a term of its own", clause)
        elif self._around.own(other):
            self._left_out(f"the alt_id {other} is an id of this catalogue; it is not kept", clause)
        else:
            self._relate("exactMatch", self._around.outside(other))

    def take_obsolete(self, clause: Clause) -> None:
        self._obsolete = syntax.plain_text(clause).lower() == "true"

    def take_replacement(self, clause: Clause) -> None:
        if self._incoming.replaced_by is None:
            self._incoming.replaced_by = self._around.name_of(syntax.first_name(clause)[0])
        else:
            self._left_out("several terms replace one; the first is kept", clause)

    def take_suggestion(self, clause: Clause) -> None:
        self._point(RELATED.name, syntax.first_name(clause)[0], clause)

    def take_creation(self, clause: Clause) -> None:
        moment = milliseconds_of(syntax.plain_text(clause))
        if moment is not None and "event_stamp" in self._collection.types:
            self._incoming.fields["event_stamp"] = text_of(moment)
        else:
            self._left_out("a `creation_date` is not kept", clause)

    def take_creator(self, clause: Clause) -> None:
        creator = syntax.plain_text(clause)
        if has_prefix(creator, _USERS) and "id_user" in self._collection.types:
            self._incoming.fields["id_user"] = creator
        else:
            self._left_out("the clause `created_by` is not kept", clause)

    def pass_over(self, clause: Clause) -> None:
        """Nothing: it was taken before."""


_CLAUSES: dict[str, Callable[[_Term, Clause], None]] = {
    "id": _Term.pass_over,
    "namespace": _Term.pass_over,
    "name": _Term.take_name,
    "def": _Term.take_definition,
    "synonym": _Term.take_synonym,
    # As OBO 1.0 had them.
    **{f"{scope}_synonym": _Term.take_synonym for scope in ("exact", "narrow", "broad", "related")},
    **dict.fromkeys((XREF, "xref_analog", "xref_unknown"), _Term.take_xref),
    "is_a": _Term.take_broader,
    "relationship": _Term.take_relationship,
    "property_value": _Term.take_property,
    "alt_id": _Term.take_other_id,
    "is_obsolete": _Term.take_obsolete,
    "replaced_by": _Term.take_replacement,
    "use_term": _Term.take_replacement,
    "consider": _Term.take_suggestion,
    "creation_date": _Term.take_creation,
    "created_by": _Term.take_creator,
}


def lines_of(whole: Whole, about: About) -> Iterator[str]:
    """A record as a term, clause by clause in the order that the format asks for."""
    yield "[Term]"
    yield f"id: {_own(whole.id, about)}"
    if whole.fields["name"]:
        yield f"name: {syntax.as_plain(whole.fields['name'])}"
    yield f"namespace: {whole.collection.name}"
    definition = whole.fields.get(whole.collection.definition or "", "")
    if definition or whole.sources:
        yield f"def: {syntax.as_quoted(definition)} [{', '.join(map(syntax.as_listed, whole.sources))}]"
    for alias in whole.alias_list:
        yield _synonym(alias, about)
    yield from _mapped(whole)
    if whole.state is State.MERGED:
        yield f"property_value: {_REASON} {_MERGED}"
    yield from _related(whole, about)
    if has_prefix(whole.fields.get("id_user", ""), _USERS):
        yield f"created_by: {whole.fields['id_user']}"
    if is_stamp(whole.fields.get("event_stamp", "")):
        yield f"creation_date: {whole.fields['event_stamp']}"
    if whole.state is not State.PUBLISHED:
        yield "is_obsolete: true"
    if whole.replaced_by is not None:
        yield f"replaced_by: {_own(whole.replaced_by, about)}"


def _own(identifier: str, about: About) -> str:
    return syntax.as_name(told_id(identifier, about))


def _synonym(alias: Alias, about: About) -> str:
    scope = f"RELATED {HIDDEN}" if alias.scope == "hidden" else alias.scope.upper()
    language = f' {{lang="{alias.lang}"}}' if alias.lang != about.language else ""
    return f"synonym: {syntax.as_quoted(alias.text)} {scope} []{language}"


def _mapped(whole: Whole) -> Iterator[str]:
    mappings = [edge for edge in sorted(whole.edges) if edge.relation in _MAPPINGS]
    # Also where programs look that know no other mapping.
    for target in dict.fromkeys(edge.target for edge in mappings if edge.relation in ("exactMatch", "closeMatch")):
        yield f"xref: {syntax.as_name(target)}"
    for name in PROPERTIES:
        if name in whole.fields and whole.fields[name] != whole.collection.fields[name].get_default():
            yield f"property_value: {name} {syntax.as_quoted(str(whole.fields[name]))} xsd:string"
    for edge in mappings:
        yield f"property_value: skos:{edge.relation} {syntax.as_name(edge.target)}"


def _related(whole: Whole, about: About) -> Iterator[str]:
    others = [edge for edge in sorted(whole.edges) if edge.relation not in _MAPPINGS]
    for edge in others:
        if edge.relation not in RELATIONSHIPS:
            yield f"is_a: {_own(edge.target, about)}"
    for edge in others:
        if edge.relation in RELATIONSHIPS:
            yield f"relationship: {RELATIONSHIPS[edge.relation]} {_own(edge.target, about)}"
