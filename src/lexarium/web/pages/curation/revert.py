"""The way back: what someone has just done, with a button that undoes it, and any earlier version made the present."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.change import Action, Change
from lexarium.domain.errors import NotFound, VersionConflict
from lexarium.domain.record import RecordState
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.records import detail, queries
from lexarium.services.records.lookup import VersionedRecord, get_record
from lexarium.store import revisions
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.pages.curation import edit_conflicts
from lexarium.web.pages.filters import add_query, record_path
from lexarium.web.pages.form_fields import FormValues, get_required_version
from lexarium.web.pages.page_routes import FormRoute
from lexarium.web.pages.session import require_caller
from lexarium.web.pages.site import Site

_UNCHANGED = "nothing"
_MESSAGES = {
    Action.CREATE: "Published.",
    Action.UPDATE: "Saved.",
    Action.RETIRE: "Retired.",
    Action.REVERT: "Set back to what it was.",
}


@dataclass(frozen=True)
class UndoNotice:
    """What someone has just done, and how it is undone."""

    message: str
    record_id: str = ""
    version: int = 0
    """The version that it made."""
    undo_version: int | None = None
    """The version to go back to; None where there is no way back, 0 where it was not there: then it is retired."""


def redirect_after_write(previous: VersionedRecord | None, saved: VersionedRecord, path: str = "") -> RedirectResponse:
    """To the page of a record that was written just now, or to another about it, which then tells so."""
    has_changed = previous is None or saved.version != previous.version
    outcome = saved.version if has_changed else _UNCHANGED
    return RedirectResponse(add_query(path or record_path(saved.record.id), did=outcome), 303)


def build_undo_notice(request: Request, snapshot: Snapshot, change: Change, caller: Caller) -> UndoNotice | None:
    """What the caller has just done to a record, as the address tells; nothing once it has changed again."""
    outcome, merged_id = request.query_params.get("did"), request.query_params.get("merged")
    if outcome == _UNCHANGED:
        return UndoNotice("Nothing was changed: it was so already.")
    if merged_id:
        return _build_merge_notice(snapshot, change, merged_id, caller)
    if outcome != str(change.version) or change.actor != caller.account.id or change.action not in _MESSAGES:
        return None
    return UndoNotice(
        _MESSAGES[change.action], change.record_id, change.version, _find_undo_version(snapshot, change, caller)
    )


def _build_merge_notice(snapshot: Snapshot, change: Change, merged_id: str, caller: Caller) -> UndoNotice | None:
    """The merge of another record into this one, as the caller has just done it."""
    try:
        merged_change = detail.get_latest_change(snapshot, merged_id)
    except NotFound:
        return None
    record = merged_change.to_record()
    if merged_change.actor != caller.account.id or (record.state, record.replaced_by) != (
        RecordState.MERGED,
        change.record_id,
    ):
        return None
    message = f"{record.fields['name'] or merged_id} ({merged_id}) is merged into this."
    return UndoNotice(message, merged_id, merged_change.version, _find_undo_version(snapshot, merged_change, caller))


def _find_undo_version(snapshot: Snapshot, change: Change, caller: Caller) -> int | None:
    """The version before a change, where the caller may go back to it."""
    if not caller.has_permission(Permission.PUBLISH):
        return None
    if change.action == Action.CREATE:
        return 0
    previous = revisions.find_version(snapshot, change.record_id, change.version - 1)
    return None if previous is None or previous.to_record().state == RecordState.MERGED else previous.version


def revert(site: Site, request: Request, fields: FormValues) -> Response:
    """Make a record what it was at a version."""
    caller, record_id = require_caller(site, request), request.path_params["id"]
    target_version, known_version = get_required_version(fields), get_required_version(fields, "newest")

    def task(transaction: Transaction) -> tuple[VersionedRecord, VersionedRecord]:
        writer = RecordWriter(transaction, caller)
        previous = writer.get_record(record_id)
        target = queries.get_version(transaction.connection, previous.record.collection, record_id, target_version)
        return previous, writer.revert(target, known_version)

    try:
        return redirect_after_write(*site.database.run_write(task))
    except VersionConflict:
        return _render_conflict(site, request, known_version)


def _render_conflict(site: Site, request: Request, known_version: int) -> Response:
    """What someone gets who comes too late to undo something: what has been done since."""
    with site.database.read() as snapshot:
        current = get_record(snapshot, request.path_params["id"])
        newer_versions = edit_conflicts.list_newer_versions(snapshot, current, known_version)
    return site.render(request, "late.html", {"whole": current.record, "since": newer_versions}, 409)


ROUTES = (FormRoute("/revert/{id}", revert, Permission.PUBLISH),)
