"""The examples of the OpenAPI document: made by the code that answers, of records that the sample catalogue has."""

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
from lexarium.formats.json import jsonl
from lexarium.formats.registry import FORMATS
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
from lexarium.web.v1.schemas import document_name, title
from lexarium.web.valpha.resources import RESOURCES, build_options_body

_AT = 1_767_261_600_000
_SHOWN = {
    "concept": ("working memory", "memory"),
    "task": ("n-back task", "Stroop task"),
    "disorder": ("agnosia", "mental disorder"),
    "contrast": ("2-back vs 0-back", "3-back vs 1-back"),
    "concept_class": ("Learning and memory", "Attention"),
}
"""Two records of each collection, by name: the one that examples are of, and another."""
_WORDS = {
    "concept": {"name": "mental time travel", "definition_text": "Living through another time in the mind."},
    "task": {"name": "autobiographical interview", "definition_text": "One tells of events of one's own life."},
    "disorder": {"name": "topographical disorientation", "definition": "Losing one's way in places one knows."},
    "contrast": {"name": "remembering vs imagining"},
    "concept_class": {"name": "Time", "description": "How time is lived through, judged and planned."},
}
"""What is written in examples of drafts."""
_ADA = Account("usr_4f1d2c8e9b07a635", "Ada", Role.CURATOR)
_BASE = "https://example.org"


def example(schema: str, collection: str = "concept") -> Any:
    """An example of this schema, where it can be one of several collections of this one. None where there is none."""
    return _examples(collection).get(schema)


def example_id(collection: str) -> str:
    """The record of a collection that examples are of."""
    return str(_shape(collection, 0)["id"])


@cache
def _examples(collection: str) -> dict[str, Any]:
    other = _shape(collection, 1)["id"]
    change = _change(collection)
    record = serialize_record(change)
    related = [
        {"relation": name, "target": targets[0]} for name, targets in change.to_record().relation_targets.items()
    ]
    patch = {name: value for name, value in _draft(collection).items() if name != "name"} or {"name": "Another name"}
    wish = {"url": f"{_BASE}/hook", "collections": ["concept"], "actions": ["create", "update"]}
    found = {
        "Revert": {"version": 1},
        "Merge": {"into": other},
        "Relate": related[0] if related else {"relation": "exactMatch", "target": f"{_BASE}/vocabulary/{record['id']}"},
        "Propose": {"collection": collection, "record": record["id"], "change": {"name": "Another name"}},
        "Accept": {"change": patch},
        "Reject": {"reason": "It is there under another name."},
        "NewRelease": {"name": "2026.1", "note": "The first of the year."},
        "NewUser": {"name": _ADA.name, "role": _ADA.role},
        "UserChange": {"role": Role.ADMIN},
        "SignIn": {"name": _ADA.name, "password": "correct horse battery"},
        "NewToken": {"label": "my notebook", "days": 30},
        "NewWebhook": wish,
        "WebhookPatch": {"collections": ["concept", "task"], "actions": None},
        f"{title(collection)}Draft": _draft(collection),
        f"{title(collection)}Patch": patch,
        title(collection): record,
        "AnyRecord": record,
        f"{title(collection)}Page": {"items": [record], "next": None, "total": 1},
        **_of_the_past(change),
        **_of_relations(collection),
        **_of_proposals(collection, patch),
        **_of_people(),
        **_of_webhooks(),
        **_of_valpha(collection),
        **_of_finding(),
        **_of_lines(record["id"], other, change),
        **_of_exports(),
        "Release": _release(),
        "Releases": {"items": [_release()]},
        "Service": _service(),
    }
    return dict(orjson.loads(orjson.dumps(found)))


