"""Records as statements of SKOS, Dublin Core and, where these cannot say it, a small vocabulary of our own."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pyoxigraph import NamedNode

from lexarium.domain.about import About
from lexarium.domain.aliases import Alias, is_language
from lexarium.domain.changes import State, Whole
from lexarium.domain.collections import COLLECTIONS, Collection
from lexarium.domain.identifiers import has_prefix
from lexarium.domain.relations import MAPPINGS, PARTOF, RELATED, RELATIONS, Related
from lexarium.domain.stamps import is_stamp, precise_text_of
from lexarium.exchange.labels import NO_LANGUAGE
from lexarium.exchange.meanings import COLLECTION, OWN_FIELDS, OWN_RELATIONS, SCOPES, STATE, vocabulary
from lexarium.exchange.namespaces import expanded
from lexarium.exchange.rdf import Text
from lexarium.exchange.vocabulary import Term

OWN = "lexarium"
"""The prefix of our own vocabulary."""


class Typed(NamedTuple):
    """A literal that is more than text."""

    text: str
    datatype: str
    """As a CURIE."""


Said = tuple[str, str | Text | Typed]
"""A predicate, as a CURIE, and what it says: an IRI or a literal."""


class Description(NamedTuple):
    """What is said of one resource."""

    subject: str
    said: list[Said]


def of_scheme(about: About, collection: Collection) -> Description:
    """A collection, with what the catalogue says of itself."""
    said: list[Said] = [
        ("rdf:type", expanded("skos:ConceptScheme")),
        ("rdf:type", vocabulary(about) + COLLECTION),
        ("dct:title", _in_language(about, f"{about.title}: {collection.name}")),
        ("dct:description", Text(collection.description, "en")),
    ]
    if about.licence:
        licence = _outside(about.licence)
        said.append(("dct:license" if isinstance(licence, str) else "dct:rights", licence))
    if about.publisher:
        said.append(("dc:publisher", Text(about.publisher)))
    if about.language:
        said.append(("dc:language", Text(about.language)))
    return Description(_scheme(about, collection), said)


def of_record(about: About, whole: Whole) -> Description:
    """A record, with all that can be said of it."""
    said: list[Said] = [
        ("rdf:type", expanded("skos:Concept")),
        ("skos:inScheme", _scheme(about, whole.collection)),
        ("skos:prefLabel", _in_language(about, whole.fields["name"])),
        *_names(whole.alias_list),
    ]
    definition = whole.fields.get(whole.collection.definition or "")
    if definition:
        said.append(("skos:definition", _in_language(about, definition)))
    said += [("dct:source", _outside(source)) for source in whole.sources]
    said += _relations(about, whole)
    said += _fields(about, whole)
    said += _life(about, whole)
    return Description(about.iri(whole.id), said)


def of_term(about: About, term: Term) -> Description:
    """A term of our own vocabulary."""
    said: list[Said] = [("rdf:type", expanded(term.kind)), ("skos:prefLabel", Text(term.name, "en"))]
    return Description(vocabulary(about) + term.name, [*said, ("skos:definition", Text(term.meaning, "en"))])


def of_page(about: About, whole: Whole, related: Sequence[Related]) -> Iterator[Description]:
    """A record, and what those around it are called and say of it."""
    main = of_record(about, whole)
    own = about.iri(whole.id)
    narrower = [each for each in related if each.side == "target" and RELATIONS[each.relation].hierarchical]
    yield Description(own, [*main.said, *(("skos:narrower", about.iri(each.id)) for each in narrower)])
    around: dict[str, list[Said]] = {}
    for other in related:
        if RELATIONS[other.relation].target is None or other.name is None:
            continue
        said = around.setdefault(about.iri(other.id), [("skos:prefLabel", _in_language(about, other.name))])
        if other.side == "target":
            said.append((_PREDICATES[other.relation], own))
    for name, said in around.items():
        yield Description(name, said)


def _scheme(about: About, collection: Collection) -> str:
    return about.base + collection.name


def _in_language(about: About, text: str) -> Text:
    return Text(text, about.language if is_language(about.language) else "")


def _outside(text: str) -> str | Text:
    """What points to something outside, as an IRI where it is one."""
    try:
        return NamedNode(text).value
    except ValueError:
        return Text(text)


def _names(aliases: Iterable[Alias]) -> Iterator[Said]:
    listed = list(aliases)
    otherwise = {(alias.text, alias.lang) for alias in listed if alias.scope not in ("exact", "hidden")}
    for alias in listed:
        text = Text(alias.text, alias.lang)
        if alias.scope == "hidden":
            code = alias.lang == NO_LANGUAGE
            yield ("skos:notation", Text(alias.text)) if code else ("skos:hiddenLabel", text)
            continue
        yield "skos:altLabel", text
        # SKOS cannot say more. Where it would be misread, all scopes are said outright.
        if alias.scope != "exact" or (alias.text, alias.lang) in otherwise:
            yield SCOPES[alias.scope], text


def _relations(about: About, whole: Whole) -> Iterator[Said]:
    relations = whole.relations
    upward = whole.collection.hierarchy
    kinds = relations.pop(upward.name, []) if upward else []
    parts = relations.pop(PARTOF.name, [])
    yield from (("skos:broader", about.iri(other)) for other in dict.fromkeys(kinds + parts))
    yield from (("isothes:broaderGeneric", about.iri(other)) for other in kinds if other in parts)
    yield from (("isothes:broaderPartitive", about.iri(other)) for other in parts)
    if upward and not kinds and not parts:
        yield "skos:topConceptOf", _scheme(about, whole.collection)
    for relation, others in relations.items():
        mapping = RELATIONS[relation].target is None
        yield from ((_PREDICATES[relation], _outside(other) if mapping else about.iri(other)) for other in others)


_PREDICATES: dict[str, str] = {
    **{each.hierarchy.name: "skos:broader" for each in COLLECTIONS.values() if each.hierarchy},
    PARTOF.name: "isothes:broaderPartitive",
    RELATED.name: "skos:related",
    **{mapping.name: f"skos:{mapping.name}" for mapping in MAPPINGS},
    **{relation: f"{OWN}:{name}" for relation, name in OWN_RELATIONS.items()},
}


def _fields(about: About, whole: Whole) -> Iterator[Said]:
    for field, name, default, refers in _OWN[whole.collection.name]:
        value = whole.fields[field]
        if value == default:
            continue
        if field in _COMMON and (said := _COMMON[field](value)) is not None:
            yield said
        elif refers:
            yield name, about.iri(value)
        else:
            yield name, Text(value) if isinstance(value, str) else Typed(str(value), "xsd:integer")


_OWN = {
    collection.name: [
        (
            field,
            f"{OWN}:{OWN_FIELDS[field]}",
            None if info.is_required() else info.default,
            field in collection.references and collection.references[field].collection is not None,
        )
        for field, info in collection.fields.items()
        if field in OWN_FIELDS
    ]
    for collection in COLLECTIONS.values()
}
"""What our own vocabulary says of each collection: fields, their names, what goes unsaid, and whether they refer."""


def _created(stamp: str) -> Said | None:
    return ("dct:created", Typed(stamp, "xsd:dateTime")) if is_stamp(stamp) else None


def _modified(milliseconds: int) -> Said | None:
    text = precise_text_of(milliseconds)
    return None if text is None else ("dct:modified", Typed(text, "xsd:dateTime"))


def _creator(user: str) -> Said | None:
    return ("dc:creator", Text(user)) if has_prefix(user, ("usr",)) else None


_COMMON: dict[str, Callable[[Any], Said | None]] = {
    "event_stamp": _created,
    "last_updated": _modified,
    "id_user": _creator,
}
"""What Dublin Core can say of a field, or None where it cannot say this."""


def _life(about: About, whole: Whole) -> Iterator[Said]:
    if whole.state != State.PUBLISHED:
        yield "owl:deprecated", Typed("true", "xsd:boolean")
    if whole.state == State.MERGED:
        yield f"{OWN}:{STATE}", Text(whole.state)
    if whole.replaced_by is not None:
        yield "dct:isReplacedBy", about.iri(whole.replaced_by)
