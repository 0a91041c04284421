"""Which vocabularies a caller may read, and which record an id means to them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lexarium.domain.account import Role
from lexarium.domain.errors import FieldProblem, InvalidInput, LexariumError, NotFound
from lexarium.domain.identifiers import qualify_id, split_id
from lexarium.domain.identity import prefixes
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.domain.text.characters import find_control_char, find_unstorable_char
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary, find_valpha_vocabulary, get_default_vocabulary
from lexarium.formats.resources import contract_iri
from lexarium.services.access.permissions import Caller
from lexarium.store import records, vocabularies
from lexarium.store.position import Snapshot


class AmbiguousId(LexariumError):
    """Several vocabularies have a record with an id, and none defines its prefix."""

    def __init__(self, local_id: str, record_ids: Sequence[str]) -> None:
        self.record_ids = record_ids
        slugs = ", ".join(split_id(record_id)[0] for record_id in record_ids)
        super().__init__(f"{local_id} is in several vocabularies: {slugs}. Choose one with `vocabulary`.")


@dataclass(frozen=True)
class ReadScope:
    """Vocabularies that a request is about: all that the caller may read, or those that they name."""

    slugs: tuple[str, ...]
    # Whether the caller has named them.
    is_chosen: bool = False

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
        raise NotFound(f"There is no vocabulary {unknown[0]!r}; there are {', '.join(readable)}.")
    return ReadScope(tuple(dict.fromkeys(chosen)) or readable, bool(chosen))


def _can_read(caller: Caller | None, vocabulary: Vocabulary) -> bool:
    return not vocabulary.is_private or (caller is not None and caller.get_role(vocabulary.slug) is not Role.NONE)


def get_unqualified_vocabulary() -> Vocabulary:
    """Return the vocabulary of paths of v1 that name none: that of v-alpha, else the default one."""
    return find_valpha_vocabulary() or get_default_vocabulary()


def find_record_id(snapshot: Snapshot, local_id: str, scope: ReadScope) -> str:
    """Return the record that an id, IRI or alternative id means; raise NotFound or AmbiguousId.

    An id means the record of the vocabulary that defines its prefix, else the only record with it. An alternative id
    gives way to a record of that id.
    """
    # No id has such a character, and with one a client could name a record of another vocabulary.
    is_no_id = find_control_char(local_id) or find_unstorable_char(local_id)
    names = [] if is_no_id else [(item.slug, name) for item in scope.vocabularies for name in _list_ids(item, local_id)]
    candidates = [qualify_id(slug, name) for slug, name in names]
    existing = records.find_existing_ids(snapshot, candidates)
    found = [record_id for record_id in candidates if record_id in existing]
    if not found and candidates:
        found = vocabularies.find_by_alternative_ids(snapshot, [local_id]).get(local_id, [])
    # An id may be written like that of another vocabulary.
    found = [record_id for record_id in found if scope.includes(record_id)]
    if not found:
        raise NotFound(f"There is no record with the id {local_id!r}.")
    if len(found) > 1:
        prefix = local_id.partition(":")[0]
        found = [item for item in found if prefix in VOCABULARIES[split_id(item)[0]].defines] or found
    if len(found) > 1:
        raise AmbiguousId(local_id, found)
    return found[0]


def _list_ids(vocabulary: Vocabulary, identifier: str) -> Iterator[str]:
    """Yield the ids in a vocabulary that an identifier may mean: itself, and of an IRI those that it is made of."""
    yield identifier
    if "://" in identifier:
        own_id = vocabulary.parse_record_iri(identifier)
        if own_id is not None:
            yield own_id
        curie = contract_iri(identifier, vocabulary.prefixes)
        if curie != identifier:
            yield curie


def find_record_ids(snapshot: Snapshot, identifiers: Sequence[str], scope: ReadScope) -> dict[str, str]:
    """Return the records that CURIEs and IRIs mean, as `find_record_id` does; unknown and ambiguous ones are left out.

    A record is found by its CURIE where it has an IRI, and the other way round.
    """
    spellings = {identifier: _list_spellings(identifier) for identifier in identifiers}
    names = sorted({name for group in spellings.values() for name in group if not find_control_char(name)})
    existing = records.find_existing_ids(snapshot, [qualify_id(slug, name) for slug in scope.slugs for name in names])
    alternatives = vocabularies.find_by_alternative_ids(snapshot, names)
    found: dict[str, str] = {}
    for identifier, group in spellings.items():
        candidates = [qualify_id(slug, name) for name in group for slug in scope.slugs]
        matching = [record_id for record_id in candidates if record_id in existing]
        matching = matching or [item for name in group for item in alternatives.get(name, ()) if scope.includes(item)]
        prefix = identifier.partition(":")[0]
        defined = [item for item in matching if prefix in VOCABULARIES[split_id(item)[0]].defines]
        if len(set(defined or matching)) == 1:
            found[identifier] = (defined or matching)[0]
    return found


def _list_spellings(identifier: str) -> list[str]:
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
        f"There is no collection {local_name!r}.",
        [FieldProblem(parameter, f"should be one of {', '.join(known)}.")],
    )


def list_collections(scope: ReadScope, local_names: Sequence[str]) -> tuple[str, ...]:
    """Return the unique names of collections with these names in all vocabularies of a scope."""
    return tuple(name for name in scope.collections if COLLECTIONS[name].local_name in local_names)


def resolve_collections(scope: ReadScope, local_names: Sequence[str]) -> tuple[str, ...]:
    """Return the same, but raise InvalidInput for a name that no vocabulary of the scope has."""
    for local_name in local_names:
        find_collection(scope, local_name)
    return list_collections(scope, local_names)
