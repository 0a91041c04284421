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

_READING = (home, results, term, browse, annotation, statistics, changes, guide)
_DESK = (signing, writing, relating, retiring, merging, reverting, proposed, review, importing)
_OFFICE = (admin, people, tokens, webhooks)
PAGES = [page for module in (*_READING, *_DESK, *_OFFICE) for page in module.PAGES]
"""Every page, and every form that is sent."""


def routes(site: Site) -> list[BaseRoute]:
    """The addresses of pages and of what they load."""
    return [*(page.route(site) for page in PAGES), static_files()]
