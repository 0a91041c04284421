"""Importing files: sent, looked at, and only then imported."""

import re
from collections.abc import Collection, Mapping
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
from lexarium.services.transfer.uploads import RETENTION_SECONDS, ImportOptions, Upload
from lexarium.store import records
from lexarium.web.http.uploads import UploadedForm, read_upload
from lexarium.web.pages.form_fields import COLLECTION_CHOICES, FORM_ERRORS, FormValues, get_text, to_field_errors
from lexarium.web.pages.page_routes import (
    FormRoute,
    PageRoute,
    authorize_write,
    redirect_to_sign_in,
    require_same_origin,
)
from lexarium.web.pages.session import require_caller
from lexarium.web.pages.site import Site

_PATH = "/import"
_WAIT_SECONDS = 2.0
"""How long a page waits for an import: most are through by then."""
_MAX_LISTED = 200
"""How many warnings, problems and conflicts a page tells one by one."""
_FIELD_LABELS = {"format": "Format", "collection": "Collection", "map": "What columns mean"}
"""What the fields are called by which files are read otherwise, each by the option that a command has for it."""
_CLI_OPTION = re.compile(rf"--({'|'.join(_FIELD_LABELS)})\b")
_FORMATS = {file_format.name: file_format for file_format in FORMATS.values() if file_format.can_read}
_PREFERENCES: dict[str, ConflictPreference | None] = {"": None, "ours": "ours", "theirs": "theirs"}


def show_form(site: Site, request: Request) -> Response:
    """A place for files."""
    return _render_form(site, request, {}, {})


def _render_form(site: Site, request: Request, form_values: FormValues, errors: Mapping[str, str]) -> Response:
    context = {"typed": form_values, "wrong": errors, "most": site.settings.upload_mb, **_build_choices()}
    return site.render(request, "import.html", context, 422 if errors else 200)


async def upload_files(site: Site, request: Request) -> Response:
    """Keep the files that were sent, and begin to look at them."""
    async with read_upload(request, site.limits) as uploaded:
        return await run_in_threadpool(_store_files, site, request, uploaded)


def _store_files(site: Site, request: Request, uploaded: UploadedForm) -> Response:
    caller = require_caller(site, request)
    try:
        options = _parse_options(
            uploaded.fields, [] if uploaded.files else [FieldProblem("files", "must be chosen: one or several.")]
        )
        return _redirect_to_upload(site.uploads.receive(caller, uploaded.files, options, _WAIT_SECONDS))
    except FORM_ERRORS as error:
        return _render_form(site, request, uploaded.fields, to_field_errors(error, "files"))


def show_preview(site: Site, request: Request) -> Response:
    """What an import would do, or has done; or how far it is."""
    upload = site.uploads.get(require_caller(site, request), request.path_params["ticket"])
    options = upload.how
    mapping_lines = "\n".join(f"{column}={meaning}" for column, meaning in options.map.items())
    return _render_preview(
        site, request, upload, {"format": options.format, "collection": options.collection, "map": mapping_lines}, {}
    )


def _render_preview(
    site: Site, request: Request, upload: Upload, form_values: FormValues, errors: Mapping[str, str]
) -> Response:
    context = {
        "upload": upload,
        "most": _MAX_LISTED,
        "minutes": RETENTION_SECONDS // 60,
        "typed": form_values,
        "wrong": errors,
    }
    notes = upload.problems or upload.report.get("warnings", [])
    context |= {
        "notes": [
            {**note, "what": _CLI_OPTION.sub(lambda match: f"“{_FIELD_LABELS[match[1]]}”", note["what"])}
            for note in notes
        ],
        "unread": any(_CLI_OPTION.search(note["what"]) for note in notes),
        "there": _find_existing_ids(site, upload),
        "relations": RELATION_TYPES,
    }
    return site.render(request, "imported.html", {**context, **_build_choices()}, 422 if errors else 200)


