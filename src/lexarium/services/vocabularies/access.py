"""Find the vocabularies that a caller may read, and records by id within them."""

from collections.abc import Collection as Items
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lexarium.domain.account import Role
from lexarium.domain.change import ChangeFilter
from lexarium.domain.errors import FieldProblem, InvalidInput, LexariumError, NotFound
from lexarium.domain.identifiers import get_local_id, qualify_id, split_id
from lexarium.domain.identity import prefixes
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.domain.text.characters import find_control_char, find_unstorable_char
from lexarium.domain.vocabulary import (
    DEFAULT_BASE,
    VOCABULARIES,
    Vocabulary,
    find_valpha_vocabulary,
    get_default_vocabulary,
)
from lexarium.services.access.permissions import Caller
from lexarium.store import records, vocabularies
from lexarium.store.position import Snapshot


class AmbiguousId(LexariumError):
    """Several records have an id: in vocabularies none of which defines its prefix, or besides an id of their own."""

    def __init__(self, local_id: str, record_ids: Sequence[str]) -> None:
        self.record_ids = record_ids
        slugs = list(dict.fromkeys(split_id(record_id)[0] for record_id in record_ids))
        if len(slugs) > 1:
            message = f"{local_id} is in several vocabularies: {', '.join(slugs)}. Choose one with `vocabulary`."
        else:
            message = f"{local_id} is an alternative ID of several records: {', '.join(map(get_local_id, record_ids))}."
        super().__init__(message)


@dataclass(frozen=True)
class ReadScope:
    """Vocabularies that a request is about: all that the caller may read, or those that they name."""

    slugs: tuple[str, ...]
    # Whether the caller has named them.
    is_chosen: bool = False
    # Where the caller reaches the service: the start of the IRIs of records whose vocabulary has no base.
    address: str = field(default=DEFAULT_BASE, compare=False)

    @property
    def vocabularies(self) -> list[Vocabulary]:
        return [VOCABULARIES[slug] for slug in self.slugs]

    @property
    def collections(self) -> tuple[str, ...]:
        """Names of all their collections."""
        if len(self.slugs) == len(VOCABULARIES):
            return tuple(COLLECTIONS)
        return tuple(name for name, collection in COLLECTIONS.items() if collection.vocabulary in self.slugs)

    @property
    def changes(self) -> ChangeFilter:
        """Changes of their records, and of themselves."""
        return ChangeFilter(self.collections, [qualify_id("", slug) for slug in self.slugs])

    @property
    def searched_collections(self) -> tuple[str, ...]:
        """Names of those that are searched by default."""
        return tuple(name for name in COLLECTIONS.searched if COLLECTIONS[name].vocabulary in self.slugs)

    def includes(self, record_id: str) -> bool:
        """Return whether a record is in one of them."""
        return split_id(record_id)[0] in self.slugs


def get_read_scope(caller: Caller | None, chosen: Sequence[str] = ()) -> ReadScope:
    """Return the vocabularies that a caller may read, or those of them that are chosen; raise NotFound."""
    return _choose([item for item in VOCABULARIES.values() if not item.is_removed and _can_read(caller, item)], chosen)


def get_full_scope(chosen: Sequence[str] = ()) -> ReadScope:
    """Return all vocabularies, private ones too, or those that are chosen: for who has the database itself."""
    return _choose([item for item in VOCABULARIES.values() if not item.is_removed], chosen)


def _choose(vocabularies: Sequence[Vocabulary], chosen: Sequence[str]) -> ReadScope:
    readable = tuple(item.slug for item in vocabularies)
    unknown = [slug for slug in chosen if slug not in readable]
    if unknown:
        raise NotFound(f"Vocabulary {unknown[0]!r} not found; available: {', '.join(readable)}.")
    return ReadScope(tuple(dict.fromkeys(chosen)) or readable, bool(chosen))


def _can_read(caller: Caller | None, vocabulary: Vocabulary) -> bool:
    return not vocabulary.is_private or (caller is not None and caller.get_role(vocabulary.slug) is not Role.NONE)


def get_unqualified_vocabulary() -> Vocabulary:
    """Return the vocabulary of paths of v1 that name none: that of v-alpha, else the default one."""
    return find_valpha_vocabulary() or get_default_vocabulary()


def get_scope_or_default(caller: Caller | None, chosen: Sequence[str]) -> ReadScope:
    """Return the chosen vocabularies, or that of paths that name none; raise NotFound.

    The message does not name a vocabulary that the caller may not read and has not named.
    """
    scope = get_read_scope(caller, chosen)
    if chosen:
        return scope
    slug = get_unqualified_vocabulary().slug
    if slug not in scope.slugs:
        raise NotFound(f"Choose a vocabulary; available: {', '.join(scope.slugs)}.")
    return ReadScope((slug,), is_chosen=True)


