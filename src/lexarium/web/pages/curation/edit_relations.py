"""Add and remove relations and mappings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.errors import InvalidInput, NotFound, QuotaExceeded, VersionConflict
from lexarium.domain.record import Relation
from lexarium.domain.schema.relation_types import RELATION_TYPES, RelationType
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import submissions
from lexarium.services.records.lookup import find_names, get_record, require_published, require_version
from lexarium.store.position import Snapshot
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

_PATH = "/edit/{id}/relations"
_ADD, _MAP = "add", "map"
_INPUT_BY_ACTION = {_ADD: "target", _MAP: "outside"}
_REQUIRED_MESSAGES = {
    _ADD: "Look for a record, and choose one of those that are found.",
    _MAP: "Tell what it is called elsewhere.",
}


@dataclass(frozen=True)
class RelationRow:
    """A relation with the name of its target, if that is in the catalogue."""

    relation: Relation
    relation_type: RelationType
    target_name: str | None


def show_form(
    site: Site, request: Request, form_values: FormValues = NO_VALUES, errors: Mapping[str, str] = NO_VALUES
) -> Response:
    """Show the relations of a record, and forms to add one."""
    caller, record_id = site.require_caller(request), request.path_params["id"]
    values = {name: get_text(form_values, name) for name in ("q", "target", "mapping", "outside", "relation")}
    with site.database.read() as snapshot:
        current = get_record(snapshot, record_id)
        require_published(current.record)
        types = current.record.collection.relation_types
        internal_types = {name: item for name, item in types.items() if item.target_collection is not None}
        selected_type = internal_types.get(values["relation"]) or next(iter(internal_types.values()), None)
        target_collection = selected_type and selected_type.target_collection
        choices = find_choices(site, values["q"], target_collection, record_id) if target_collection else []
        context: dict[str, Any] = {
            "record": current.record,
            "version": current.version,
            "newer_versions": revert.list_newer_versions(snapshot, current, get_int(form_values, "version")),
            "related": _build_relation_rows(snapshot, current.record.relations),
            "internal_types": internal_types,
            "mapping_types": [(name, item.label) for name, item in types.items() if item.target_collection is None],
            "relation": selected_type,
            "choices": prepend_selected(snapshot, values["target"], choices) if target_collection else [],
            "has_searched": bool(values["q"].strip()),
            "form_values": values,
            "errors": errors,
            "labels": {"target": "Record", "outside": "Identifier"},
            "notice": revert.build_undo_notice(request, snapshot, current.change, caller),
        }
    return site.render(request, "edit_relations.html", context, 422 if errors else 200)


def submit(site: Site, request: Request, fields: FormValues) -> Response:
    """Add or remove a relation, or search for its target."""
    caller, record_id, action = site.require_caller(request), request.path_params["id"], get_text(fields, "act")
    if action not in (*_INPUT_BY_ACTION, "remove"):
        return show_form(site, request, fields)
    version = get_required_version(fields)
    type_name = get_text(fields, "mapping" if action == _MAP else "relation")
    target = get_text(fields, _INPUT_BY_ACTION.get(action, "target")).strip()
    if action in _INPUT_BY_ACTION and not target:
        return show_form(site, request, fields, {_INPUT_BY_ACTION[action]: _REQUIRED_MESSAGES[action]})

    def task(transaction: Transaction) -> str:
        previous = get_record(transaction.flush(), record_id)
        require_published(previous.record)
        require_version(previous.change, version)
        writer = submissions.open_writer(transaction, caller)
        change_relation = writer.remove_relation if action == "remove" else writer.add_relation
        result = change_relation(previous, type_name, target)
        return revert.build_result_url(result, previous, request.url.path)

    try:
        return RedirectResponse(site.database.run_write(task), 303)
    except VersionConflict:
        return show_form(site, request, fields, {"": revert.CONFLICT_MESSAGE})
    except (InvalidInput, QuotaExceeded) as error:
        message = " ".join(to_field_errors(error).values())
        return show_form(site, request, fields, {_INPUT_BY_ACTION.get(action, ""): message})
    except NotFound as error:
        if action != "remove":
            raise
        return show_form(site, request, errors=to_field_errors(error))


def _build_relation_rows(snapshot: Snapshot, relations: frozenset[Relation]) -> list[RelationRow]:
    names = find_names(snapshot, [relation.target for relation in relations])
    rows = [
        RelationRow(relation, RELATION_TYPES[relation.relation], names.get(relation.target)) for relation in relations
    ]
    return sorted(rows, key=lambda row: (row.relation_type.label, (row.target_name or row.relation.target).casefold()))


ROUTES = (PageRoute(_PATH, show_form, Permission.PROPOSE), FormRoute(_PATH, submit, Permission.PROPOSE))
