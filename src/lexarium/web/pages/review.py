"""Reviewing: the queue of proposals, one of them to be decided, and what else wants a curator's look."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.editing import draft_of
from lexarium.domain.errors import Invalid, NotFound, Problem
from lexarium.domain.proposals import Decision, Queue
from lexarium.domain.text import unstorable
from lexarium.service import proposals, reviewing
from lexarium.service.access import Deed
from lexarium.service.proposals import waiting
from lexarium.service.reviewing import RETIRE, Case
from lexarium.service.statistics import GAPS
from lexarium.store.backend import Snapshot, read_position
from lexarium.web.asked import Reject, formed
from lexarium.web.pages import drafts
from lexarium.web.pages.fields import KINDS, MISTAKES, Typed, mistakes_of, place, required_version, text
from lexarium.web.pages.session import known
from lexarium.web.pages.site import Form, Page, Site
from lexarium.web.pages.wording import label, with_query
from lexarium.web.pages.writing import entry, is_touched

_REVIEW = "/review"
_SHOWN = 50
_NAMESAKES = 60
"""How many records that share a name with another are shown here; the whole list is among the statistics."""
_OURS, _THEIRS, _MINE = "ours", "theirs", "mine"


def queue(site: Site, request: Request) -> Response:
    """What waits to be decided, and records that are worth a look."""
    asked = request.query_params
    wanted, begun = _queue(asked), place(asked.get("from", ""))
    with site.database.read() as snapshot:
        found = reviewing.queue(snapshot, wanted, begun, _SHOWN + 1)
        figures = site.statistics.figures(read_position(snapshot))
        repeated = () if figures is None else figures.gaps["repeated"].ids[:_NAMESAKES]
        last = found[_SHOWN - 1].proposal if len(found) > _SHOWN else None
        told = {
            "queue": found[:_SHOWN],
            "wanted": wanted,
            "kept": _kept(wanted),
            "total": waiting(snapshot),
            "begun": begun is not None,
            "next": last and with_query(_REVIEW, **_kept(wanted), from_=f"{last.made}-{last.id}"),
            "authors": reviewing.authors(snapshot, wanted.author),
            "kinds": KINDS,
            "figures": figures,
            "gaps": GAPS,
            "flaggable": [name for name, each in COLLECTIONS.items() if "flag_for_curator" in each.fields],
            "namesakes": reviewing.namesakes(snapshot, repeated),
            "decided": _decided(site, request, snapshot),
            "wrong": {},
        }
    return site.render(request, "review.html", told)


def proposal(site: Site, request: Request) -> Response:
    """What is proposed, beside what is there."""
    return _one(site, request, {}, {})


def _one(site: Site, request: Request, typed: Typed, wrong: Mapping[str, str]) -> Response:
    caller, asked = known(site, request), request.query_params
    with site.database.read() as snapshot:
        found = reviewing.case(snapshot, proposals.visible(snapshot, caller, request.path_params["id"]))
        told = {
            "case": found,
            "classes": sorted(
                ((each.id, each.name) for each in site.classes.at(snapshot).values()), key=lambda each: each[1]
            ),
            "decided": _decided(site, request, snapshot),
        }
    wanted = _queue(asked)
    told |= {
        "similar": reviewing.similar(site.finder, found) if found.proposal.state == Decision.OPEN else [],
        "typed": {**drafts.typed_of(found.draft), **typed},
        "entries": [] if found.kind == RETIRE else [entry(found.collection, name) for name in found.editable],
        "wrong": wrong,
        "kept": _kept(wanted),
        "written": _written(found, typed) if wrong and found.proposal.state != Decision.OPEN else {},
        "undone": bool(asked.get("undone")) and found.version is not None and not found.undoable,
    }
    return site.render(request, "proposal.html", told, 422 if wrong else 200)


def _written(case: Case, typed: Typed) -> dict[str, str]:
    """What someone wrote who came too late, by what it is called."""
    proposed = drafts.typed_of(case.draft)
    names = ["reason"] if case.kind == RETIRE else [*case.editable, "reason"]
    return {
        label(name): text(typed, name)
        for name in names
        if text(typed, name)
        and (name not in proposed or is_touched(entry(case.collection, name), typed, proposed[name]))
    }


def accept(site: Site, request: Request, fields: Typed) -> Response:
    """Make it so, as it stands in the form."""
    caller, identifier = known(site, request), request.path_params["id"]
    with site.database.read() as snapshot:
        found = reviewing.case(snapshot, proposals.visible(snapshot, caller, identifier))
    try:
        version = None if found.proposal.base_version is None else required_version(fields)
        wanted = _wanted(found, fields)
        site.database.run(lambda transaction: reviewing.accept(transaction, caller, identifier, wanted, version))
    except MISTAKES as error:
        return _one(site, request, fields, mistakes_of(error))
    return _next(site, request)


def reject(site: Site, request: Request, fields: Typed) -> Response:
    """Turn it down, with a reason."""
    caller, identifier = known(site, request), request.path_params["id"]
    try:
        reason = formed(Reject, {"reason": text(fields, "reason").strip()}, "This is no reason.").reason
        site.database.run(lambda transaction: proposals.reject(transaction, caller, identifier, reason))
    except MISTAKES as error:
        return _one(site, request, fields, mistakes_of(error))
    return _next(site, request)


def _next(site: Site, request: Request) -> Response:
    """To the next of the queue, which tells what was decided."""
    identifier, wanted = request.path_params["id"], _queue(request.query_params)
    with site.database.read() as snapshot:
        done = proposals.visible(snapshot, known(site, request), identifier)
        following = reviewing.next_after(snapshot, wanted, done)
    there = _REVIEW if following is None else f"{_REVIEW}/{following.id}"
    return RedirectResponse(with_query(there, **_kept(wanted), decided=identifier), 303)


def undo(site: Site, request: Request, fields: Typed) -> Response:
    """Take back what was published by accepting it."""
    caller, identifier = known(site, request), request.path_params["id"]
    try:
        site.database.run(lambda transaction: reviewing.undo(transaction, caller, identifier))
    except MISTAKES as error:
        return _one(site, request, {}, mistakes_of(error))
    return RedirectResponse(with_query(f"{_REVIEW}/{identifier}", undone="1"), 303)


def _wanted(case: Case, fields: Typed) -> dict[str, Any]:
    """What the fields of a proposal shall be. Raises `Invalid` for each conflict that is not settled."""
    if case.kind == RETIRE:
        return {"replaced_by": drafts.read(fields, "replaced_by")}
    proposed = drafts.typed_of(case.draft)
    present = {} if case.present is None else draft_of(case.present.whole)
    wanted: dict[str, Any] = {}
    unsettled: list[Problem] = []
    for name in case.editable:
        choice = text(fields, f"choice-{name}") if name in case.conflicts else ""
        if name in case.conflicts and choice not in (_OURS, _THEIRS, _MINE):
            unsettled.append(Problem(f"choice-{name}", "choose what it shall be."))
        elif choice in (_OURS, _THEIRS):
            wanted[name] = present[name] if choice == _OURS else case.draft[name]
        elif choice == _MINE or is_touched(entry(case.collection, name), fields, proposed[name]):
            wanted[name] = drafts.read(fields, name)
    if unsettled:
        raise Invalid("Others have changed the same since.", unsettled)
    return wanted


def _decided(site: Site, request: Request, snapshot: Snapshot) -> Case | None:
    """The proposal that was decided just now, as the address tells."""
    identifier = request.query_params.get("decided")
    if not identifier:
        return None
    try:
        found = proposals.visible(snapshot, known(site, request), identifier)
    except NotFound:
        return None
    return None if found.state == Decision.OPEN else reviewing.case(snapshot, found)


def _queue(asked: Mapping[str, str]) -> Queue:
    collection, author = asked.get("collection"), asked.get("author")
    return Queue(
        collection if collection in COLLECTIONS else None,
        author if author and not unstorable(author) else None,
        asked.get("order") == "newest",
    )


def _kept(wanted: Queue) -> dict[str, object]:
    """The queue, as parameters of an address."""
    return {
        "collection": wanted.collection,
        "author": wanted.author,
        "order": "newest" if wanted.newest else None,
    }


_ONE = _REVIEW + "/{id}"
PAGES = (
    Page(_REVIEW, queue, Deed.PUBLISH),
    Page(_ONE, proposal, Deed.PUBLISH),
    Form(f"{_ONE}/accept", accept, Deed.PUBLISH),
    Form(f"{_ONE}/reject", reject, Deed.PUBLISH),
    Form(f"{_ONE}/undo", undo, Deed.PUBLISH),
)
