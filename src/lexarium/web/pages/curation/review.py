"""Proposals: the review queue for curators, and the list of one's own for everyone."""

from typing import Any

from starlette.responses import Response

from lexarium.domain.editing.edit import to_draft
from lexarium.domain.errors import FieldProblem, InvalidInput, NotFound
from lexarium.domain.identifiers import get_local_id
from lexarium.domain.proposal import ProposalFilter, ProposalState
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import proposals, review
from lexarium.services.curation.proposals import list_curated
from lexarium.services.curation.review import RETIRE, ProposalReview
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.vocabularies.access import list_collections
from lexarium.store.position import Snapshot
from lexarium.web.http.paging import parse_page_key, split_page
from lexarium.web.pages.collection_counts import split_counts
from lexarium.web.pages.curation import draft_fields
from lexarium.web.pages.curation.record_fields import build_form_field, is_changed
from lexarium.web.pages.curation.revert import OWN_PROPOSALS_PATH
from lexarium.web.pages.form_fields import (
    FormValues,
    get_required_version,
    get_text,
)
from lexarium.web.pages.page import FormRoute, Page, PageRoute, redirect
from lexarium.web.request_models import Accept, Reject, parse_model
from lexarium.web.template_filters import add_query, capitalize_first, field_label

_PATH = "/review"
_DETAIL_PATH = _PATH + "/{id}"
_PAGE_SIZE = 50
_OWN_PAGE_SIZE = 30
# The statistics have the whole list.
_MAX_SAME_NAMES = 60
_KEEP_CURRENT, _TAKE_PROPOSED, _TAKE_EDITED = "ours", "theirs", "mine"


def show_queue(page: Page) -> Response:
    """Show open proposals, and records with quality issues."""
    proposal_filter, page_key = _parse_queue_filter(page), parse_page_key(page.query.get("from", ""))
    filter_params = _to_query_params(page)
    with page.read() as snapshot:
        queued, last = split_page(review.list_queue(snapshot, proposal_filter, page_key, _PAGE_SIZE + 1), _PAGE_SIZE)
        statistics = page.site.statistics_cache.get(get_position(snapshot))
        statistics = None if statistics is None else statistics.select(page.scope.collections)
        repeated_ids = () if statistics is None else statistics.issues["repeated"].ids[:_MAX_SAME_NAMES]
        context = {
            "queue": queued,
            "filters": proposal_filter,
            "filter_params": filter_params,
            "total": proposals.count_open(snapshot, caller=page.caller),
            "is_continued": page_key is not None,
            "next": last and add_query(_PATH, **filter_params, from_=f"{last.proposal.made}-{last.proposal.id}"),
            "authors": review.list_authors(snapshot, list_curated(page.caller, page.scope), proposal_filter.author),
            "statistics": statistics,
            "flaggable": []
            if statistics is None
            else split_counts(statistics.counts, page.scope.collections)["main_counts"],
            "same_name_groups": review.group_same_names(snapshot, repeated_ids),
            "decided": _find_decided(page, snapshot),
        }
    return page.render("review.html", context)


def show_proposal(page: Page) -> Response:
    """Show a proposal beside the current record, and forms to decide it."""
    with page.read() as snapshot:
        proposal_review = _load_review(page, snapshot, page.id)
        class_collection = next(iter(proposal_review.collection.class_fields.values()), "")
        classes, decided = page.site.list_classes(snapshot, class_collection), _find_decided(page, snapshot)
    is_open = proposal_review.proposal.state == ProposalState.OPEN
    is_undone = proposal_review.version is not None and not proposal_review.can_undo
    context = {
        "review": proposal_review,
        "classes": [(get_local_id(item.id), item.name) for item in classes],
        "permission_slug": proposal_review.collection.vocabulary,
        "decided": decided,
        "near_names": review.find_near_records(page.site.record_search, proposal_review) if is_open else [],
        "form_values": {
            **draft_fields.to_form_values(proposal_review.draft, proposal_review.collection.language),
            **page.fields,
        },
        "form_fields": []
        if proposal_review.kind == RETIRE
        else [build_form_field(proposal_review.collection, name) for name in proposal_review.editable_fields],
        "filter_params": _to_query_params(page),
        "unsaved_input": _list_unsaved_input(proposal_review, page.fields) if page.errors and not is_open else {},
        "undone": bool(page.query.get("undone")) and is_undone,
    }
    return page.render("proposal.html", context)


def _list_unsaved_input(proposal_review: ProposalReview, form_values: FormValues) -> dict[str, str]:
    """Return by label what the user entered for a proposal that was decided meanwhile."""
    proposed_values = draft_fields.to_form_values(proposal_review.draft, proposal_review.collection.language)
    names = ["reason"] if proposal_review.kind == RETIRE else [*proposal_review.editable_fields, "reason"]
    return {
        capitalize_first(field_label(name, proposal_review.proposal.collection)): get_text(form_values, name)
        for name in names
        if get_text(form_values, name)
        and (
            name not in proposed_values
            or is_changed(build_form_field(proposal_review.collection, name), form_values, proposed_values[name])
        )
    }


