"""What someone has proposed, what became of it, and the way to take it back."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.proposal import Proposal
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import proposals, review
from lexarium.web.pages.filters import add_query
from lexarium.web.pages.form_fields import FormValues, parse_page_key
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.session import require_caller
from lexarium.web.pages.site import Site

_PATH = "/proposals"
_PAGE_SIZE = 30


def build_proposal_url(proposal: Proposal) -> str:
    """Where someone is told of what they have just proposed."""
    return add_query(_PATH, did=proposal.id)


def list_own(site: Site, request: Request) -> Response:
    """All that someone has proposed, the newest first."""
    caller, params = require_caller(site, request), request.query_params
    with site.database.read() as snapshot:
        own_proposals = proposals.list_own(snapshot, caller, parse_page_key(params.get("before", "")), _PAGE_SIZE + 1)
        reviews = [review.load_review(snapshot, proposal) for proposal in own_proposals[:_PAGE_SIZE]]
    last = own_proposals[_PAGE_SIZE - 1] if len(own_proposals) > _PAGE_SIZE else None
    context = {
        "cases": reviews,
        "did": params.get("did"),
        "next": last and add_query(_PATH, before=f"{last.made}-{last.id}"),
    }
    return site.render(request, "proposals.html", context)


def withdraw(site: Site, request: Request, fields: FormValues) -> Response:
    """Take a proposal of one's own back."""
    caller, proposal_id = require_caller(site, request), request.path_params["id"]
    site.database.run_write(lambda transaction: proposals.withdraw_proposal(transaction, caller, proposal_id))
    return RedirectResponse(add_query(_PATH, did=proposal_id), 303)


ROUTES = (
    PageRoute(_PATH, list_own, Permission.PROPOSE),
    FormRoute(_PATH + "/{id}/withdraw", withdraw, Permission.PROPOSE),
)
