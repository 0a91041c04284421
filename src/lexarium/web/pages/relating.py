"""The relations of a record: taken away, added, and mapped to other vocabularies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.errors import Invalid, LexariumError, NotFound, QuotaExceeded, Stale
from lexarium.domain.proposals import Proposal
from lexarium.domain.relations import RELATIONS, Edge, Relation
from lexarium.domain.text import unstorable
from lexarium.service import curating
from lexarium.service.access import Deed
from lexarium.service.desk import found, refuse_gone, refuse_stale
from lexarium.store import records
from lexarium.store.backend import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.pages import meanwhile, reverting
from lexarium.web.pages.fields import Typed, mistakes_of, required_version, text, whole_number
from lexarium.web.pages.picking import Choice, choices, chosen
from lexarium.web.pages.proposed import proposed_page
from lexarium.web.pages.session import known
from lexarium.web.pages.site import Form, Page, Site

_PATH = "/edit/{id}/relations"
_ADD, _MAP = "add", "map"
_PLACES = {_ADD: "target", _MAP: "outside"}
"""Where what is wrong with a relation is told, by what was tried."""


@dataclass(frozen=True)
class Related:
    """A relation of a record, with the name of what it leads to."""

    edge: Edge
    relation: Relation
    name: str | None
    """None where that is not in the catalogue."""


def show(site: Site, request: Request) -> Response:
    """What there is, and a form for more."""
    return _page(site, request, {}, {})


def change(site: Site, request: Request, fields: Typed) -> Response:
    """Add one, take one away, or look for what it shall lead to."""
    caller, identifier, act = known(site, request), request.path_params["id"], text(fields, "act")
    if act not in (*_PLACES, "remove"):
        return _page(site, request, fields, {})
    version = required_version(fields)
    name = text(fields, "mapping" if act == _MAP else "relation")
    target = text(fields, _PLACES.get(act, "target")).strip()
    if act in _PLACES and not target:
        return _page(site, request, fields, {_PLACES[act]: _MISSING[act]})
    do = curating.unrelate if act == "remove" else curating.relate

    def work(transaction: Transaction) -> Response:
        before = found(transaction.connection, identifier)
        refuse_gone(before.whole)
        refuse_stale(before.change, version)
        made = do(transaction, caller, before, name, target)
        if isinstance(made, Proposal):
            return RedirectResponse(proposed_page(made), 303)
        return reverting.told(before, made, request.url.path)

    try:
        return site.database.run(work)
    except Stale:
        return _page(site, request, fields, {"": meanwhile.CHANGED})
    except (Invalid, QuotaExceeded) as error:
        return _page(site, request, fields, _wrong(error, _PLACES.get(act, "")))
    except NotFound as error:
        if act != "remove":
            raise
        return _page(site, request, {}, mistakes_of(error))


_MISSING = {
    _ADD: "Look for a record, and choose one of those that are found.",
    _MAP: "Tell what it is called elsewhere.",
}


def _wrong(error: LexariumError, place: str) -> dict[str, str]:
    """What is wrong, all of it told beside the one field that was filled in."""
    return {place: " ".join(mistakes_of(error).values())}


def _page(site: Site, request: Request, typed: Typed, wrong: Mapping[str, str]) -> Response:
    caller, identifier = known(site, request), request.path_params["id"]
    with site.database.read() as snapshot:
        there = found(snapshot, identifier)
        refuse_gone(there.whole)
        kind = there.whole.collection
        inner = {name: each for name, each in kind.relations.items() if each.target is not None}
        relation = inner.get(text(typed, "relation")) or next(iter(inner.values()), None)
        told: dict[str, Any] = {
            "whole": there.whole,
            "version": there.version,
            "since": meanwhile.since(snapshot, there, whole_number(typed, "version")),
            "related": _related(snapshot, there.whole.edges),
            "inner": inner,
            "outer": [(name, each.label) for name, each in kind.relations.items() if each.target is None],
            "relation": relation,
            "choices": _choices(site, snapshot, typed, relation, identifier),
            "looked": bool(text(typed, "q").strip()),
            "typed": {name: text(typed, name) for name in ("q", "target", "mapping", "outside")},
            "wrong": wrong,
            "labels": {"target": "Record", "outside": "Identifier"},
            "done": reverting.done(request, snapshot, there.change, caller),
        }
    return site.render(request, "relations.html", told, 422 if wrong else 200)


def _related(snapshot: Snapshot, edges: frozenset[Edge]) -> list[Related]:
    names = records.names(snapshot, [edge.target for edge in edges])
    several = [Related(edge, RELATIONS[edge.relation], names.get(edge.target)) for edge in edges]
    return sorted(several, key=lambda each: (each.relation.label, (each.name or each.edge.target).casefold()))


def _choices(site: Site, snapshot: Snapshot, typed: Typed, relation: Relation | None, identifier: str) -> list[Choice]:
    """What was chosen before, then what is found."""
    if relation is None or relation.target is None:
        return []
    target = text(typed, "target")
    before = [] if unstorable(target) else chosen(snapshot, [target])
    found_now = choices(site, text(typed, "q"), relation.target, identifier)
    return [*before, *(each for each in found_now if each.id != target)]


PAGES = (Page(_PATH, show, Deed.PROPOSE), Form(_PATH, change, Deed.PROPOSE))
