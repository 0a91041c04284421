"""Editing a record: what of it is writable, how a change is applied, and what differs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lexarium.domain.aliases import Alias, join, split
from lexarium.domain.changes import Whole, edges_of
from lexarium.domain.collections import Collection
from lexarium.domain.completion import complete
from lexarium.domain.identifiers import mint
from lexarium.domain.records import Fields
from lexarium.domain.stamps import text_of

CONSEQUENT = frozenset({"alias", "last_updated", "def_id", "def_id_user", "def_event_stamp"})
"""Fields that change only because others do."""
_DEEPEST = 10
"""Levels of a patch: no draft has so many, and whoever checks it refuses one that has."""


def draft_of(whole: Whole) -> dict[str, Any]:
    """All that is writable of a record, as v1 has it."""
    draft = {name: whole.fields[name] for name in whole.collection.written if name != "alias"}
    return {
        **draft,
        "aliases": [alias.model_dump() for alias in whole.alias_list],
        "sources": list(whole.sources),
        "relations": whole.relations,
    }


def created(collection: Collection, draft: Mapping[str, Any], author: str, definer: str, at: int) -> Whole:
    """A new record, of one person, with a definition of perhaps another. `draft` is checked, of v1 or of v-alpha."""
    identifier = mint(collection.prefixes[0])
    given = {name: draft[name] for name in collection.written if name in draft}
    given |= {"id": identifier, "id_user": author, "def_id_user": definer}
    whole = Whole(collection, complete(collection, given, at))
    return _with_lists(whole, draft)


def edited(whole: Whole, draft: Mapping[str, Any], definer: str, at: int) -> Whole:
    """The record with a whole checked draft in place of what it had; itself where nothing differs.

    A definition that is new is `definer`'s.
    """
    given = {name: draft[name] for name in whole.collection.written if name in draft}
    new = _with_lists(replace(whole, fields={**whole.fields, **given}), draft)
    if new == whole:
        return whole
    return replace(new, fields=_stamped(whole.fields, new.fields, definer, at))


def _with_lists(whole: Whole, draft: Mapping[str, Any]) -> Whole:
    if "aliases" not in draft:
        return whole
    aliases = tuple(Alias.model_construct(**alias) for alias in draft["aliases"])
    if aliases != whole.alias_list:
        whole = with_aliases(whole, aliases)
    return replace(whole, sources=tuple(draft["sources"]), edges=edges_of(whole.id, draft["relations"]))


def with_aliases(whole: Whole, aliases: tuple[Alias, ...], alias: str | None = None) -> Whole:
    """The record with these other names, and with `alias` as given, or made of them."""
    fields = whole.fields
    if "alias" in fields:
        fields = {**fields, "alias": join(aliases) if alias is None else alias}
    # A list that v-alpha can say whole needs no second keeping.
    return replace(whole, fields=fields, aliases=None if split(fields.get("alias", "")) == aliases else aliases)


def _stamped(before: Fields, after: Fields, definer: str, at: int) -> Fields:
    """The fields with the marks of an edit: a new definition is someone's, at a time, under an id of its own."""
    stamped = dict(after)
    if "last_updated" in after:
        stamped["last_updated"] = at
    if "def_id" in after and after["definition_text"] != before["definition_text"]:
        stamped |= {"def_id": mint("def"), "def_id_user": definer, "def_event_stamp": text_of(at)}
    return stamped


def merge_patch(target: Any, patch: Any, deepest: int = _DEEPEST) -> Any:
    """A JSON merge patch applied (RFC 7396)."""
    if not isinstance(patch, dict) or deepest == 0:
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value, deepest - 1)
    return merged


def patch_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that makes one draft the other, with nothing in it that they have alike."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        was = before.get(name)
        if value != was:
            patch[name] = patch_between(was, value) if isinstance(was, dict) and isinstance(value, dict) else value
    return patch


def rebased(base: Mapping[str, Any], wanted: Mapping[str, Any], present: Mapping[str, Any]) -> dict[str, Any]:
    """A draft that was made of one state of a record, on top of another: what it leaves alone is as it is now."""
    return {name: present[name] if value == base[name] else value for name, value in wanted.items()}


@dataclass(frozen=True)
class Difference:
    """One field that two versions do not have alike."""

    field: str
    before: Any
    after: Any


def differences(before: Whole, after: Whole) -> list[Difference]:
    """Field by field, what differs between two versions."""
    one, other = _flat(before), _flat(after)
    return [Difference(name, one.get(name), other.get(name)) for name in other if one.get(name) != other.get(name)]


def altered(before: Whole, after: Whole) -> list[str]:
    """The fields in which two versions differ; those that only follow others where there are no others."""
    names = [each.field for each in differences(before, after)]
    return [name for name in names if name not in CONSEQUENT] or names


def draft_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Field by field, what differs between two drafts."""
    return [Difference(name, before.get(name), value) for name, value in after.items() if before.get(name) != value]


def _flat(whole: Whole) -> dict[str, Any]:
    return {**whole.fields, **draft_of(whole), "state": whole.state, "replaced_by": whole.replaced_by}
