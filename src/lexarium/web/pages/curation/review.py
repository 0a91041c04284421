"""Reviewing: the queue of proposals, one of them to be decided, and what else wants a curator's look."""

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
from lexarium.services.curation.proposals import count_open
from lexarium.services.curation.review import RETIRE, ProposalReview
from lexarium.services.records.statistics import QUALITY_ISSUES
from lexarium.store.position import Snapshot, read_position
from lexarium.web.pages.curation import draft_fields
from lexarium.web.pages.curation.record_form import build_form_field, is_changed
from lexarium.web.pages.filters import add_query, field_label
from lexarium.web.pages.form_fields import (
    COLLECTION_CHOICES,
    FORM_ERRORS,
    FormValues,
    get_required_version,
    get_text,
    parse_page_key,
    to_field_errors,
)
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.session import require_caller
from lexarium.web.pages.site import Site
from lexarium.web.request_models import Reject, parse_model

_PATH = "/review"
_PAGE_SIZE = 50
_MAX_SAME_NAMES = 60
"""How many records that share a name with another are shown here; the whole list is among the statistics."""
_KEEP_CURRENT, _TAKE_PROPOSED, _TAKE_EDITED = "ours", "theirs", "mine"


def show_queue(site: Site, request: Request) -> Response:
    """What waits to be decided, and records that are worth a look."""
    query = request.query_params
    proposal_filter, page_key = _parse_queue_filter(query), parse_page_key(query.get("from", ""))
    with site.database.read() as snapshot:
        queued = review.list_queue(snapshot, proposal_filter, page_key, _PAGE_SIZE + 1)
        statistics = site.statistics_cache.get(read_position(snapshot))
        repeated_ids = () if statistics is None else statistics.issues["repeated"].ids[:_MAX_SAME_NAMES]
        last = queued[_PAGE_SIZE - 1].proposal if len(queued) > _PAGE_SIZE else None
        context = {
            "queue": queued[:_PAGE_SIZE],
            "wanted": proposal_filter,
            "kept": _to_query_params(proposal_filter),
            "total": count_open(snapshot),
            "begun": page_key is not None,
            "next": last and add_query(_PATH, **_to_query_params(proposal_filter), from_=f"{last.made}-{last.id}"),
            "authors": review.list_authors(snapshot, proposal_filter.author),
            "kinds": COLLECTION_CHOICES,
            "figures": statistics,
            "gaps": QUALITY_ISSUES,
            "flaggable": [name for name, collection in COLLECTIONS.items() if "flag_for_curator" in collection.fields],
            "namesakes": review.group_same_names(snapshot, repeated_ids),
            "decided": _find_decided(site, request, snapshot),
            "wrong": {},
        }
    return site.render(request, "review.html", context)


def show_proposal(site: Site, request: Request) -> Response:
    """What is proposed, beside what is there."""
    return _render_detail(site, request, {}, {})


def _render_detail(site: Site, request: Request, form_values: FormValues, errors: Mapping[str, str]) -> Response:
    caller, query = require_caller(site, request), request.query_params
    with site.database.read() as snapshot:
        proposal_review = review.load_review(
            snapshot, proposals.get_visible_proposal(snapshot, caller, request.path_params["id"])
        )
        context = {
            "case": proposal_review,
            "classes": sorted(
                ((item.id, item.name) for item in site.class_cache.get(snapshot).values()), key=lambda item: item[1]
            ),
            "decided": _find_decided(site, request, snapshot),
        }
    proposal_filter = _parse_queue_filter(query)
    context |= {
        "similar": review.find_similar_records(site.record_search, proposal_review)
        if proposal_review.proposal.state == ProposalState.OPEN
        else [],
        "typed": {**draft_fields.to_form_values(proposal_review.draft), **form_values},
        "entries": []
        if proposal_review.kind == RETIRE
        else [build_form_field(proposal_review.collection, name) for name in proposal_review.editable_fields],
        "wrong": errors,
        "kept": _to_query_params(proposal_filter),
        "written": _list_unsaved_input(proposal_review, form_values)
        if errors and proposal_review.proposal.state != ProposalState.OPEN
        else {},
        "undone": bool(query.get("undone")) and proposal_review.version is not None and not proposal_review.can_undo,
    }
    return site.render(request, "proposal.html", context, 422 if errors else 200)


def _list_unsaved_input(proposal_review: ProposalReview, form_values: FormValues) -> dict[str, str]:
    """What someone wrote who came too late, by what it is called."""
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
    """Make it so, as it stands in the form."""
    caller, proposal_id = require_caller(site, request), request.path_params["id"]
    with site.database.read() as snapshot:
        proposal_review = review.load_review(snapshot, proposals.get_visible_proposal(snapshot, caller, proposal_id))
    try:
        version = None if proposal_review.proposal.base_version is None else get_required_version(fields)
        resolved_fields = _resolve_fields(proposal_review, fields)
        site.database.run_write(
            lambda transaction: review.accept_with_edits(transaction, caller, proposal_id, resolved_fields, version)
        )
    except FORM_ERRORS as error:
        return _render_detail(site, request, fields, to_field_errors(error))
    return _redirect_to_next(site, request)


