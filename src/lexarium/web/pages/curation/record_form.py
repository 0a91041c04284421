"""Form to create or edit a record in all its languages, with preview."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from starlette.responses import RedirectResponse, Response

from lexarium.domain.editing.edit import to_draft
from lexarium.domain.editing.validation import OPTIONAL_KEYS, build_draft_model, validate_draft
from lexarium.domain.errors import InvalidInput, QuotaExceeded, RecordMerged, RecordRetired, VersionConflict
from lexarium.domain.identifiers import get_local_id, qualify_id
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.text.characters import find_control_char
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import submissions
from lexarium.services.curation.draft_checks import may_have_id
from lexarium.services.curation.name_warnings import list_new_names
from lexarium.services.idempotency import IdempotencyRequest, WriteResponse, is_repeated, make_idempotent
from lexarium.services.records import queries
from lexarium.services.records.lookup import get_published, get_record
from lexarium.services.search.record_search import NearName
from lexarium.store.transaction import Transaction
from lexarium.web.pages.curation import draft_fields, record_fields, relation_rows
from lexarium.web.pages.curation.revert import build_result_url
from lexarium.web.pages.form_fields import FormValues, get_required_version, get_summary, get_text, to_field_errors
from lexarium.web.pages.page import FormRoute, Page, PageRoute
from lexarium.web.site import Site
from lexarium.web.template_filters import list_record_routes

# Further fields are folded away.
_MAX_MAIN_FIELDS = 8


@dataclass(frozen=True)
class RecordForm:
    """State of the form; a new record has no id and no version.

    After an edit conflict, `newer_values` are the fields that others have changed, and `conflicting_fields` those of
    them that the user has changed too.
    """

    collection: Collection
    values: Mapping[str, str]
    # Besides the default one.
    languages: Sequence[str]
    record_id: str | None = None
    version: int | None = None
    newer_values: Mapping[str, str] = field(default_factory=dict)
    conflicting_fields: frozenset[str] = frozenset()
    is_preview: bool = False
    # Records with names that equal new ones or are near them, if they are the reason why nothing was saved.
    near_names: Sequence[NearName] = ()


def _build_empty_draft(collection: Collection) -> dict[str, Any]:
    fields = build_draft_model(collection.name).model_fields
    return {
        name: "" if info.is_required() else info.get_default(call_default_factory=True)
        for name, info in fields.items()
        if name not in OPTIONAL_KEYS
    }


def choose_collection(page: Page) -> Response:
    """Show the collections to add a record to, by vocabulary."""
    slugs = [slug for slug in page.scope.slugs if page.caller.has_permission(Permission.PROPOSE, slug)]
    offered = {slug: {name: COLLECTIONS[name] for name in COLLECTIONS.list_names(slug)} for slug in slugs}
    return page.render("choose_collection.html", {"offered_collections": offered})


def show_new(page: Page, *, is_preview: bool = False) -> Response:
    """Show an empty form, with a name if the query has one; or the form that was sent, as preview or with errors."""
    collection = page.collection
    page.require_in(Permission.PROPOSE, collection.vocabulary)
    form = _open_form(collection, page.fields, [_build_empty_draft(collection)], is_preview=is_preview)
    if page.fields:
        return _render_form(page, form, get_text(page.fields, "key"))
    values = {**form.values, "name": page.query.get("name", "")}
    return _render_form(page, replace(form, values=values), secrets.token_hex(8))


def create(page: Page) -> Response:
    """Create a record or propose it, or show a preview."""
    collection, caller, base_draft = page.collection, page.caller, _build_empty_draft(page.collection)
    languages = record_fields.list_languages(collection, [base_draft], page.fields)
    draft = record_fields.parse_draft(collection, page.fields, base_draft, languages)
    if get_text(page.fields, "id").strip():
        draft["id"] = get_text(page.fields, "id").strip()
    if get_text(page.fields, "act") in ("preview", "language"):
        return show_new(page, is_preview=get_text(page.fields, "act") == "preview")
    summary = get_summary(page.fields)

    def task(transaction: Transaction) -> WriteResponse:
        result = submissions.open_writer(transaction, caller, collection.vocabulary, summary).create(collection, draft)
        return WriteResponse(303, None, build_result_url(result))

    # A form sent twice has the same key and content, and is applied once.
    digest = hashlib.sha256(orjson.dumps(dict(page.fields), option=orjson.OPT_SORT_KEYS)).hexdigest()
    idempotency = IdempotencyRequest.from_parts(f"page-{digest}" if get_text(page.fields, "key") else None)
    with page.read() as snapshot:
        is_done = is_repeated(snapshot, caller.account.id, idempotency)
        rows = relation_rows.parse_rows(page.fields)
        if rows and not is_done:
            draft["relations"] = relation_rows.resolve(page.site, snapshot, collection, rows)
    form = _open_form(collection, page.fields, [base_draft])
    if not is_done and (near_names := _find_unconfirmed(page, form, draft)):
        return _render_form(page, replace(form, near_names=near_names), get_text(page.fields, "key"))
    try:
        response = page.write(make_idempotent(caller.account.id, idempotency, task))
    except InvalidInput as error:
        raise record_fields.locate_problems(collection, draft, languages, error) from None
    return RedirectResponse(str(response.location), 303)


def show_edit(page: Page) -> Response:
    """Show the form with the current values of a record."""
    with page.read() as snapshot:
        record_id = page.find_record(snapshot)
        page.require(Permission.PROPOSE, record_id)
        current = get_published(snapshot, None, record_id)
    form = _open_form(current.record.collection, {}, [to_draft(current.record)])
    return _render_form(page, replace(form, record_id=record_id, version=current.version))


def save_edit(page: Page) -> Response:
    """Save an edit or propose it; or show the form again, as preview, with errors or with others' changes."""
    caller, fields, version = page.caller, page.fields, get_required_version(page.fields)
    with page.read() as snapshot:
        record_id = page.find_record(snapshot)
        collection = get_record(snapshot, record_id).record.collection
        base = queries.get_version(snapshot, collection, record_id, version).to_record()
    base_draft = to_draft(base)
    form = replace(_open_form(collection, fields, [base_draft]), record_id=record_id, version=version)
    if get_text(fields, "act") in ("preview", "language"):
        return _render_form(page, replace(form, is_preview=get_text(fields, "act") == "preview"))
    draft = record_fields.parse_draft(collection, fields, base_draft, form.languages)
    if near_names := _find_unconfirmed(page, form, draft, base):
        return _render_form(page, replace(form, near_names=near_names))

    def task(transaction: Transaction) -> str:
        previous = get_published(transaction.flush(), collection, record_id, version)
        writer = submissions.open_writer(transaction, caller, collection.vocabulary, get_summary(fields))
        return build_result_url(writer.update(previous, draft), previous)

    try:
        return RedirectResponse(page.write(task), 303)
    except VersionConflict:
        form = _rebase_form(page, form, base_draft)
    except InvalidInput as error:
        page.errors = to_field_errors(record_fields.locate_problems(collection, draft, form.languages, error))
    except QuotaExceeded as error:
        page.errors = to_field_errors(error)
    except (RecordRetired, RecordMerged) as error:
        page.errors = {"": f"{error} Your text is still in the form."}
    return _render_form(page, form)


