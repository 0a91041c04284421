"""Merging a record into another, after a look at what that makes of the survivor."""

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
from lexarium.web.pages.curation import edit_conflicts
from lexarium.web.pages.curation.record_picker import find_choices
from lexarium.web.pages.filters import add_query, record_path
from lexarium.web.pages.form_fields import FormValues, get_int, get_required_version, get_text, to_field_errors
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.session import require_caller
from lexarium.web.pages.site import Site

_PATH = "/merge/{id}"


def show_form(site: Site, request: Request) -> Response:
    """Into which one, and what that would do."""
    return _render_form(site, request, request.query_params, {})


def merge(site: Site, request: Request, fields: FormValues) -> Response:
    """Merge it, and go to the survivor."""
    caller, record_id = require_caller(site, request), request.path_params["id"]
    survivor_id, version = get_text(fields, "into"), get_required_version(fields)
    survivor_version = get_required_version(fields, "survivor") if survivor_id not in ("", record_id) else None

    def task(transaction: Transaction) -> Response:
        writer = RecordWriter(transaction, caller)
        collection = writer.get_record(record_id).record.collection
        merged = writer.get_published(collection, record_id, version)
        if survivor_id != record_id:
            writer.get_published(collection, survivor_id, survivor_version)
        survivor = writer.merge(merged, survivor_id)
        return RedirectResponse(add_query(record_path(survivor.record.id), merged=record_id), 303)

    try:
        return site.database.run_write(task)
    except VersionConflict:
        return _render_form(site, request, fields, {"": edit_conflicts.CONFLICT_MESSAGE})
    except (InvalidInput, Conflict, NotFound) as error:
        return _render_form(site, request, fields, to_field_errors(error, "into"))


def _render_form(site: Site, request: Request, form_values: FormValues, errors: Mapping[str, str]) -> Response:
    record_id, survivor_id, query_text = (
        request.path_params["id"],
        get_text(form_values, "into"),
        request.query_params.get("q", ""),
    )
    with site.database.read() as snapshot:
        merged = get_record(snapshot, record_id)
        require_published(merged.record)
        context: dict[str, Any] = {"whole": merged.record, "version": merged.version, "into": None, "wrong": errors}
        context["since"] = edit_conflicts.list_newer_versions(snapshot, merged, get_int(form_values, "version"))
        if survivor_id == record_id:
            context["wrong"] = errors = {"into": "A record cannot be merged into itself."}
        elif survivor_id and "into" not in errors:
            try:
                survivor = get_published(snapshot, merged.record.collection, survivor_id)
                preview = merges.preview_merge(snapshot, merged.record, survivor.record)
            except NotFound as error:
                context["wrong"] = errors = {"into": str(error)}
            else:
                survivor_changes = detail.build_word_diffs(snapshot, preview.survivor_changes)
                context |= {
                    "into": survivor.record,
                    "survivor_version": survivor.version,
                    "forecast": preview,
                    "gains": survivor_changes,
                }
                context["since"] = [
                    *context["since"],
                    *edit_conflicts.list_newer_versions(snapshot, survivor, get_int(form_values, "survivor")),
                ]
    context |= {
        "q": query_text,
        "looked": bool(query_text.strip()),
        "choices": find_choices(site, query_text, merged.record.collection.name, record_id),
    }
    return site.render(request, "merge.html", context, 422 if errors else 200)


ROUTES = (PageRoute(_PATH, show_form, Permission.PUBLISH), FormRoute(_PATH, merge, Permission.PUBLISH))
