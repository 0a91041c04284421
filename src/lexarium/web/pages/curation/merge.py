"""Merge a record into another, with preview."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.errors import Conflict, InvalidInput, NotFound, VersionConflict
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import merges
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.records import detail
from lexarium.services.records.lookup import get_published, get_record, require_published
from lexarium.store.transaction import Transaction
from lexarium.web.pages.curation import revert
from lexarium.web.pages.curation.record_picker import find_choices
from lexarium.web.pages.filters import add_query, record_path
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

_PATH = "/merge/{id}"


def show_form(
    site: Site, request: Request, form_values: FormValues | None = None, errors: Mapping[str, str] = NO_VALUES
) -> Response:
    """Show a search for the survivor or, if the query names it, a preview of the merge."""
    form_values = request.query_params if form_values is None else form_values
    record_id, survivor_id = request.path_params["id"], get_text(form_values, "into")
    query_text = request.query_params.get("q", "")
    context: dict[str, Any] = {"survivor": None}
    with site.database.read() as snapshot:
        merged = get_record(snapshot, record_id)
        require_published(merged.record)
        newer_versions = [*revert.list_newer_versions(snapshot, merged, get_int(form_values, "version"))]
        if survivor_id == record_id:
            errors = {"into": "A record cannot be merged into itself."}
        elif survivor_id and "into" not in errors:
            try:
                survivor = get_published(snapshot, merged.record.collection, survivor_id)
                preview = merges.preview_merge(snapshot, merged.record, survivor.record)
            except NotFound as error:
                errors = {"into": str(error)}
            else:
                context = {
                    "survivor": survivor.record,
                    "survivor_version": survivor.version,
                    "preview": preview,
                    "survivor_changes": detail.build_word_diffs(snapshot, preview.survivor_changes),
                }
                newer_versions += revert.list_newer_versions(snapshot, survivor, get_int(form_values, "survivor"))
    context |= {
        "record": merged.record,
        "version": merged.version,
        "newer_versions": newer_versions,
        "errors": errors,
        "q": query_text,
        "has_searched": bool(query_text.strip()),
        "choices": find_choices(site, query_text, merged.record.collection.name, record_id),
    }
    return site.render(request, "merge.html", context, 422 if errors else 200)


def merge(site: Site, request: Request, fields: FormValues) -> Response:
    """Merge a record, and redirect to the survivor."""
    caller, record_id = site.require_caller(request), request.path_params["id"]
    survivor_id, version = get_text(fields, "into"), get_required_version(fields)
    survivor_version = get_required_version(fields, "survivor") if survivor_id not in ("", record_id) else None

    def task(transaction: Transaction) -> Response:
        writer = RecordWriter(transaction, caller)
        collection = get_record(transaction.flush(), record_id).record.collection
        merged = get_published(transaction.flush(), collection, record_id, version)
        if survivor_id != record_id:
            get_published(transaction.flush(), collection, survivor_id, survivor_version)
        survivor = writer.merge(merged, survivor_id)
        return RedirectResponse(add_query(record_path(survivor.record.id), merged=record_id), 303)

    try:
        return site.database.run_write(task)
    except VersionConflict:
        return show_form(site, request, fields, {"": revert.CONFLICT_MESSAGE})
    except (InvalidInput, Conflict, NotFound) as error:
        return show_form(site, request, fields, to_field_errors(error, "into"))


ROUTES = (PageRoute(_PATH, show_form, Permission.PUBLISH), FormRoute(_PATH, merge, Permission.PUBLISH))
