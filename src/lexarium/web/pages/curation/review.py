"""Proposals: the review queue for curators, and the list of one's own for everyone."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.edit import to_draft
from lexarium.domain.errors import FieldProblem, InvalidInput, NotFound
from lexarium.domain.proposal import ProposalFilter, ProposalState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import proposals, review
from lexarium.services.curation.review import RETIRE, ProposalReview
from lexarium.services.records.statistics import QUALITY_ISSUES
from lexarium.store.position import Snapshot, read_position
from lexarium.web.pages import form_fields
from lexarium.web.pages.curation import draft_fields
from lexarium.web.pages.curation.record_form import build_form_field, is_changed
from lexarium.web.pages.curation.revert import OWN_PROPOSALS_PATH
from lexarium.web.pages.filters import add_query, field_label
from lexarium.web.pages.form_fields import FORM_ERRORS, NO_VALUES, FormValues, get_text, to_field_errors
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.site import Site
from lexarium.web.request_models import Reject, parse_model

_PATH = "/review"
_DETAIL_PATH = _PATH + "/{id}"
_PAGE_SIZE = 50
_OWN_PAGE_SIZE = 30
# The statistics have the whole list.
_MAX_SAME_NAMES = 60
_KEEP_CURRENT, _TAKE_PROPOSED, _TAKE_EDITED = "ours", "theirs", "mine"


def show_queue(site: Site, request: Request) -> Response:
    """Show open proposals, and records with quality issues."""
    query = request.query_params
    proposal_filter, page_key = _parse_queue_filter(query), form_fields.parse_page_key(query.get("from", ""))
    with site.database.read() as snapshot:
        queued = review.list_queue(snapshot, proposal_filter, page_key, _PAGE_SIZE + 1)
        statistics = site.statistics_cache.get(read_position(snapshot))
        repeated_ids = () if statistics is None else statistics.issues["repeated"].ids[:_MAX_SAME_NAMES]
        last = queued[_PAGE_SIZE - 1].proposal if len(queued) > _PAGE_SIZE else None
        context = {
            "queue": queued[:_PAGE_SIZE],
            "filters": proposal_filter,
            "filter_params": _to_query_params(proposal_filter),
            "total": proposals.count_open(snapshot),
            "is_continued": page_key is not None,
            "next": last and add_query(_PATH, **_to_query_params(proposal_filter), from_=f"{last.made}-{last.id}"),
            "authors": review.list_authors(snapshot, proposal_filter.author),
            "collection_choices": form_fields.COLLECTION_CHOICES,
            "statistics": statistics,
            "quality_issues": QUALITY_ISSUES,
            "flaggable": [name for name, collection in COLLECTIONS.items() if "flag_for_curator" in collection.fields],
            "same_name_groups": review.group_same_names(snapshot, repeated_ids),
            "decided": _find_decided(site, request, snapshot),
        }
    return site.render(request, "review.html", context)


def show_proposal(
    site: Site, request: Request, form_values: FormValues = NO_VALUES, errors: Mapping[str, str] = NO_VALUES
) -> Response:
    """Show a proposal beside the current record, and forms to decide it."""
    with site.database.read() as snapshot:
        proposal_review = _load_review(site, request, snapshot)
        classes, decided = site.list_classes(snapshot), _find_decided(site, request, snapshot)
    is_open = proposal_review.proposal.state == ProposalState.OPEN
    is_undone = proposal_review.version is not None and not proposal_review.can_undo
    context = {
        "review": proposal_review,
        "classes": [(item.id, item.name) for item in classes],
        "decided": decided,
        "similar": review.find_similar_records(site.record_search, proposal_review) if is_open else [],
        "form_values": {**draft_fields.to_form_values(proposal_review.draft), **form_values},
        "form_fields": []
        if proposal_review.kind == RETIRE
        else [build_form_field(proposal_review.collection, name) for name in proposal_review.editable_fields],
        "errors": errors,
        "filter_params": _to_query_params(_parse_queue_filter(request.query_params)),
        "unsaved_input": _list_unsaved_input(proposal_review, form_values) if errors and not is_open else {},
        "undone": bool(request.query_params.get("undone")) and is_undone,
    }
    return site.render(request, "proposal.html", context, 422 if errors else 200)


def _list_unsaved_input(proposal_review: ProposalReview, form_values: FormValues) -> dict[str, str]:
    """Return by label what the user entered for a proposal that was decided meanwhile."""
    proposed_values = draft_fields.to_form_values(proposal_review.draft)
    names = ["reason"] if proposal_review.kind == RETIRE else [*proposal_review.editable_fields, "reason"]
    return {
        field_label(name): get_text(form_values, name)
        for name in names
        if get_text(form_values, name)
        and (
            name not in proposed_values
            or is_changed(build_form_field(proposal_review.collection, name), form_values, proposed_values[name])
        )
    }


def accept(site: Site, request: Request, fields: FormValues) -> Response:
    """Accept a proposal with the curator's edits."""
    caller, proposal_id = site.require_caller(request), request.path_params["id"]
    with site.database.read() as snapshot:
        proposal_review = _load_review(site, request, snapshot)
    try:
        is_new = proposal_review.proposal.base_version is None
        version = None if is_new else form_fields.get_required_version(fields)
        resolved_fields = _resolve_fields(proposal_review, fields)
        site.database.run_write(
            lambda transaction: review.accept_with_edits(transaction, caller, proposal_id, resolved_fields, version)
        )
    except FORM_ERRORS as error:
        return show_proposal(site, request, fields, to_field_errors(error))
    return _redirect_to_next(site, request)


