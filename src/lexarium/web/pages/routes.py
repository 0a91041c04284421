"""Every page and its address, handed to one constructor."""

from starlette.routing import BaseRoute

from lexarium.web.http.static_files import build_static_route
from lexarium.web.pages import sign_in
from lexarium.web.pages.administration import accounts, overview, tokens, webhooks
from lexarium.web.pages.catalogue import (
    annotate,
    browse,
    guide,
    home,
    recent_changes,
    record,
    search_results,
    statistics,
)
from lexarium.web.pages.curation import (
    edit_relations,
    import_files,
    merge,
    my_proposals,
    record_form,
    retire,
    revert,
    review,
)
from lexarium.web.pages.site import Site

_CATALOGUE = (home, search_results, record, browse, annotate, statistics, recent_changes, guide)
_CURATION = (sign_in, record_form, edit_relations, retire, merge, revert, my_proposals, review, import_files)
_ADMINISTRATION = (overview, accounts, tokens, webhooks)
PAGE_ROUTES = [route for module in (*_CATALOGUE, *_CURATION, *_ADMINISTRATION) for route in module.ROUTES]
"""Every page, and every form that is sent."""


def build_routes(site: Site) -> list[BaseRoute]:
    """The addresses of pages and of what they load."""
    return [*(route.to_route(site) for route in PAGE_ROUTES), build_static_route()]
