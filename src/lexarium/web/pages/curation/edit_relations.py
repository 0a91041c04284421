"""The relations of a record: taken away, added, and mapped to other vocabularies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.errors import InvalidInput, LexariumError, NotFound, QuotaExceeded, VersionConflict
from lexarium.domain.proposal import Proposal
from lexarium.domain.record import Relation
from lexarium.domain.schema.relation_types import RELATION_TYPES, RelationType
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import submissions
from lexarium.services.records.lookup import get_record, require_published, require_version
from lexarium.store import records
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.pages.curation import edit_conflicts, revert
from lexarium.web.pages.curation.my_proposals import build_proposal_url
from lexarium.web.pages.curation.record_picker import RecordChoice, find_choices, load_choices
from lexarium.web.pages.form_fields import FormValues, get_int, get_required_version, get_text, to_field_errors
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.session import require_caller
from lexarium.web.pages.site import Site

_PATH = "/edit/{id}/relations"
_ADD, _MAP = "add", "map"
_INPUT_BY_ACTION = {_ADD: "target", _MAP: "outside"}
"""Where what is wrong with a relation is told, by what was tried."""


@dataclass(frozen=True)
class RelationRow:
    """A relation of a record, with the name of what it leads to."""

    relation: Relation
    relation_type: RelationType
    target_name: str | None
    """None where that is not in the catalogue."""


def show_form(site: Site, request: Request) -> Response:
    """What there is, and a form for more."""
    return _render_form(site, request, {}, {})


def submit(site: Site, request: Request, fields: FormValues) -> Response:
    """Add one, take one away, or look for what it shall lead to."""
    caller, record_id, action = require_caller(site, request), request.path_params["id"], get_text(fields, "act")
    if action not in (*_INPUT_BY_ACTION, "remove"):
        return _render_form(site, request, fields, {})
    version = get_required_version(fields)
    type_name = get_text(fields, "mapping" if action == _MAP else "relation")
    target = get_text(fields, _INPUT_BY_ACTION.get(action, "target")).strip()
    if action in _INPUT_BY_ACTION and not target:
        return _render_form(site, request, fields, {_INPUT_BY_ACTION[action]: _REQUIRED_MESSAGES[action]})
    apply_change = submissions.submit_relation_removal if action == "remove" else submissions.submit_relation

    def task(transaction: Transaction) -> Response:
        previous = get_record(transaction.connection, record_id)
        require_published(previous.record)
        require_version(previous.change, version)
        result = apply_change(transaction, caller, previous, type_name, target)
        if isinstance(result, Proposal):
            return RedirectResponse(build_proposal_url(result), 303)
        return revert.redirect_after_write(previous, result, request.url.path)

    try:
        return site.database.run_write(task)
    except VersionConflict:
        return _render_form(site, request, fields, {"": edit_conflicts.CONFLICT_MESSAGE})
    except (InvalidInput, QuotaExceeded) as error:
        return _render_form(site, request, fields, _merge_errors(error, _INPUT_BY_ACTION.get(action, "")))
    except NotFound as error:
        if action != "remove":
            raise
        return _render_form(site, request, {}, to_field_errors(error))


_REQUIRED_MESSAGES = {
    _ADD: "Look for a record, and choose one of those that are found.",
    _MAP: "Tell what it is called elsewhere.",
}


def _merge_errors(error: LexariumError, field_name: str) -> dict[str, str]:
    """What is wrong, all of it told beside the one field that was filled in."""
    return {field_name: " ".join(to_field_errors(error).values())}


def _render_form(site: Site, request: Request, form_values: FormValues, errors: Mapping[str, str]) -> Response:
    caller, record_id = require_caller(site, request), request.path_params["id"]
    with site.database.read() as snapshot:
        current = get_record(snapshot, record_id)
        require_published(current.record)
        collection = current.record.collection
        internal_types = {
            name: relation_type
            for name, relation_type in collection.relation_types.items()
            if relation_type.target_collection is not None
        }
        selected_type = internal_types.get(get_text(form_values, "relation")) or next(
            iter(internal_types.values()), None
        )
        context: dict[str, Any] = {
            "whole": current.record,
            "version": current.version,
            "since": edit_conflicts.list_newer_versions(snapshot, current, get_int(form_values, "version")),
            "related": _build_relation_rows(snapshot, current.record.relations),
            "inner": internal_types,
            "outer": [
                (name, relation_type.label)
                for name, relation_type in collection.relation_types.items()
                if relation_type.target_collection is None
            ],
            "relation": selected_type,
            "choices": _list_choices(site, snapshot, form_values, selected_type, record_id),
            "looked": bool(get_text(form_values, "q").strip()),
            "typed": {name: get_text(form_values, name) for name in ("q", "target", "mapping", "outside")},
            "wrong": errors,
            "labels": {"target": "Record", "outside": "Identifier"},
            "done": revert.build_undo_notice(request, snapshot, current.change, caller),
        }
    return site.render(request, "relations.html", context, 422 if errors else 200)


def _build_relation_rows(snapshot: Snapshot, relations: frozenset[Relation]) -> list[RelationRow]:
    names = records.find_names(snapshot, [relation.target for relation in relations])
    rows = [
        RelationRow(relation, RELATION_TYPES[relation.relation], names.get(relation.target)) for relation in relations
    ]
    return sorted(rows, key=lambda row: (row.relation_type.label, (row.target_name or row.relation.target).casefold()))


def _list_choices(
    site: Site, snapshot: Snapshot, form_values: FormValues, relation_type: RelationType | None, record_id: str
) -> list[RecordChoice]:
    """What was chosen before, then what is found."""
    if relation_type is None or relation_type.target_collection is None:
        return []
    target = get_text(form_values, "target")
    selected = [] if find_unstorable_char(target) else load_choices(snapshot, [target])
    matches = find_choices(site, get_text(form_values, "q"), relation_type.target_collection, record_id)
    return [*selected, *(choice for choice in matches if choice.id != target)]


ROUTES = (PageRoute(_PATH, show_form, Permission.PROPOSE), FormRoute(_PATH, submit, Permission.PROPOSE))
