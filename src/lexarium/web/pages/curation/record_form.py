"""Writing a record: a new one, or what is there anew; with a look at what it will be, and at what is called alike."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.edit import rebase_draft, to_draft
from lexarium.domain.errors import InvalidInput, NotFound, QuotaExceeded, RecordMerged, RecordRetired, VersionConflict
from lexarium.domain.proposal import Proposal
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.validation import build_draft_model, validate_draft
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import submissions
from lexarium.services.idempotency import IdempotencyRequest, WriteResponse, make_idempotent
from lexarium.services.records import queries
from lexarium.services.records.lookup import VersionedRecord, get_published, get_record, require_published
from lexarium.services.search.record_search import RecordHit
from lexarium.store.transaction import Transaction
from lexarium.web.pages.curation import draft_fields, revert
from lexarium.web.pages.curation.my_proposals import build_proposal_url
from lexarium.web.pages.filters import add_query, record_path
from lexarium.web.pages.form_fields import FormValues, get_required_version, get_text, to_field_errors
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.session import require_caller
from lexarium.web.pages.site import Site

_RELATIONS_FIELD = "relations"
"""The field of a draft that has pages of its own."""
_FIELD_ORDER = ("name", "aliases", "definition", "sources")
_MAX_NAMES = 6
"""How many of the names of a draft are looked for among those of others."""


@dataclass(frozen=True)
class FormField:
    """One field of a draft, as a form has it."""

    name: str
    kind: str
    """What it is filled in with: a `line`, a `long` text, `lines`, or a `choice`."""
    hint: str


@dataclass(frozen=True)
class RecordForm:
    """A form that someone fills in."""

    collection: Collection
    values: Mapping[str, str]
    record_id: str | None = None
    """The record that is edited; None: it is a new one."""
    version: int | None = None
    """The version that is edited."""
    errors: Mapping[str, str] = field(default_factory=dict)
    newer_values: Mapping[str, str] = field(default_factory=dict)
    """What others have made meanwhile of the fields that they have changed."""
    conflicting_fields: frozenset[str] = frozenset()
    """Those of them that someone here has changed too."""
    is_preview: bool = False

    @property
    def status(self) -> int:
        """What the form is answered with."""
        return 409 if self.newer_values else 422 if self.errors else 200


def list_form_fields(collection: Collection) -> list[FormField]:
    """The fields that people write of a record, as forms have them."""
    form_fields = [
        build_form_field(collection, name)
        for name in build_draft_model(collection.name).model_fields
        if name != _RELATIONS_FIELD
    ]
    return sorted(form_fields, key=lambda form_field: _get_field_order(collection, form_field.name))


def build_form_field(collection: Collection, name: str) -> FormField:
    """One of the fields of a draft, as forms have it."""
    if name in draft_fields.LIST_FIELD_HINTS:
        return FormField(name, "lines", draft_fields.LIST_FIELD_HINTS[name])
    if name in collection.class_fields:
        return FormField(name, "choice", "")
    if name == collection.definition_field:
        return FormField(name, "long", "An empty line begins a new paragraph.")
    return FormField(name, "line", "" if name == "name" else collection.fields[name].description or "")


def _get_field_order(collection: Collection, name: str) -> int:
    key = "definition" if name == collection.definition_field else name
    return _FIELD_ORDER.index(key) if key in _FIELD_ORDER else len(_FIELD_ORDER)


def build_empty_draft(collection: Collection) -> dict[str, Any]:
    """A draft in which nobody has written yet."""
    fields = build_draft_model(collection.name).model_fields
    return {
        name: "" if info.is_required() else info.get_default(call_default_factory=True) for name, info in fields.items()
    }


def parse_draft(collection: Collection, fields: FormValues, base_draft: Mapping[str, Any]) -> dict[str, Any]:
    """The draft that a form was made into. A field that nobody touched is as it was, whatever a form makes of it."""
    shown_values = draft_fields.to_form_values(base_draft)
    changed = {
        form_field.name: draft_fields.parse_field(
            {form_field.name: _normalize_input(form_field, get_text(fields, form_field.name))}, form_field.name
        )
        for form_field in list_form_fields(collection)
        if is_changed(form_field, fields, shown_values[form_field.name])
    }
    return {**base_draft, **changed}


def is_changed(form_field: FormField, fields: FormValues, shown_value: str) -> bool:
    """Whether someone has made something else of what a field showed."""
    return form_field.name in fields and _normalize_input(
        form_field, get_text(fields, form_field.name)
    ) != _normalize_input(form_field, shown_value)


def _normalize_input(form_field: FormField, value: str) -> str:
    """A text as it is read: a browser sends line breaks its own way, and none of one line."""
    lines = value.replace("\r\n", "\n").replace("\r", "\n")
    return lines.replace("\n", "").strip() if form_field.kind == "line" else lines


def choose_collection(site: Site, request: Request) -> Response:
    """Which kind of record it shall be."""
    return site.render(request, "propose.html", {})


def show_new(site: Site, request: Request) -> Response:
    """An empty form; with a name where the address tells one."""
    collection = _get_collection(request)
    form_values = {
        **draft_fields.to_form_values(build_empty_draft(collection)),
        "name": request.query_params.get("name", ""),
    }
    return _render_form(site, request, RecordForm(collection, form_values), secrets.token_hex(8))


def create(site: Site, request: Request, fields: FormValues) -> Response:
    """Make the record, or propose it; or the form again, to look at or with what is wrong."""
    collection, caller = _get_collection(request), require_caller(site, request)
    draft, form_values = (
        parse_draft(collection, fields, build_empty_draft(collection)),
        _collect_values(collection, fields),
    )
    if get_text(fields, "act") == "preview":
        return _render_form(
            site, request, RecordForm(collection, form_values, is_preview=True), get_text(fields, "key")
        )

    def task(transaction: Transaction) -> WriteResponse:
        result = submissions.submit_record(transaction, caller, collection, draft)
        if isinstance(result, Proposal):
            return WriteResponse(303, None, build_proposal_url(result))
        return WriteResponse(303, None, add_query(record_path(result.record.id), did=result.version))

    try:
        response = site.database.run_write(make_idempotent(caller.account.id, _build_idempotency_key(fields), task))
    except (InvalidInput, QuotaExceeded) as error:
        return _render_form(
            site, request, RecordForm(collection, form_values, errors=to_field_errors(error)), get_text(fields, "key")
        )
    return RedirectResponse(str(response.location), 303)


def _build_idempotency_key(fields: FormValues) -> IdempotencyRequest:
    """A form as its key knows it: the same one sent twice is done once."""
    digest = hashlib.sha256(orjson.dumps(dict(fields), option=orjson.OPT_SORT_KEYS)).hexdigest()
    return IdempotencyRequest.from_parts(f"page-{digest}" if get_text(fields, "key") else None)


def show_edit(site: Site, request: Request) -> Response:
    """The form with what is there."""
    with site.database.read() as snapshot:
        current = get_record(snapshot, request.path_params["id"])
    require_published(current.record)
    return _render_form(site, request, _to_form(current))


def _to_form(current: VersionedRecord) -> RecordForm:
    form_values = draft_fields.to_form_values(to_draft(current.record))
    return RecordForm(current.record.collection, form_values, current.record.id, current.version)


def save_edit(site: Site, request: Request, fields: FormValues) -> Response:
    """Make it so, or propose it; or the form again, to look at, with what is wrong or what others have changed."""
    caller, record_id, version = require_caller(site, request), request.path_params["id"], get_required_version(fields)
    with site.database.read() as snapshot:
        collection = get_record(snapshot, record_id).record.collection
        base_draft = to_draft(queries.get_version(snapshot, collection, record_id, version).to_record())
    draft, form_values = parse_draft(collection, fields, base_draft), _collect_values(collection, fields)
    if get_text(fields, "act") == "preview":
        return _render_form(site, request, RecordForm(collection, form_values, record_id, version, is_preview=True))

    def task(transaction: Transaction) -> Response:
        previous = get_published(transaction.connection, collection, record_id, version)
        result = submissions.submit_update(transaction, caller, previous, draft)
        if isinstance(result, Proposal):
            return RedirectResponse(build_proposal_url(result), 303)
        return revert.redirect_after_write(previous, result)

    try:
        return site.database.run_write(task)
    except VersionConflict:
        return _render_form(site, request, _rebase_form(site, record_id, base_draft, draft, form_values))
    except (InvalidInput, QuotaExceeded) as error:
        return _render_form(
            site, request, RecordForm(collection, form_values, record_id, version, to_field_errors(error))
        )
    except (RecordRetired, RecordMerged) as error:
        message = f"{error} What you wrote is still here, so that you can take it elsewhere."
        return _render_form(site, request, RecordForm(collection, form_values, record_id, version, {"": message}))


def _rebase_form(
    site: Site, record_id: str, base_draft: Mapping[str, Any], draft: Mapping[str, Any], form_values: Mapping[str, str]
) -> RecordForm:
    """The form on top of what is there now: what someone wrote stands, and beside it what others did meanwhile."""
    with site.database.read() as snapshot:
        current = get_record(snapshot, record_id)
    current_draft = to_draft(current.record)
    shown_values, rebased_draft = (
        draft_fields.to_form_values(current_draft),
        rebase_draft(base_draft, draft, current_draft),
    )
    own_changes = frozenset(name for name in base_draft if draft[name] != base_draft[name])
    newer_values = {
        name: shown_values[name]
        for name in current_draft
        if current_draft[name] != base_draft[name] and name != _RELATIONS_FIELD
    }
    return RecordForm(
        current.record.collection,
        {
            **draft_fields.to_form_values(rebased_draft),
            **{name: value for name, value in form_values.items() if name in own_changes},
        },
        record_id,
        current.version,
        newer_values=newer_values or {"": ""},
        conflicting_fields=own_changes & newer_values.keys(),
    )


def preview(site: Site, request: Request, fields: FormValues) -> Response:
    """What a draft will be, as a piece of a page: for a form that shows it beside what is typed."""
    collection = _get_collection(request)
    form = RecordForm(
        collection, _collect_values(collection, fields), get_text(fields, "record") or None, is_preview=True
    )
    return site.render(request, "_draft.html", _build_preview(site, form))


def _render_form(site: Site, request: Request, form: RecordForm, key: str = "") -> Response:
    with site.database.read() as snapshot:
        classes = [(item.id, item.name) for item in site.class_cache.get(snapshot).values()]
    context = {
        "sheet": form,
        "entries": list_form_fields(form.collection),
        "classes": sorted(classes, key=lambda item: item[1].casefold()),
        "key": key,
        **_build_preview(site, form),
    }
    return site.render(request, "draft.html", context, form.status)


def _build_preview(site: Site, form: RecordForm) -> dict[str, Any]:
    """What a draft will look like, and what is called alike."""
    collection, form_values = form.collection, form.values
    aliases = draft_fields.parse_field(form_values, "aliases")
    return {
        "mistakes": _find_errors(site, form) if form.is_preview else {},
        "name": form_values.get("name", "").strip(),
        "aliases": aliases,
        "definition": form_values.get(collection.definition_field or "", ""),
        "sources": draft_fields.parse_field(form_values, "sources"),
        "alike": _find_similar(
            site, form, [form_values.get("name", "").strip(), *(alias["text"] for alias in aliases)]
        ),
    }


def _find_errors(site: Site, form: RecordForm) -> dict[str, str]:
    """What is wrong with a draft so far, but for a name that is still to be typed."""
    collection, current_draft = form.collection, None
    if form.record_id is not None:
        with site.database.read() as snapshot:
            current_draft = to_draft(get_record(snapshot, form.record_id).record)
    try:
        validate_draft(
            collection,
            parse_draft(collection, form.values, current_draft or build_empty_draft(collection)),
            current_draft,
        )
    except InvalidInput as error:
        errors = to_field_errors(error)
        return {name: message for name, message in errors.items() if name != "name" or form.values["name"].strip()}
    return {}


def _find_similar(site: Site, form: RecordForm, names: Sequence[str]) -> list[RecordHit]:
    return site.record_search.find_similar_names(names[:_MAX_NAMES], form.collection.name, form.record_id)


def _collect_values(collection: Collection, fields: FormValues) -> dict[str, str]:
    return {form_field.name: get_text(fields, form_field.name) for form_field in list_form_fields(collection)}


def _get_collection(request: Request) -> Collection:
    name = request.path_params["collection"]
    if name not in COLLECTIONS:
        raise NotFound(f"There is no collection {name!r}; there are {', '.join(COLLECTIONS)}.")
    return COLLECTIONS[name]


ROUTES: tuple[PageRoute | FormRoute, ...] = (
    PageRoute("/propose", choose_collection, Permission.PROPOSE),
    PageRoute("/propose/{collection}", show_new, Permission.PROPOSE),
    FormRoute("/propose/{collection}", create, Permission.PROPOSE),
    FormRoute("/preview/{collection}", preview, Permission.PROPOSE),
    PageRoute("/edit/{id}", show_edit, Permission.PROPOSE),
    FormRoute("/edit/{id}", save_edit, Permission.PROPOSE),
)