def reject(site: Site, request: Request, fields: FormValues) -> Response:
    """Reject a proposal with a reason."""
    caller, proposal_id = site.require_caller(request), request.path_params["id"]
    try:
        reason = parse_model(Reject, {"reason": get_text(fields, "reason").strip()}, "This is no reason.").reason
        site.database.run_write(lambda transaction: proposals.reject_proposal(transaction, caller, proposal_id, reason))
    except FORM_ERRORS as error:
        return show_proposal(site, request, fields, to_field_errors(error))
    return _redirect_to_next(site, request)


def _redirect_to_next(site: Site, request: Request) -> Response:
    """Redirect to the next proposal of the queue, which shows the decision."""
    proposal_id, proposal_filter = request.path_params["id"], _parse_queue_filter(request.query_params)
    with site.database.read() as snapshot:
        decided = proposals.get_visible_proposal(snapshot, site.require_caller(request), proposal_id)
        next_proposal = review.find_next(snapshot, proposal_filter, decided)
    path = _PATH if next_proposal is None else f"{_PATH}/{next_proposal.id}"
    return RedirectResponse(add_query(path, **_to_query_params(proposal_filter), decided=proposal_id), 303)


def undo(site: Site, request: Request, fields: FormValues) -> Response:
    """Undo the acceptance of a proposal."""
    caller, proposal_id = site.require_caller(request), request.path_params["id"]
    try:
        site.database.run_write(lambda transaction: review.undo_acceptance(transaction, caller, proposal_id))
    except FORM_ERRORS as error:
        return show_proposal(site, request, errors=to_field_errors(error))
    return RedirectResponse(add_query(f"{_PATH}/{proposal_id}", undone="1"), 303)