def find_record_id(snapshot: Snapshot, local_id: str, scope: ReadScope) -> str:
    """Return the record that an id, IRI or alternative id means; raise NotFound or AmbiguousId.

    An id means the record of the vocabulary that defines its prefix, else the only record with it. An alternative id
    gives way to a record of that id.
    """
    candidates = list_record_ids(local_id, scope)
    return choose_record_id(snapshot, local_id, scope, records.find_existing_ids(snapshot, candidates))


def list_record_ids(local_id: str, scope: ReadScope) -> list[str]:
    """Return the ids of records that an id or IRI may mean."""
    # No id has such a character, and with one a client could name a record of another vocabulary.
    if find_control_char(local_id) or find_unstorable_char(local_id):
        return []
    return [qualify_id(item.slug, name) for item in scope.vocabularies for name in _list_ids(item, local_id, scope)]


def choose_record_id(snapshot: Snapshot, local_id: str, scope: ReadScope, existing: Items[str]) -> str:
    """Return the record that is meant, as `find_record_id` does, given those of `list_record_ids` that exist."""
    candidates = list_record_ids(local_id, scope)
    found = [record_id for record_id in candidates if record_id in existing]
    if not found and candidates:
        found = vocabularies.find_by_alternative_ids(snapshot, [local_id]).get(local_id, [])
    # An id may be written like that of another vocabulary.
    found = [record_id for record_id in found if scope.includes(record_id)]
    if not found:
        raise NotFound(f"Record {local_id!r} not found.")
    if len(found) > 1:
        prefix = local_id.partition(":")[0]
        found = [item for item in found if prefix in VOCABULARIES[split_id(item)[0]].defines] or found
    if len(found) > 1:
        raise AmbiguousId(local_id, found)
    return found[0]


def _list_ids(vocabulary: Vocabulary, identifier: str, scope: ReadScope) -> Iterator[str]:
    """Yield the ids in a vocabulary that an identifier may mean: itself, and of an IRI those that it is made of."""
    yield identifier
    if "://" in identifier:
        own_id = vocabulary.parse_record_iri(identifier, scope.address)
        if own_id is not None:
            yield own_id
        curie = vocabulary.contract_iri(identifier)
        if curie != identifier:
            yield curie


def list_candidates(identifiers: Iterable[str], scope: ReadScope) -> tuple[list[str], list[str]]:
    """Return the ids of records that CURIEs and IRIs may mean, and the alternative ids."""
    names = sorted({name for item in identifiers for name in _list_spellings(item) if not find_control_char(name)})
    return [qualify_id(slug, name) for slug in scope.slugs for name in names], names


def match_records(
    identifiers: Iterable[str], existing: Items[str], alternatives: Mapping[str, Sequence[str]], scope: ReadScope
) -> dict[str, str]:
    """Return the records that CURIEs and IRIs mean, as `find_record_id` does; unknown and ambiguous ones are left out.

    `existing` are those of the ids of `list_candidates` that records have, and `alternatives` the records by
    alternative id. A record is found by its CURIE where it has an IRI, and the other way round.
    """
    found: dict[str, str] = {}
    for identifier in identifiers:
        group = _list_spellings(identifier)
        candidates = [qualify_id(slug, name) for name in group for slug in scope.slugs]
        matching = [record_id for record_id in candidates if record_id in existing]
        matching = matching or [item for name in group for item in alternatives.get(name, ()) if scope.includes(item)]
        prefix = identifier.partition(":")[0]
        defined = [item for item in matching if prefix in VOCABULARIES[split_id(item)[0]].defines]
        if len(set(defined or matching)) == 1:
            found[identifier] = (defined or matching)[0]
    return found


def _list_spellings(identifier: str) -> list[str]:
    if ":" not in identifier:  # neither a CURIE nor an IRI
        return [identifier]
    other = prefixes.expand(identifier) or prefixes.contract(identifier)
    return [identifier, other] if other else [identifier]


def find_collection(scope: ReadScope, local_name: str, parameter: str = "collection") -> Collection:
    """Return the collection of a name in the first vocabulary of a scope that has it, the default one before others."""
    default = get_default_vocabulary().slug
    for slug in sorted(scope.slugs, key=lambda slug: slug != default):
        collection = COLLECTIONS.get(qualify_name(slug, local_name))
        if collection is not None:
            return collection
    known = dict.fromkeys(COLLECTIONS[name].local_name for name in scope.collections)
    raise InvalidInput(
        f"Collection {local_name!r} not found.",
        [FieldProblem(parameter, f"must be one of {', '.join(known)}.")],
    )


def list_collections(scope: ReadScope, local_names: Sequence[str]) -> tuple[str, ...]:
    """Return the unique names of collections with these names in all vocabularies of a scope."""
    return tuple(name for name in scope.collections if COLLECTIONS[name].local_name in local_names)


def resolve_collections(scope: ReadScope, local_names: Sequence[str]) -> tuple[str, ...]:
    """Return the same, but raise InvalidInput for a name that no vocabulary of the scope has."""
    for local_name in local_names:
        find_collection(scope, local_name)
    return list_collections(scope, local_names)