@cache
def _sample(collection: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = orjson.loads((files("lexarium") / "sample" / f"{collection}.json").read_bytes())
    return found


def _shape(collection: str, which: int) -> dict[str, Any]:
    return next(shape for shape in _sample(collection) if shape["name"] == _SHOWN[collection][which])


def _change(name: str) -> Change:
    collection, shape = COLLECTIONS[name], _shape(name, 0)
    edges = {
        Relation(shape["id"], entry.get("relationship", view.relation_types[0].name), entry[view.id_key])
        for view in collection.relation_lists
        if "source" in view.sides
        for entry in shape.get(view.key, [])
        if not view.directions or entry["direction"] == view.directions["source"]
    }
    whole = Record(collection, {field: shape[field] for field in collection.fields}, frozenset(edges))
    return Change(7, _AT, _ADA.id, 7, Action.UPDATE, name, whole.id, 2, whole.to_document())


def _draft(collection: str) -> dict[str, Any]:
    written = _WORDS[collection]
    if collection != "concept":
        return written
    sources = ["https://doi.org/10.1037/h0080017"]
    parent = {"KINDOF": [_shape("concept", 1)["id"]]}
    return {**written, "aliases": [{"text": "chronesthesia", "lang": "en"}], "sources": sources, "relations": parent}


def _of_the_past(change: Change) -> dict[str, Any]:
    difference = FieldDiff("name", "a name", to_draft(change.to_record())["name"])
    told = serialize_change(change)
    return {
        "Change": told,
        "Changes": {"items": [told], "next": change.seq},
        "History": {"items": [serialize_version(change)]},
        "Diff": {"from": 1, "to": 2, "items": [serialize_difference(difference)]},
    }


def _of_relations(collection: str) -> dict[str, Any]:
    other = _shape(collection, 1)
    named = {"id": other["id"], "name": other["name"]}
    outside = {"relation": "exactMatch", "direction": "out", "id": f"{_BASE}/vocabulary/1", "name": ""}
    return {"Relations": {"items": [outside]}, "Reached": {"items": [{**named, "depth": 1}], "retired": []}}


def _of_proposals(collection: str, patch: dict[str, Any]) -> dict[str, Any]:
    proposal = Proposal(
        id="prp_0c5a7e3f9d2b4861",
        collection=collection,
        change=orjson.dumps(patch),
        author=_ADA.id,
        made=_AT,
        record=example_id(collection),
        base_version=1,
    )
    told = serialize_proposal(proposal)
    return {
        "Proposal": told,
        "ProposalInFull": {**told, "conflicts": [], "version": None},
        "ProposalPage": {"items": [told], "next": None},
        "ValphaProposal": {"proposal": told["id"], "state": told["state"], "change": _WORDS[collection]},
    }


def _of_people() -> dict[str, Any]:
    token = serialize_token(
        Token("tok_5d77d105ab49c581", _ADA, "my notebook", Role.CURATOR, _AT, _AT + 30 * 86_400_000)
    )
    account = serialize_account(_ADA)
    return {
        "Account": account,
        "Accounts": {"items": [account]},
        "Me": {**account, "token_role": Role.CURATOR},
        "Token": token,
        "Tokens": {"items": [token]},
        "TokenWithSecret": {**token, "token": "lex_…"},
    }


def _of_webhooks() -> dict[str, Any]:
    hook = serialize_webhook(
        Webhook("whk_8a1e6b3c5d7f9024", f"{_BASE}/hook", (), ("concept",), (Action.CREATE, Action.UPDATE), 7, _AT)
    )
    return {
        "Webhook": hook,
        "Webhooks": {"items": [hook]},
        "WebhookWithSecret": {**hook, "secret": "whsec_…"},
        "Deliveries": {"items": [serialize_delivery(WebhookDelivery(hook["id"], 7, _AT, 204))]},
        "Trial": {"status": 204, "error": None},
    }


def _of_finding() -> dict[str, Any]:
    shape = _shape("concept", 0)
    named = {"id": shape["id"], "name": shape["name"], "collection": "concept"}
    text = f"{shape['name'].capitalize()} has been studied for long."
    words = [{"start": 0, "end": 7}, {"start": 8, "end": 14}]
    matched = {"field": "name", "text": shape["name"], "kind": "name"}
    found = {"state": RecordState.PUBLISHED, "replaced_by": None, "score": 0.9, "matched": matched, "highlight": words}
    facets = {"collection": {"concept": 1}, "class": {shape["id_concept_class"]: 1}, "state": {"published": 1}}
    return {
        "Found": {
            "hits": [{**named, **found}],
            "total": 1,
            "facets": facets,
            "class_names": {shape["id_concept_class"]: "Learning and memory"},
            "did_you_mean": None,
        },
        "PlainText": text,
        "Text": {"text": text},
        "Annotations": {
            "annotations": [{"start": 0, "end": len(shape["name"]), "text": shape["name"].capitalize(), **named}],
            "truncated": False,
        },
        "Suggestions": {"suggestions": [{**named, "text": shape["name"], "highlight": words}]},
    }


def _of_lines(identifier: str, other: str, change: Change) -> dict[str, Any]:
    lines: list[dict[str, Any]] = [
        {"op": "create", "collection": "concept", "record": _draft("concept")},
        {"op": "update", "id": identifier, "version": 1, "change": {"sources": [f"{_BASE}/book"]}},
        {"op": "relate", "id": other, "relation": "exactMatch", "target": f"{_BASE}/vocabulary/2"},
    ]
    results = [{"id": identifier, "version": 2, "state": change.to_record().state}]
    event = f"id: {change.seq}-5f0c21d9\nevent: change\ndata: {orjson.dumps(serialize_change(change)).decode()}\n\n"
    return {"Batch": _joined(lines), "BatchResults": _joined(results), "Events": event}


def _of_exports() -> dict[str, Any]:
    about, change, shape = Vocabulary(base=f"{_BASE}/"), _change("concept"), _shape("concept", 0)
    views = [view.key for view in COLLECTIONS["concept"].relation_lists]
    found: dict[str, Any] = {
        document_name(each): b"".join(each.codec.write(each, about, [change.to_record()])).decode()
        for each in FORMATS.values()
        if each.can_write and each.name not in ("v-alpha", "jsonl")
    }
    found["JsonldExport"] = orjson.loads(found["JsonldExport"])
    found["JsonlExport"] = b"".join(jsonl.write(about, change.seq, [change])).decode()
    found["VAlphaExport"] = [{key: shape[key] for key in (*COLLECTIONS["concept"].fields, "type", *views)}]
    return found


def _joined(lines: list[dict[str, Any]]) -> str:
    return b"".join(orjson.dumps(line) + b"\n" for line in lines).decode()


def _of_valpha(collection: str) -> dict[str, Any]:
    kind, shape = COLLECTIONS[collection], _shape(collection, 0)
    hit = {name: _shape("concept", 0)[name] for name in ("id", "name", "definition_text", "alias")}
    return {
        f"Valpha{title(collection)}Answer": [{field: shape[field] for field in kind.fields}],
        f"Valpha{title(collection)}": {field: shape[field] for field in kind.fields},
        f"{title(collection)}Valpha": _WORDS[collection],
        "ValphaHits": [{**hit, "ID(c)": 1}],
        "ValphaResource": build_options_body(RESOURCES["search"]),
    }


def _release() -> dict[str, Any]:
    return {
        "name": "2026.1",
        "revision": 7,
        "note": "The first of the year.",
        "by": _ADA.id,
        "at": format_timestamp(_AT),
    }


def _service() -> dict[str, Any]:
    return {
        "service": "lexarium",
        "version": __version__,
        "revision": 7,
        "counts": {name: len(_sample(name)) for name in COLLECTIONS},
        "limits": {"body_bytes": 1 << 20},
        "links": {name: f"/api/v1/{name}" for name in COLLECTIONS},
    }
