"""Examples of the document, from records of the sample catalogue and the code that serializes responses."""

from functools import cache
from importlib.resources import files
from typing import Any

import orjson

from lexarium import __version__
from lexarium.domain.account import Account, Role, Token
from lexarium.domain.change import Action, Change
from lexarium.domain.edit import FieldDiff, to_draft
from lexarium.domain.proposal import Proposal
from lexarium.domain.record import Record, RecordState, Relation
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.timestamps import format_timestamp
from lexarium.domain.vocabulary import Vocabulary
from lexarium.domain.webhook import Webhook, WebhookDelivery
from lexarium.formats.parsed import WriteOptions
from lexarium.services.access.accounts import serialize_account
from lexarium.services.access.tokens import serialize_token
from lexarium.services.serializers import (
    serialize_change,
    serialize_difference,
    serialize_proposal,
    serialize_record,
    serialize_version,
)
from lexarium.services.webhooks.subscriptions import serialize_delivery, serialize_webhook
from lexarium.web.v1.openapi.valpha import name_record_schema
from lexarium.web.v1.operations.export import EXPORT_FORMATS, schema_name
from lexarium.web.valpha.resources import RESOURCES, build_options_body

_AT = 1_767_261_600_000
_SAMPLE_NAMES = {
    "concept": ("working memory", "memory"),
    "task": ("n-back task", "Stroop task"),
    "disorder": ("agnosia", "mental disorder"),
    "contrast": ("2-back vs 0-back", "3-back vs 1-back"),
    "concept_class": ("Learning and memory", "Attention"),
}
"""The names of two records of each collection: the one that examples show, and another."""
_DRAFTS = {
    "concept": {"name": "mental time travel", "definition_text": "Living through another time in the mind."},
    "task": {"name": "autobiographical interview", "definition_text": "One tells of events of one's own life."},
    "disorder": {"name": "topographical disorientation", "definition": "Losing one's way in places one knows."},
    "contrast": {"name": "remembering vs imagining"},
    "concept_class": {"name": "Time", "description": "How time is lived through, judged and planned."},
}
_ADA = Account("usr_4f1d2c8e9b07a635", "Ada", Role.CURATOR)
_BASE = "https://example.org"


def find_example(schema: str, collection: str = "concept") -> Any:
    """Return an example of a schema, about this collection where it can be about several; None if there is none."""
    return _build_examples(collection).get(schema)


def find_example_id(collection: str) -> str:
    """Return the id of the record that examples show."""
    return str(_load_record(collection, 0)["id"])


@cache
def _build_examples(name: str) -> dict[str, Any]:
    """Return the examples about a collection, by schema."""
    change, other, draft = _build_change(name), _load_record(name, 1), _build_draft(name)
    record, schema = serialize_record(change), name_record_schema(COLLECTIONS[name])
    patch = {field: value for field, value in draft.items() if field != "name"} or {"name": "Another name"}
    mapping = {"relation": "exactMatch", "target": f"{_BASE}/vocabulary/{record['id']}"}
    relations = [
        {"relation": name, "target": targets[0]} for name, targets in change.to_record().relation_targets.items()
    ]
    outside = {"relation": "exactMatch", "direction": "out", "id": f"{_BASE}/vocabulary/1", "name": ""}
    difference = serialize_difference(FieldDiff("name", "a name", to_draft(change.to_record())["name"]))
    release = {
        "name": "2026.1",
        "revision": 7,
        "note": "The first of the year.",
        "by": _ADA.id,
        "at": format_timestamp(_AT),
    }
    examples = {
        "Revert": {"version": 1},
        "Merge": {"into": other["id"]},
        "Relate": relations[0] if relations else mapping,
        "Relations": {"items": [outside]},
        "Reached": {"items": [{"id": other["id"], "name": other["name"], "depth": 1}], "retired": []},
        f"{schema}Draft": draft,
        f"{schema}Patch": patch,
        f"{schema}Page": {"items": [record], "next": None, "total": 1},
        schema: record,
        "AnyRecord": record,
        "Change": serialize_change(change),
        "Changes": {"items": [serialize_change(change)], "next": change.seq},
        "History": {"items": [serialize_version(change)]},
        "Diff": {"from": 1, "to": 2, "items": [difference]},
        "NewRelease": {"name": release["name"], "note": release["note"]},
        "Release": release,
        "Releases": {"items": [release]},
        "Service": {
            "service": "lexarium",
            "version": __version__,
            "revision": 7,
            "counts": {name: len(_load_sample(name)) for name in COLLECTIONS},
            "limits": {"body_bytes": 1 << 20},
            "links": {name: f"/api/v1/{name}" for name in COLLECTIONS},
        },
        **_build_proposal_examples(name, patch),
        **_build_account_examples(),
        **_build_webhook_examples(),
        **_build_valpha_examples(name, schema),
        **_build_search_examples(),
        **_build_line_examples(record["id"], other["id"], change),
        **_build_export_examples(),
    }
    return dict(orjson.loads(orjson.dumps(examples)))


