"""The way back: what someone has just done, with a button that undoes it, and any earlier version made the present."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.changes import Action, Change, State
from lexarium.domain.errors import NotFound, Stale
from lexarium.service import dossiers, looking
from lexarium.service.access import Caller, Deed
from lexarium.service.desk import Desk, Saved, found
from lexarium.store import versions
from lexarium.store.backend import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.pages import meanwhile
from lexarium.web.pages.fields import Typed, required_version
from lexarium.web.pages.session import known
from lexarium.web.pages.site import Form, Site
from lexarium.web.pages.wording import path_of, with_query

_NOTHING = "nothing"
_SAID = {
    Action.CREATE: "Published.",
    Action.UPDATE: "Saved.",
    Action.RETIRE: "Retired.",
    Action.REVERT: "Set back to what it was.",
}


@dataclass(frozen=True)
class Done:
    """What someone has just done, and how it is undone."""

    said: str
    record: str = ""
    version: int = 0
    """The version that it made."""
    back: int | None = None
    """The version to go back to; None where there is no way back, 0 where it was not there: then it is retired."""


def told(before: Saved | None, after: Saved, path: str = "") -> RedirectResponse:
    """To the page of a record that was written just now, or to another about it, which then tells so."""
    changed = before is None or after.version != before.version
    did = after.version if changed else _NOTHING
    return RedirectResponse(with_query(path or path_of(after.whole.id), did=did), 303)


def done(request: Request, snapshot: Snapshot, change: Change, caller: Caller) -> Done | None:
    """What the caller has just done to a record, as the address tells; nothing once it has changed again."""
    did, merged = request.query_params.get("did"), request.query_params.get("merged")
    if did == _NOTHING:
        return Done("Nothing was changed: it was so already.")
    if merged:
        return _merged(snapshot, change, merged, caller)
    if did != str(change.version) or change.actor != caller.account.id or change.action not in _SAID:
        return None
    return Done(_SAID[change.action], change.record, change.version, _back(snapshot, change, caller))


def _merged(snapshot: Snapshot, change: Change, identifier: str, caller: Caller) -> Done | None:
    """The merge of another record into this one, as the caller has just done it."""
    try:
        gone = dossiers.find(snapshot, identifier)
    except NotFound:
        return None
    whole = gone.whole()
    if gone.actor != caller.account.id or (whole.state, whole.replaced_by) != (State.MERGED, change.record):
        return None
    said = f"{whole.fields['name'] or identifier} ({identifier}) is merged into this."
    return Done(said, identifier, gone.version, _back(snapshot, gone, caller))


def _back(snapshot: Snapshot, change: Change, caller: Caller) -> int | None:
    """The version before a change, where the caller may go back to it."""
    if not caller.may(Deed.PUBLISH):
        return None
    if change.action == Action.CREATE:
        return 0
    before = versions.find_version(snapshot, change.record, change.version - 1)
    return None if before is None or before.whole().state == State.MERGED else before.version


def revert(site: Site, request: Request, fields: Typed) -> Response:
    """Make a record what it was at a version."""
    caller, identifier = known(site, request), request.path_params["id"]
    to, newest = required_version(fields), required_version(fields, "newest")

    def work(transaction: Transaction) -> tuple[Saved, Saved]:
        desk = Desk(transaction, caller)
        before = desk.any(identifier)
        past = looking.version(transaction.connection, before.whole.collection, identifier, to)
        return before, desk.revert(past, newest)

    try:
        return told(*site.database.run(work))
    except Stale:
        return _late(site, request, newest)


def _late(site: Site, request: Request, seen: int) -> Response:
    """What someone gets who comes too late to undo something: what has been done since."""
    with site.database.read() as snapshot:
        there = found(snapshot, request.path_params["id"])
        versions_since = meanwhile.since(snapshot, there, seen)
    return site.render(request, "late.html", {"whole": there.whole, "since": versions_since}, 409)


PAGES = (Form("/revert/{id}", revert, Deed.PUBLISH),)
