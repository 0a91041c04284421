"""Taking a record out of use, after a look at what uses it."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.errors import Conflict, Invalid, QuotaExceeded, Stale
from lexarium.domain.proposals import Proposal
from lexarium.domain.text import unstorable
from lexarium.service import curating
from lexarium.service.access import Deed
from lexarium.service.desk import current, found, refuse_gone, still_named
from lexarium.store import edges, records
from lexarium.store.backend import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.pages import meanwhile, reverting
from lexarium.web.pages.fields import Typed, mistakes_of, required_version, text, whole_number
from lexarium.web.pages.picking import Choice, choices, chosen
from lexarium.web.pages.proposed import proposed_page
from lexarium.web.pages.session import known
from lexarium.web.pages.site import Form, Page, Site

_PATH = "/retire/{id}"
_MOST_NAMED = 30
"""How many records that are related to one are named."""


def ask(site: Site, request: Request) -> Response:
    """Whether it shall be, and what stands in for it."""
    return _page(site, request, {}, {})


def retire(site: Site, request: Request, fields: Typed) -> Response:
    """Retire it, or propose that; or the page again, with what may stand in for it or what is wrong."""
    caller, identifier = known(site, request), request.path_params["id"]
    if text(fields, "act") != "retire":
        return _page(site, request, fields, {})
    version, instead = required_version(fields), text(fields, "replaced_by") or None

    def work(transaction: Transaction) -> Response:
        kind = found(transaction.connection, identifier).whole.collection
        before = current(transaction.connection, kind, identifier, version)
        made = curating.retire(transaction, caller, before, instead)
        if isinstance(made, Proposal):
            return RedirectResponse(proposed_page(made), 303)
        return reverting.told(before, made)

    try:
        return site.database.run(work)
    except Stale:
        return _page(site, request, fields, {"": meanwhile.CHANGED})
    except (Invalid, Conflict, QuotaExceeded) as error:
        return _page(site, request, fields, mistakes_of(error))


def _page(site: Site, request: Request, typed: Typed, wrong: Mapping[str, str]) -> Response:
    identifier, instead = request.path_params["id"], text(typed, "replaced_by")
    with site.database.read() as snapshot:
        there = found(snapshot, identifier)
        refuse_gone(there.whole)
        before = [] if unstorable(instead) else chosen(snapshot, [instead])
        told = {
            "whole": there.whole,
            "version": there.version,
            "since": meanwhile.since(snapshot, there, whole_number(typed, "version")),
            "uses": list(still_named(snapshot, there.whole)),
            "related": _related(snapshot, identifier),
            "most": _MOST_NAMED,
        }
    found_now = choices(site, text(typed, "q"), there.whole.collection.name, identifier)
    told |= {
        "choices": [*before, *(each for each in found_now if each.id != instead)],
        "looked": bool(text(typed, "q").strip()),
        "typed": {"q": text(typed, "q"), "replaced_by": instead},
        "wrong": wrong,
        "labels": {"replaced_by": "In its place"},
    }
    return site.render(request, "retire.html", told, 422 if wrong else 200)


def _related(snapshot: Snapshot, identifier: str) -> list[Choice]:
    """The first of the records that go on naming one, one more than are shown."""
    ids = edges.first_sources(snapshot, identifier, _MOST_NAMED + 1)
    named = records.named(snapshot, ids)
    return [Choice(each, named[each][1], named[each][0]) for each in ids]


PAGES = (Page(_PATH, ask, Deed.PROPOSE), Form(_PATH, retire, Deed.PROPOSE))