@cache
def _load_sample(collection: str) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = orjson.loads((files("lexarium") / "sample" / f"{collection}.json").read_bytes())
    return records


def _load_record(collection: str, number: int) -> dict[str, Any]:
    return next(record for record in _load_sample(collection) if record["name"] == _SAMPLE_NAMES[collection][number])


def _build_change(name: str) -> Change:
    collection, record = COLLECTIONS[name], _load_record(name, 0)
    edges = {
        Relation(record["id"], entry.get("relationship", view.relation_types[0].name), entry[view.id_key])
        for view in collection.relation_lists
        if "source" in view.sides
        for entry in record.get(view.key, [])
        if not view.directions or entry["direction"] == view.directions["source"]
    }
    whole = Record(collection, {field: record[field] for field in collection.fields}, frozenset(edges))
    return Change(7, _AT, _ADA.id, 7, Action.UPDATE, name, whole.id, 2, whole.to_document())


def _build_draft(collection: str) -> dict[str, Any]:
    if collection != "concept":
        return _DRAFTS[collection]
    return {
        **_DRAFTS[collection],
        "aliases": [{"text": "chronesthesia", "lang": "en"}],
        "sources": ["https://doi.org/10.1037/h0080017"],
        "relations": {"KINDOF": [_load_record("concept", 1)["id"]]},
    }


def _build_proposal_examples(collection: str, patch: dict[str, Any]) -> dict[str, Any]:
    identifier = find_example_id(collection)
    proposal = serialize_proposal(
        Proposal(
            id="prp_0c5a7e3f9d2b4861",
            collection=collection,
            change=orjson.dumps(patch),
            author=_ADA.id,
            made=_AT,
            record=identifier,
            base_version=1,
        )
    )
    return {
        "Propose": {"collection": collection, "record": identifier, "change": {"name": "Another name"}},
        "Accept": {"change": patch},
        "Reject": {"reason": "It is there under another name."},
        "Proposal": proposal,
        "ProposalInFull": {**proposal, "conflicts": [], "version": None},
        "ProposalPage": {"items": [proposal], "next": None},
        "ValphaProposal": {"proposal": proposal["id"], "state": proposal["state"], "change": _DRAFTS[collection]},
    }


def _build_account_examples() -> dict[str, Any]:
    token = serialize_token(
        Token("tok_5d77d105ab49c581", _ADA, "my notebook", Role.CURATOR, _AT, _AT + 30 * 86_400_000)
    )
    account = serialize_account(_ADA)
    return {
        "NewUser": {"name": _ADA.name, "role": _ADA.role},
        "UserChange": {"role": Role.ADMIN},
        "SignIn": {"name": _ADA.name, "password": "correct horse battery"},
        "NewToken": {"label": "my notebook", "days": 30},
        "Account": account,
        "Accounts": {"items": [account]},
        "Me": {**account, "token_role": Role.CURATOR},
        "Token": token,
        "Tokens": {"items": [token]},
        "TokenWithSecret": {**token, "token": "lex_…"},
    }


