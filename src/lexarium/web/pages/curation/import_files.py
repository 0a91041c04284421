"""Upload files, preview the import, then apply it."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from lexarium.domain.editing.import_merge import ConflictPreference
from lexarium.domain.errors import Conflict, FieldProblem, InvalidInput, NotFound
from lexarium.domain.identifiers import MAIN_VOCABULARY, get_local_id, qualify_id
from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.domain.text.languages import find_tag_problem
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.formats.column_mapping import MAPPING_TARGETS, parse_mapping_pairs
from lexarium.formats.registry import FORMATS
from lexarium.services.access.permissions import Permission
from lexarium.services.records.lookup import find_existing_ids
from lexarium.services.transfer.import_request import ImportMode
from lexarium.services.transfer.uploads import RETENTION_SECONDS, ImportOptions, Upload
from lexarium.services.vocabularies.access import get_read_scope
from lexarium.web.http.uploads import UploadedForm
from lexarium.web.pages.form_fields import FORM_ERRORS, FormValues, get_text, to_field_errors
from lexarium.web.pages.page import (
    FormRoute,
    Page,
    PageRoute,
    UploadRoute,
    redirect,
)
from lexarium.web.template_filters import record_path

_PATH = "/import"
_DETAIL_PATH = _PATH + "/{upload}"
# Most imports are done after this time, so the first page already shows the result.
_WAIT_SECONDS = 2.0
# Labels of the form fields that correspond to options of the command line, which messages mention.
_FIELD_LABELS = {
    "vocabulary": "Vocabulary",
    "new_vocabulary": "New vocabulary",
    "format": "Format",
    "collection": "Collection",
    "map": "Column mapping",
    "mode": "Mode",
    "lang": "Language",
}
# An option, and its value if that is quoted for a shell.
_CLI_OPTION = re.compile(rf"--({'|'.join(_FIELD_LABELS)})\b(?: ('(?:[^']|'\"'\"')+'))?")
_MODES = [
    (ImportMode.UPDATE, "Update: replace earlier values from the same source"),
    (ImportMode.ADD, "Add: remove nothing"),
    (ImportMode.REPLACE, "Replace: update, and retire records missing from the source"),
]
_PREFERENCES: dict[str, ConflictPreference | None] = {"": None, "ours": "ours", "theirs": "theirs"}


def show_form(page: Page) -> Response:
    """Show the form to upload files."""
    return page.render("import.html", {"max_mb": page.site.settings.upload_mb, **_list_choices(page)})


def _list_choices(page: Page) -> dict[str, Any]:
    return {
        "labels": _FIELD_LABELS,
        "vocabularies": [(item.slug, item.title) for item in page.site.sort_vocabularies(_list_importable(page))],
        "can_create": page.caller.has_permission(Permission.ADMINISTER),
        "formats": [(name, file_format.description) for name, file_format in FORMATS.items()],
        "modes": _MODES,
    }


def _list_importable(page: Page) -> list[str]:
    """Return the slugs of the vocabularies that the caller may import into."""
    slugs = get_read_scope(page.caller).slugs
    return [slug for slug in slugs if page.caller.has_permission(Permission.PUBLISH, slug)]


def _store_files(page: Page, uploaded: UploadedForm) -> Response:
    problems = [] if uploaded.files else [FieldProblem("files", "Select at least one file.")]
    try:
        options = _parse_options(page, uploaded.fields, problems)
        return _redirect_to_upload(page.site.uploads.receive(page.caller, uploaded.files, options, _WAIT_SECONDS))
    except FORM_ERRORS as error:
        return show_form(replace(page, fields=uploaded.fields, errors=to_field_errors(error, "files")))


def show_preview(page: Page) -> Response:
    """Show the progress of an import, its preview, or its result."""
    upload = page.site.uploads.get(page.caller, _get_upload_id(page))
    slug, choices = upload.report.get("vocabulary", ""), _list_choices(page)
    if slug in VOCABULARIES and slug not in get_read_scope(page.caller).slugs:
        raise NotFound("Upload not found or expired. Upload the files again.")
    kinds = upload.report.get("warning_kinds", [])
    texts = [upload.error, *(item["what"] for item in (*upload.problems, *kinds))]
    context = {
        "upload": upload,
        "minutes": RETENTION_SECONDS // 60,
        "form_values": page.fields if page.errors else _to_form_values(upload.options, choices["vocabularies"]),
        "target": VOCABULARIES.get(slug),
        "name_fields": _name_fields,
        "kinds": kinds,
        "needs_options": any(map(_CLI_OPTION.search, texts)),
        "collections": _find_collections(upload),
        "paths": _find_paths(page, upload),
        "relations": RELATION_TYPES,
        **choices,
    }
    return page.render("import_preview.html", context)


def _name_fields(text: str) -> str:
    """Return a message with the labels of fields instead of the options of the command line."""
    return _CLI_OPTION.sub(lambda match: " ".join([f"“{_FIELD_LABELS[match[1]]}”", *shlex.split(match[2] or "")]), text)


def _to_form_values(options: ImportOptions, vocabularies: Sequence[tuple[str, str]]) -> dict[str, str]:
    is_new = options.vocabulary not in dict(vocabularies)
    return {
        "new_vocabulary" if is_new else "vocabulary": options.vocabulary,
        "format": options.format,
        "collection": options.collection,
        "map": "\n".join(f"{column}={meaning}" for column, meaning in options.map.items()),
        "mode": options.mode,
        "lang": options.language,
    }


def _find_collections(upload: Upload) -> dict[str, Collection | None]:
    """Return the collections of a report by their names. Those of a vocabulary that is not created yet are None."""
    report = upload.report
    names = [name for kind in ("created", "updated", "retired", "unchanged") for name in report.get(kind, {})]
    names += [item["collection"] for items in report.get("records", {}).values() for item in items]
    return {name: COLLECTIONS.get(qualify_name(report["vocabulary"], name)) for name in names}


def _find_paths(page: Page, upload: Upload) -> dict[str, str]:
    """Return the paths of the records of a report that are in the catalogue, by id."""
    report = upload.report
    mentioned_ids = {item["id"] for items in report.get("records", {}).values() for item in items}
    mentioned_ids |= {item["record"] for item in report.get("conflicts", ())}
    for items in report.get("relations", {}).values():
        mentioned_ids |= {item[end] for item in items for end in ("source", "target")}
    record_ids = [qualify_id(report["vocabulary"], local_id) for local_id in sorted(mentioned_ids)]
    with page.read() as snapshot:
        return {get_local_id(item): record_path(item) for item in find_existing_ids(snapshot, record_ids)}


def preview_again(page: Page) -> Response:
    """Preview the same files with other options."""
    options = _parse_options(page, page.fields)
    return _redirect_to_upload(page.site.uploads.preview(page.caller, _get_upload_id(page), options, _WAIT_SECONDS))


def apply_import(page: Page) -> Response:
    """Import the files that were previewed."""
    caller, upload_id, uploads = page.caller, _get_upload_id(page), page.site.uploads
    try:
        upload = uploads.apply(caller, upload_id, _PREFERENCES.get(get_text(page.fields, "prefer")), _WAIT_SECONDS)
    except Conflict:
        upload = uploads.get(caller, upload_id)
        if not upload.is_running:  # The button was pressed twice: show the progress.
            raise
    return _redirect_to_upload(upload)


def discard(page: Page) -> Response:
    """Delete the uploaded files."""
    page.site.uploads.discard(page.caller, _get_upload_id(page))
    return redirect(_PATH)


def _get_upload_id(page: Page) -> str:
    return str(page.request.path_params["upload"])


def _parse_options(page: Page, fields: FormValues, problems: Sequence[FieldProblem] = ()) -> ImportOptions:
    """Return the options of a form; raise InvalidInput with all problems, including the given ones."""
    slugs = _list_importable(page)
    choices: dict[str, list[str]] = {
        "vocabulary": slugs,
        "format": list(FORMATS),
        "collection": list(dict.fromkeys(item.local_name for slug in slugs for item in VOCABULARIES[slug].collections)),
        "mode": list(ImportMode),
    }
    requested = {name: get_text(fields, name) for name in choices}
    all_problems = [*problems] + [
        FieldProblem(name, f"must be one of {', '.join(choices[name])}, or left empty.")
        for name, value in requested.items()
        if value and value not in choices[name]
    ]
    vocabulary = get_text(fields, "new_vocabulary").strip() or requested["vocabulary"]
    language = get_text(fields, "lang").strip()
    if language and (problem := find_tag_problem(language)):
        all_problems.append(FieldProblem("lang", problem))
    lines = enumerate(get_text(fields, "map").splitlines())
    pairs = ((f"map/{number}", line) for number, line in lines if line.strip())
    targets = MAPPING_TARGETS if vocabulary == MAIN_VOCABULARY else None
    column_mapping: dict[str, str] = {}
    try:
        column_mapping = parse_mapping_pairs(pairs, targets=targets)
    except InvalidInput as error:
        all_problems += error.problems
    if all_problems:
        raise InvalidInput("Invalid import options.", all_problems)
    mode = ImportMode(requested["mode"] or ImportMode.UPDATE)
    return ImportOptions(vocabulary, requested["format"], requested["collection"], column_mapping, mode, language)


def _redirect_to_upload(upload: Upload) -> Response:
    return redirect(f"{_PATH}/{upload.id}")


ROUTES = (
    PageRoute(_PATH, show_form, Permission.PUBLISH),
    UploadRoute(_PATH, _store_files, Permission.PUBLISH),
    PageRoute(_DETAIL_PATH, show_preview, Permission.PUBLISH),
    FormRoute(_DETAIL_PATH, apply_import, Permission.PUBLISH),
    FormRoute(f"{_DETAIL_PATH}/preview", preview_again, Permission.PUBLISH, show_preview),
    FormRoute(f"{_DETAIL_PATH}/discard", discard, Permission.PUBLISH),
)
