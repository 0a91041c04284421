"""Vocabularies over v1: created, changed, read in languages, and records with any ids in them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from lexarium.domain.change import Action
from lexarium.domain.identifiers import qualify_id
from lexarium.domain.record import ALTERNATIVE_ID, Record
from lexarium.domain.statement import Statement, Text
from lexarium.domain.text.timestamps import now_ms
from lexarium.domain.vocabulary import register_vocabularies
from lexarium.formats.registry import FORMATS
from lexarium.services.records.lookup import get_record
from lexarium.store import change_log, vocabularies
from lexarium.store.change_log import RecordWrite
from lexarium.store.database import Database
from lexarium.store.transaction import Transaction
from tests.support.databases import DatabaseUrlFactory
from tests.support.server import HttpResponse, Server, run_cli
from tests.support.v1_client import V1Client, get_etag, send_batch
from tests.support.vocabularies import add_concept, purge_vocabulary

SEPARATOR = b"\\u001f"
IDS = ("uat:1", "a/b", "a#b", "50%", "%2F", "größe/é", "x/history", "a?c=d&e", "http://example.org/x#y")
SCHEMA = """\
id: https://example.org/plants
name: plants
default_range: string
imports:
  - linkml:types
prefixes:
  linkml: https://w3id.org/linkml/
  rdfs: http://www.w3.org/2000/01/rdf-schema#
  skos: http://www.w3.org/2004/02/skos/core#
  plants: https://example.org/plants/
default_prefix: plants
classes:
  Plant:
    slots: [id, label, meaning, colour, parent]
slots:
  id:
    identifier: true
  label:
    slot_uri: rdfs:label
    multivalued: true
  meaning:
    slot_uri: skos:definition
    multivalued: true
  colour: {}
  parent:
    range: Plant
    multivalued: true
    annotations:
      lexarium_hierarchical: true
