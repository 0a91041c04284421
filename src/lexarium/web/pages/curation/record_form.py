"""Form to create or edit a record in all its languages, with preview."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from starlette.responses import RedirectResponse, Response

from lexarium.domain.editing.edit import rebase_draft, to_draft
from lexarium.domain.editing.validation import OPTIONAL_KEYS, build_draft_model, validate_draft
from lexarium.domain.errors import InvalidInput, QuotaExceeded, RecordMerged, RecordRetired, VersionConflict
from lexarium.domain.identifiers import get_local_id, qualify_id
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.schema.predicates import SlotRole
from lexarium.domain.text.characters import find_control_char
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import submissions
from lexarium.services.idempotency import IdempotencyRequest, WriteResponse, make_idempotent
from lexarium.services.records import queries
from lexarium.services.records.lookup import get_published, get_record
from lexarium.store.transaction import Transaction
from lexarium.web.pages.curation import draft_fields, translation_fields
from lexarium.web.pages.curation.revert import build_result_url
from lexarium.web.pages.filters import capitalize_first, field_label, list_record_routes
from lexarium.web.pages.form_fields import FormValues, get_required_version, get_text, to_field_errors
from lexarium.web.pages.page import FormRoute, Page, PageRoute
from lexarium.web.pages.site import Site

_RELATIONS_FIELD = "relations"
# Relations have pages of their own, and translations and the id parts of the form of their own.
_OTHER_FIELDS = OPTIONAL_KEYS | {_RELATIONS_FIELD}
# Further fields are folded away.
_MAX_MAIN_FIELDS = 8
# Only so many names of a draft are compared with those of other records.
_MAX_NAMES = 6


@dataclass(frozen=True)
class FormField:
    """One field of a draft in a form; `kind` is `line`, `number`, `long`, `note`, `lines`, `choice` or `class`."""

    name: str
    kind: str
    label: str
    hint: str = ""
    max_length: int | None = None
    # Values and their texts, of a choice.
    choices: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class RecordForm:
    """State of the form; a new record has no id and no version. Translations are values too.

    After an edit conflict, `newer_values` are the fields that others have changed, and `conflicting_fields` those of
    them that the user has changed too.
    """

    collection: Collection
    values: Mapping[str, str]
    record_id: str | None = None
    version: int | None = None
    newer_values: Mapping[str, str] = field(default_factory=dict)
    conflicting_fields: frozenset[str] = frozenset()
    is_preview: bool = False


def list_form_fields(collection: Collection) -> list[FormField]:
    """Return the editable fields of a collection, the most important first."""
    names = [name for name in build_draft_model(collection.name).model_fields if name not in _OTHER_FIELDS]
    return [
        build_form_field(collection, name) for name in sorted(names, key=lambda name: _get_form_order(collection, name))
    ]


def _get_form_order(collection: Collection, name: str) -> tuple[int, int]:
    """Return the key to sort fields by: names, definition, core fields, others of the class, those of all classes."""
    if name not in collection.fields:
        is_important = collection.alias_field or collection.definition_field or not collection.is_auxiliary
        return ({"aliases": 1, "sources": 3}[name] if is_important else 7), 0
    place = list(collection.schema_class.slots).index(collection.fields[name].name)
    if collection.fields[name].role is SlotRole.NAME:
        return 0, place
    if name == collection.definition_field:
        return 2, place
    if name in collection.core_fields:
        return 4, place
    siblings = [COLLECTIONS[other] for other in COLLECTIONS.list_names(collection.vocabulary)]
    is_common = len(siblings) > 1 and all(name in other.fields for other in siblings)
    return (6 if is_common else 5), place


def build_form_field(collection: Collection, name: str) -> FormField:
    """Return the form field for one field of a draft."""
    label = capitalize_first(field_label(name, collection.name))
    if name in draft_fields.LIST_FIELD_HINTS:
        return FormField(name, "lines", label, draft_fields.LIST_FIELD_HINTS[name])
    if name in collection.class_fields:
        return FormField(name, "class", label)
    slot, max_length = collection.fields[name], collection.get_max_length(name)
    hint = "" if name == "name" else slot.description
    if slot.enum_values:
        return FormField(name, "choice", label, hint, choices=[(value.text, value.text) for value in slot.enum_values])
    if slot.role in (SlotRole.DEFINITION, SlotRole.NOTE):
        hint = f"{hint} An empty line begins a new paragraph.".lstrip()
        return FormField(name, "long" if slot.role is SlotRole.DEFINITION else "note", label, hint, max_length)
    kind = "number" if collection.field_types[name] is int else "line"
    return FormField(name, kind, label, hint, max_length)


def _build_empty_draft(collection: Collection) -> dict[str, Any]:
    fields = build_draft_model(collection.name).model_fields
    return {
        name: "" if info.is_required() else info.get_default(call_default_factory=True)
        for name, info in fields.items()
        if name not in OPTIONAL_KEYS
    }


def _parse_draft(collection: Collection, fields: FormValues, base_draft: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a form to the draft it was opened with. A field that the user did not change keeps its exact value."""
    shown_values = draft_fields.to_form_values(base_draft, collection.language)
    changed = {
        item.name: _parse_input(collection, item, fields)
        for item in list_form_fields(collection)
        if is_changed(item, fields, shown_values[item.name])
    }
    return {**base_draft, **changed}