def _resolve_fields(proposal_review: ProposalReview, fields: FormValues) -> dict[str, Any]:
    """Return the fields as the curator decided; raise InvalidInput for unresolved conflicts."""
    if proposal_review.kind == RETIRE:
        return {"replaced_by": draft_fields.parse_field(fields, "replaced_by")}
    proposed_values = draft_fields.to_form_values(proposal_review.draft)
    current_draft = {} if proposal_review.current is None else to_draft(proposal_review.current.record)
    resolved: dict[str, Any] = {}
    unresolved: list[FieldProblem] = []
    for name in proposal_review.editable_fields:
        form_field = build_form_field(proposal_review.collection, name)
        choice = get_text(fields, f"choice-{name}") if name in proposal_review.conflicting_fields else None
        if choice == _KEEP_CURRENT:
            resolved[name] = current_draft[name]
        elif choice == _TAKE_PROPOSED:
            resolved[name] = proposal_review.draft[name]
        elif choice == _TAKE_EDITED or (choice is None and is_changed(form_field, fields, proposed_values[name])):
            resolved[name] = draft_fields.parse_field(fields, name)
        elif choice is not None:
            unresolved.append(FieldProblem(f"choice-{name}", "choose what it shall be."))
    if unresolved:
        raise InvalidInput("Others have changed the same since.", unresolved)
    return resolved


def _load_review(site: Site, request: Request, snapshot: Snapshot, proposal_id: str = "") -> ProposalReview:
    proposal = proposals.get_visible_proposal(
        snapshot, site.require_caller(request), proposal_id or request.path_params["id"]
    )
    return review.load_review(snapshot, proposal)


def _find_decided(site: Site, request: Request, snapshot: Snapshot) -> ProposalReview | None:
    """Return the proposal that was decided just now, if the query names one."""
    try:
        proposal_id = request.query_params.get("decided", "")
        decided = _load_review(site, request, snapshot, proposal_id) if proposal_id else None
    except NotFound:
        return None
    return None if decided is None or decided.proposal.state == ProposalState.OPEN else decided


def _parse_queue_filter(query: Mapping[str, str]) -> ProposalFilter:
    collection, author = query.get("collection"), query.get("author")
    return ProposalFilter(
        collection if collection in COLLECTIONS else None,
        author if author and not find_unstorable_char(author) else None,
        query.get("order") == "newest",
    )


def _to_query_params(proposal_filter: ProposalFilter) -> dict[str, object]:
    return {
        "collection": proposal_filter.collection,
        "author": proposal_filter.author,
        "order": "newest" if proposal_filter.newest_first else None,
    }


def list_own(site: Site, request: Request) -> Response:
    """Show a page of the user's own proposals, newest first."""
    params = request.query_params
    page_key = form_fields.parse_page_key(params.get("before", ""))
    with site.database.read() as snapshot:
        own = proposals.list_own(snapshot, site.require_caller(request), page_key, _OWN_PAGE_SIZE + 1)
        reviews = [review.load_review(snapshot, proposal) for proposal in own[:_OWN_PAGE_SIZE]]
    last = own[_OWN_PAGE_SIZE - 1] if len(own) > _OWN_PAGE_SIZE else None
    next_url = last and add_query(OWN_PROPOSALS_PATH, before=f"{last.made}-{last.id}")
    return site.render(request, "proposals.html", {"reviews": reviews, "did": params.get("did"), "next": next_url})


def withdraw(site: Site, request: Request, fields: FormValues) -> Response:
    """Withdraw one of the user's own proposals."""
    caller, proposal_id = site.require_caller(request), request.path_params["id"]
    site.database.run_write(lambda transaction: proposals.withdraw_proposal(transaction, caller, proposal_id))
    return RedirectResponse(add_query(OWN_PROPOSALS_PATH, did=proposal_id), 303)


ROUTES = (
    PageRoute(_PATH, show_queue, Permission.PUBLISH),
    PageRoute(_DETAIL_PATH, show_proposal, Permission.PUBLISH),
    FormRoute(f"{_DETAIL_PATH}/accept", accept, Permission.PUBLISH),
    FormRoute(f"{_DETAIL_PATH}/reject", reject, Permission.PUBLISH),
    FormRoute(f"{_DETAIL_PATH}/undo", undo, Permission.PUBLISH),
    PageRoute(OWN_PROPOSALS_PATH, list_own, Permission.PROPOSE),
    FormRoute(f"{OWN_PROPOSALS_PATH}/{{id}}/withdraw", withdraw, Permission.PROPOSE),
)
