"""What someone has proposed, what became of it, and the way to take it back."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.proposals import Proposal
from lexarium.service import proposals, reviewing
from lexarium.service.access import Deed
from lexarium.web.pages.fields import Typed, place
from lexarium.web.pages.session import known
from lexarium.web.pages.site import Form, Page, Site
from lexarium.web.pages.wording import with_query

_OWN = "/proposals"
_SHOWN = 30


def proposed_page(proposal: Proposal) -> str:
    """Where someone is told of what they have just proposed."""
    return with_query(_OWN, did=proposal.id)


def own(site: Site, request: Request) -> Response:
    """All that someone has proposed, the newest first."""
    caller, given = known(site, request), request.query_params
    with site.database.read() as snapshot:
        several = proposals.own(snapshot, caller, place(given.get("before", "")), _SHOWN + 1)
        cases = [reviewing.case(snapshot, each) for each in several[:_SHOWN]]
    last = several[_SHOWN - 1] if len(several) > _SHOWN else None
    told = {
        "cases": cases,
        "did": given.get("did"),
        "next": last and with_query(_OWN, before=f"{last.made}-{last.id}"),
    }
    return site.render(request, "proposals.html", told)


def withdraw(site: Site, request: Request, fields: Typed) -> Response:
    """Take a proposal of one's own back."""
    caller, identifier = known(site, request), request.path_params["id"]
    site.database.run(lambda transaction: proposals.withdraw(transaction, caller, identifier))
    return RedirectResponse(with_query(_OWN, did=identifier), 303)


PAGES = (Page(_OWN, own, Deed.PROPOSE), Form(_OWN + "/{id}/withdraw", withdraw, Deed.PROPOSE))
