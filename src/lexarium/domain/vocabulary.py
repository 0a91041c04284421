"""Vocabularies: metadata and rules of each, as its head record states them, and the registry of all."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from lexarium.domain.errors import FieldProblem, InvalidInput, InvalidSchema, NotFound
from lexarium.domain.identifiers import MAIN_VOCABULARY, get_local_id, is_id_too_long, qualify_id, split_id
from lexarium.domain.identity.minting import MintingRule, find_rule_problems
from lexarium.domain.identity.prefixes import OBO_BASE, find_prefix_problems, load_bundled
from lexarium.domain.labels import DEFAULT_LANGUAGE
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS, VOCABULARY, Collection, Registry, register_schemas
from lexarium.domain.schema.linkml import BUILTIN_NAMES, load_builtin_schema, load_schema
from lexarium.domain.schema.model import Schema
from lexarium.domain.schema.predicates import NAMESPACES
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.domain.statement import Node, Statement, Text
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.domain.text.languages import canonicalize_tag, find_tag_problem

DEFAULT_SCHEMA = "cognitive-atlas"
DEFAULT_TITLE = "Lexarium"
DEFAULT_BASE = "http://localhost:8000/"
_BASE_ENDS = ("/", "#", "_", ":")
_SLUG = re.compile(r"[a-z][a-z0-9-]{0,49}")
_TRUE = "true"
# Schemes of IRIs without `//`. Any other name before a colon is a prefix.
_IRI_SCHEMES = frozenset(
    (
        *("acct", "ark", "cid", "data", "did", "dns", "doi", "file", "geo", "hdl", "http", "https", "info", "ipfs"),
        *("lsid", "magnet", "mailto", "mid", "ni", "sip", "sips", "sms", "swh", "tag", "tel", "urn", "uuid", "xmpp"),
    )
)
# Digits of the ids of most OBO ontologies.
_OBO_DIGITS = 7
# Wider than the rule of `prefixes`, which guesses what an IRI in any file is: OBO writes all terms as CURIEs, such as
# `NCIT:C12345`.
_OBO_TERM_NAME = re.compile(r"([A-Za-z](?:[A-Za-z0-9_]*[A-Za-z])?)_([A-Za-z0-9]+)")
TITLE = "dcterms:title"
_VERSION = "owl:versionInfo"

# Keys of `to_values`, with the predicate of the statements that hold each.
_PREDICATES = {
    "title": TITLE,
    "description": "dcterms:description",
    "licence": "dcterms:license",
    "publisher": "dcterms:publisher",
    "base": "lexarium:base",
    "languages": "lexarium:language",
    "schema": "lexarium:schema",
    "prefixes": "lexarium:prefix",
    "defines": "lexarium:defines",
    "minting": "lexarium:minting",
    "sources": "lexarium:source",
    "private": "lexarium:private",
    "default": "lexarium:default",
    "valpha": "lexarium:valpha",
}
# Predicates of rules, which files do not set.
RULES = frozenset(predicate for predicate in _PREDICATES.values() if predicate.startswith("lexarium:"))
_FLAGS = ("private", "default", "valpha")
# Predicates of what is chosen among the vocabularies of one server.
SERVER_CHOICES = frozenset({_PREDICATES["default"], _PREDICATES["valpha"]})


@dataclass(frozen=True)
class Vocabulary:
    """Metadata and rules of a vocabulary."""

    slug: str = MAIN_VOCABULARY
    title: str = DEFAULT_TITLE
    description: str = ""
    # IRI or short text; may be empty.
    licence: str = ""
    publisher: str = ""
    # Start of the IRIs of records that have none of their own.
    base: str = DEFAULT_BASE
    # Where it is served: the start of those IRIs if it has no base.
    address: str = DEFAULT_BASE
    # Those of its texts. The first is the default.
    languages: tuple[str, ...] = (DEFAULT_LANGUAGE,)
    # Name of a built-in schema, or the YAML of another.
    schema_source: str = DEFAULT_SCHEMA
    prefixes: Mapping[str, str] = field(default_factory=dict, hash=False)
    # Prefixes whose ids this vocabulary defines.
    defines: tuple[str, ...] = ()
    # Rule for new ids; empty for random ones with the prefix of their class.
    minting: str = ""
    # IRIs of the ontologies or concept schemes that it was imported from; the first is its own.
    sources: tuple[str, ...] = ()
    # Only accounts with a role in it may read it.
    is_private: bool = False
    is_removed: bool = False
    # Pages and requests that name no vocabulary show this one first.
    is_default: bool = False
    # v-alpha serves this one.
    is_valpha: bool = False
    # That of the file it was imported from; it is not set otherwise.
    version: str = ""

    @property
    def language(self) -> str:
        """Language of texts without a tag."""
        return self.languages[0]

    @property
    def schema(self) -> Schema:
        return resolve_schema(self.schema_source)

    @property
    def has_own_schema(self) -> bool:
        """Return whether its schema is not a built-in one."""
        return self.schema_source not in BUILTIN_NAMES

    @property
    def collections(self) -> list[Collection]:
        """Collections, unless it is removed."""
        return [COLLECTIONS[name] for name in COLLECTIONS.list_names(self.slug)]

    def get_collection(self, local_name: str) -> Collection:
        """Return a collection by its name in the schema; raise NotFound."""
        collection = COLLECTIONS.get(qualify_name(self.slug, local_name))
        if collection is None:
            known = ", ".join(item.local_name for item in self.collections)
            raise NotFound(f"The vocabulary {self.slug} has no collection {local_name!r}; available: {known}.")
        return collection

    @property
    def minting_rule(self) -> MintingRule | None:
        """Rule for new ids, or None for random ones with the prefix of their class."""
        return MintingRule.parse(self.minting) if self.minting else None

    @property
    def has_base(self) -> bool:
        """Return whether a base was set."""
        return self.base != DEFAULT_BASE

    @property
    def iri_start(self) -> str:
        """Base, or the address without one."""
        return self.base if self.has_base else self.address

    def expand_id(self, name: str, address: str = "") -> str:
        """Return the IRI of an id, a CURIE or an IRI; `address` replaces that of the vocabulary.

        An IRI that would be taken for a CURIE is in angle brackets.
        """
        if name[:1] == "<" and name[-1:] == ">":
            return name[1:-1]
        prefix, colon, local = name.partition(":")
        if colon:
            namespace = self.prefixes.get(prefix) or NAMESPACES.get(prefix)
            if namespace:
                return namespace + local
            if local.startswith("//") or "/" in prefix or prefix in _IRI_SCHEMES:
                return name
            if local:
                is_obo = self._is_obo_id(prefix, local)
                return f"{OBO_BASE}{prefix}_{local}" if is_obo else self.record_iri(name, address)
        source = next(iter(self.sources), "")
        # Ids without a prefix, as OBO has it.
        is_obo = source.startswith(OBO_BASE)
        return f"{source.removesuffix('.owl')}#{name}" if is_obo else self.record_iri(name, address)

    def _is_obo_id(self, prefix: str, local: str) -> bool:
        """Return whether the rule of OBO expands a CURIE. An unknown prefix and seven digits are taken for one."""
        if self.schema_source == "obo" or _is_obo_prefix(prefix):
            return True
        is_numbered = local.isdecimal() and len(local) >= _OBO_DIGITS
        return is_numbered and prefix not in self.defines and not self.minting.startswith(f"{prefix}:")

    def contract_iri(self, iri: str) -> str:
        """Return the CURIE of an IRI, which `expand_id` turns into the IRI again; without one, the IRI."""
        for prefix, namespace in self.prefixes.items():
            if iri.startswith(namespace) and len(iri) > len(namespace) and not iri.startswith("//", len(namespace)):
                return f"{prefix}:{iri[len(namespace) :]}"
        curie = contract_obo_iri(iri)
        return curie if curie is not None and self.expand_id(curie) == iri else iri

    def record_iri(self, record_id: str, address: str = "") -> str:
        """Return the IRI of a record that has neither one of its own nor a CURIE.

        It names the vocabulary, unless that has a base or is the main one. `address` replaces that of the vocabulary.
        """
        start = self.base if self.has_base else address or self.address
        return f"{start}id/{quote(get_local_id(record_id), safe='')}{self._iri_end}"

    def parse_record_iri(self, iri: str, address: str = "") -> str | None:
        """Return the id in this vocabulary that an IRI was made of, or None.

        It begins with the base, or else with `address` or that of the vocabulary. One that names the vocabulary may
        have any address.
        """
        end = self._iri_end
        start, found, name = iri.removesuffix(end).rpartition("id/")
        names_vocabulary = end != "" and iri.endswith(end) and "://" in start and start.endswith(_BASE_ENDS)
        has_own_start = start == self.iri_start or (start == address and not self.has_base)
        # A question mark of an id is escaped: another one names another vocabulary.
        if not found or "?" in name or not (names_vocabulary or has_own_start):
            return None
        record_id = unquote(name)
        return None if not record_id or is_id_too_long(record_id) or find_unstorable_char(record_id) else record_id

    @property
    def _iri_end(self) -> str:
        return "" if self.has_base or self.slug == MAIN_VOCABULARY else f"?vocabulary={self.slug}"

    def to_values(self) -> dict[str, Any]:
        """Return the metadata and rules that can be set, by name."""
        return {
            "title": self.title,
            "description": self.description,
            "licence": self.licence,
            "publisher": self.publisher,
            "base": self.base,
            "languages": list(self.languages),
            "schema": self.schema_source,
            "prefixes": dict(self.prefixes),
            "defines": list(self.defines),
            "minting": self.minting,
            "sources": list(self.sources),
            "private": self.is_private,
            "default": self.is_default,
            "valpha": self.is_valpha,
        }


def contract_obo_iri(iri: str) -> str | None:
    """Return the CURIE of an IRI by the rule of OBO, or None."""
    match = _OBO_TERM_NAME.fullmatch(iri, len(OBO_BASE)) if iri.startswith(OBO_BASE) else None
    return f"{match[1]}:{match[2]}" if match else None


@lru_cache(maxsize=1000)
def _is_obo_prefix(prefix: str) -> bool:
    return (load_bundled().find_namespace(prefix) or "").startswith(OBO_BASE)


@lru_cache(maxsize=100)
def resolve_schema(source: str) -> Schema:
    """Return the schema with a built-in name, else load it from YAML; raise InvalidSchema."""
    return load_builtin_schema(source) if source in BUILTIN_NAMES else load_schema(source)


def parse_head_record(record: Record) -> Vocabulary:
    """Return the vocabulary that a head record describes."""
    texts: dict[str, list[str]] = {}
    for name, predicate in _PREDICATES.items():
        values = [value for item, value, _ in record.statements if item == predicate]
        texts[name] = [value[0] for value in values if not isinstance(value, Node)]
    return Vocabulary(
        slug=record.local_id,
        title=record.fields["name"] or record.local_id,
        description=record.definition,
        licence=_first(texts["licence"]),
        publisher=_first(texts["publisher"]),
        base=_first(texts["base"]) or DEFAULT_BASE,
        languages=tuple(texts["languages"]) or (DEFAULT_LANGUAGE,),
        schema_source=_first(texts["schema"]) or DEFAULT_SCHEMA,
        prefixes=dict(text.split("=", 1) for text in texts["prefixes"] if "=" in text),
        defines=tuple(texts["defines"]),
        minting=_first(texts["minting"]),
        sources=tuple(texts["sources"]),
        is_private=texts["private"] == [_TRUE],
        is_removed=record.state != RecordState.PUBLISHED,
        is_default=texts["default"] == [_TRUE],
        is_valpha=texts["valpha"] == [_TRUE],
        version=_first(
            [
                item.value.text
                for item in record.statements
                if item.predicate == _VERSION and isinstance(item.value, Text)
            ]
        ),
    )


def update_head_record(record: Record | None, slug: str, values: Mapping[str, Any]) -> Record:
    """Return the head record of a vocabulary with these values. Other statements stay, and so do translated titles."""
    record = record or Record(VOCABULARY, qualify_id("", slug))
    language = (*values.get("languages", ()), *parse_head_record(record).languages)[0]
    for name, value in values.items():
        predicate = _PREDICATES[name]
        texts = _to_texts(name, value)
        kept = [
            item
            for item in record.statements
            if item.predicate != predicate
            or (
                isinstance(item.value, Text)
                and item.value.lang not in ("", language)
                and name in ("title", "description")
            )
        ]
        record = replace(record, statements=tuple(kept))
        record = record.add_statements(Statement(predicate, Text(text)) for text in texts)
    return record


def _to_texts(name: str, value: Any) -> list[str]:
    if name in _FLAGS:
        return [_TRUE] if value else []
    if name == "prefixes":
        return [f"{prefix}={namespace}" for prefix, namespace in value.items()]
    return [text for text in ([value] if isinstance(value, str) else value) if text]


def check_values(slug: str, values: Mapping[str, Any], others: Iterable[Vocabulary]) -> dict[str, Any]:
    """Return the values of a vocabulary in canonical form; raise InvalidInput with all problems."""
    checked, problems = dict(values), []
    if not _SLUG.fullmatch(slug):
        message = "must be at most 50 lower-case letters, digits and hyphens, and start with a letter."
        problems.append(FieldProblem("slug", message))
    for name in ("title", "licence", "publisher", "description"):
        if (text := values.get(name)) and find_unstorable_char(text):
            problems.append(FieldProblem(name, "has characters that cannot be stored."))
    if "title" in values and not values["title"].strip():
        problems.append(FieldProblem("title", "must not be empty."))
    problems += _find_language_problems(checked)
    problems += _find_prefix_problems(slug, checked, others)
    if base := values.get("base"):
        checked["base"] = base if base.endswith(_BASE_ENDS) else f"{base}/"
        if not re.match(r"[A-Za-z][\w.+-]*:", base):
            problems.append(FieldProblem("base", "must be the start of IRIs, such as https://example.org/."))
    if rule := values.get("minting"):
        problems += [FieldProblem("minting", problem) for problem in find_rule_problems(rule)]
    if source := values.get("schema"):
        problems += _find_schema_problems(source)
    if problems:
        raise InvalidInput("Invalid vocabulary.", problems)
    return checked


def _find_language_problems(values: dict[str, Any]) -> list[FieldProblem]:
    tags = values.get("languages")
    if tags is None:
        return []
    if not tags:
        return [FieldProblem("languages", "must have at least one: the language of texts without a tag.")]
    problems = [FieldProblem("languages", problem) for tag in tags if (problem := find_tag_problem(tag))]
    if not problems:
        values["languages"] = list(dict.fromkeys(map(canonicalize_tag, tags)))
    return problems


def _find_prefix_problems(slug: str, values: Mapping[str, Any], others: Iterable[Vocabulary]) -> list[FieldProblem]:
    problems = [FieldProblem("prefixes", problem) for problem in find_prefix_problems(values.get("prefixes", {}))]
    defined = {prefix for other in others if other.slug != slug for prefix in other.defines}
    problems += [
        FieldProblem("defines", f"{prefix} is defined by another vocabulary; remove it there first.")
        for prefix in values.get("defines", ())
        if prefix in defined
    ]
    return problems


def _find_schema_problems(source: str) -> list[FieldProblem]:
    if "\n" not in source and source not in BUILTIN_NAMES:
        return [FieldProblem("schema", f"must be one of {', '.join(BUILTIN_NAMES)}, or a LinkML schema.")]
    try:
        resolve_schema(source)
    except InvalidSchema as error:
        return [FieldProblem("schema", f"line {line}: {message}") for line, message in error.lines]
    return []


def _first(texts: list[str]) -> str:
    return texts[0] if texts else ""


# All vocabularies, removed ones too, by slug.
VOCABULARIES: Registry[Vocabulary] = Registry()
# Slugs of the vocabularies that are not removed, by the prefixes that they define.
_DEFINERS: Registry[tuple[str, ...]] = Registry()


def register_vocabularies(vocabularies: Iterable[Vocabulary]) -> None:
    """Replace all vocabularies, with their collections. The main one is always there."""
    by_slug = {vocabulary.slug: vocabulary for vocabulary in vocabularies}
    by_slug = {MAIN_VOCABULARY: by_slug.pop(MAIN_VOCABULARY, Vocabulary()), **by_slug}
    VOCABULARIES.replace(by_slug)
    active = [vocabulary for vocabulary in by_slug.values() if not vocabulary.is_removed]
    definers: dict[str, tuple[str, ...]] = {}
    for vocabulary in active:
        for prefix in dict.fromkeys(vocabulary.defines):
            definers[prefix] = (*definers.get(prefix, ()), vocabulary.slug)
    _DEFINERS.replace(definers)
    register_schemas(
        {slug: vocabulary.schema for slug, vocabulary in by_slug.items()},
        {slug: vocabulary.language for slug, vocabulary in by_slug.items()},
        {slug for slug, vocabulary in by_slug.items() if vocabulary.is_removed},
    )


register_vocabularies([])


def get_default_vocabulary() -> Vocabulary:
    """Return the vocabulary that pages and requests show first."""
    active = [vocabulary for vocabulary in VOCABULARIES.values() if not vocabulary.is_removed]
    chosen = (vocabulary for vocabulary in active if vocabulary.is_default)
    return next(chosen, active[0] if active else VOCABULARIES[MAIN_VOCABULARY])


def find_defining_id(record_id: str) -> str | None:
    """Return the id of a record in the vocabulary that defines its prefix; None if there is none or it is its own."""
    slug, local_id = split_id(record_id)
    definers = list_definers(local_id.partition(":")[0])
    return None if not definers or definers[-1] == slug else qualify_id(definers[-1], local_id)


def list_definers(prefix: str) -> tuple[str, ...]:
    """Return the slugs of the vocabularies that define a prefix: usually one, or none."""
    return _DEFINERS.get(prefix, ())


def find_valpha_vocabulary() -> Vocabulary | None:
    """Return the vocabulary that v-alpha serves, or None if there is none that everyone may read.

    It is the chosen one, or else the default one or, if that has no class of v-alpha, the main one.
    """
    chosen = [item for item in VOCABULARIES.values() if item.is_valpha]
    candidates = chosen or [get_default_vocabulary(), VOCABULARIES[MAIN_VOCABULARY]]
    with_classes = [item for item in candidates if any(collection.in_valpha for collection in item.collections)]
    return with_classes[0] if with_classes and not with_classes[0].is_private else None