def _find_unconfirmed(
    page: Page, form: RecordForm, draft: Mapping[str, Any], current: Record | None = None
) -> list[NearName]:
    """Return the records that have the new name of a valid draft, or nearly, unless the author has seen all of them.

    Its aliases, and names in other languages, are often those of others: the preview shows them, and nothing waits.
    """
    page.require_in(Permission.PROPOSE, form.collection.vocabulary)
    near_names = _find_near_names(page.site, form.collection, {"name": draft["name"]}, current)
    seen = set(get_text(page.fields, "anyway").splitlines())
    is_confirmed = {get_local_id(item.id) for item in near_names} <= seen
    return [] if is_confirmed or _find_errors(page.site, form) else near_names


def _find_near_names(
    site: Site, collection: Collection, draft: Mapping[str, Any], current: Record | None = None
) -> list[NearName]:
    names = [text for _, text in list_new_names(draft, current)]
    return site.record_search.find_near_names(names, collection.name, None if current is None else current.id)


def _open_form(
    collection: Collection, fields: FormValues, drafts: Sequence[Mapping[str, Any]], *, is_preview: bool = False
) -> RecordForm:
    """Return the form with what was sent, if anything was, else with the first of some drafts."""
    languages = record_fields.list_languages(collection, drafts, fields)
    values = record_fields.to_values(collection, drafts[0], languages)
    sent = {name: get_text(fields, name) for name in (*values, "id") if name in fields}
    return RecordForm(collection, {**values, **sent}, languages, is_preview=is_preview)


def _rebase_form(page: Page, form: RecordForm, base_draft: Mapping[str, Any]) -> RecordForm:
    """Return the form on top of the current version: the user's changes stay, with those of others beside them."""
    with page.read() as snapshot:
        current = get_record(snapshot, form.record_id or "")
    collection, current_draft = current.record.collection, to_draft(current.record)
    languages = record_fields.list_languages(collection, [base_draft, current_draft], page.fields)
    base_values, current_values = (
        record_fields.to_values(collection, draft, languages) for draft in (base_draft, current_draft)
    )
    own_changes = {
        item.name: get_text(page.fields, item.name)
        for item in record_fields.list_all_fields(collection, languages)
        if record_fields.is_changed(item, page.fields, base_values[item.name])
    }
    newer_values = {name: value for name, value in current_values.items() if value != base_values[name]}
    return replace(
        form,
        collection=collection,
        languages=languages,
        values={**current_values, **own_changes},
        version=current.version,
        newer_values=newer_values or {"": ""},
        conflicting_fields=frozenset(own_changes) & newer_values.keys(),
    )