def _parse_texts(
    collection: Collection, fields: FormValues, draft: Mapping[str, Any], base: Record | None
) -> dict[str, Any]:
    """Add the names and definitions in all languages to a draft, if the user changed a translation."""
    return {**draft, **translation_fields.parse_texts(collection, fields, draft, base)}


def _parse_input(collection: Collection, form_field: FormField, fields: FormValues) -> Any:
    value = _normalize_input(form_field, get_text(fields, form_field.name))
    return draft_fields.parse_field(collection, {form_field.name: value}, form_field.name)


def is_changed(form_field: FormField, fields: FormValues, shown_value: str) -> bool:
    """Return whether the user changed the text that a field showed."""
    value = _normalize_input(form_field, get_text(fields, form_field.name))
    return form_field.name in fields and value != _normalize_input(form_field, shown_value)


def _normalize_input(form_field: FormField, value: str) -> str:
    # Browsers change line breaks, and remove them from single-line inputs.
    lines = value.replace("\r\n", "\n").replace("\r", "\n")
    return lines.replace("\n", "").strip() if form_field.kind in ("line", "number") else lines


def choose_collection(page: Page) -> Response:
    """Show the collections to add a record to, by vocabulary."""
    slugs = [slug for slug in page.scope.slugs if page.caller.has_permission(Permission.PROPOSE, slug)]
    offered = {slug: {name: COLLECTIONS[name] for name in COLLECTIONS.list_names(slug)} for slug in slugs}
    return page.render("choose_collection.html", {"offered_collections": offered})


def show_new(page: Page, *, is_preview: bool = False) -> Response:
    """Show an empty form, with a name if the query has one; or the form that was sent, as preview or with errors."""
    collection = page.collection
    page.require_in(Permission.PROPOSE, collection.vocabulary)
    if page.fields:
        values, key = _get_values(collection, page.fields), get_text(page.fields, "key")
    else:
        values, key = (
            draft_fields.to_form_values(_build_empty_draft(collection), collection.language),
            secrets.token_hex(8),
        )
        values["name"] = page.query.get("name", "")
    return _render_form(page, RecordForm(collection, values, is_preview=is_preview), key)