def _find_existing_ids(site: Site, upload: Upload) -> set[str]:
    """Which of the records that a report names are in the catalogue, so that they have a page."""
    mentioned_ids = {item["id"] for items in upload.report.get("records", {}).values() for item in items}
    for items in upload.report.get("relations", {}).values():
        mentioned_ids |= {item[end] for item in items for end in ("source", "target")}
    with site.database.read() as snapshot:
        return records.find_existing_ids(snapshot, sorted(mentioned_ids))


def preview_again(site: Site, request: Request, fields: FormValues) -> Response:
    """Read the same files otherwise."""
    caller, upload_id = require_caller(site, request), request.path_params["ticket"]
    try:
        return _redirect_to_upload(site.uploads.preview(caller, upload_id, _parse_options(fields, []), _WAIT_SECONDS))
    except FORM_ERRORS as error:
        return _render_preview(site, request, site.uploads.get(caller, upload_id), fields, to_field_errors(error))


def apply_import(site: Site, request: Request, fields: FormValues) -> Response:
    """Import what was looked at."""
    caller, upload_id = require_caller(site, request), request.path_params["ticket"]
    try:
        upload = site.uploads.apply(caller, upload_id, _PREFERENCES.get(get_text(fields, "prefer")), _WAIT_SECONDS)
    except Conflict:
        upload = site.uploads.get(caller, upload_id)
        if not upload.is_running:  # Who presses the button twice is shown how far it is.
            raise
    return _redirect_to_upload(upload)


def discard(site: Site, request: Request, fields: FormValues) -> Response:
    """Throw the files away."""
    site.uploads.discard(require_caller(site, request), request.path_params["ticket"])
    return RedirectResponse(_PATH, 303)


def _parse_options(fields: FormValues, problems: list[FieldProblem]) -> ImportOptions:
    """How files are to be read. Raises `Invalid` with every problem, and these."""
    choices: dict[str, Collection[str]] = {"format": _FORMATS, "collection": COLLECTIONS}
    requested = {name: get_text(fields, name) for name in choices}
    field_problems = [
        FieldProblem(name, f"should be one of {', '.join(choices[name])}, or left open.")
        for name, value in requested.items()
        if value and value not in choices[name]
    ]
    lines = enumerate(get_text(fields, "map").splitlines())
    column_mapping: dict[str, str] = {}
    try:
        column_mapping = parse_mapping_pairs((f"map/{number}", line) for number, line in lines if line.strip())
    except InvalidInput as error:
        field_problems += error.problems
    if problems or field_problems:
        raise InvalidInput("The files cannot be imported so.", [*problems, *field_problems])
    return ImportOptions(requested["format"], requested["collection"], column_mapping)


def _build_choices() -> dict[str, Any]:
    return {
        "labels": _FIELD_LABELS,
        "formats": [(file_format.name, file_format.description) for file_format in _FORMATS.values()],
        "kinds": COLLECTION_CHOICES,
    }


def _redirect_to_upload(upload: Upload) -> Response:
    return RedirectResponse(f"{_PATH}/{upload.ticket}", 303)


@dataclass(frozen=True)
class UploadRoute:
    """A form with files, of which nothing is read before it is known who sends them."""

    path: str
    permission: Permission

    def to_route(self, site: Site) -> Route:
        """It as the framework has it."""

        async def endpoint(request: Request) -> Response:
            require_same_origin(request)
            return (
                await upload_files(site, request)
                if await authorize_write(site, request, self.permission)
                else redirect_to_sign_in(request)
            )

        return Route(self.path, endpoint, methods=["POST"])


_DETAIL_PATH = _PATH + "/{ticket}"
ROUTES = (
    PageRoute(_PATH, show_form, Permission.PUBLISH),
    UploadRoute(_PATH, Permission.PUBLISH),
    PageRoute(_DETAIL_PATH, show_preview, Permission.PUBLISH),
    FormRoute(_DETAIL_PATH, apply_import, Permission.PUBLISH),
    FormRoute(f"{_DETAIL_PATH}/look", preview_again, Permission.PUBLISH),
    FormRoute(f"{_DETAIL_PATH}/discard", discard, Permission.PUBLISH),
)
