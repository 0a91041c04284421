"""Upload files, preview the import, then apply it."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from lexarium.domain.editing.import_merge import ConflictPreference
from lexarium.domain.errors import Conflict, FieldProblem, InvalidInput
from lexarium.domain.schema.collections import MAIN_COLLECTIONS, RELATION_TYPES
from lexarium.formats.column_mapping import parse_mapping_pairs
from lexarium.formats.registry import FORMATS
from lexarium.services.access.permissions import Permission
from lexarium.services.records.lookup import find_existing_ids
from lexarium.services.transfer.uploads import RETENTION_SECONDS, ImportOptions, Upload
from lexarium.web.http.uploads import UploadedForm
from lexarium.web.pages.form_fields import FORM_ERRORS, FormValues, get_text, to_field_errors
from lexarium.web.pages.page import (
    FormRoute,
    Page,
    PageRoute,
    UploadRoute,
    redirect,
)

_PATH = "/import"
_DETAIL_PATH = _PATH + "/{ticket}"
# Most imports are done after this time, so the first page already shows the result.
_WAIT_SECONDS = 2.0
# Labels of the form fields that correspond to options of the command line, which messages mention.
_FIELD_LABELS = {"format": "Format", "collection": "Collection", "map": "What columns mean"}
_CLI_OPTION = re.compile(rf"--({'|'.join(_FIELD_LABELS)})\b")
_PREFERENCES: dict[str, ConflictPreference | None] = {"": None, "ours": "ours", "theirs": "theirs"}
_CHOICES: dict[str, Any] = {
    "labels": _FIELD_LABELS,
    "formats": [(file_format.name, file_format.description) for file_format in FORMATS.values()],
}


def show_form(page: Page) -> Response:
    """Show the form to upload files."""
    page.caller.require(Permission.PUBLISH)
    return page.render("import.html", {"max_mb": page.site.settings.upload_mb, **_CHOICES})


def _store_files(page: Page, uploaded: UploadedForm) -> Response:
    page.caller.require(Permission.PUBLISH)
    problems = [] if uploaded.files else [FieldProblem("files", "must be chosen: one or several.")]
    try:
        options = _parse_options(uploaded.fields, problems)
        return _redirect_to_upload(page.site.uploads.receive(page.caller, uploaded.files, options, _WAIT_SECONDS))
    except FORM_ERRORS as error:
        return show_form(replace(page, fields=uploaded.fields, errors=to_field_errors(error, "files")))


def show_preview(page: Page) -> Response:
    """Show the progress of an import, its preview, or its result."""
    upload = page.site.uploads.get(page.caller, _get_ticket(page))
    mapping_lines = "\n".join(f"{column}={meaning}" for column, meaning in upload.how.map.items())
    stored_values = {"format": upload.how.format, "collection": upload.how.collection, "map": mapping_lines}
    notes = upload.problems or upload.report.get("warnings", [])
    context = {
        "upload": upload,
        "minutes": RETENTION_SECONDS // 60,
        "form_values": page.fields if page.errors else stored_values,
        "notes": [
            {**note, "what": _CLI_OPTION.sub(lambda match: f"“{_FIELD_LABELS[match[1]]}”", note["what"])}
            for note in notes
        ],
        "needs_options": any(_CLI_OPTION.search(note["what"]) for note in notes),
        "existing_ids": _find_existing_ids(page, upload),
        "relations": RELATION_TYPES,
        **_CHOICES,
    }
    return page.render("import_preview.html", context)


def _find_existing_ids(page: Page, upload: Upload) -> set[str]:
    """Return which records of a report are in the catalogue, and so have a page."""
    mentioned_ids = {item["id"] for items in upload.report.get("records", {}).values() for item in items}
    for items in upload.report.get("relations", {}).values():
        mentioned_ids |= {item[end] for item in items for end in ("source", "target")}
    with page.read() as snapshot:
        return find_existing_ids(snapshot, sorted(mentioned_ids))


def preview_again(page: Page) -> Response:
    """Preview the same files with other options."""
    options = _parse_options(page.fields)
    return _redirect_to_upload(page.site.uploads.preview(page.caller, _get_ticket(page), options, _WAIT_SECONDS))


def apply_import(page: Page) -> Response:
    """Import the files that were previewed."""
    caller, ticket, uploads = page.caller, _get_ticket(page), page.site.uploads
    try:
        upload = uploads.apply(caller, ticket, _PREFERENCES.get(get_text(page.fields, "prefer")), _WAIT_SECONDS)
    except Conflict:
        upload = uploads.get(caller, ticket)
        if not upload.is_running:  # The button was pressed twice: show the progress.
            raise
    return _redirect_to_upload(upload)


def discard(page: Page) -> Response:
    """Delete the uploaded files."""
    page.site.uploads.discard(page.caller, _get_ticket(page))
    return redirect(_PATH)


def _get_ticket(page: Page) -> str:
    return str(page.request.path_params["ticket"])


def _parse_options(fields: FormValues, problems: Sequence[FieldProblem] = ()) -> ImportOptions:
    """Return the options of a form; raise InvalidInput with all problems, including the given ones."""
    choices: dict[str, Collection[str]] = {"format": FORMATS, "collection": MAIN_COLLECTIONS}
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
    return redirect(f"{_PATH}/{upload.ticket}")


ROUTES = (
    PageRoute(_PATH, show_form, Permission.PUBLISH),
    UploadRoute(_PATH, _store_files, Permission.PUBLISH),
    PageRoute(_DETAIL_PATH, show_preview, Permission.PUBLISH),
    FormRoute(_DETAIL_PATH, apply_import, Permission.PUBLISH),
    FormRoute(f"{_DETAIL_PATH}/look", preview_again, Permission.PUBLISH, show_preview),
    FormRoute(f"{_DETAIL_PATH}/discard", discard, Permission.PUBLISH),
)
