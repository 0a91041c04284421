"""Add and remove relations and mappings."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from lexarium.domain.errors import InvalidInput, NotFound, QuotaExceeded
from lexarium.domain.record import Record, Relation
from lexarium.domain.schema.collections import RELATION_TYPES
from lexarium.domain.schema.relation_types import RelationType
from lexarium.services.access.permissions import Permission
from lexarium.services.curation import submissions
from lexarium.services.records.lookup import find_names, get_published
from lexarium.services.records.mentions import WantedMentions, load_mentions, translate_names
from lexarium.services.records.statement_view import ShownValue
from lexarium.services.vocabularies.access import get_read_scope
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.pages.curation import revert
from lexarium.web.pages.curation.record_picker import find_choices, prepend_selected
from lexarium.web.pages.curation.relation_rows import list_types
from lexarium.web.pages.form_fields import (
    get_int,
    get_required_version,
    get_summary,
    get_text,
    qualify_sibling,
    to_field_errors,
)
from lexarium.web.pages.page import FormRoute, Page, PageRoute
from lexarium.web.template_filters import list_record_routes, record_page

_ADD, _MAP = "add", "map"
_INPUT_BY_ACTION = {_ADD: "target", _MAP: "outside"}
_REQUIRED_MESSAGES = {
    _ADD: "Search for a record and select one.",
    _MAP: "Enter an external ID.",
}


def show_form(page: Page) -> Response:
    """Show the relations of a record, and forms to add one."""
    values = {
        name: get_text(page.fields, name) for name in ("q", "target", "mapping", "outside", "relation", "summary")
    }
    with page.read() as snapshot:
        record_id = page.find_record(snapshot)
        page.require(Permission.PROPOSE, record_id)
        current = get_published(snapshot, None, record_id)
        used_types = {relation.relation for relation in current.record.relations}
        internal_types = list_types(current.record.collection, used_types)
        mapping_types = list_types(current.record.collection, used_types, is_mapping=True)
        selected_type = internal_types.get(values["relation"]) or next(iter(internal_types.values()), None)
        targets = selected_type.targets[current.record.collection.name] if selected_type else ()
        choices = find_choices(page.site, values["q"], targets, record_id) if targets else []
        context: dict[str, Any] = {
            "record": current.record,
            "version": current.version,
            "newer_versions": revert.list_newer_versions(snapshot, current, get_int(page.fields, "version")),
            "related": _list_relations(snapshot, current.record, page),
            "internal_types": internal_types,
            "mapping_types": [(name, item.label) for name, item in mapping_types.items()],
            "selected_type": selected_type,
            "choices": prepend_selected(snapshot, qualify_sibling(record_id, values["target"]), choices)
            if targets
            else [],
            "form_values": values,
            "notice": revert.build_undo_notice(page.query, snapshot, current.change, page.caller),
            "permission_slug": current.record.collection.vocabulary,
        }
    return page.render("edit_relations.html", context)


def submit(page: Page) -> Response:
    """Add or remove a relation, or search for its target."""
    fields, action = page.fields, get_text(page.fields, "act")
    if action not in (*_INPUT_BY_ACTION, "remove"):
        return show_form(page)
    version, caller, summary = get_required_version(fields), page.caller, get_summary(fields)
    type_name = get_text(fields, "mapping" if action == _MAP else "relation")
    target = get_text(fields, _INPUT_BY_ACTION.get(action, "target")).strip()
    if action in _INPUT_BY_ACTION and not target:
        page.errors = {_INPUT_BY_ACTION[action]: _REQUIRED_MESSAGES[action]}
        return show_form(page)

    def task(transaction: Transaction) -> str:
        record_id = page.find_record(transaction.flush())
        previous = get_published(transaction.flush(), None, record_id, version)
        writer = submissions.open_writer(transaction, caller, previous.record.collection.vocabulary, summary)
        change_relation = writer.remove_relation if action == "remove" else writer.add_relation
        result = change_relation(previous, type_name, target)
        return revert.build_result_url(result, previous, record_page(record_id, "relations"))

    try:
        return revert.write_record(page, task, show_form)
    except (InvalidInput, QuotaExceeded) as error:
        page.errors = {_INPUT_BY_ACTION.get(action, ""): " ".join(to_field_errors(error).values())}
    except NotFound as error:
        if action != "remove":
            raise
        page = replace(page, fields={}, errors=to_field_errors(error))
    return show_form(page)


def _list_relations(
    snapshot: Snapshot, record: Record, page: Page
) -> list[tuple[Relation, RelationType, str | None, ShownValue]]:
    """Return relations with their types and the names of targets that are in the catalogue, by type and name.

    Targets of mappings are shown as on the page of the record.
    """
    relations = record.relations
    names = find_names(snapshot, [relation.target for relation in relations])
    mentions = load_mentions(
        snapshot, record, get_read_scope(page.caller), WantedMentions([item.relation for item in relations])
    )
    labels, elsewhere = mentions.labels, mentions.elsewhere
    record_ids = [item.record_id for item in elsewhere.values() if item.record_id]
    translated = translate_names(snapshot, record_ids, page.languages)

    def get_order(relation: Relation) -> tuple[str, str]:
        name = names.get(relation.target) or relation.target
        return labels[relation.relation], name.casefold()

    return [
        (
            relation,
            replace(RELATION_TYPES[relation.relation], label=labels[relation.relation]),
            names.get(relation.target),
            _translate(elsewhere.get(relation.target, ShownValue(relation.target)), translated),
        )
        for relation in sorted(relations, key=get_order)
    ]


def _translate(value: ShownValue, names: Mapping[str, str]) -> ShownValue:
    return replace(value, text=names.get(value.record_id or "", value.text))


ROUTES = tuple(
    route
    for path in list_record_routes("relations")
    for route in (
        PageRoute(path, show_form, Permission.PROPOSE),
        FormRoute(path, submit, Permission.PROPOSE, show_form),
    )
)
