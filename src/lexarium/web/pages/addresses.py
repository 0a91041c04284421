"""Every page and its address, handed to one constructor."""

from starlette.routing import BaseRoute

from lexarium.web.pages import (
    admin,
    annotation,
    browse,
    changes,
    guide,
    home,
    importing,
    merging,
    people,
    proposed,
    relating,
    results,
    retiring,
    reverting,
    review,
    signing,
    statistics,
    term,
    tokens,
    webhooks,
    writing,
)
from lexarium.web.pages.site import Site, static_files

_MODULES = (home, results, term, browse, annotation, statistics, changes, guide, signing, review, importing)
_DESK = (writing, relating, retiring, merging, reverting, proposed)
_OFFICE = (admin, people, tokens, webhooks)


def routes(site: Site) -> list[BaseRoute]:
    """The addresses of pages and of what they load."""
    return [*(page.route(site) for module in (*_MODULES, *_DESK, *_OFFICE) for page in module.PAGES), static_files()]