"""


class VocabularyClient(V1Client):
    """Client of v1 for the records of one vocabulary."""

    def read(self, path: str, **headers: str) -> Any:
        response = self.send("GET", path, **headers)
        assert response.status == 200, response.body
        assert SEPARATOR not in response.body
        return response.json

    def add(self, slug: str, collection: str, **fields: Any) -> dict[str, Any]:
        response = self.send("POST", f"vocabularies/{slug}/collections/{collection}", fields)
        assert response.status == 201, response.body
        assert SEPARATOR not in response.body
        record: dict[str, Any] = response.json
        return record

    def write(self, method: str, record: dict[str, Any], part: str = "", body: object = None) -> HttpResponse:
        path = f"{get_path(record)}{part}"
        return self.send(method, path, body, If_Match=get_etag(record))


def get_path(record: dict[str, Any]) -> str:
    return f"vocabularies/{record['vocabulary']}/records/{quote(record['id'], safe='')}"


@pytest.fixture(scope="module")
def server(new_url: DatabaseUrlFactory) -> Iterator[Server]:
    with Server(new_url("sqlite")) as server:
        yield server
    register_vocabularies([])


@pytest.fixture(scope="module")
def admin(server: Server) -> VocabularyClient:
    client = VocabularyClient(server, "admin")
    values = {"slug": "uat", "title": "Thesaurus", "schema": "skos", "languages": ["en", "de"], "defines": ["uat"]}
    assert client.send("POST", "vocabularies", values).status == 201
    return client


def test_a_vocabulary_is_created_and_listed(admin: VocabularyClient) -> None:
    body = {
        "slug": "birds",
        "title": "Birds",
        "schema": "skos",
        "base": "https://birds.example",
        "minting": "b{random}",
    }
    response = admin.send("POST", "vocabularies", body)
    assert response.status == 201
    assert response.headers["location"] == "/api/v1/vocabularies/birds"
    vocabulary = admin.read("vocabularies/birds")
    assert vocabulary == response.json
    assert vocabulary["base"] == "https://birds.example/"
    assert vocabulary["schema"] == "skos"
    assert vocabulary["counts"]["concept"] == 0
    assert vocabulary["version"] == 1
    listed = [item["slug"] for item in admin.read("vocabularies")["items"]]
    assert listed[0] == "main"
    assert {"birds", "uat"} <= set(listed)
    assert {"slug": "birds", "title": "Birds", "url": "/api/v1/vocabularies/birds"} in admin.server.get("/api/v1").json[
        "vocabularies"
    ]
    assert admin.send("POST", "vocabularies", body).status == 409
    problem = admin.send("POST", "vocabularies", {"slug": "No!", "schema": "none", "languages": ["x_y"]})
    assert problem.status == 422
    assert {error["pointer"] for error in problem.json["errors"]} == {"/slug", "/schema", "/languages"}


def test_a_vocabulary_is_changed_with_if_match_removed_and_restored(admin: VocabularyClient) -> None:
    assert admin.send("POST", "vocabularies", {"slug": "old", "title": "Old", "schema": "skos"}).status == 201
    record = admin.add("old", "concept", name="Kept", id="k:1")
    etag = admin.send("GET", "vocabularies/old").headers["etag"]
    assert admin.send("PATCH", "vocabularies/old", {"title": "New"}).status == 428
    changed = admin.send("PATCH", "vocabularies/old", {"title": "New", "prefixes": {"k": "https://k/"}}, If_Match=etag)
    assert changed.json["title"] == "New"
    assert changed.json["prefixes"] == {"k": "https://k/"}
    assert admin.send("PATCH", "vocabularies/old", {"title": "Newer"}, If_Match=etag).status == 412
    assert admin.send("PATCH", "vocabularies/old", {"titel": "x"}, If_Match="*").status == 422
    assert admin.send("DELETE", "vocabularies/old", If_Match=changed.headers["etag"]).json["removed"] is True
    assert admin.send("GET", get_path(record)).status == 404
    assert admin.send("GET", "vocabularies/old").status == 404
    assert "old" not in [item["slug"] for item in admin.read("vocabularies")["items"]]
    removed = [item for item in admin.read("vocabularies?removed=true")["items"] if item["removed"]]
    assert [item["slug"] for item in removed] == ["old"]
    assert "old" not in admin.server.get("/api/v1/vocabularies?removed=true").body.decode()
    assert admin.send("POST", "vocabularies/old/restore").status == 200
    assert admin.send("POST", "vocabularies/old/restore").status == 409
    assert admin.read(get_path(record))["name"] == "Kept"


def test_a_404_lists_the_existing_vocabularies_or_collections(admin: VocabularyClient) -> None:
    response = admin.send("GET", "vocabularies/nowhere/records/x")
    assert response.status == 404
    assert "uat" in response.json["detail"]
    response = admin.send("GET", "vocabularies/uat/collections/nothing")
    assert response.status == 404
    assert "concept_scheme" in response.json["detail"]


def test_a_schema_is_read_as_linkml_and_json_schema(admin: VocabularyClient) -> None:
    linkml = admin.send("GET", "vocabularies/uat/schema")
    assert linkml.headers["content-type"].startswith("application/yaml")
    assert b"slot_uri: skos:prefLabel" in linkml.body
    schema = admin.send("GET", "vocabularies/uat/schema", Accept="application/schema+json")
    assert schema.headers["content-type"] == "application/schema+json"
    assert "Concept" in schema.json["$defs"]
    assert admin.send("GET", "vocabularies/uat/schema", Accept="image/png").status == 406


def test_a_vocabulary_with_a_custom_schema_accepts_records(admin: VocabularyClient) -> None:
    assert admin.send("POST", "vocabularies", {"slug": "plants", "title": "Plants", "schema": "skos"}).status == 201

    def put(source: str) -> HttpResponse:
        headers = {"Authorization": f"Bearer {admin.token}", "Content-Type": "application/yaml", "If-Match": "*"}
        return admin.server.request("PUT", "/api/v1/vocabularies/plants/schema", headers, source)

    wrong = put(SCHEMA.replace("range: Plant", "range: Weed").replace("slots: [id, label,", "slots: [id, lable,"))
    assert wrong.status == 422
    assert len(wrong.json["errors"]) == 2
    assert all("line " in error["detail"] for error in wrong.json["errors"])
    assert admin.read("vocabularies/plants")["schema"] == "skos"
    assert put(SCHEMA).json["schema"] == "plants"
    assert list(admin.read("vocabularies/plants")["counts"]) == ["plant"]
    tree = admin.add("plants", "plant", name="Tree", fields={"colour": "green"})
    oak = admin.add("plants", "plant", id="plant:oak", name="Oak", relations={"parent": [tree["id"]]})
    assert oak["relations"] == {"parent": [tree["id"]]}
    assert tree["fields"] == {"colour": "green"}
    assert tree["iri"].endswith(f"/id/{tree['id']}?vocabulary=plants")
    ancestors = admin.read(f"{get_path(oak)}/ancestors")["items"]
    assert ancestors == [{"id": tree["id"], "name": "Tree", "depth": 1}]
    assert put(SCHEMA.replace("Plant", "Herb")).status == 409
    assert (
        put(
            SCHEMA.replace("  colour: {}\n", "  colour: {}\n  height: {}\n").replace("colour,", "colour, height,")
        ).status
        == 200
    )
    patched = admin.write("PATCH", tree, body={"fields": {"height": "tall"}})
    assert patched.json["fields"] == {"colour": "green", "height": "tall"}


def test_a_repeated_request_to_apply_a_schema_returns_the_first_response(admin: VocabularyClient) -> None:
    assert admin.send("POST", "vocabularies", {"slug": "herbs", "title": "Herbs", "schema": "skos"}).status == 201
    headers = {"Content-Type": "application/yaml", "If-Match": '"1"', "Idempotency-Key": "herbs"}
    headers["Authorization"] = f"Bearer {admin.token}"
    path = "/api/v1/vocabularies/herbs/schema"
    first, repeated = (admin.server.request("PUT", path, headers, SCHEMA) for _ in range(2))
    assert (first.status, first.json["version"]) == (200, 2)
    assert (repeated.status, repeated.json) == (200, first.json)
    assert admin.server.request("PUT", path, headers, f"{SCHEMA}\n").status == 409


@pytest.mark.parametrize("record_id", IDS)
def test_an_id_may_contain_any_characters_on_every_route(admin: VocabularyClient, record_id: str) -> None:
    record = admin.add("uat", "concept", id=record_id, name=f"Name of {record_id}")
    record.pop("warnings", None)  # The names of these records are similar.
    assert (record["id"], record["vocabulary"], record["collection"]) == (record_id, "uat", "concept")
    other = admin.add("uat", "concept", id=f"{record_id}/other", name="Other")
    assert admin.send("POST", "vocabularies/uat/collections/concept", {"id": record_id, "name": "Again"}).status == 409
    path, encoded = get_path(record), quote(record_id, safe="")
    assert admin.read(path) == admin.read(f"vocabularies/uat/records?id={encoded}") == record
    assert admin.read(f"records/{encoded}?vocabulary=uat") == record
    assert json.loads(admin.server.get(f"/id/{encoded}?format=json&vocabulary=uat").body)["id"] == record_id
    record = admin.write("PATCH", record, body={"name": "Changed"}).json
    record = admin.write("PUT", record, body=record | {"name": "Replaced"}).json
    assert record["version"] == 3
    related = admin.write("PUT", record, "/relations", {"relation": "related", "target": other["id"]})
    assert related.json["relations"] == {"related": [other["id"]]}
    items = admin.read(f"{path}/relations")["items"]
    assert [(item["id"], item["name"], item["vocabulary"]) for item in items] == [(other["id"], "Other", "uat")]
    assert admin.read(f"vocabularies/uat/relations?id={encoded}")["items"] == items
    target = quote(other["id"], safe="")
    record = admin.write("DELETE", related.json, f"/relations?relation=related&target={target}").json
    assert [item["version"] for item in admin.read(f"{path}/history")["items"]] == [5, 4, 3, 2, 1]
    assert admin.read(f"vocabularies/uat/history?id={encoded}") == admin.read(f"{path}/history")
    assert admin.read(f"{path}/history/1")["name"] == f"Name of {record_id}"
    assert admin.read(f"{path}/diff?from=1&to=2")["items"][0]["to"] == "Changed"
    assert admin.read(f"{path}/ancestors") == admin.read(f"{path}/descendants") == {"items": [], "retired": []}
    record = admin.write("POST", record, "/revert", {"version": 1}).json
    assert record["name"] == f"Name of {record_id}"
    merged = admin.write("POST", other, "/merge", {"into": record_id})
    assert merged.json["id"] == record_id
    redirect = admin.send("GET", get_path(other))
    assert redirect.status == 308
    assert redirect.headers["location"] == f"/api/v1/{path}"
    assert redirect.json["merged_into"] == record_id
    retired = admin.write("DELETE", merged.json)
    assert retired.json["state"] == "retired"
    assert admin.send("GET", path).status == 410
    assert admin.server.get(f"/id/{encoded}?vocabulary=uat", Accept="application/json").status == 410


def test_a_record_with_an_exact_id_takes_precedence_over_a_subresource(admin: VocabularyClient) -> None:
    admin.add("uat", "concept", id="w", name="Short")
    admin.add("uat", "concept", id="w/history", name="Long")
    assert admin.read("vocabularies/uat/records/w/history")["name"] == "Long"
    assert admin.read("vocabularies/uat/history?id=w")["items"][0]["version"] == 1
    assert admin.read("vocabularies/uat/records/w%2Fhistory/history")["items"][0]["version"] == 1
    assert admin.read("vocabularies/uat/records/w/relations")["items"] == []


def test_an_id_in_several_vocabularies_is_ambiguous_unless_one_defines_its_prefix(admin: VocabularyClient) -> None:
    for slug in ("first", "second"):
        assert admin.send("POST", "vocabularies", {"slug": slug, "title": slug, "schema": "skos"}).status == 201
        admin.add(slug, "concept", id="D:1", name=f"In {slug}")
        admin.add(slug, "concept", id="uat:shared", name=f"In {slug}")
    admin.add("uat", "concept", id="uat:shared", name="Defined")
    for path in ("/api/v1/records/D:1", "/id/D:1?format=json"):
        response = admin.server.get(path)
        assert response.status == 300, path
        listed = [(item["id"], item["vocabulary"], item["name"]) for item in response.json["candidates"]]
        assert listed == [("D:1", "first", "In first"), ("D:1", "second", "In second")]
        for item in response.json["candidates"]:
            assert admin.server.get(item["url"], Accept="application/json").json["name"] == item["name"]
    for form in ("html", "turtle"):
        assert admin.server.get(f"/id/D%3A1?format={form}").status == 300
    assert admin.read("records/D:1?vocabulary=second")["name"] == "In second"
    assert admin.read("records/uat:shared")["name"] == "Defined"
    assert admin.send("GET", "records/D:1?vocabulary=nowhere").status == 404


def test_an_alternative_id_and_an_iri_redirect(admin: VocabularyClient) -> None:
    admin.add("uat", "concept", id="uat:7", name="Seven")
    iri = "http://astrothesaurus.org/uat/7"
    database = Database(admin.server.url)

    def identify(transaction: Transaction) -> None:
        before = get_record(transaction.flush(), qualify_id("uat", "uat:7"))
        after: Record = replace(before.record.add_statements([Statement(ALTERNATIVE_ID, Text("uat:07"))]), iri=iri)
        write = RecordWrite(after, before.version + 1, Action.UPDATE)
        change_log.save_records(transaction, [write], actor="usr_1", at=now_ms())
        vocabularies.update_derived_rows(transaction, [before.record], [after])

    database.run_write(identify)
    database.close()
    assert admin.read("vocabularies/uat/records/uat:7")["iri"] == iri
    own_path = "/api/v1/vocabularies/uat/records/uat%3A7"
    for path, location in (
        ("/api/v1/records/uat:07", "/api/v1/records/uat%3A7"),
        (f"/api/v1/records?iri={quote(iri, safe='')}", "/api/v1/records/uat%3A7"),
        (f"/api/v1/vocabularies/uat/records?iri={quote(iri, safe='')}", own_path),
        ("/api/v1/vocabularies/uat/records/uat:07/history", f"{own_path}/history"),
        ("/id/uat:07?format=json", "/id/uat%3A7?format=json"),
        (f"/id/?iri={quote(iri, safe='')}&format=json", "/id/uat%3A7?format=json"),
        ("/id/uat:07", "/id/uat%3A7"),
    ):
        response = admin.server.get(path)
        assert (response.status, response.headers.get("location")) == (308, location), path
        assert SEPARATOR not in response.body
    assert admin.send("GET", f"vocabularies/first/records?iri={quote(iri, safe='')}").status == 404


def test_iris_of_records_may_begin_with_the_address_of_the_service(admin: VocabularyClient) -> None:
    base = f"http://127.0.0.1:{admin.server.port}/"
    body = {"slug": "here", "title": "Here", "schema": "skos", "base": base, "prefixes": {"here": f"{base}h/"}}
    assert admin.send("POST", "vocabularies", body).status == 201
    records = [admin.add("here", "concept", id=record_id, name=record_id) for record_id in ("c1", "here:7")]
    records += [admin.add("main", "concept", name="Local"), admin.add("uat", "concept", id="uat:local", name="Local")]
    for record in records:
        iri = quote(record["iri"], safe="")
        assert record["iri"].startswith(base)
        for path in (f"/id/?iri={iri}&format=json", f"/api/v1/records?iri={iri}", f"/api/v1/records?id={iri}"):
            response = admin.server.get(path)
            location = response.headers["location"].partition("?")[0]
            assert (response.status, unquote(location).rpartition("/")[2]) == (308, record["id"]), path
        page = admin.server.get(f"/id/?iri={iri}&format=html")
        assert page.status == 308, page.body
    # Both have the base and the id.
    twin = admin.add("here", "concept", id=records[2]["id"], name="Local")
    assert admin.server.get(f"/id/?iri={quote(twin['iri'], safe='')}&format=json").status == 300
    for slug in ("main", "here"):
        path = f"vocabularies/{slug}/records?iri={quote(twin['iri'], safe='')}"
        assert admin.send("GET", path).headers["location"].endswith(quote(twin["id"]))


def test_a_record_is_read_in_the_requested_language(admin: VocabularyClient) -> None:
    names = [{"text": "Sun", "lang": "en"}, {"text": "Sonne", "lang": "de"}, {"text": "Soleil", "lang": "fr"}]
    definitions = [{"text": "A star.", "lang": "en"}, {"text": "Ein Stern.", "lang": "de"}]
    notes = [
        {"type": "scope_note", "text": "Ours.", "lang": "en"},
        {"type": "scope_note", "text": "Unsere.", "lang": "de"},
    ]
    record = admin.add(
        "uat", "concept", id="uat:sun", names=names, definitions=definitions, notes=notes, notations=["SOL"]
    )
    assert (record["name"], record["definition"]) == ("Sun", "A star.")
    assert (record["names"], record["definitions"], record["notes"]) == (names, definitions, notes)
    assert (record["notations"], record["statements"]) == (["SOL"], {})
    path = get_path(record)
    german = admin.send("GET", f"{path}?lang=de-AT")
    assert (german.json["name"], german.json["definition"]) == ("Sonne", "Ein Stern.")
    assert german.headers["content-language"] == "de"
    assert "Accept-Language" not in german.headers["vary"]
    assert german.headers["etag"] != admin.send("GET", path).headers["etag"]
    # Also a response without a language, which caches would give to others.
    assert "Accept-Language" in admin.send("GET", path).headers["vary"]
    french = admin.send("GET", path, Accept_Language="it, fr;q=0.9, de;q=0.5")
    assert (french.json["name"], french.json["definition"]) == ("Soleil", "Ein Stern.")
    assert french.headers["content-language"] == "fr"
    assert "Accept-Language" in french.headers["vary"]
    english_definition = admin.send("GET", path, Accept_Language="fr, en;q=0.5")
    assert english_definition.json["definition"] == "A star."
    assert english_definition.headers["etag"] != french.headers["etag"]
    listed = admin.send("GET", "vocabularies/uat/collections/concept?lang=de&ids=uat:sun").json["items"]
    assert listed[0]["name"] == "Sonne"
    assert admin.server.get("/id/uat:sun?format=json&lang=de").json["name"] == "Sonne"
    problem = admin.send("GET", f"{path}?lang=de_AT")
    assert problem.status == 422
    assert "Write de-AT." in problem.json["detail"]
    back = admin.write("PUT", german.json, body=german.json)
    assert back.json["version"] == 1
    for wrong in (
        {"names": [{"text": "a", "lang": "de"}, {"text": "b", "lang": "DE"}]},
        {"names": [{"text": "a", "lang": "d_e"}]},
        {"definitions": [{"text": "a"}, {"text": "b"}]},
        {"notes": [{"type": "colour", "text": "a"}]},
        {"name": "Moon", "names": [{"text": "Star", "lang": "en"}]},
    ):
        assert admin.write("PATCH", record, body=wrong).status == 422, wrong
    changed = admin.write("PATCH", record, body={"names": [{"text": "The Sun"}, names[1]], "notes": notes[:1]})
    assert changed.json["names"] == [{"text": "The Sun", "lang": "en"}, names[1]]
    assert (changed.json["name"], changed.json["notes"]) == ("The Sun", notes[:1])
    assert changed.json["definitions"] == definitions
    renamed = admin.write("PATCH", changed.json, body={"name": "Sol"})
    assert renamed.json["names"] == [{"text": "Sol", "lang": "en"}, names[1]]


def test_unqualified_paths_refer_to_the_main_vocabulary(admin: VocabularyClient) -> None:
    record = admin.create(name="Of main")
    assert record["vocabulary"] == "main"
    assert record["iri"].endswith(f"/id/{record['id']}")
    assert admin.read(f"vocabularies/main/records/{record['id']}") == record
    assert admin.read(f"concept/{record['id']}") == record
    assert admin.read(f"records/{record['id']}") == record
    assert admin.send("GET", f"vocabularies/uat/records/{record['id']}").status == 404
    assert admin.read("releases")["items"] == []
    assert (
        admin.send("POST", "vocabularies/uat/releases", {"name": "2026"})
        .headers["location"]
        .endswith("uat/releases/2026")
    )
    assert admin.read("vocabularies/uat/releases/2026")["vocabulary"] == "uat"
    assert admin.send("GET", "releases/2026").status == 404
    assert admin.read("vocabularies/uat/records/uat:sun?release=2026")["id"] == "uat:sun"


def test_changes_proposals_batches_and_webhooks_include_the_vocabulary(admin: VocabularyClient) -> None:
    lines = (
        {"op": "create", "collection": "concept", "vocabulary": "birds", "as": "x", "record": {"name": "Owl"}},
        {"op": "create", "collection": "concept", "vocabulary": "birds", "record": {"name": "Eagle owl"}},
        {"op": "relate", "vocabulary": "birds", "id": "$x", "relation": "exactMatch", "target": "wd:Q25222"},
    )
    response = send_batch(admin, *lines)
    assert response.status == 200, response.body
    results = [json.loads(line) for line in response.body.splitlines()]
    assert {result["vocabulary"] for result in results} == {"birds"}
    assert admin.read(f"vocabularies/birds/records/{results[0]['id']}")["mappings"] == {"exactMatch": ["wd:Q25222"]}
    changes = admin.read("changes?vocabulary=birds&collection=concept")["items"]
    assert [(item["vocabulary"], item["collection"], item["id"]) for item in changes] == [
        ("birds", "concept", result["id"]) for result in results
    ]
    assert admin.read("changes?vocabulary=birds,main&collection=task")["items"] == []
    assert admin.send("GET", "changes?collection=nothing").status == 422
    proposal = admin.send(
        "POST", "proposals", {"vocabulary": "birds", "collection": "concept", "change": {"name": "Wren"}}
    ).json
    assert (proposal["vocabulary"], proposal["collection"]) == ("birds", "concept")
    assert [item["id"] for item in admin.read("proposals?vocabulary=birds")["items"]] == [proposal["id"]]
    assert admin.read("proposals?vocabulary=uat")["items"] == []
    accepted = admin.send("POST", f"proposals/{proposal['id']}/accept")
    assert (accepted.json["vocabulary"], accepted.json["name"]) == ("birds", "Wren")


def test_a_role_in_one_vocabulary_applies_only_there(admin: VocabularyClient) -> None:
    user = admin.send("POST", "users", {"name": "Bert", "role": "none"}).json
    changed = admin.send("PATCH", f"users/{user['id']}", {"role": "curator", "vocabulary": "birds"}).json
    assert (changed["role"], changed["vocabulary_roles"]) == ("none", {"birds": "curator"})
    listed = {item["id"]: item for item in admin.read("users")["items"]}
    assert listed[user["id"]]["vocabulary_roles"] == {"birds": "curator"}
    token = admin.send("POST", "tokens", {"account": "Bert", "role": "curator"}).json["token"]
    authorization = f"Bearer {token}"
    wren = {"name": "Wren"}
    assert admin.send("POST", "vocabularies/birds/collections/concept", wren, Authorization=authorization).status == 201
    assert admin.send("POST", "vocabularies/uat/collections/concept", wren, Authorization=authorization).status == 403
    assert admin.send("POST", "concept", wren, Authorization=authorization).status == 403
    assert (
        admin.send("PATCH", "vocabularies/birds", {"title": "x"}, Authorization=authorization, If_Match="*").status
        == 403
    )
    assert (
        admin.send("PATCH", f"users/{user['id']}", {"role": "none", "vocabulary": "birds"}).json["vocabulary_roles"]
        == {}
    )
    assert admin.send("PATCH", f"users/{user['id']}", {"role": "curator", "vocabulary": "none"}).status == 404


def test_iris_of_other_vocabularies_do_not_begin_with_the_base_of_the_default_one(admin: VocabularyClient) -> None:
    body = {"slug": "stars", "title": "Stars", "schema": "skos", "base": "https://stars.example/"}
    assert admin.send("POST", "vocabularies", body).status == 201
    record = admin.add("uat", "concept", id="uat:base", name="Based")
    manifest = admin.server.get("/reconcile").json
    assert admin.send("PATCH", "vocabularies/stars", {"default": True}, If_Match="*").status == 200
    assert admin.read(get_path(record))["iri"] == record["iri"]
    assert admin.server.get("/id/uat:base?format=json").json["iri"] == record["iri"]
    assert admin.read("vocabularies/main")["title"] == "Lexarium"
    assert admin.server.get("/reconcile").json == manifest
    assert admin.send("PATCH", "vocabularies/main", {"default": True}, If_Match="*").status == 200


def test_a_new_record_has_the_iri_of_its_curie_in_responses_pages_and_exports(admin: VocabularyClient) -> None:
    prefixes = {"pond": "https://ponds.example/"}
    for slug, schema, record_id, iri in (
        ("ponds", "skos", "pond:7", "https://ponds.example/7"),
        ("lakes", "obo", "LAKE:0000007", "http://purl.obolibrary.org/obo/LAKE_0000007"),
    ):
        body = {"slug": slug, "title": slug, "schema": schema, "prefixes": prefixes, "base": "https://base.example/"}
        assert admin.send("POST", "vocabularies", body).status == 201
        record = admin.add(slug, "concept" if schema == "skos" else "term", id=record_id, name=slug)
        assert record["iri"] == iri
        found = admin.server.get(f"/id/?iri={quote(iri, safe='')}")
        assert (found.status, found.headers["location"].split("?")[0]) == (308, f"/id/{quote(record_id)}")
        assert admin.server.get(f"/id/{record_id}?vocabulary={slug}&format=jsonld").json[0]["@id"] == iri
        assert iri.encode() in admin.server.get(f"/id/{record_id}?vocabulary={slug}&format=html").body


def test_minted_ids_with_numbers_are_not_taken_for_those_of_an_obo_ontology(admin: VocabularyClient) -> None:
    body = {
        "slug": "mint",
        "title": "Mint",
        "schema": "skos",
        "minting": "leaf:{n:07}",
        "base": "https://mint.example/",
    }
    assert admin.send("POST", "vocabularies", body).status == 201
    assert admin.add("mint", "concept", name="Peppermint")["iri"] == "https://mint.example/id/leaf%3A0000001"


@pytest.mark.parametrize("record_id", ["1", "EX:1", "EX:a", "HP:0000001", "a%b"])
def test_the_iri_of_a_record_is_the_same_in_v1_on_its_page_and_in_exports(
    admin: VocabularyClient, record_id: str
) -> None:
    slug = f"same-{record_id.encode().hex()}"
    assert admin.send("POST", "vocabularies", {"slug": slug, "title": slug, "schema": "skos"}).status == 201
    record = admin.add(slug, "concept", id=record_id, name=slug)
    iri, path = record["iri"], f"/id/{quote(record_id, safe='')}?vocabulary={slug}"
    assert iri == admin.server.get(f"{path}&format=jsonld").json[0]["@id"]
    assert escape(iri).encode() in admin.server.get(f"{path}&format=html").body
    exported = admin.send("GET", f"export?vocabulary={slug}&format=ntriples").body
    assert f"<{iri}> <http://www.w3.org/2004/02/skos/core#prefLabel>".encode() in exported
    for target in (f"/api/v1/records?iri={quote(iri, safe='')}&", f"/id/?iri={quote(iri, safe='')}&format=json&"):
        found = admin.server.get(f"{target}vocabulary={slug}")
        assert found.headers["location"].partition("?")[0].endswith(f"/{quote(record_id, safe='')}")


@pytest.mark.parametrize("file_format", ["skos", "ntriples", "csv", "obo"])
def test_an_export_over_http_can_be_imported_again_without_changes(
    admin: VocabularyClient, tmp_path: Path, file_format: str
) -> None:
    slug = f"again-{file_format}"
    assert admin.send("POST", "vocabularies", {"slug": slug, "title": slug, "schema": "skos"}).status == 201
    first = admin.add(slug, "concept", id="1", name="One")
    admin.add(slug, "concept", id="EX:b", name="Two", relations={"broader": [first["id"]]})
    path = tmp_path / f"file{FORMATS[file_format].extensions[0]}"
    path.write_bytes(admin.send("GET", f"export?vocabulary={slug}&format={file_format}").body)
    run_cli("import", str(path), "--vocabulary", slug, "--database", admin.server.url)
    listed = admin.read(f"vocabularies/{slug}/collections/concept")["items"]
    assert [(item["id"], item["version"]) for item in listed] == [("1", 1), ("EX:b", 1)]


def test_new_and_edited_concepts_are_in_the_only_scheme_and_have_language_tags(
    admin: VocabularyClient, tmp_path: Path
) -> None:
    path = tmp_path / "file.ttl"
    path.write_text(
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix hue: <https://hues.example/> . "
        'hue: a skos:ConceptScheme . hue:red a skos:Concept ; skos:inScheme hue: ; skos:prefLabel "red"@en .'
    )
    run_cli("import", str(path), "--vocabulary", "hues", "--database", admin.server.url)
    note = {"text": "A note.", "type": "scope_note"}
    blue = admin.add("hues", "concept", id="hues:blue", name="blue", definition="A colour.", notes=[note])
    assert blue["relations"] == {"in_scheme": ["https://hues.example/"]}
    [red] = [item for item in admin.read("vocabularies/hues/collections/concept")["items"] if item["name"] == "red"]
    assert admin.write("PATCH", red, body={"name": "Red"}).status == 200
    exported = admin.send("GET", "export?vocabulary=hues&format=ntriples").body.decode()
    assert {text for text in ("blue", "A colour.", "A note.", "Red") if f'"{text}"@en' not in exported} == set()
    path.write_text(exported)
    run_cli("import", str(path), "--vocabulary", "hues", "--database", admin.server.url)
    assert admin.read(get_path(blue))["version"] == 1


@pytest.mark.parametrize(("slot_uri", "relations"), [("plants:studied", {}), ("skos:inScheme", {"in_scheme": ["s1"]})])
def test_a_new_record_joins_the_only_record_that_a_relation_in_scheme_of_skos_has(
    admin: VocabularyClient, slot_uri: str, relations: dict[str, list[str]]
) -> None:
    slug = slot_uri.replace(":", "-").lower()
    schema = SCHEMA.replace("colour, parent]", "in_scheme]\n  Study:\n    slots: [id, label]")
    schema += f"  in_scheme:\n    slot_uri: {slot_uri}\n    range: Study\n"
    body = {"slug": slug, "title": slug, "schema": schema}
    assert admin.send("POST", "vocabularies", body).status == 201
    admin.add(slug, "study", id="s1", name="Study")
    assert admin.add(slug, "plant", name="Oak")["relations"] == relations


def test_an_ambiguous_alternative_id_returns_a_choice(admin: VocabularyClient) -> None:
    assert admin.send("POST", "vocabularies", {"slug": "twins", "title": "Twins", "schema": "obo"}).status == 201
    database = Database(admin.server.url)
    database.run_read(database.follow_vocabularies)
    for local_id in ("twin:1", "twin:2"):
        add_concept(database, "twins", local_id, {"": local_id}, collection="term", alternative_ids=("twin:0",))
    database.close()
    for path in ("vocabularies/twins/records/twin:0", "vocabularies/twins/records?id=twin:0", "records/twin:0"):
        response = admin.send("GET", path)
        assert response.status == 300, path
        assert [item["id"] for item in response.json["candidates"]] == ["twin:1", "twin:2"]
        assert response.json["detail"] == "twin:0 is an alternative ID of several records: twin:1, twin:2."


def test_roles_in_a_purged_vocabulary_do_not_apply_to_a_new_one_of_the_same_name(admin: VocabularyClient) -> None:
    member = VocabularyClient(admin.server, "none")
    user = member.send("GET", "me").json["id"]
    private = {"slug": "burrow", "title": "Burrow", "schema": "skos", "private": True}
    assert admin.send("POST", "vocabularies", private).status == 201
    assert admin.send("PATCH", f"users/{user}", {"role": "reader", "vocabulary": "burrow"}).status == 200
    token = admin.send("POST", "tokens", {"account": member.send("GET", "me").json["name"]}).json["token"]
    assert admin.send("GET", "vocabularies/burrow", Authorization=f"Bearer {token}").status == 200
    assert admin.send("DELETE", "vocabularies/burrow", If_Match="*").status == 200
    database = Database(admin.server.url)
    purge_vocabulary(database, "burrow")
    database.close()
    assert admin.send("POST", "vocabularies", private).status == 201
    assert admin.send("GET", "vocabularies/burrow", Authorization=f"Bearer {token}").status == 404


def test_records_of_any_vocabulary_are_filtered_by_class(admin: VocabularyClient) -> None:
    admin.send("POST", "vocabularies", {"slug": "minds", "title": "Minds", "schema": "cognitive-atlas"})
    label = admin.add("minds", "concept_class", name="Memory")
    record = admin.add("minds", "concept", name="recall", id_concept_class=label["id"])
    admin.add("minds", "concept", name="fear")
    listed = admin.read(f"vocabularies/minds/collections/concept?class={label['id']}")
    assert [item["id"] for item in listed["items"]] == [record["id"]]


def test_a_record_of_any_vocabulary_is_read_as_rdf(admin: VocabularyClient) -> None:
    admin.add("uat", "concept", id="uat:rdf", name="Comet", relations={"exactMatch": ["wd:Q3559"]})
    turtle = admin.server.get("/id/uat:rdf", Accept="text/turtle")
    assert turtle.status == 200
    assert b"exactMatch" in turtle.body
    document = admin.server.get("/id/uat:rdf?format=jsonld")
    assert document.status == 200
    assert b"Comet" in document.body


def test_an_id_that_is_not_valid_in_an_iri_is_escaped_in_rdf(admin: VocabularyClient) -> None:
    assert admin.send("POST", "vocabularies", {"slug": "odd", "title": "Odd", "schema": "skos"}).status == 201
    for record_id in ("odd:5%", "odd:[1]", "odd:a#b#c", "http://[x/%zz", "http://a:b/", "odd:\ue000"):
        record = admin.add("odd", "concept", id=record_id, name=record_id)
        path = f"/id/{quote(record['id'], safe='')}?vocabulary=odd&format=turtle"
        assert admin.server.get(path).status == 200, record_id
    assert b"/id/odd%3A5%25?vocabulary=odd>" in admin.send("GET", "export?vocabulary=odd&format=skos").body


@pytest.mark.parametrize("name", [name for name, item in FORMATS.items() if item.can_write])
def test_an_export_has_the_original_ids_and_collection_names(admin: VocabularyClient, name: str) -> None:
    slug = f"ids-{name}"
    assert admin.send("POST", "vocabularies", {"slug": slug, "title": "Ids", "schema": "skos"}).status == 201
    admin.add(slug, "concept", id="i:1", name="i:1")
    for local_id in ("i:2", "i:3"):
        last = admin.add(slug, "concept", id=local_id, name=local_id, relations={"related": ["i:1"]})
    assert admin.write("POST", last, "/merge", {"into": "i:2"}).status == 200
    exported = admin.send("GET", f"export?vocabulary={slug}&format={name}")
    assert exported.status == 200
    for separator in (b"\x1f", SEPARATOR, b"%1F", f"{slug}/concept".encode()):
        assert separator not in exported.body
