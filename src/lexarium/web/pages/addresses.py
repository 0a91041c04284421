"""Every page and its address, handed to one constructor."""

from starlette.routing import BaseRoute

from lexarium.web.pages import (
    annotation,
    browse,
    changes,
    guide,
    home,
    merging,
    proposed,
    relating,
    results,
    retiring,
    reverting,
    signing,
    statistics,
    term,
    writing,
)
from lexarium.web.pages.site import Site, static_files

_READING = (home, results, term, browse, annotation, statistics, changes, guide)
_CURATING = (writing, relating, retiring, merging, reverting, proposed)
_MODULES = (*_READING, signing, *_CURATING)


def routes(site: Site) -> list[BaseRoute]:
    """The addresses of pages and of what they load."""
    return [*(page.route(site) for module in _MODULES for page in module.PAGES), static_files()]
