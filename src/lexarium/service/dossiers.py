"""All that there is to tell people of one record."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexarium.domain.aliases import DEFAULT_LANGUAGE
from lexarium.domain.changes import Change, Whole
from lexarium.domain.comparison import Piece, compared
from lexarium.domain.editing import CONSEQUENT, Difference, differences
from lexarium.domain.errors import NotFound
from lexarium.domain.relations import RELATIONS
from lexarium.domain.text import unstorable
from lexarium.service.recent import earlier, people
from lexarium.store import log, records, surveys
from lexarium.store.backend import Snapshot
from lexarium.store.surveys import Neighbour

MOST_RELATED = 200
"""How many records at the other ends of one kind of relation are told."""


@dataclass(frozen=True)
class Group:
    """The records at the other ends of a record's relations of one kind, in one direction."""

    label: str
    """What the relation is called, said of the record."""
    hierarchical: bool
    outward: bool
    items: Sequence[Neighbour]
    total: int


@dataclass(frozen=True)
class Alteration:
    """What a change did to one field, in words that stayed, came and went."""

    field: str
    pieces: Sequence[Piece]


@dataclass(frozen=True)
class Version:
    """One version of a record, and how it came from the one before."""

    change: Change
    actor: str
    proposer: str | None
    """Who proposed it, where a curator accepted it."""
    alterations: Sequence[Alteration]


@dataclass(frozen=True)
class Dossier:
    """A record as it is now, in whatever state."""

    change: Change
    whole: Whole
    definition: str
    groups: Sequence[Group]
    mappings: Sequence[tuple[str, str]]
    """What each is called, and what it points to in another vocabulary."""
    people: Mapping[str, str]
    """What those are called whom the record names, by id."""
    successor: str | None
    """The name of what stands in for it, where it is gone."""


def find(snapshot: Snapshot, identifier: str) -> Change:
    """The last change of a record, in whatever state. Raises `NotFound` where there is none."""
    found = None if unstorable(identifier) else log.latest(snapshot, [identifier]).get(identifier)
    if found is None:
        raise NotFound(f"There is no record with the id {identifier!r}.")
    return found


def dossier(snapshot: Snapshot, change: Change) -> Dossier:
    """All about a record but its history."""
    whole = change.whole()
    named = {whole.fields[name] for name in ("id_user", "def_id_user") if name in whole.fields}
    return Dossier(
        change=change,
        whole=whole,
        definition=whole.definition,
        groups=_groups(snapshot, whole),
        mappings=[
            (RELATIONS[edge.relation].label, edge.target)
            for edge in sorted(whole.edges)
            if RELATIONS[edge.relation].target is None
        ],
        people=people(snapshot, named | {change.actor}),
        successor=records.names(snapshot, [whole.replaced_by]).get(whole.replaced_by) if whole.replaced_by else None,
    )


def history(snapshot: Snapshot, identifier: str, newest: int, limit: int) -> list[Version]:
    """The versions of a record from one down, at most so many, each with what it changed."""
    changes = earlier(snapshot, identifier, newest, limit + 1)
    pairs = [(change, before) for change, before in zip(changes, [*changes[1:], None], strict=True)][:limit]
    compared_with = [
        (change, [] if before is None else differences(before.whole(), change.whole())) for change, before in pairs
    ]
    names = _names_in(snapshot, (each for _, several in compared_with for each in several))
    proposed = {change.seq: change.proposed() for change, _ in compared_with}
    who = people(snapshot, {change.actor for change, _ in pairs} | {each.by for each in proposed.values() if each})
    return [
        Version(
            change,
            who[change.actor],
            who[made_by.by] if (made_by := proposed[change.seq]) else None,
            [_alteration(each, names) for each in several if each.field not in CONSEQUENT],
        )
        for change, several in compared_with
    ]


def alterations(snapshot: Snapshot, several: Sequence[Difference]) -> list[Alteration]:
    """What differs, in words that stayed, came and went."""
    names = _names_in(snapshot, several)
    return [_alteration(each, names) for each in several if each.field not in CONSEQUENT]


def _groups(snapshot: Snapshot, whole: Whole) -> list[Group]:
    found: list[Group] = []
    for relation in RELATIONS.values():
        ends = [
            (outward, label)
            for outward, end, label in (
                (True, relation.source, relation.label),
                (False, relation.target, relation.inverse),
            )
            if end == whole.collection.name and relation.target is not None
        ]
        for outward, label in ends:
            items, total = surveys.neighbours(snapshot, whole.id, relation.name, outward=outward, most=MOST_RELATED)
            found.append(Group(label, relation.hierarchical, outward, items, total))
    return [group for group in _united(found) if group.items]


def _united(groups: Iterable[Group]) -> list[Group]:
    """What is called alike in both directions as one."""
    found: dict[str, Group] = {}
    for group in groups:
        other = found.get(group.label)
        if other is None:
            found[group.label] = group
        else:
            items = sorted({*other.items, *group.items}, key=lambda each: (each.name.casefold(), each.id))
            found[group.label] = Group(group.label, group.hierarchical, True, items, len(items))
    return list(found.values())


def _names_in(snapshot: Snapshot, several: Iterable[Difference]) -> dict[str, str]:
    """The names of the records that differences speak of."""
    ids: set[str] = set()
    for each in several:
        if each.field == "relations":
            ids.update(
                target for side in (each.before, each.after) for some in (side or {}).values() for target in some
            )
        elif each.field in ("id_concept_class", "replaced_by"):
            ids.update(side for side in (each.before, each.after) if side)
    return records.names(snapshot, sorted(ids))


def _alteration(difference: Difference, names: Mapping[str, str]) -> Alteration:
    before, after = difference.before, difference.after
    if isinstance(before, str) and isinstance(after, str) and difference.field not in ("id_concept_class", "state"):
        return Alteration(difference.field, compared(before, after))
    old, new = (_said(difference.field, side, names) for side in (before, after))
    was = [Piece(each, "same" if each in new else "removed") for each in old]
    return Alteration(difference.field, [*was, *(Piece(each, "added") for each in new if each not in old)])


def _alias(alias: Mapping[str, str]) -> str:
    unusual = [alias[name] for name, usual in (("lang", DEFAULT_LANGUAGE), ("scope", "exact")) if alias[name] != usual]
    return f"{alias['text']} ({', '.join(unusual)})" if unusual else alias["text"]


def _said(field: str, value: Any, names: Mapping[str, str]) -> list[str]:
    """A value as one or more short texts."""
    if field == "relations":
        return [
            f"{RELATIONS[name].label} {names.get(target, target)}"
            for name, targets in (value or {}).items()
            for target in targets
        ]
    if field == "aliases":
        return [_alias(each) for each in value or ()]
    if isinstance(value, list | tuple):
        return [str(each) for each in value]
    return [] if value in (None, "") else [names.get(value, str(value))]
