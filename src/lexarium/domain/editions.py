"""A newer edition of what was imported before: what of it is taken, and what people made of a record since stays.

Three are compared, field by field: what the last import told, what the record is, and what this import tells.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from lexarium.domain.aliases import DEFAULT_LANGUAGE, Alias, split
from lexarium.domain.changes import State, Whole
from lexarium.domain.collections import Collection
from lexarium.domain.completion import complete
from lexarium.domain.editing import Difference, with_aliases
from lexarium.domain.records import Fields

Preference = Literal["theirs", "ours"]
"""Whose value stands where a file and people have changed the same: the file's, or ours. Either way without remark."""

Values = dict[str, Any]
"""Field by field what a record is, or was told to be, in a form that JSON can say: also aliases, sources and state."""


@dataclass(frozen=True, slots=True)
class Told:
    """What an import tells of a record. What is None, or no field, it does not tell."""

    collection: Collection
    fields: Fields
    aliases: tuple[Alias, ...] | None = None
    sources: tuple[str, ...] | None = None
    state: State | None = None
    replaced_by: str | None = None

    def values(self) -> Values:
        """It, field by field."""
        values = {name: value for name, value in self.fields.items() if name != "id"}
        if self.aliases is not None:
            values["aliases"] = _plain(self.aliases)
        if self.sources is not None:
            values["sources"] = list(self.sources)
        if self.state is not None:
            values["state"] = [self.state, self.replaced_by]
        return values


@dataclass(slots=True)
class Settled:
    """What becomes of a record that an import tells of."""

    whole: Whole
    conflicts: list[Difference] = field(default_factory=list)
    """What both sides have changed, ours and theirs."""
    untaken: Values = field(default_factory=dict)
    """What imports have told, now or before, where the record is something else."""


def created(told: Told, at: int) -> Whole:
    """A record that was not there before."""
    whole = Whole(told.collection, complete(told.collection, told.fields, at))
    untold = told.aliases is None and told.sources is None and told.state is None
    return whole if untold else _with_rest(whole, told, told.values())


def values_of(whole: Whole) -> Values:
    """A record, field by field."""
    values = {name: value for name, value in whole.fields.items() if name != "id"}
    return values | {
        "aliases": _plain(whole.alias_list),
        "sources": list(whole.sources),
        "state": [whole.state, whole.replaced_by],
    }


def untold(whole: Whole) -> Whole:
    """What imports told of a record that people made, and none ever told of: nothing but its id."""
    return Whole(whole.collection, complete(whole.collection, {"id": whole.id, "def_id": ""}, 0))


def settled(ours: Whole, base: Mapping[str, Any] | None, told: Told, prefer: Preference | None, at: int) -> Settled:
    """The record as it shall be. `base` is what imports told before; None: nobody has changed it since."""
    mine, theirs = values_of(ours), told.values()
    taken = {name: value for name, value in theirs.items() if mine[name] != value}
    conflicts = []
    if base is not None:
        for name in [name for name in taken if base.get(name, mine[name]) != mine[name]]:
            both = base[name] != theirs[name]
            if both and prefer is None and (name in ours.collection.written or name not in ours.fields):
                conflicts.append(Difference(name, mine[name], theirs[name]))
            if not both or prefer != "theirs":
                del taken[name]
    whole = _taking(ours, told, taken, at)
    if base is None:
        return Settled(whole)
    became = values_of(whole)
    # The two say the same: of the one that was not told, nothing is known.
    silent = {"alias"} if "aliases" in theirs else {"aliases"} if "alias" in theirs else set()
    # What is a conflict stays one, with the same base, until someone says whose value stands.
    settled_now = {name: value for name, value in theirs.items() if name not in {each.field for each in conflicts}}
    untaken = {name: value for name, value in {**base, **settled_now}.items() if became.get(name) != value}
    return Settled(whole, conflicts, {name: value for name, value in untaken.items() if name not in silent})


def _taking(ours: Whole, told: Told, taken: Values, at: int) -> Whole:
    kept = ours.fields
    if "definition_text" in taken:
        # It is another definition: whose it is and since when is as told, or new.
        kept = {name: value for name, value in kept.items() if not name.startswith("def_")}
        taken |= {name: value for name, value in told.fields.items() if name.startswith("def_")}
    elif told.fields.get("definition_text", kept.get("definition_text")) != kept.get("definition_text"):
        taken = {name: value for name, value in taken.items() if not name.startswith("def_")}
    if not taken:
        return ours
    if "last_updated" not in taken and kept.get("last_updated") != told.fields.get("last_updated"):
        taken = {**taken, "last_updated": at}
    fields = complete(ours.collection, kept | {name: taken[name] for name in taken if name in ours.fields}, at)
    return _with_rest(replace(ours, fields=fields), told, taken)


def _with_rest(whole: Whole, told: Told, taken: Values) -> Whole:
    if "aliases" in taken and told.aliases is not None:
        whole = with_aliases(whole, told.aliases, told.fields.get("alias"))
    elif "alias" in taken and whole.aliases is not None:
        whole = with_aliases(whole, _respelt(whole.aliases, taken["alias"]), taken["alias"])
    if "sources" in taken and told.sources is not None:
        whole = replace(whole, sources=told.sources)
    if "state" in taken and told.state is not None:
        whole = replace(whole, state=told.state, replaced_by=told.replaced_by)
    return whole


def _respelt(aliases: tuple[Alias, ...], alias: str) -> tuple[Alias, ...]:
    """The names of a new `alias`, each as it was known before, and those that an `alias` cannot say."""
    known = {each.text: each for each in aliases if each.lang == DEFAULT_LANGUAGE}
    others = tuple(each for each in aliases if each.lang != DEFAULT_LANGUAGE)
    return tuple(known.get(each.text, each) for each in split(alias)) + others


def _plain(aliases: tuple[Alias, ...]) -> list[list[str]]:
    """Other names in an order of their own: in which they come says nothing."""
    return sorted([each.text, each.lang, each.scope] for each in aliases)