def create(page: Page) -> Response:
    """Create a record or propose it, or show a preview."""
    collection, caller = page.collection, page.caller
    draft = _parse_draft(collection, page.fields, _build_empty_draft(collection))
    draft = _parse_texts(collection, page.fields, draft, None)
    if get_text(page.fields, "id").strip():
        draft["id"] = get_text(page.fields, "id").strip()
    if get_text(page.fields, "act") in ("preview", "language"):
        return show_new(page, is_preview=get_text(page.fields, "act") == "preview")

    def task(transaction: Transaction) -> WriteResponse:
        result = submissions.open_writer(transaction, caller, collection.vocabulary).create(collection, draft)
        return WriteResponse(303, None, build_result_url(result))

    # A form sent twice has the same key and content, and is applied once.
    digest = hashlib.sha256(orjson.dumps(dict(page.fields), option=orjson.OPT_SORT_KEYS)).hexdigest()
    idempotency = IdempotencyRequest.from_parts(f"page-{digest}" if get_text(page.fields, "key") else None)
    response = page.write(make_idempotent(caller.account.id, idempotency, task))
    return RedirectResponse(str(response.location), 303)


def show_edit(page: Page) -> Response:
    """Show the form with the current values of a record."""
    with page.read() as snapshot:
        record_id = page.find_record(snapshot)
        page.require(Permission.PROPOSE, record_id)
        current = get_published(snapshot, None, record_id)
    values = draft_fields.to_form_values(
        _to_draft(current.record), current.record.collection.language
    ) | translation_fields.to_values(current.record)
    return _render_form(page, RecordForm(current.record.collection, values, record_id, current.version))


def save_edit(page: Page) -> Response:
    """Save an edit or propose it; or show the form again, as preview, with errors or with others' changes."""
    caller, fields, version = page.caller, page.fields, get_required_version(page.fields)
    with page.read() as snapshot:
        record_id = page.find_record(snapshot)
        collection = get_record(snapshot, record_id).record.collection
        base = queries.get_version(snapshot, collection, record_id, version).to_record()
    base_draft, values = _to_draft(base), _get_values(collection, fields)
    draft = _parse_draft(collection, fields, base_draft)
    form = RecordForm(collection, values, record_id, version)
    if get_text(fields, "act") in ("preview", "language"):
        return _render_form(page, replace(form, is_preview=get_text(fields, "act") == "preview"))

    def task(transaction: Transaction) -> str:
        previous = get_published(transaction.flush(), collection, record_id, version)
        writer = submissions.open_writer(transaction, caller, collection.vocabulary)
        whole_draft = {**to_draft(base), **_parse_texts(collection, fields, draft, base)}
        return build_result_url(writer.update(previous, whole_draft), previous)

    try:
        return RedirectResponse(page.write(task), 303)
    except VersionConflict:
        form = _rebase_form(page, form, base_draft, draft)
    except (InvalidInput, QuotaExceeded) as error:
        page.errors = to_field_errors(error)
    except (RecordRetired, RecordMerged) as error:
        page.errors = {"": f"{error} What you wrote is still here, so that you can take it elsewhere."}
    return _render_form(page, form)


def _to_draft(record: Record) -> dict[str, Any]:
    """Return the part of a draft that has fields in the form, and the relations."""
    others = _OTHER_FIELDS - {_RELATIONS_FIELD}
    return {name: value for name, value in to_draft(record).items() if name not in others}


def _rebase_form(page: Page, form: RecordForm, base_draft: Mapping[str, Any], draft: Mapping[str, Any]) -> RecordForm:
    """Return the form on top of the current version: the user's changes stay, with those of others beside them."""
    with page.read() as snapshot:
        current = get_record(snapshot, form.record_id or "")
    current_draft, language = _to_draft(current.record), current.record.collection.language
    shown_values = draft_fields.to_form_values(current_draft, language)
    rebased_values = draft_fields.to_form_values(rebase_draft(base_draft, draft, current_draft), language)
    own_changes = frozenset(name for name in base_draft if draft[name] != base_draft[name])
    newer_values = {
        name: shown_values[name]
        for name in current_draft
        if current_draft[name] != base_draft[name] and name != _RELATIONS_FIELD
    }
    return replace(
        form,
        collection=current.record.collection,
        values={
            **rebased_values,
            **translation_fields.to_values(current.record),
            **{name: value for name, value in form.values.items() if name in own_changes or name not in rebased_values},
        },
        version=current.version,
        newer_values=newer_values or {"": ""},
        conflicting_fields=own_changes & newer_values.keys(),
    )


