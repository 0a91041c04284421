"""Build the routes of all pages and static files."""

from starlette.routing import BaseRoute

from lexarium.web.http.static_files import build_static_route
from lexarium.web.pages import sign_in
from lexarium.web.pages.administration import accounts, overview, tokens, vocabularies, webhooks
from lexarium.web.pages.catalogue import (
    annotate,
    browse,
    conformance,
    discovery,
    home,
    recent_changes,
    record,
    releases,
    search_results,
    statistics,
)
from lexarium.web.pages.curation import (
    comments,
    edit_relations,
    import_files,
    merge,
    notifications,
    record_form,
    retire,
    revert,
    review,
)
from lexarium.web.site import Site

_CATALOGUE = (
    home,
    releases,
    search_results,
    record,
    browse,
    annotate,
    statistics,
    recent_changes,
    conformance,
    discovery,
)
_CURATION = (sign_in, record_form, edit_relations, retire, merge, revert, review, import_files, comments, notifications)
_ADMINISTRATION = (overview, vocabularies, accounts, tokens, webhooks)
PAGE_ROUTES = [route for module in (*_CATALOGUE, *_CURATION, *_ADMINISTRATION) for route in module.ROUTES]


def build_routes(site: Site) -> list[BaseRoute]:
    """Return the Starlette routes of pages, forms and static files."""
    return [*(route.to_route(site) for route in PAGE_ROUTES), build_static_route()]
