"""Report a write and offer Undo, revert to a version, and list newer versions after an edit conflict."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from starlette.responses import RedirectResponse, Response

from lexarium.domain.change import Action, Change
from lexarium.domain.errors import NotFound, VersionConflict
from lexarium.domain.identifiers import split_id
from lexarium.domain.proposal import Proposal
from lexarium.domain.record import RecordState
from lexarium.domain.schema.collections import get_collection
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.records import detail, queries
from lexarium.services.records.detail import HistoryEntry
from lexarium.services.records.lookup import VersionedRecord, get_latest_change, get_record
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.pages.form_fields import get_required_version, qualify_sibling
from lexarium.web.pages.page import FormRoute, Page, PageHandler
from lexarium.web.template_filters import add_query, list_record_routes, record_path

OWN_PROPOSALS_PATH = "/proposals"
_CONFLICT_MESSAGE = "The record was changed since you opened this page. Review the changes and try again."
_MAX_NEWER_VERSIONS = 20
_UNCHANGED = "nothing"
_MESSAGES = {
    Action.CREATE: "Published.",
    Action.UPDATE: "Saved.",
    Action.RETIRE: "Retired.",
    Action.REVERT: "Reverted.",
}


@dataclass(frozen=True)
class UndoNotice:
    """Message about the caller's last write to a record, and the version to undo it.

    `undo_version` is None if it cannot be undone, and 0 for a new record, which is retired instead.
    """

    message: str
    record_id: str = ""
    version: int = 0
    undo_version: int | None = None


def build_result_url(
    result: VersionedRecord | Proposal, previous: VersionedRecord | None = None, path: str = ""
) -> str:
    """Return the URL of the page that reports a write: the user's proposals, or `path`, by default the record."""
    if isinstance(result, Proposal):
        return add_query(OWN_PROPOSALS_PATH, did=result.id)
    is_unchanged = previous is not None and result.version == previous.version
    return add_query(path or record_path(result.record.id), did=_UNCHANGED if is_unchanged else result.version)


def write_record(page: Page, task: Callable[[Transaction], str], form_page: PageHandler) -> Response:
    """Run a write and redirect to the URL it returns, or show the form again if the record has changed since."""
    try:
        return RedirectResponse(page.write(task), 303)
    except VersionConflict:
        page.errors = {"": _CONFLICT_MESSAGE}
    return form_page(page)


def list_newer_versions(
    snapshot: Snapshot, current: VersionedRecord, known_version: int | None
) -> Sequence[HistoryEntry]:
    """Return the latest versions of a record since the one a form was opened at, newest first."""
    newer_count = 0 if known_version is None else current.version - known_version
    if newer_count <= 0:
        return ()
    return detail.list_history(snapshot, current.record.id, current.version, min(newer_count, _MAX_NEWER_VERSIONS))


def build_undo_notice(
    query: Mapping[str, str], snapshot: Snapshot, change: Change, caller: Caller
) -> UndoNotice | None:
    """Return a notice of the write that the query names, unless the record has changed again since."""
    outcome, merged_id = query.get("did"), query.get("merged")
    if outcome == _UNCHANGED:
        return UndoNotice("No changes.")
    if merged_id:
        return _build_merge_notice(snapshot, change, qualify_sibling(change.record_id, merged_id), caller)
    if outcome != str(change.version) or change.actor != caller.account.id or change.action not in _MESSAGES:
        return None
    return UndoNotice(
        _MESSAGES[change.action], change.record_id, change.version, _find_undo_version(snapshot, change, caller)
    )


def _build_merge_notice(snapshot: Snapshot, change: Change, merged_id: str, caller: Caller) -> UndoNotice | None:
    try:
        merged_change = get_latest_change(snapshot, merged_id)
    except NotFound:
        return None
    record = merged_change.to_record()
    is_merged = record.state == RecordState.MERGED and record.replaced_by == change.record_id
    if merged_change.actor != caller.account.id or not is_merged:
        return None
    message = f"{record.fields['name'] or record.local_id} ({record.local_id}) was merged into this record."
    return UndoNotice(message, merged_id, merged_change.version, _find_undo_version(snapshot, merged_change, caller))


def _find_undo_version(snapshot: Snapshot, change: Change, caller: Caller) -> int | None:
    """Return the version before a change, if the caller may revert to it."""
    if not caller.has_permission(Permission.PUBLISH, split_id(change.record_id)[0]):
        return None
    if change.action == Action.CREATE:
        return 0
    try:
        previous = queries.get_version(
            snapshot, get_collection(change.collection), change.record_id, change.version - 1
        )
    except NotFound:
        return None
    return None if previous.to_record().state == RecordState.MERGED else previous.version


def revert(page: Page) -> Response:
    """Revert a record to an earlier version."""
    target_version, known_version = get_required_version(page.fields), get_required_version(page.fields, "newest")
    caller = page.caller

    def task(transaction: Transaction) -> str:
        record_id = page.find_record(transaction.flush())
        previous = get_record(transaction.flush(), record_id)
        target = queries.get_version(transaction.flush(), previous.record.collection, record_id, target_version)
        return build_result_url(RecordWriter(transaction, caller).revert(target, known_version), previous)

    return write_record(page, task, _show_conflict)


def _show_conflict(page: Page) -> Response:
    with page.read() as snapshot:
        current = get_record(snapshot, page.find_record(snapshot))
        newer_versions = list_newer_versions(snapshot, current, get_required_version(page.fields, "newest"))
    context = {"record": current.record, "newer_versions": newer_versions}
    return page.render("revert_conflict.html", context, error_status=409)


ROUTES = tuple(FormRoute(path, revert, Permission.PUBLISH) for path in list_record_routes("revert"))