def preview(page: Page) -> Response:
    """Return the preview of a draft as an HTML fragment, for a form that updates it while the user types."""
    collection, local_id = page.collection, get_text(page.fields, "record")
    is_known = local_id and not find_control_char(local_id)
    record_id = qualify_id(collection.vocabulary, local_id) if is_known else None
    form = RecordForm(collection, _get_values(collection, page.fields), record_id, is_preview=True)
    return page.render("_record_preview.html", _build_preview(page.site, form))


def _render_form(page: Page, form: RecordForm, key: str = "") -> Response:
    collection = form.collection
    with page.read() as snapshot:
        classes = page.site.list_classes(snapshot, next(iter(collection.class_fields.values()), ""))
    form_fields = list_form_fields(collection)
    context = {
        "form": form,
        "main_fields": form_fields[:_MAX_MAIN_FIELDS],
        "more_fields": form_fields[_MAX_MAIN_FIELDS:],
        "classes": [(get_local_id(item.id), item.name) for item in classes],
        "languages": translation_fields.list_parts(collection, form.values, page.fields),
        "takes_id": form.record_id is None and VOCABULARIES[collection.vocabulary].minting_rule is not None,
        "permission_slug": collection.vocabulary,
        "key": key,
        **_build_preview(page.site, form),
    }
    return page.render("record_form.html", context, 409 if form.newer_values else 200)


def _build_preview(site: Site, form: RecordForm) -> dict[str, Any]:
    collection, values = form.collection, form.values
    name, aliases = values.get("name", "").strip(), draft_fields.parse_field(collection, values, "aliases")
    names = [name, *(alias["text"] for alias in aliases)][:_MAX_NAMES]
    return {
        "preview_errors": _find_errors(site, form) if form.is_preview else {},
        "collection": collection,
        "name": name,
        "aliases": aliases,
        "definition": values.get(collection.definition_field or "", ""),
        "sources": draft_fields.parse_field(collection, values, "sources"),
        "similar": site.record_search.find_similar_names(names, collection.name, form.record_id),
    }


def _find_errors(site: Site, form: RecordForm) -> dict[str, str]:
    """Return the errors of a draft so far, except for a name that is still missing."""
    collection, current_draft = form.collection, None
    if form.record_id is not None:
        with site.database.read() as snapshot:
            current = get_record(snapshot, form.record_id).record
            current_draft = to_draft(current)
    draft = _parse_draft(collection, form.values, {**(current_draft or _build_empty_draft(collection))})
    try:
        validate_draft(collection, draft, current_draft)
    except InvalidInput as error:
        errors = to_field_errors(error)
        return {name: message for name, message in errors.items() if name != "name" or form.values["name"].strip()}
    return {}


def _get_values(collection: Collection, fields: FormValues) -> dict[str, str]:
    names = (form_field.name for form_field in list_form_fields(collection))
    texts = (name for name in fields if translation_fields.is_translation(name))
    return {name: get_text(fields, name) for name in (*names, "id", *texts)}


ROUTES = (
    PageRoute("/propose", choose_collection, Permission.PROPOSE),
    PageRoute("/propose/{collection}", show_new, Permission.PROPOSE),
    FormRoute("/propose/{collection}", create, Permission.PROPOSE, show_new),
    FormRoute("/preview/{collection}", preview, Permission.PROPOSE),
    *(PageRoute(path, show_edit, Permission.PROPOSE) for path in list_record_routes("edit")),
    *(FormRoute(path, save_edit, Permission.PROPOSE) for path in list_record_routes("edit")),
)