def _build_webhook_examples() -> dict[str, Any]:
    url, actions = f"{_BASE}/hook", (Action.CREATE, Action.UPDATE)
    webhook = serialize_webhook(Webhook("whk_8a1e6b3c5d7f9024", url, (), ("concept",), actions, 7, _AT))
    return {
        "NewWebhook": {"url": url, "collections": ["concept"], "actions": actions},
        "WebhookPatch": {"collections": ["concept", "task"], "actions": None},
        "Webhook": webhook,
        "Webhooks": {"items": [webhook]},
        "WebhookWithSecret": {**webhook, "secret": "whsec_…"},
        "Deliveries": {"items": [serialize_delivery(WebhookDelivery(webhook["id"], 7, _AT, 204))]},
        "Trial": {"status": 204, "error": None},
    }


def _build_search_examples() -> dict[str, Any]:
    record = _load_record("concept", 0)
    name, class_id = record["name"], record["id_concept_class"]
    entry = {"id": record["id"], "name": name, "collection": "concept"}
    text = f"{name.capitalize()} has been studied for long."
    words = [{"start": 0, "end": 7}, {"start": 8, "end": 14}]
    matched = {"field": "name", "text": name, "kind": "name"}
    hit = {"state": RecordState.PUBLISHED, "replaced_by": None, "score": 0.9, "matched": matched, "highlight": words}
    return {
        "Found": {
            "hits": [{**entry, **hit}],
            "total": 1,
            "facets": {"collection": {"concept": 1}, "class": {class_id: 1}, "state": {"published": 1}},
            "class_names": {class_id: "Learning and memory"},
            "did_you_mean": None,
        },
        "PlainText": text,
        "Text": {"text": text},
        "Annotations": {
            "annotations": [{"start": 0, "end": len(name), "text": name.capitalize(), **entry}],
            "truncated": False,
        },
        "Suggestions": {"suggestions": [{**entry, "text": name, "highlight": words}]},
    }


def _build_line_examples(identifier: str, other: str, change: Change) -> dict[str, Any]:
    lines: list[dict[str, Any]] = [
        {"op": "create", "collection": "concept", "record": _build_draft("concept")},
        {"op": "update", "id": identifier, "version": 1, "change": {"sources": [f"{_BASE}/book"]}},
        {"op": "relate", "id": other, "relation": "exactMatch", "target": f"{_BASE}/vocabulary/2"},
    ]
    results = [{"id": identifier, "version": 2, "state": change.to_record().state}]
    event = f"id: {change.seq}-5f0c21d9\nevent: change\ndata: {orjson.dumps(serialize_change(change)).decode()}\n\n"
    return {"Batch": _join_lines(lines), "BatchResults": _join_lines(results), "Events": event}


def _join_lines(lines: list[dict[str, Any]]) -> str:
    return b"".join(orjson.dumps(line) + b"\n" for line in lines).decode()


def _build_export_examples() -> dict[str, Any]:
    about, change, record = Vocabulary(base=f"{_BASE}/"), _build_change("concept"), _load_record("concept", 0)
    views = [view.key for view in COLLECTIONS["concept"].relation_lists]
    items = {"records": change.to_record(), "changes": change}
    examples: dict[str, Any] = {
        schema_name(item): b"".join(
            item.codec.write([items[item.items]], WriteOptions(item, about, change.seq))
        ).decode()
        for item in EXPORT_FORMATS.values()
        if item.items in items
    }
    examples["JsonldExport"] = orjson.loads(examples["JsonldExport"])
    examples["VAlphaExport"] = [{key: record[key] for key in (*COLLECTIONS["concept"].fields, "type", *views)}]
    return examples


def _build_valpha_examples(collection: str, schema: str) -> dict[str, Any]:
    record = {field: _load_record(collection, 0)[field] for field in COLLECTIONS[collection].fields}
    hit = {name: _load_record("concept", 0)[name] for name in ("id", "name", "definition_text", "alias")}
    return {
        f"Valpha{schema}Answer": [record],
        f"Valpha{schema}": record,
        f"{schema}Valpha": _DRAFTS[collection],
        "ValphaHits": [{**hit, "ID(c)": 1}],
        "ValphaResource": build_options_body(RESOURCES["search"]),
    }