def preview(page: Page) -> Response:
    """Return the preview of a draft as an HTML fragment, for a form that updates it while the user types."""
    collection, local_id = page.collection, get_text(page.fields, "record")
    is_known = local_id and not find_control_char(local_id)
    record_id = qualify_id(collection.vocabulary, local_id) if is_known else None
    form = _open_form(collection, page.fields, [_build_empty_draft(collection)], is_preview=True)
    return page.render("_record_preview.html", _build_preview(page.site, replace(form, record_id=record_id)))


def _render_form(page: Page, form: RecordForm, key: str = "") -> Response:
    collection = form.collection
    with page.read() as snapshot:
        classes = page.site.list_classes(snapshot, next(iter(collection.class_fields.values()), ""))
    form_fields = record_fields.list_form_fields(collection)
    rows = relation_rows.parse_rows(page.fields)
    used_types = {row.type_name for row in rows}
    relation_types = relation_rows.list_types(collection, used_types) if form.record_id is None else {}
    language_fields = {lang: record_fields.list_language_fields(collection, lang) for lang in form.languages}
    context = {
        "form": form,
        "main_fields": form_fields[:_MAX_MAIN_FIELDS],
        "more_fields": form_fields[_MAX_MAIN_FIELDS:],
        "language_fields": language_fields,
        "added_language": form.languages[-1] if get_text(page.fields, "act") == "language" and form.languages else "",
        "classes": [(get_local_id(item.id), item.name) for item in classes],
        "takes_id": form.record_id is None and may_have_id(collection),
        "permission_slug": collection.vocabulary,
        "key": key,
        "relation_types": relation_types,
        "relation_rows": relation_rows.add_empty_rows(rows, relation_types),
        **_build_preview(page.site, form),
    }
    return page.render("record_form.html", context, 409 if form.newer_values or form.near_names else 200)


def _build_preview(site: Site, form: RecordForm) -> dict[str, Any]:
    collection, values = form.collection, form.values
    name, aliases = values.get("name", "").strip(), draft_fields.parse_field(collection, values, "aliases")
    current = None
    if form.record_id is not None:
        with site.database.read() as snapshot:
            current = get_record(snapshot, form.record_id).record
    near_names = form.near_names
    if not near_names:
        draft = record_fields.parse_draft(collection, values, _build_empty_draft(collection), form.languages)
        near_names = _find_near_names(site, collection, draft, current)
    form_fields = record_fields.list_all_fields(collection, form.languages)
    return {
        "labels": {
            "relations": "Relations",
            **{item.name: f"{item.label} ({item.lang})" if item.lang else item.label for item in form_fields},
        },
        "preview_errors": _find_errors(site, form) if form.is_preview else {},
        "collection": collection,
        "name": name,
        "aliases": aliases,
        "definition": values.get(collection.definition_field or "", ""),
        "sources": draft_fields.parse_field(collection, values, "sources"),
        "near_names": near_names,
        "is_warning_shown": bool(form.near_names),
        # The button that confirms them sends the ids, so that others are shown if the name is changed.
        "near_ids": "\n".join(get_local_id(item.id) for item in near_names),
    }


def _find_errors(site: Site, form: RecordForm) -> dict[str, str]:
    """Return the errors of a draft so far, except for a name that is still missing."""
    collection, current_draft = form.collection, None
    if form.record_id is not None:
        with site.database.read() as snapshot:
            current_draft = to_draft(get_record(snapshot, form.record_id).record)
    base_draft = current_draft or _build_empty_draft(collection)
    draft = record_fields.parse_draft(collection, form.values, base_draft, form.languages)
    try:
        validate_draft(collection, draft, current_draft)
    except InvalidInput as error:
        errors = to_field_errors(record_fields.locate_problems(collection, draft, form.languages, error))
        return {name: message for name, message in errors.items() if name != "name" or form.values["name"].strip()}
    return {}


ROUTES = (
    PageRoute("/propose", choose_collection, Permission.PROPOSE),
    PageRoute("/propose/{collection}", show_new, Permission.PROPOSE),
    FormRoute("/propose/{collection}", create, Permission.PROPOSE, show_new),
    FormRoute("/preview/{collection}", preview, Permission.PROPOSE),
    *(PageRoute(path, show_edit, Permission.PROPOSE) for path in list_record_routes("edit")),
    *(FormRoute(path, save_edit, Permission.PROPOSE) for path in list_record_routes("edit")),
)