def accept(page: Page) -> Response:
    """Accept a proposal with the curator's edits."""
    with page.read() as snapshot:
        proposal_review = _load_review(page, snapshot, page.id)
    version = None if proposal_review.proposal.base_version is None else get_required_version(page.fields)
    resolved_fields = _resolve_fields(proposal_review, page.fields)
    reason = parse_model(Accept, {"reason": get_text(page.fields, "reason").strip()}, "Invalid message.").reason
    page.write(review.accept_with_edits, page.caller, page.id, resolved_fields, version, reason)
    return _redirect_to_next(page)


def reject(page: Page) -> Response:
    """Reject a proposal with a reason."""
    reason = parse_model(Reject, {"reason": get_text(page.fields, "reason").strip()}, "Enter a reason.").reason
    page.write(proposals.reject_proposal, page.caller, page.id, reason)
    return _redirect_to_next(page)


def _redirect_to_next(page: Page) -> Response:
    """Redirect to the next proposal of the queue, which shows the decision."""
    proposal_filter = _parse_queue_filter(page)
    with page.read() as snapshot:
        decided = proposals.get_visible_proposal(snapshot, page.caller, page.id)
        next_proposal = review.find_next(snapshot, proposal_filter, decided)
    path = _PATH if next_proposal is None else f"{_PATH}/{next_proposal.id}"
    return redirect(path, **_to_query_params(page), decided=page.id)


def undo(page: Page) -> Response:
    """Undo the acceptance of a proposal."""
    page.write(review.undo_acceptance, page.caller, page.id)
    return redirect(f"{_PATH}/{page.id}", undone="1")


def _resolve_fields(proposal_review: ProposalReview, fields: FormValues) -> dict[str, Any]:
    """Return the fields as the curator decided; raise InvalidInput for unresolved conflicts."""
    if proposal_review.kind == RETIRE:
        return {"replaced_by": draft_fields.parse_field(proposal_review.collection, fields, "replaced_by")}
    proposed_values = draft_fields.to_form_values(proposal_review.draft, proposal_review.collection.language)
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
            resolved[name] = draft_fields.parse_field(proposal_review.collection, fields, name)
        elif choice is not None:
            unresolved.append(FieldProblem(f"choice-{name}", "resolve this conflict."))
    if unresolved:
        raise InvalidInput("Conflicting changes.", unresolved)
    return resolved


def _load_review(page: Page, snapshot: Snapshot, proposal_id: str) -> ProposalReview:
    return review.load_review(snapshot, proposals.get_visible_proposal(snapshot, page.caller, proposal_id))


def _find_decided(page: Page, snapshot: Snapshot) -> ProposalReview | None:
    """Return the proposal that was decided just now, if the query names one."""
    proposal_id = page.query.get("decided")
    try:
        decided = _load_review(page, snapshot, proposal_id) if proposal_id else None
    except NotFound:
        return None
    return None if decided is None or decided.proposal.state == ProposalState.OPEN else decided


def _parse_queue_filter(page: Page) -> ProposalFilter:
    """Return the filter of the queue: of vocabularies in which the caller decides."""
    query, curated = page.query, list_curated(page.caller, page.scope)
    chosen = list_collections(page.scope, [query["collection"]]) if query.get("collection") else ()
    author = query.get("author")
    return ProposalFilter(
        author=author if author and not find_unstorable_char(author) else None,
        newest_first=query.get("order") == "newest",
        collections=tuple(name for name in curated if not chosen or name in chosen),
    )


def _to_query_params(page: Page) -> dict[str, object]:
    query = page.query
    known = query.get("collection") and list_collections(page.scope, [query["collection"]])
    author = query.get("author")
    return {
        "collection": query["collection"] if known else None,
        "author": author if author and not find_unstorable_char(author) else None,
        "order": "newest" if query.get("order") == "newest" else None,
        "vocabulary": page.scope.slugs if page.scope.is_chosen else None,
    }


def list_own(page: Page) -> Response:
    """Show a page of the user's own proposals, newest first."""
    page_key = parse_page_key(page.query.get("before", ""))
    with page.read() as snapshot:
        own, last = split_page(proposals.list_own(snapshot, page.caller, page_key, _OWN_PAGE_SIZE + 1), _OWN_PAGE_SIZE)
        reviews = [review.load_review(snapshot, proposal) for proposal in own]
    next_url = last and add_query(OWN_PROPOSALS_PATH, before=f"{last.made}-{last.id}")
    return page.render("proposals.html", {"reviews": reviews, "next": next_url})


def withdraw(page: Page) -> Response:
    """Withdraw one of the user's own proposals."""
    page.write(proposals.withdraw_proposal, page.caller, page.id)
    return redirect(OWN_PROPOSALS_PATH, did=page.id)


ROUTES = (
    PageRoute(_PATH, show_queue, Permission.PUBLISH),
    PageRoute(_DETAIL_PATH, show_proposal, Permission.PUBLISH),
    FormRoute(f"{_DETAIL_PATH}/accept", accept, Permission.PUBLISH, show_proposal),
    FormRoute(f"{_DETAIL_PATH}/reject", reject, Permission.PUBLISH, show_proposal),
    FormRoute(f"{_DETAIL_PATH}/undo", undo, Permission.PUBLISH, show_proposal),
    PageRoute(OWN_PROPOSALS_PATH, list_own, Permission.PROPOSE),
    FormRoute(f"{OWN_PROPOSALS_PATH}/{{id}}/withdraw", withdraw, Permission.PROPOSE),
)
