"""Upload files, preview the import, then apply it."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from lexarium.domain.errors import Conflict, FieldProblem, InvalidInput
from lexarium.domain.import_merge import ConflictPreference
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.schema.relation_types import RELATION_TYPES
from lexarium.formats.column_mapping import parse_mapping_pairs
from lexarium.formats.registry import FORMATS
from lexarium.services.access.permissions import Permission
from lexarium.services.records.lookup import find_existing_ids
from lexarium.services.transfer.uploads import RETENTION_SECONDS, ImportOptions, Upload
from lexarium.web.http.uploads import UploadedForm, read_upload
from lexarium.web.pages import form_fields, page_routes
from lexarium.web.pages.form_fields import FORM_ERRORS, NO_VALUES, FormValues, get_text, to_field_errors
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.site import Site

_PATH = "/import"
_DETAIL_PATH = _PATH + "/{ticket}"
# Most imports are done after this time, so the first page already shows the result.
_WAIT_SECONDS = 2.0
_MAX_LISTED = 200
# Labels of the form fields that correspond to options of the command line, which messages mention.
_FIELD_LABELS = {"format": "Format", "collection": "Collection", "map": "What columns mean"}
_CLI_OPTION = re.compile(rf"--({'|'.join(_FIELD_LABELS)})\b")
_PREFERENCES: dict[str, ConflictPreference | None] = {"": None, "ours": "ours", "theirs": "theirs"}
_CHOICES: dict[str, Any] = {
    "labels": _FIELD_LABELS,
    "formats": [(file_format.name, file_format.description) for file_format in FORMATS.values()],
    "collection_choices": form_fields.COLLECTION_CHOICES,
}


def show_form(
    site: Site, request: Request, form_values: FormValues = NO_VALUES, errors: Mapping[str, str] = NO_VALUES
) -> Response:
    """Show the form to upload files."""
    context = {"form_values": form_values, "errors": errors, "max_mb": site.settings.upload_mb, **_CHOICES}
    return site.render(request, "import.html", context, 422 if errors else 200)


def _store_files(site: Site, request: Request, uploaded: UploadedForm) -> Response:
    caller = site.require_caller(request)
    problems = [] if uploaded.files else [FieldProblem("files", "must be chosen: one or several.")]
    try:
        options = _parse_options(uploaded.fields, problems)
        return _redirect_to_upload(site.uploads.receive(caller, uploaded.files, options, _WAIT_SECONDS))
    except FORM_ERRORS as error:
        return show_form(site, request, uploaded.fields, to_field_errors(error, "files"))


def show_preview(site: Site, request: Request) -> Response:
    """Show the progress of an import, its preview, or its result."""
    upload = site.uploads.get(site.require_caller(request), request.path_params["ticket"])
    mapping_lines = "\n".join(f"{column}={meaning}" for column, meaning in upload.how.map.items())
    form_values = {"format": upload.how.format, "collection": upload.how.collection, "map": mapping_lines}
    return _render_preview(site, request, upload, form_values)


def _render_preview(
    site: Site, request: Request, upload: Upload, form_values: FormValues, errors: Mapping[str, str] = NO_VALUES
) -> Response:
    notes = upload.problems or upload.report.get("warnings", [])
    context = {
        "upload": upload,
        "max_listed": _MAX_LISTED,
        "minutes": RETENTION_SECONDS // 60,
        "form_values": form_values,
        "errors": errors,
        "notes": [
            {**note, "what": _CLI_OPTION.sub(lambda match: f"“{_FIELD_LABELS[match[1]]}”", note["what"])}
            for note in notes
        ],
        "needs_options": any(_CLI_OPTION.search(note["what"]) for note in notes),
        "existing_ids": _find_existing_ids(site, upload),
        "relations": RELATION_TYPES,
        **_CHOICES,
    }
    return site.render(request, "import_preview.html", context, 422 if errors else 200)


def _find_existing_ids(site: Site, upload: Upload) -> set[str]:
    """Return which records of a report are in the catalogue, and so have a page."""
    mentioned_ids = {item["id"] for items in upload.report.get("records", {}).values() for item in items}
    for items in upload.report.get("relations", {}).values():
        mentioned_ids |= {item[end] for item in items for end in ("source", "target")}
    with site.database.read() as snapshot:
        return find_existing_ids(snapshot, sorted(mentioned_ids))


def preview_again(site: Site, request: Request, fields: FormValues) -> Response:
    """Preview the same files with other options."""
    caller, upload_id = site.require_caller(request), request.path_params["ticket"]
    try:
        return _redirect_to_upload(site.uploads.preview(caller, upload_id, _parse_options(fields), _WAIT_SECONDS))
    except FORM_ERRORS as error:
        return _render_preview(site, request, site.uploads.get(caller, upload_id), fields, to_field_errors(error))


def apply_import(site: Site, request: Request, fields: FormValues) -> Response:
    """Import the files that were previewed."""
    caller, upload_id = site.require_caller(request), request.path_params["ticket"]
    try:
        upload = site.uploads.apply(caller, upload_id, _PREFERENCES.get(get_text(fields, "prefer")), _WAIT_SECONDS)
    except Conflict:
        upload = site.uploads.get(caller, upload_id)
        if not upload.is_running:  # The button was pressed twice: show the progress.
            raise
    return _redirect_to_upload(upload)


def discard(site: Site, request: Request, fields: FormValues) -> Response:
    """Delete the uploaded files."""
    site.uploads.discard(site.require_caller(request), request.path_params["ticket"])
    return RedirectResponse(_PATH, 303)


def _parse_options(fields: FormValues, problems: Sequence[FieldProblem] = ()) -> ImportOptions:
    """Return the options of a form; raise InvalidInput with all problems, including the given ones."""
    choices: dict[str, Collection[str]] = {"format": FORMATS, "collection": COLLECTIONS}
    requested = {name: get_text(fields, name) for name in choices}
    all_problems = [*problems] + [
        FieldProblem(name, f"should be one of {', '.join(choices[name])}, or left open.")
        for name, value in requested.items()
        if value and value not in choices[name]
    ]
    lines = enumerate(get_text(fields, "map").splitlines())
    column_mapping: dict[str, str] = {}
    try:
        column_mapping = parse_mapping_pairs((f"map/{number}", line) for number, line in lines if line.strip())
    except InvalidInput as error:
        all_problems += error.problems
    if all_problems:
        raise InvalidInput("The files cannot be imported so.", all_problems)
    return ImportOptions(requested["format"], requested["collection"], column_mapping)


def _redirect_to_upload(upload: Upload) -> Response:
    return RedirectResponse(f"{_PATH}/{upload.ticket}", 303)


@dataclass(frozen=True)
class UploadRoute:
    """Target of the upload form; the body is read only after the permission is checked."""

    path: str
    permission: Permission

    def to_route(self, site: Site) -> Route:
        """Build the Starlette route."""

        async def endpoint(request: Request) -> Response:
            page_routes.require_same_origin(request)
            if not await page_routes.authorize_write(site, request, self.permission):
                return page_routes.redirect_to_sign_in(request)
            async with read_upload(request, site.limits) as uploaded:
                return await run_in_threadpool(_store_files, site, request, uploaded)

        return Route(self.path, endpoint, methods=["POST"])


ROUTES = (
    PageRoute(_PATH, show_form, Permission.PUBLISH),
    UploadRoute(_PATH, Permission.PUBLISH),
    PageRoute(_DETAIL_PATH, show_preview, Permission.PUBLISH),
    FormRoute(_DETAIL_PATH, apply_import, Permission.PUBLISH),
    FormRoute(f"{_DETAIL_PATH}/look", preview_again, Permission.PUBLISH),
    FormRoute(f"{_DETAIL_PATH}/discard", discard, Permission.PUBLISH),
)
