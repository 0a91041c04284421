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
from lexarium.web.pages import drafts
from lexarium.web.pages.fields import Typed, mistakes_of, text, whole_number
from lexarium.web.pages.picking import choices
from lexarium.web.pages.session import known
from lexarium.web.pages.site import Form, Page, Site
from lexarium.web.pages.wording import path_of, with_query

_PATH = "/merge/{id}"


def ask(site: Site, request: Request) -> Response:
    """Into which one, and what that would do."""
    return _page(site, request, request.query_params.get("into", ""), {})


def merge(site: Site, request: Request, fields: Typed) -> Response:
    """Merge it, and go to the survivor."""
    caller, identifier = known(site, request), request.path_params["id"]
    into, version = text(fields, "into"), whole_number(fields, "version")

    def work(transaction: Transaction) -> Response:
        desk = Desk(transaction, caller)
        gone = desk.current(desk.any(identifier).whole.collection, identifier, version)
        survivor = desk.merge(gone, into)
        return RedirectResponse(with_query(path_of(survivor.whole.id), merged=identifier), 303)

    try:
        return site.database.run(work)
    except (Invalid, Conflict, NotFound) as error:
        return _page(site, request, into, mistakes_of(error, "" if isinstance(error, Stale) else "into"))


def _page(site: Site, request: Request, into: str, wrong: Mapping[str, str]) -> Response:
    identifier, words = request.path_params["id"], request.query_params.get("q", "")
    with site.database.read() as snapshot:
        gone = found(snapshot, identifier)
        refuse_gone(gone.whole)
        told: dict[str, Any] = {"whole": gone.whole, "version": gone.version, "into": None, "wrong": wrong}
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
                told |= {"into": kept.whole, "forecast": forecast, "gains": gains}
    told |= {
        "q": words,
        "looked": bool(words.strip()),
        "choices": choices(site, words, gone.whole.collection.name, identifier),
        "fields": drafts.LABELS,
    }
    return site.render(request, "merge.html", told, 422 if wrong else 200)


PAGES = (Page(_PATH, ask, Deed.PUBLISH), Form(_PATH, merge, Deed.PUBLISH))
