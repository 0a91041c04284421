"""Merging a record into another, and taking that back: what becomes of each record that it touches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lexarium.domain.aliases import Alias
from lexarium.domain.changes import State, Whole
from lexarium.domain.editing import draft_of
from lexarium.domain.relations import Edge
from lexarium.domain.text import name_key


def merged(gone: Whole, into: str) -> Whole:
    """The record that is merged into another."""
    return replace(gone, state=State.MERGED, replaced_by=into, edges=frozenset())


def survivor(kept: Whole, gone: Whole) -> dict[str, Any]:
    """The draft of the record that another is merged into: its own fields stand, names and relations are gained."""
    draft = draft_of(kept)
    known = {name_key(kept.fields["name"]), *(name_key(alias.text) for alias in kept.alias_list)}
    for alias in _names(gone):
        if name_key(alias.text) not in known:
            known.add(name_key(alias.text))
            draft["aliases"].append(alias.model_dump())
    own = frozenset(edge for edge in kept.edges if edge.target != gone.id)
    draft["relations"] = replace(kept, edges=own | _moved(gone, kept.id)).relations
    return draft


def turned(whole: Whole, survivors: Mapping[str, str]) -> Whole:
    """The record with survivors in place of the merged ones that it names; a relation to itself falls away."""
    kept = {edge for edge in whole.edges if edge.target not in survivors}
    moved = {replace(edge, target=survivors[edge.target]) for edge in whole.edges - kept}
    classes = {
        name: survivors[whole.fields[name]] for name in whole.collection.class_fields if whole.fields[name] in survivors
    }
    return replace(
        whole,
        fields={**whole.fields, **classes},
        edges=frozenset(kept | {edge for edge in moved if edge.target != whole.id}),
    )


def named(whole: Whole) -> set[str]:
    """What a record names: the targets of its relations and its class."""
    return {edge.target for edge in whole.edges} | {
        whole.fields[name] for name in whole.collection.class_fields if whole.fields[name]
    }


def ends(into: Mapping[str, str]) -> dict[str, str]:
    """Of records, each merged into another, what each has come to be; one that leads into a circle is left out.

    However long the way is, each step of it is taken once.
    """
    found: dict[str, str | None] = {}
    for identifier in into:
        way: list[str] = []
        here = identifier
        while here in into and here not in found:
            found[here] = None
            way.append(here)
            here = into[here]
        found |= dict.fromkeys(way, found[here] if here in into else here)
    return {identifier: end for identifier, end in found.items() if end is not None}


@dataclass(frozen=True)
class Footprint:
    """What a merge made of a record other than the one that was merged."""

    before: Whole
    after: Whole

    @property
    def edges(self) -> frozenset[Edge]:
        """The relations that the merge added."""
        return self.after.edges - self.before.edges

    @property
    def names(self) -> set[str]:
        """The keys of the names that the merge added."""
        return {name_key(alias.text) for alias in self.after.alias_list if alias not in self.before.alias_list}

    def undone(self, present: Whole) -> dict[str, Any]:
        """The draft of the record as it is, without what the merge added and with what it took."""
        draft = draft_of(present)
        draft["aliases"] = [
            alias.model_dump()
            for alias in present.alias_list
            if alias in self.before.alias_list or alias not in self.after.alias_list
        ]
        own = present.edges - self.edges | (self.before.edges - self.after.edges)
        draft["relations"] = replace(present, edges=own).relations
        for name in present.collection.class_fields:
            if present.fields[name] == self.after.fields[name]:
                draft[name] = self.before.fields[name]
        return draft

    def spelt(self, whole: Whole) -> Whole:
        """The record with its names as they were spelt before the merge, where they are those again."""
        if whole.alias_list != self.before.alias_list or "alias" not in whole.fields:
            return whole
        return replace(
            whole, fields={**whole.fields, "alias": self.before.fields["alias"]}, aliases=self.before.aliases
        )


def entangled(earlier: Footprint, later: Footprint, gone: Whole, into: str) -> bool:
    """Whether a later merge, of `gone` into another, had to do with what an earlier one added to the same record.

    Then the earlier cannot be undone before the later: it would take away what both brought, or miss what moved on.
    """
    pointing = {edge for edge in later.before.edges if edge.target == gone.id}
    edges = pointing | {replace(edge, target=into) for edge in pointing}
    names: set[str] = set()
    if later.before.id == into:
        edges |= _moved(gone, into)
        names = {name_key(alias.text) for alias in _names(gone)}
    return not (earlier.edges.isdisjoint(edges) and earlier.names.isdisjoint(names))


def _names(gone: Whole) -> Iterator[Alias]:
    if gone.fields["name"].strip():
        yield Alias.model_construct(text=gone.fields["name"])
    yield from gone.alias_list


def _moved(gone: Whole, into: str) -> set[Edge]:
    return {replace(edge, source=into) for edge in gone.edges if edge.target not in (gone.id, into)}
