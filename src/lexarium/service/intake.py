"""What codecs read, checked and put where it waits."""

from collections.abc import Iterator
from typing import Any

import orjson

from lexarium.domain import aliases
from lexarium.domain.changes import State
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.identifiers import LONGEST, is_too_long
from lexarium.domain.records import Fields
from lexarium.domain.relations import RELATIONS, Edge, why_not_outside
from lexarium.domain.rendering import filed_under
from lexarium.domain.text import direction_control, name_key, unstorable
from lexarium.exchange.incoming import Incoming
from lexarium.exchange.notions import label_key
from lexarium.service import retelling
from lexarium.service.identities import may_be_name
from lexarium.service.reports import Notes
from lexarium.store.staging import UNFILED, Stage

_NUL = b"\\u0000"


class Intake:
    """Takes records, whichever codec made them, and notes what is wrong or odd."""

    def __init__(self, stage: Stage, problems: Notes, warnings: Notes) -> None:
        self._stage = stage
        self._problems = problems
        self._warnings = warnings
        self._source = 0
        self.taken = 0
        """How many records have been put there."""

    def begin(self, source: str) -> None:
        """From now on records come from there."""
        self._source = self._stage.source(source)

    def take(self, incoming: Incoming) -> None:
        """Put a record where it waits; one that has problems is only told of."""
        problems, fields = incoming.problems, incoming.fields
        key, data, rest = "", b"", b""
        filed = UNFILED
        if incoming.collection and not problems:
            whole = tuple(fields) == COLLECTIONS[incoming.collection].names
            if not whole:
                self._leave_out_unknown(incoming)
            _doubt_merge(incoming)
            name = fields.get("name")
            key = fields.get("id") or incoming.foreign or (label_key(incoming.collection, name) if name else "")
            data = _json(fields, problems)
            rest = _rest(incoming, problems)
            if whole and not rest:
                filed = fields["name"], *filed_under(fields)
            _check_key(fields.get("id"), incoming.foreign, key, problems)
            # Most records cannot contain such characters, neither as they are nor as `&#8238;`.
            if b"&#" in data or not data.isascii() or not rest.isascii():
                _warn_of_direction_controls(incoming)
        if problems or incoming.warnings:
            self._note(incoming)
        self.taken += key != ""
        if key and not problems and incoming.version is not None:
            retelling.keep(self._stage, self._source, incoming, incoming.version)
        elif key and not problems:
            self._stage.add(key, incoming.collection, self._source, incoming.line, data, rest, filed)
            self._name(key, incoming)
            if incoming.edges or incoming.told:
                self._relate(key, incoming)

    def _note(self, incoming: Incoming) -> None:
        where = self._stage.place(self._source, incoming.line)
        column = f", column {incoming.column}" if incoming.column else ""
        for problem in incoming.problems:
            self._problems.add(where + column, problem)
        for warning in incoming.warnings:
            self._warnings.add(where, warning)

    def _leave_out_unknown(self, incoming: Incoming) -> None:
        known = COLLECTIONS[incoming.collection].types
        for name in [name for name in incoming.fields if name not in known]:
            del incoming.fields[name]
            incoming.warnings.append(f"{name} is not a field of {incoming.collection}; it was left out")

    def _name(self, key: str, incoming: Incoming) -> None:
        if "id" not in incoming.fields:
            label = None if incoming.foreign else name_key(incoming.fields["name"])
            self._stage.add_named(key, incoming.collection, label)
        if incoming.replaced_by is not None and _is_loose(incoming, incoming.replaced_by):
            self._stage.mention(incoming.replaced_by)

    def _relate(self, key: str, incoming: Incoming) -> None:
        firm: list[Edge] = []
        # Where nothing but ids is told, no end can be anything else.
        certain = incoming.only_ids and "id" in incoming.fields
        for edge in incoming.edges:
            if certain and RELATIONS[edge.relation].target is not None:
                firm.append(edge)
                continue
            outside = RELATIONS[edge.relation].target is None
            if outside and (why := why_not_outside(edge.target)):
                where = self._stage.place(self._source, incoming.line)
                self._warnings.add(where, f"{edge.relation} to {edge.target!r} was left out: it {why}")
                continue
            names = [
                end
                for end in (edge.source, *(() if outside else (edge.target,)))
                if _is_loose(incoming, end) or end == key
            ]
            if "id" in incoming.fields and not any(_is_loose(incoming, name) for name in names):
                firm.append(edge)
                continue
            for name in names:
                self._stage.mention(name)
            self._stage.tell_loosely(edge, self._source, incoming.line, by_hand=incoming.by_hand)
        self._stage.tell(key, firm, incoming.told)


def _doubt_merge(incoming: Incoming) -> None:
    """A record that is merged into nothing, or itself, is only retired."""
    if incoming.state is None or incoming.state != State.MERGED:
        return
    if incoming.replaced_by in (None, incoming.fields.get("id"), incoming.foreign):
        incoming.state, incoming.replaced_by = State.RETIRED, None
        incoming.warnings.append("it is told as merged, but into no other record; it is retired")


def _is_loose(incoming: Incoming, name: str) -> bool:
    """Whether what a record names another by may be no id of ours."""
    return may_be_name(name) and not incoming.only_ids


def _check_key(identifier: str | None, foreign: str, key: str, problems: list[str]) -> None:
    if not key:
        problems.append("it has neither an id nor a name")
    elif identifier is not None:
        if is_too_long(identifier):
            problems.append(f"its id has more than {LONGEST} bytes")
    elif foreign and (why := why_not_outside(foreign)):
        problems.append(f"what the file calls it, {foreign!r}, {why}")


def _warn_of_direction_controls(incoming: Incoming) -> None:
    """Warn of names that people could not have written because of a bidirectional control character."""
    fields = incoming.fields
    names = {
        "name": [fields.get("name", "")],
        "alias": aliases.texts(fields.get("alias", "")),
        "aliases": [alias.text for alias in incoming.aliases or ()],
    }
    for field, values in names.items():
        if char := direction_control("".join(values)):
            record = fields.get("id") or incoming.foreign or ascii(fields["name"])
            incoming.warnings.append(f"{field} of {record} contains the bidirectional control character {char}")


def _json(values: Fields, problems: list[str]) -> bytes:
    try:
        data = orjson.dumps(values)
    except TypeError:
        data = _NUL
    # The one sign is found sooner than all six, and few have it.
    if b"\\" in data and _NUL in data:
        # It may also be the text \\u0000 itself.
        for name, value in values.items():
            char = unstorable("".join(_texts(value)))
            if char:
                problems.append(
                    f"{name} of {values.get('id', 'the record')} holds the character {char}, which cannot be stored"
                )
    return data


def _texts(value: Any) -> Iterator[str]:
    """All text within a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _rest(incoming: Incoming, problems: list[str]) -> bytes:
    """What is told besides fields, as JSON; empty where nothing is."""
    if incoming.aliases is None and incoming.sources is None and incoming.state is None:
        return b""
    told: dict[str, Any] = {}
    if incoming.aliases is not None:
        told["aliases"] = [{"text": alias.text, "lang": alias.lang, "scope": alias.scope} for alias in incoming.aliases]
    if incoming.sources is not None:
        told["sources"] = incoming.sources
    if incoming.state is not None:
        told |= {"state": incoming.state, "replaced_by": incoming.replaced_by}
        told["loosely"] = incoming.replaced_by is not None and _is_loose(incoming, incoming.replaced_by)
    return _json(told, problems)
