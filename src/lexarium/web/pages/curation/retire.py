"""Retire a record."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.errors import Conflict, InvalidInput, QuotaExceeded, VersionConflict
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import submissions
from lexarium.services.curation.draft_checks import list_retirement_warnings
from lexarium.services.records.lookup import get_published, get_record, require_published
from lexarium.services.records.queries import list_referrers
from lexarium.store.transaction import Transaction
from lexarium.web.pages.curation import revert
from lexarium.web.pages.curation.record_picker import find_choices, prepend_selected
from lexarium.web.pages.form_fields import (
    NO_VALUES,
    FormValues,
    get_int,
    get_required_version,
    get_text,
    to_field_errors,
)
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.site import Site

_PATH = "/retire/{id}"
_MAX_REFERRERS = 30


def show_form(
    site: Site, request: Request, form_values: FormValues = NO_VALUES, errors: Mapping[str, str] = NO_VALUES
) -> Response:
    """Show what uses a record, and a form to retire it."""
    record_id, values = request.path_params["id"], {name: get_text(form_values, name) for name in ("q", "replaced_by")}
    with site.database.read() as snapshot:
        current = get_record(snapshot, record_id)
        require_published(current.record)
        choices = find_choices(site, values["q"], current.record.collection.name, record_id)
        context = {
            "record": current.record,
            "version": current.version,
            "newer_versions": revert.list_newer_versions(snapshot, current, get_int(form_values, "version")),
            "warnings": list(list_retirement_warnings(snapshot, current.record)),
            "referrers": list_referrers(snapshot, record_id, _MAX_REFERRERS + 1),  # one more than are shown
            "max_referrers": _MAX_REFERRERS,
            "choices": prepend_selected(snapshot, values["replaced_by"], choices),
            "has_searched": bool(values["q"].strip()),
            "form_values": values,
            "errors": errors,
            "labels": {"replaced_by": "In its place"},
        }
    return site.render(request, "retire.html", context, 422 if errors else 200)


def retire(site: Site, request: Request, fields: FormValues) -> Response:
    """Retire a record, or propose to; or search for its replacement."""
    caller, record_id = site.require_caller(request), request.path_params["id"]
    if get_text(fields, "act") != "retire":
        return show_form(site, request, fields)
    version, replacement_id = get_required_version(fields), get_text(fields, "replaced_by") or None

    def task(transaction: Transaction) -> str:
        collection = get_record(transaction.flush(), record_id).record.collection
        previous = get_published(transaction.flush(), collection, record_id, version)
        result = submissions.open_writer(transaction, caller).retire(previous, replacement_id)
        return revert.build_result_url(result, previous)

    try:
        return RedirectResponse(site.database.run_write(task), 303)
    except VersionConflict:
        return show_form(site, request, fields, {"": revert.CONFLICT_MESSAGE})
    except (InvalidInput, Conflict, QuotaExceeded) as error:
        return show_form(site, request, fields, to_field_errors(error))


ROUTES = (PageRoute(_PATH, show_form, Permission.PROPOSE), FormRoute(_PATH, retire, Permission.PROPOSE))
