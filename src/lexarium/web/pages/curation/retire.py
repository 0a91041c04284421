"""Taking a record out of use, after a look at what uses it."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.errors import Conflict, InvalidInput, QuotaExceeded, VersionConflict
from lexarium.domain.proposal import Proposal
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import submissions
from lexarium.services.curation.draft_checks import list_retirement_warnings
from lexarium.services.records.lookup import get_published, get_record, require_published
from lexarium.store import records, relations
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.pages.curation import edit_conflicts, revert
from lexarium.web.pages.curation.my_proposals import build_proposal_url
from lexarium.web.pages.curation.record_picker import RecordChoice, find_choices, load_choices
from lexarium.web.pages.form_fields import FormValues, get_int, get_required_version, get_text, to_field_errors
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.session import require_caller
from lexarium.web.pages.site import Site

_PATH = "/retire/{id}"
_MAX_REFERRERS = 30
"""How many records that are related to one are named."""


def show_form(site: Site, request: Request) -> Response:
    """Whether it shall be, and what stands in for it."""
    return _render_form(site, request, {}, {})


def retire(site: Site, request: Request, fields: FormValues) -> Response:
    """Retire it, or propose that; or the page again, with what may stand in for it or what is wrong."""
    caller, record_id = require_caller(site, request), request.path_params["id"]
    if get_text(fields, "act") != "retire":
        return _render_form(site, request, fields, {})
    version, replacement_id = get_required_version(fields), get_text(fields, "replaced_by") or None

    def task(transaction: Transaction) -> Response:
        collection = get_record(transaction.connection, record_id).record.collection
        previous = get_published(transaction.connection, collection, record_id, version)
        result = submissions.submit_retirement(transaction, caller, previous, replacement_id)
        if isinstance(result, Proposal):
            return RedirectResponse(build_proposal_url(result), 303)
        return revert.redirect_after_write(previous, result)

    try:
        return site.database.run_write(task)
    except VersionConflict:
        return _render_form(site, request, fields, {"": edit_conflicts.CONFLICT_MESSAGE})
    except (InvalidInput, Conflict, QuotaExceeded) as error:
        return _render_form(site, request, fields, to_field_errors(error))


def _render_form(site: Site, request: Request, form_values: FormValues, errors: Mapping[str, str]) -> Response:
    record_id, replacement_id = request.path_params["id"], get_text(form_values, "replaced_by")
    with site.database.read() as snapshot:
        current = get_record(snapshot, record_id)
        require_published(current.record)
        selected = [] if find_unstorable_char(replacement_id) else load_choices(snapshot, [replacement_id])
        context = {
            "whole": current.record,
            "version": current.version,
            "since": edit_conflicts.list_newer_versions(snapshot, current, get_int(form_values, "version")),
            "uses": list(list_retirement_warnings(snapshot, current.record)),
            "related": _list_referrers(snapshot, record_id),
            "most": _MAX_REFERRERS,
        }
    matches = find_choices(site, get_text(form_values, "q"), current.record.collection.name, record_id)
    context |= {
        "choices": [*selected, *(choice for choice in matches if choice.id != replacement_id)],
        "looked": bool(get_text(form_values, "q").strip()),
        "typed": {"q": get_text(form_values, "q"), "replaced_by": replacement_id},
        "wrong": errors,
        "labels": {"replaced_by": "In its place"},
    }
    return site.render(request, "retire.html", context, 422 if errors else 200)


def _list_referrers(snapshot: Snapshot, record_id: str) -> list[RecordChoice]:
    """The first of the records that go on naming one, one more than are shown."""
    ids = relations.list_referrers(snapshot, record_id, _MAX_REFERRERS + 1)
    summaries = records.find_collections_and_names(snapshot, ids)
    return [RecordChoice(referrer_id, summaries[referrer_id][1], summaries[referrer_id][0]) for referrer_id in ids]


ROUTES = (PageRoute(_PATH, show_form, Permission.PROPOSE), FormRoute(_PATH, retire, Permission.PROPOSE))
