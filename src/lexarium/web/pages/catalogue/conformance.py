"""Page with what does not conform in a vocabulary."""

from starlette.responses import Response

from lexarium.services.access.permissions import Permission
from lexarium.services.vocabularies.access import get_read_scope
from lexarium.services.vocabularies.conformance import check_conformance
from lexarium.web.pages.page import Page, PageRoute


def show_conformance(page: Page) -> Response:
    """Show what does not conform in a vocabulary, to those who may propose changes."""
    caller = page.caller
    [vocabulary] = get_read_scope(caller, [page.request.path_params["vocabulary"]]).vocabularies
    caller.require(Permission.PROPOSE, vocabulary.slug)
    with page.read() as snapshot:
        report = check_conformance(snapshot, vocabulary, get_read_scope(caller).slugs)
    return page.render("conformance.html", {"checked": vocabulary, "report": report})


ROUTES = (PageRoute("/vocabularies/{vocabulary}/conformance", show_conformance, Permission.PROPOSE),)
