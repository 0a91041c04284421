"""Merging a record into another, after a look at what that makes of the survivor."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.errors import Conflict, Invalid, NotFound, Stale
from lexarium.service import dossiers, merging
from lexarium.service.access import Deed
from lexarium.service.desk import Desk, current, found, refuse_gone
from lexarium.store.transaction import Transaction
from lexarium.web.pages import meanwhile
from lexarium.web.pages.fields import Typed, mistakes_of, required_version, text, whole_number
from lexarium.web.pages.picking import choices
from lexarium.web.pages.session import known
from lexarium.web.pages.site import Form, Page, Site
from lexarium.web.pages.wording import path_of, with_query

_PATH = "/merge/{id}"


def ask(site: Site, request: Request) -> Response:
    """Into which one, and what that would do."""
    return _page(site, request, request.query_params, {})


def merge(site: Site, request: Request, fields: Typed) -> Response:
    """Merge it, and go to the survivor."""
    caller, identifier = known(site, request), request.path_params["id"]
    into, version = text(fields, "into"), required_version(fields)
    survivor_version = required_version(fields, "survivor") if into not in ("", identifier) else None

    def work(transaction: Transaction) -> Response:
        desk = Desk(transaction, caller)
        kind = desk.any(identifier).whole.collection
        gone = desk.current(kind, identifier, version)
        if into != identifier:
            desk.current(kind, into, survivor_version)
        survivor = desk.merge(gone, into)
        return RedirectResponse(with_query(path_of(survivor.whole.id), merged=identifier), 303)

    try:
        return site.database.run(work)
    except Stale:
        return _page(site, request, fields, {"": meanwhile.CHANGED})
    except (Invalid, Conflict, NotFound) as error:
        return _page(site, request, fields, mistakes_of(error, "into"))


def _page(site: Site, request: Request, typed: Typed, wrong: Mapping[str, str]) -> Response:
    identifier, into, words = request.path_params["id"], text(typed, "into"), request.query_params.get("q", "")
    with site.database.read() as snapshot:
        gone = found(snapshot, identifier)
        refuse_gone(gone.whole)
        told: dict[str, Any] = {"whole": gone.whole, "version": gone.version, "into": None, "wrong": wrong}
        told["since"] = meanwhile.since(snapshot, gone, whole_number(typed, "version"))
        if into == identifier:
            told["wrong"] = wrong = {"into": "A record cannot be merged into itself."}
        elif into and "into" not in wrong:
            try:
                kept = current(snapshot, gone.whole.collection, into)
                forecast = merging.forecast(snapshot, gone.whole, kept.whole)
            except NotFound as error:
                told["wrong"] = wrong = {"into": str(error)}
            else:
                gains = dossiers.alterations(snapshot, forecast.gains)
                told |= {"into": kept.whole, "survivor_version": kept.version, "forecast": forecast, "gains": gains}
                told["since"] = [*told["since"], *meanwhile.since(snapshot, kept, whole_number(typed, "survivor"))]
    told |= {
        "q": words,
        "looked": bool(words.strip()),
        "choices": choices(site, words, gone.whole.collection.name, identifier),
    }
    return site.render(request, "merge.html", told, 422 if wrong else 200)


PAGES = (Page(_PATH, ask, Deed.PUBLISH), Form(_PATH, merge, Deed.PUBLISH))