def reject(site: Site, request: Request, fields: FormValues) -> Response:
    """Turn it down, with a reason."""
    caller, proposal_id = require_caller(site, request), request.path_params["id"]
    try:
        reason = parse_model(Reject, {"reason": get_text(fields, "reason").strip()}, "This is no reason.").reason
        site.database.run_write(lambda transaction: proposals.reject_proposal(transaction, caller, proposal_id, reason))
    except FORM_ERRORS as error:
        return _render_detail(site, request, fields, to_field_errors(error))
    return _redirect_to_next(site, request)


def _redirect_to_next(site: Site, request: Request) -> Response:
    """To the next of the queue, which tells what was decided."""
    proposal_id, proposal_filter = request.path_params["id"], _parse_queue_filter(request.query_params)
    with site.database.read() as snapshot:
        decided = proposals.get_visible_proposal(snapshot, require_caller(site, request), proposal_id)
        next_proposal = review.find_next(snapshot, proposal_filter, decided)
    path = _PATH if next_proposal is None else f"{_PATH}/{next_proposal.id}"
    return RedirectResponse(add_query(path, **_to_query_params(proposal_filter), decided=proposal_id), 303)


def undo(site: Site, request: Request, fields: FormValues) -> Response:
    """Take back what was published by accepting it."""
    caller, proposal_id = require_caller(site, request), request.path_params["id"]
    try:
        site.database.run_write(lambda transaction: review.undo_acceptance(transaction, caller, proposal_id))
    except FORM_ERRORS as error:
        return _render_detail(site, request, {}, to_field_errors(error))
    return RedirectResponse(add_query(f"{_PATH}/{proposal_id}", undone="1"), 303)


def _resolve_fields(proposal_review: ProposalReview, fields: FormValues) -> dict[str, Any]:
    """What the fields of a proposal shall be. Raises `Invalid` for each conflict that is not settled."""
    if proposal_review.kind == RETIRE:
        return {"replaced_by": draft_fields.parse_field(fields, "replaced_by")}
    proposed_values = draft_fields.to_form_values(proposal_review.draft)
    current_draft = {} if proposal_review.current is None else to_draft(proposal_review.current.record)
    resolved: dict[str, Any] = {}
    unresolved: list[FieldProblem] = []
    for name in proposal_review.editable_fields:
        choice = get_text(fields, f"choice-{name}") if name in proposal_review.conflicting_fields else ""
        if name in proposal_review.conflicting_fields and choice not in (_KEEP_CURRENT, _TAKE_PROPOSED, _TAKE_EDITED):
            unresolved.append(FieldProblem(f"choice-{name}", "choose what it shall be."))
        elif choice in (_KEEP_CURRENT, _TAKE_PROPOSED):
            resolved[name] = current_draft[name] if choice == _KEEP_CURRENT else proposal_review.draft[name]
        elif choice == _TAKE_EDITED or is_changed(
            build_form_field(proposal_review.collection, name), fields, proposed_values[name]
        ):
            resolved[name] = draft_fields.parse_field(fields, name)
    if unresolved:
        raise InvalidInput("Others have changed the same since.", unresolved)
    return resolved


def _find_decided(site: Site, request: Request, snapshot: Snapshot) -> ProposalReview | None:
    """The proposal that was decided just now, as the address tells."""
    proposal_id = request.query_params.get("decided")
    if not proposal_id:
        return None
    try:
        proposal = proposals.get_visible_proposal(snapshot, require_caller(site, request), proposal_id)
    except NotFound:
        return None
    return None if proposal.state == ProposalState.OPEN else review.load_review(snapshot, proposal)


def _parse_queue_filter(query: Mapping[str, str]) -> ProposalFilter:
    collection, author = query.get("collection"), query.get("author")
    return ProposalFilter(
        collection if collection in COLLECTIONS else None,
        author if author and not find_unstorable_char(author) else None,
        query.get("order") == "newest",
    )


def _to_query_params(proposal_filter: ProposalFilter) -> dict[str, object]:
    """The queue, as parameters of an address."""
    return {
        "collection": proposal_filter.collection,
        "author": proposal_filter.author,
        "order": "newest" if proposal_filter.newest_first else None,
    }


_DETAIL_PATH = _PATH + "/{id}"
ROUTES = (
    PageRoute(_PATH, show_queue, Permission.PUBLISH),
    PageRoute(_DETAIL_PATH, show_proposal, Permission.PUBLISH),
    FormRoute(f"{_DETAIL_PATH}/accept", accept, Permission.PUBLISH),
    FormRoute(f"{_DETAIL_PATH}/reject", reject, Permission.PUBLISH),
    FormRoute(f"{_DETAIL_PATH}/undo", undo, Permission.PUBLISH),
)
