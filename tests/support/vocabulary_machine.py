"""Random writes to several vocabularies over HTTP as a Hypothesis state machine, compared with a simple model.

Every text of a vocabulary has a word that no other one has, so that a response that shows it to the wrong reader is
found, whatever it is.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar
from urllib.parse import quote, unquote

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lexarium.domain.account import Role
from lexarium.domain.vocabulary import register_vocabularies
from lexarium.formats.registry import FORMATS
from lexarium.services.access.accounts import add_account, update_account
from lexarium.services.access.tokens import create_token
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.services.transfer.resource_import.importer import import_resource_files
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from tests.support.polling import wait_until
from tests.support.server import HttpResponse, Server
from tests.support.vocabularies import purge_vocabulary

MADE_SCHEMA = """
id: https://example.org/made
name: made
prefixes: {made: "https://example.org/made/", linkml: "https://w3id.org/linkml/", skos: "http://www.w3.org/2004/02/skos/core#"}
default_prefix: made
imports: [linkml:types]
classes:
  Plant:
    slots: [id, name, meaning, grows_on, exact_match]
slots:
  id: {identifier: true}
  name: {slot_uri: "skos:prefLabel", required: true, multivalued: true}
  meaning: {slot_uri: "skos:definition"}
  grows_on: {range: Plant, multivalued: true, annotations: {lexarium_hierarchical: true}}
  exact_match:
    {slot_uri: "skos:exactMatch", range: uriorcurie, multivalued: true, annotations: {lexarium_relation: exactMatch}}
"""
# By schema: the collection of records, and a relation between them.
SCHEMAS = {
    "cognitive-atlas": ("concept", "KINDOF"),
    "skos": ("concept", "broader"),
    "obo": ("term", "is_a"),
    "made": ("plant", "grows_on"),
}
MAPPINGS = {"cognitive-atlas": "exactMatch", "skos": "exactMatch", "obo": "hasDbXref", "made": "exactMatch"}
# The word in every text of each vocabulary. They are unlike each other, and unlike the slugs.
MARKERS = {"main": "Wombatzz", "lemur": "Quokkazz", "okapi": "Narwhalzz", "tapir": "Axolotlzz"}
# Ids that records of several vocabularies may have.
SHARED_IDS = ("X:1", "a/b#c%20ü?d", "50%", "x/history")
# Further ids of imported records.
ALTERNATIVE_IDS = ("X:1", "ALT:1", "ALT:2")
WORDS = ("apple", "pear", "größe")
# Readers and writers: without a token, two accounts with roles in single vocabularies, and an admin of all.
ACCOUNTS = ("nobody", "ann", "bob", "admin")
EXPORT_FORMATS = [name for name, item in FORMATS.items() if item.can_write]
# Steps between two complete checks.
CHECK_INTERVAL = 8

words = st.sampled_from(WORDS)
writers = st.sampled_from(ACCOUNTS)


@dataclass
class ExpectedRecord:
    """Expected content of a record."""

    name: str
    state: str = "published"
    replaced_by: str | None = None
    translations: dict[str, str] = field(default_factory=dict)
    alternative_ids: tuple[str, ...] = ()
    is_mapped: bool = False


@dataclass
class ExpectedVocabulary:
    """Expected content of a vocabulary."""

    schema: str
    is_private: bool = False
    is_removed: bool = False
    defines: tuple[str, ...] = ()
    records: dict[str, ExpectedRecord] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=dict)
    # Id, author and name of open proposals for new records.
    proposals: dict[str, tuple[str, str]] = field(default_factory=dict)
    releases: list[str] = field(default_factory=list)
    # Texts of imported files.
    files: list[str] = field(default_factory=list)

    def list_published(self) -> list[str]:
        return [record_id for record_id, record in self.records.items() if record.state == "published"]


def encode(text: str) -> str:
    return quote(text, safe="")


class VocabularyMachine(RuleBasedStateMachine):
    """Create vocabularies and write to them in turn, and read everything with several accounts."""

    new_url: ClassVar[Callable[[], str]]

    def __init__(self) -> None:
        super().__init__()
        register_vocabularies([])
        url = type(self).new_url()
        self.database = Database(url)
        self.tokens: dict[str, str] = {}
        self.account_ids: dict[str, str] = {}
        for name in reversed(ACCOUNTS[1:]):
            # A token may do no more than its account might do when it was made.
            self.account_ids[name] = account_id = add_account(self.database, name, Role.ADMIN).id
            self.tokens[name] = create_token(self.database, name)[1]
            if name != "admin":
                self.database.run_write(partial(update_account, account_id=account_id, role=Role.NONE))
        self.server = Server(url, LEXARIUM_WRITE_RATE="100000").__enter__()
        self.connection = self.server.connect()
        self.folder = TemporaryDirectory()
        self.model = {"main": ExpectedVocabulary("cognitive-atlas")}
        self.default = "main"
        self.steps = 0
        self.checks = 0
        self.count = 0

    def teardown(self) -> None:
        try:
            self.check_readers()
            assert check_database(self.database).problems == []
        finally:
            self.connection.close()
            self.server.stop()
            self.database.close()
            self.folder.cleanup()

    # The model

    def get_role(self, account: str, slug: str) -> Role:
        return Role.ADMIN if account == "admin" else self.model[slug].roles.get(account, Role.NONE)

    def can_read(self, account: str, slug: str) -> bool:
        vocabulary = self.model.get(slug)
        if vocabulary is None or vocabulary.is_removed:
            return False
        return not vocabulary.is_private or self.get_role(account, slug) is not Role.NONE

    def list_readable(self, account: str) -> list[str]:
        return [slug for slug in self.model if self.can_read(account, slug)]

    def list_active(self) -> list[str]:
        return [slug for slug, vocabulary in self.model.items() if not vocabulary.is_removed]

    def list_records(self, *states: str) -> list[tuple[str, str]]:
        return [
            (slug, record_id)
            for slug in self.list_active()
            for record_id, record in self.model[slug].records.items()
            if record.state in states
        ]

    def find_refusal(self, account: str, slug: str, needed: Role) -> int | None:
        """Return the status with which a write is refused, or None."""
        if account == "nobody":
            return 401
        if not self.can_read(account, slug):
            return 404
        return 403 if self.get_role(account, slug).rank < needed.rank else None

    def make_name(self, slug: str, word: str) -> str:
        self.count += 1
        return f"{word} {MARKERS[slug]} n{self.count}"

    # Requests

    def send(self, account: str, method: str, target: str, body: object = None, **headers: str) -> HttpResponse:
        """Send a request; the response must contain nothing that the account may not read."""
        sent = {"Content-Type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
        if account in self.tokens:
            token = self.tokens[account]
            sent |= {"Authorization": f"Bearer {token}", "Cookie": f"lexarium_session={token}"}
        text = body if isinstance(body, str) or body is None else json.dumps(body)
        self.connection.request(method, target, None if text is None else text.encode(), sent)
        received_response = self.connection.getresponse()
        received_headers = {name.lower(): value for name, value in received_response.getheaders()}
        response = HttpResponse(received_response.status, received_headers, received_response.read())
        assert response.status < 500, (account, method, target, response.body)
        known = unquote(target) + (text or "")
        received = response.body.decode() + json.dumps(dict(response.headers), ensure_ascii=False)
        assert "\x1f" not in received, (account, method, target, received)
        assert "\\u001f" not in received, (account, method, target, received)
        for slug, marker in MARKERS.items():
            if not self.can_read(account, slug):
                shown = [text for text in (slug, marker) if text in received and text not in known and text != "main"]
                assert not shown, (account, method, target, shown, received)
        return response

    def get(self, account: str, target: str) -> HttpResponse:
        return self.send(account, "GET", target)

    def read(self, account: str, target: str) -> Any:
        """Return the JSON of a successful GET. It is sent twice: a cached response must equal an uncached one."""
        response = self.get(account, target)
        assert response.status == 200, (account, target, response.body)
        again = self.get(account, target)
        assert (again.status, again.body) == (200, response.body), (account, target)
        return response.json

    def administer(self, method: str, path: str, body: object = None, status: int = 200) -> Any:
        response = self.send("admin", method, f"/api/v1/vocabularies{path}", body, If_Match="*")
        assert response.status == status, (method, path, body, response.body)
        return response.json

    def write(self, account: str, method: str, slug: str, path: str, body: object = None) -> HttpResponse:
        return self.send(account, method, f"/api/v1/vocabularies/{slug}/{path}", body, If_Match="*")

    # Rules for vocabularies

    @initialize(private=st.booleans())
    def begin(self, private: bool) -> None:
        self.add_vocabulary("lemur", "skos", private=True, defines=())
        self.add_vocabulary("okapi", "obo", private=private, defines=("X",))

    @precondition(lambda self: len(self.model) < len(MARKERS))
    @rule(
        data=st.data(),
        schema=st.sampled_from(["skos", "obo", "made"]),
        private=st.booleans(),
        defines=st.sampled_from([(), ("X",)]),
    )
    def create_vocabulary(self, data: st.DataObject, schema: str, private: bool, defines: tuple[str, ...]) -> None:
        slug = data.draw(st.sampled_from([slug for slug in MARKERS if slug not in self.model]))
        self.add_vocabulary(slug, schema, private=private, defines=defines)

    def add_vocabulary(self, slug: str, schema: str, *, private: bool, defines: tuple[str, ...]) -> None:
        body = {
            "slug": slug,
            "title": f"Title {MARKERS[slug]}",
            "schema": MADE_SCHEMA if schema == "made" else schema,
            "private": private,
            "defines": defines,
            "languages": ["en", "de"],
        }
        is_taken = any(set(defines) & set(other.defines) for other in self.model.values())
        for account in ("nobody", "ann"):
            response = self.send(account, "POST", "/api/v1/vocabularies", body)
            assert response.status == (401 if account == "nobody" else 403)
        self.administer("POST", "", body, 422 if is_taken else 201)
        if not is_taken:
            self.model[slug] = ExpectedVocabulary(schema, private, defines=defines)

    @rule(data=st.data(), private=st.booleans())
    def change_privacy(self, data: st.DataObject, private: bool) -> None:
        slug = data.draw(st.sampled_from(self.list_active()))
        self.administer("PATCH", f"/{slug}", {"private": private})
        self.model[slug].is_private = private

    @rule(data=st.data())
    def choose_default(self, data: st.DataObject) -> None:
        slug = data.draw(st.sampled_from(self.list_active()))
        self.administer("PATCH", f"/{slug}", {"default": True})
        self.default = slug

    @precondition(lambda self: len(self.list_active()) > 1)
    @rule(data=st.data())
    def remove_vocabulary(self, data: st.DataObject) -> None:
        slug = data.draw(st.sampled_from(self.list_active()))
        is_default = slug == self.default
        self.administer("DELETE", f"/{slug}", status=409 if is_default else 200)
        self.model[slug].is_removed = not is_default

    @precondition(lambda self: len(self.list_active()) < len(self.model))
    @rule(data=st.data())
    def restore_vocabulary(self, data: st.DataObject) -> None:
        slug = data.draw(st.sampled_from([slug for slug in self.model if slug not in self.list_active()]))
        target = f"/api/v1/vocabularies/{slug}/restore"
        restorer = "ann" if self.get_role("ann", slug) is Role.ADMIN else "admin"
        if restorer == "admin":
            assert self.send("ann", "POST", target).status in (403, 404)
        self.model[slug].is_removed = False
        assert self.send(restorer, "POST", target).status == 200

    @precondition(lambda self: len(self.list_active()) < len(self.model))
    @rule(data=st.data())
    def purge_vocabulary(self, data: st.DataObject) -> None:
        slug = data.draw(st.sampled_from([slug for slug in self.model if slug not in self.list_active()]))
        purge_vocabulary(self.database, slug)
        target = f"/api/v1/vocabularies/{slug}/restore"
        purged = 409 if slug == "main" else 404
        wait_until(lambda: self.send("admin", "POST", target).status == purged)
        del self.model[slug]
        if slug == "main":
            self.model = {"main": ExpectedVocabulary("cognitive-atlas"), **self.model}

    @rule(data=st.data(), account=st.sampled_from(["ann", "bob"]), role=st.sampled_from(list(Role)))
    def set_role(self, data: st.DataObject, account: str, role: Role) -> None:
        slug = data.draw(st.sampled_from(self.list_active()))
        response = self.send(
            "admin", "PATCH", f"/api/v1/users/{self.account_ids[account]}", {"role": role, "vocabulary": slug}
        )
        assert response.status == 200, response.body
        self.model[slug].roles[account] = role

    # Rules for records

    @rule(data=st.data(), account=writers, word=words, german=st.booleans())
    def create_record(self, data: st.DataObject, account: str, word: str, german: bool) -> None:
        slug = data.draw(st.sampled_from(self.list_active()))
        vocabulary = self.model[slug]
        collection, relation = SCHEMAS[vocabulary.schema]
        draft: dict[str, Any] = {"name": self.make_name(slug, word)}
        if slug != "main":
            draft["id"] = data.draw(st.sampled_from([*SHARED_IDS, f"{slug}:{self.count}?/#%ß"]))
            if german:
                draft["names"] = [{"text": f"Apfel {MARKERS[slug]}", "lang": "de"}]
        targets = data.draw(st.lists(st.sampled_from(vocabulary.list_published() or ["none"]), max_size=1))
        if vocabulary.records and targets != ["none"]:
            draft["relations"] = {relation: targets}
        response = self.write(account, "POST", slug, f"collections/{collection}", draft)
        refusal = self.find_refusal(account, slug, Role.CONTRIBUTOR)
        if refusal is None and draft.get("id") in vocabulary.records:
            refusal = 409
        if refusal is not None:
            assert response.status == refusal, (account, slug, response.body)
        elif self.get_role(account, slug) is Role.CONTRIBUTOR:
            assert response.status == 202, response.body
            vocabulary.proposals[response.json["id"]] = (account, draft["name"])
        else:
            assert response.status == 201, response.body
            assert response.json["vocabulary"] == slug
            assert response.json["id"] == draft.get("id", response.json["id"])
            assert response.json["name"] == draft["name"]
            translations = {text["lang"]: text["text"] for text in draft.get("names", ())}
            vocabulary.records[response.json["id"]] = ExpectedRecord(draft["name"], translations=translations)

    @precondition(lambda self: bool(self.list_records("published")))
    @rule(data=st.data(), account=writers, word=words)
    def rename_record(self, data: st.DataObject, account: str, word: str) -> None:
        slug, record_id = data.draw(st.sampled_from(self.list_records("published")))
        name = self.make_name(slug, word)
        response = self.write(account, "PATCH", slug, f"records/{encode(record_id)}", {"name": name})
        refusal = self.find_refusal(account, slug, Role.CONTRIBUTOR)
        is_proposal = self.get_role(account, slug) is Role.CONTRIBUTOR
        assert response.status == (refusal or (202 if is_proposal else 200)), (account, slug, response.body)
        if response.status == 200:
            self.model[slug].records[record_id].name = name

    @precondition(lambda self: bool(self.list_records("published")))
    @rule(data=st.data(), account=writers)
    def retire_record(self, data: st.DataObject, account: str) -> None:
        slug, record_id = data.draw(st.sampled_from(self.list_records("published")))
        response = self.write(account, "DELETE", slug, f"records/{encode(record_id)}")
        refusal = self.find_refusal(account, slug, Role.CONTRIBUTOR)
        is_proposal = self.get_role(account, slug) is Role.CONTRIBUTOR
        assert response.status == (refusal or (202 if is_proposal else 200)), (account, slug, response.body)
        if response.status == 200:
            self.model[slug].records[record_id].state = "retired"

    @precondition(lambda self: len(self.list_records("published")) > 1)
    @rule(data=st.data(), account=writers)
    def merge_records(self, data: st.DataObject, account: str) -> None:
        slug, record_id = data.draw(st.sampled_from(self.list_records("published")))
        _, survivor_id = data.draw(st.sampled_from(self.list_records("published")))
        response = self.write(account, "POST", slug, f"records/{encode(record_id)}/merge", {"into": survivor_id})
        refusal = self.find_refusal(account, slug, Role.CURATOR)
        records = self.model[slug].records
        if refusal is not None:
            assert response.status == refusal, (account, slug, response.body)
        elif survivor_id not in self.model[slug].list_published() or survivor_id == record_id:
            assert response.status in (404, 409, 410, 422), (slug, record_id, survivor_id, response.body)
        else:
            assert response.status in (200, 409, 422), response.body
            if response.status == 200:
                assert (response.json["id"], response.json["name"]) == (survivor_id, records[survivor_id].name)
                records[record_id].state, records[record_id].replaced_by = "merged", survivor_id

    @precondition(lambda self: bool(self.list_records("published", "retired", "merged")))
    @rule(data=st.data(), account=writers)
    def revert_record(self, data: st.DataObject, account: str) -> None:
        slug, record_id = data.draw(st.sampled_from(self.list_records("published", "retired", "merged")))
        path = f"records/{encode(record_id)}"
        history = self.read("admin", f"/api/v1/vocabularies/{slug}/history?id={encode(record_id)}")["items"]
        version = data.draw(st.sampled_from([item["version"] for item in history]))
        past = self.read("admin", f"/api/v1/vocabularies/{slug}/records/{encode(record_id)}/history/{version}")
        response = self.write(account, "POST", slug, f"{path}/revert", {"version": version})
        refusal = self.find_refusal(account, slug, Role.CURATOR)
        if refusal is not None:
            assert response.status == refusal, (account, slug, response.body)
            return
        assert response.status in (200, 409, 422), response.body
        if response.status == 200:
            record = self.model[slug].records[record_id]
            assert (response.json["name"], response.json["state"]) == (past["name"], past["state"])
            record.name, record.state, record.replaced_by = past["name"], past["state"], past["replaced_by"]
            record.translations = {item["lang"]: item["text"] for item in past["names"] if item["lang"] != "en"}
            # Those of a file are texts, others are relations.
            imported_ids = past["statements"].get("oboInOwl:hasAlternativeId", ())
            record.alternative_ids = (*past["relations"].get("alt_id", ()), *imported_ids)

    @precondition(lambda self: bool(self.list_records("published")))
    @rule(data=st.data(), account=writers, mapping=st.booleans())
    def relate_record(self, data: st.DataObject, account: str, mapping: bool) -> None:
        slug, record_id = data.draw(st.sampled_from(self.list_records("published")))
        vocabulary = self.model[slug]
        target = data.draw(st.sampled_from(["X:1", "ALT:1", *vocabulary.list_published()]))
        if mapping:
            target = data.draw(st.sampled_from(["X:1", "ALT:1", "wd:Q1"]))
        relation = MAPPINGS[vocabulary.schema] if mapping else SCHEMAS[vocabulary.schema][1]
        body = {"relation": relation, "target": target}
        response = self.write(account, "PUT", slug, f"relations?id={encode(record_id)}", body)
        refusal = self.find_refusal(account, slug, Role.CURATOR)
        assert response.status == refusal if refusal else response.status in (200, 409, 422), (response.body, body)
        if mapping and not refusal:
            assert response.status == 200, response.body
            vocabulary.records[record_id].is_mapped = True

    @precondition(lambda self: any(self.model[slug].schema == "obo" for slug, _ in self.list_records("published")))
    @rule(data=st.data(), alternative_id=st.sampled_from(ALTERNATIVE_IDS))
    def add_alternative_id(self, data: st.DataObject, alternative_id: str) -> None:
        slug, record_id = data.draw(
            st.sampled_from([item for item in self.list_records("published") if self.model[item[0]].schema == "obo"])
        )
        body = {"relation": "alt_id", "target": alternative_id}
        response = self.write("admin", "PUT", slug, f"relations?id={encode(record_id)}", body)
        record = self.model[slug].records[record_id]
        assert response.status in (200, 422), response.body
        if response.status == 200 and alternative_id not in record.alternative_ids:
            record.alternative_ids += (alternative_id,)

    @rule(data=st.data(), account=writers, number=st.integers(1, 2))
    def name_release(self, data: st.DataObject, account: str, number: int) -> None:
        slug = data.draw(st.sampled_from(self.list_active()))
        name = f"{MARKERS[slug]}-{number}"
        response = self.write(account, "POST", slug, "releases", {"name": name})
        refusal = self.find_refusal(account, slug, Role.CURATOR)
        is_taken = name in self.model[slug].releases
        assert response.status == (refusal or (409 if is_taken else 201)), (account, slug, response.body)
        if response.status == 201:
            self.model[slug].releases.append(name)

    # Proposals, batches and imports

    @precondition(lambda self: any(self.model[slug].proposals for slug in self.list_active()))
    @rule(data=st.data(), account=writers, decision=st.sampled_from(["accept", "reject", "withdraw"]))
    def decide_proposal(self, data: st.DataObject, account: str, decision: str) -> None:
        slug, proposal_id = data.draw(
            st.sampled_from([(slug, item) for slug in self.list_active() for item in self.model[slug].proposals])
        )
        author, name = self.model[slug].proposals[proposal_id]
        body = {"reason": f"No {MARKERS[slug]}."} if decision == "reject" else {}
        response = self.send(account, "POST", f"/api/v1/proposals/{proposal_id}/{decision}", body)
        needed = Role.CONTRIBUTOR if decision == "withdraw" else Role.CURATOR
        if self.find_refusal(account, slug, needed) or (decision == "withdraw" and account != author):
            assert response.status in (401, 403, 404), (account, decision, response.body)
            return
        assert response.status in (200, 409), response.body
        if response.status == 200:
            del self.model[slug].proposals[proposal_id]
            if decision == "accept":
                translations = {text["lang"]: text["text"] for text in response.json["names"] if text["lang"] != "en"}
                assert response.json["name"] == name
                self.model[slug].records[response.json["id"]] = ExpectedRecord(name, translations=translations)

    @rule(data=st.data(), account=writers, word=words)
    def send_batch(self, data: st.DataObject, account: str, word: str) -> None:
        slugs = data.draw(st.lists(st.sampled_from(self.list_active()), min_size=1, max_size=2))
        lines: list[dict[str, Any]] = []
        for slug in slugs:
            record = {"name": self.make_name(slug, word)} | ({} if slug == "main" else {"id": f"{slug}:{self.count}"})
            collection = SCHEMAS[self.model[slug].schema][0]
            lines.append({"op": "create", "vocabulary": slug, "collection": collection, "record": record})
        body = "\n".join(map(json.dumps, lines))
        target = f"/api/v1/batch?vocabulary={slugs[0]}"
        response = self.send(account, "POST", target, body, Content_Type="application/x-ndjson")
        if any(self.find_refusal(account, slug, Role.CURATOR) for slug in slugs):
            assert response.status in (401, 403, 404, 422), (account, slugs, response.body)
            return
        assert response.status == 200, response.body
        for line, result in zip(lines, map(json.loads, response.body.splitlines()), strict=True):
            self.model[line["vocabulary"]].records[result["id"]] = ExpectedRecord(line["record"]["name"])

    @precondition(lambda self: any(self.model[slug].schema in ("obo", "skos") for slug in self.list_active()))
    @rule(data=st.data(), word=words, alternative_id=st.sampled_from(ALTERNATIVE_IDS))
    def import_file(self, data: st.DataObject, word: str, alternative_id: str) -> None:
        slug = data.draw(st.sampled_from([s for s in self.list_active() if self.model[s].schema in ("obo", "skos")]))
        vocabulary, name = self.model[slug], self.make_name(slug, word)
        record_id, german = f"{slug}:{self.count}", f"Datei {MARKERS[slug]}"
        if vocabulary.schema == "obo":
            document = f"format-version: 1.4\nontology: made/{slug}{self.count}\n\n[Term]\nid: {record_id}\n"
            document += f"name: {name}\nalt_id: {alternative_id}\n"
            record = ExpectedRecord(name, alternative_ids=(alternative_id,))
        else:
            record_id = iri = f"https://example.org/{slug}/{self.count}"
            document = f"<{iri}> a <http://www.w3.org/2004/02/skos/core#Concept> ; "
            label = "<http://www.w3.org/2004/02/skos/core#prefLabel>"
            document += f'{label} "{name}"@en, "{german}"@de .\n'
            record = ExpectedRecord(name, translations={"de": german})
        self.run_import(slug, document)
        vocabulary.records[record_id] = record
        vocabulary.files.append(document)

    @precondition(lambda self: any(self.model[slug].files for slug in self.list_active()))
    @rule(data=st.data())
    def import_again(self, data: st.DataObject) -> None:
        """An unchanged file changes nothing, whatever was edited since, except for retired records."""
        slug = data.draw(st.sampled_from([slug for slug in self.list_active() if self.model[slug].files]))
        retired = {item for item, record in self.model[slug].records.items() if record.state == "retired"}
        document = data.draw(st.sampled_from(self.model[slug].files))
        if not any(record_id in document for record_id in retired):
            self.run_import(slug, document)

    def run_import(self, slug: str, document: str) -> None:
        path = Path(self.folder.name, "file.obo" if document.startswith("format") else "file.ttl")
        path.write_text(document, encoding="utf-8")
        import_resource_files(self.database, ImportRequest([path], slug))
        self.wait_for_server()

    def wait_for_server(self) -> None:
        """Wait until the server has seen the writes of this process."""
        position = self.database.run_read(read_position)
        wait_until(lambda: self.read("admin", "/api/v1")["revision"] >= position.revision)

    # Reads

    @invariant()
    def check_periodically(self) -> None:
        self.steps += 1
        if self.steps % CHECK_INTERVAL == 0:
            self.check_readers()

    def check_readers(self) -> None:
        self.checks += 1
        self.export_format = EXPORT_FORMATS[self.checks % len(EXPORT_FORMATS)]
        for account in ACCOUNTS:
            self.check_vocabularies(account)
            self.check_ids(account)
            self.check_lists(account)
            self.check_search(account)
            self.check_pages(account)

    def check_vocabularies(self, account: str) -> None:
        readable = self.list_readable(account)
        listed = self.read(account, "/api/v1/vocabularies")["items"]
        assert {item["slug"] for item in listed} == set(readable)
        assert {item["slug"] for item in self.read(account, "/api/v1")["vocabularies"]} == set(readable)
        for item in listed:
            vocabulary = self.model[item["slug"]]
            assert sum(item["counts"].values()) == len(vocabulary.list_published()), item
            assert (item["private"], item["removed"]) == (vocabulary.is_private, False)
            assert item["default"] == (item["slug"] == self.default)
        for slug in MARKERS:
            status = 200 if slug in readable else 404
            if slug in readable:
                releases = self.read(account, f"/api/v1/vocabularies/{slug}/releases")["items"]
                assert sorted(item["name"] for item in releases) == sorted(self.model[slug].releases)
            for part in ("", "/schema", "/releases", "/records/none/history"):
                expected = 404 if part.startswith("/records") else status
                assert self.get(account, f"/api/v1/vocabularies/{slug}{part}").status == expected, (account, slug, part)

    def check_ids(self, account: str) -> None:
        ids = {record_id for vocabulary in self.model.values() for record_id in vocabulary.records}
        for record_id in sorted({*ids, *SHARED_IDS, *ALTERNATIVE_IDS}):
            status = self.find_status(record_id, self.list_readable(account))
            for path in (f"/api/v1/records/{encode(record_id)}", f"/id/{encode(record_id)}?format=json"):
                response = self.get(account, path)
                assert response.status == status, (account, path, status, response.body)
            for slug in self.list_readable(account):
                path = f"/api/v1/vocabularies/{slug}/records/{encode(record_id)}"
                status = self.find_status(record_id, [slug])
                assert self.get(account, path).status == status, (account, path)
                record = self.model[slug].records.get(record_id)
                if record is not None and record.is_mapped:
                    # A mapping shows the name of its target to who may read that.
                    query = f"vocabulary={slug}"
                    for suffix in ("", "&format=turtle", "&format=html"):
                        page = self.get(account, f"/id/{encode(record_id)}?{query}{suffix}")
                        assert page.status == status, (account, record_id, query, suffix)
                    self.get(account, f"{path}/relations")

    def find_status(self, local_id: str, slugs: list[str]) -> int:
        """Return the status of a read of a record, given the vocabularies that are read."""
        found = [slug for slug in slugs if local_id in self.model[slug].records]
        is_alternative = not found
        if is_alternative:
            found = [
                slug
                for slug in slugs
                for record in self.model[slug].records.values()
                if local_id in record.alternative_ids
            ]
        if len(found) > 1:
            prefix = local_id.partition(":")[0]
            found = [slug for slug in found if prefix in self.model[slug].defines] or found
        if len(found) != 1:
            return 300 if found else 404
        if is_alternative:
            return 308
        return {"published": 200, "retired": 410, "merged": 308}[self.model[found[0]].records[local_id].state]

    def check_lists(self, account: str) -> None:
        readable = self.list_readable(account)
        for slug in readable:
            vocabulary = self.model[slug]
            collection = SCHEMAS[vocabulary.schema][0]
            page = self.read(account, f"/api/v1/vocabularies/{slug}/collections/{collection}?limit=1000&lang=de")
            names = {item["id"]: item["name"] for item in page["items"]}
            expected = {
                record_id: vocabulary.records[record_id].translations.get("de", vocabulary.records[record_id].name)
                for record_id in vocabulary.list_published()
            }
            assert names == expected
            assert page["total"] == len(names)
            document = self.get(account, f"/api/v1/export?format=jsonl&vocabulary={slug}")
            assert document.status == 200, document.body
            assert all(json.dumps(item, ensure_ascii=False) in document.body.decode() for item in names)
            document = self.get(account, f"/api/v1/export?format={self.export_format}&vocabulary={slug}")
            assert document.status == 200, (self.export_format, document.body)
        changes = self.read(account, "/api/v1/changes?limit=1000")["items"]
        latest = {
            (item["vocabulary"], item["id"]): item["record"] for item in changes if item["collection"] != "vocabulary"
        }
        assert set(latest) == {(slug, item) for slug in readable for item in self.model[slug].records}
        for (slug, record_id), record in latest.items():
            expected_record = self.model[slug].records[record_id]
            assert (record["name"], record["state"]) == (expected_record.name, expected_record.state)
        proposals = {} if account == "nobody" else self.read(account, "/api/v1/proposals?limit=1000")
        assert {item["vocabulary"] for item in proposals.get("items", ())} <= set(readable)

    def check_search(self, account: str) -> None:
        readable = self.list_readable(account)
        published = {(slug, item) for slug in readable for item in self.model[slug].list_published()}
        for word in WORDS:
            expected = {item for item in published if self.model[item[0]].records[item[1]].name.startswith(f"{word} ")}
            result = self.read(account, f"/api/v1/search?q={encode(word)}&limit=100")
            hits = {(hit["vocabulary"], hit["id"]) for hit in result["hits"]}
            assert expected <= hits <= published, (account, word)
            assert result["total"] == len(hits) == sum(result["facets"]["vocabulary"].values())
            assert sum(result["facets"]["collection"].values()) == len(hits)
        for slug, marker in MARKERS.items():
            result = self.read(account, f"/api/v1/search?q={marker}&limit=100")
            hits = {(hit["vocabulary"], hit["id"]) for hit in result["hits"]}
            assert hits == {item for item in published if item[0] == slug}, (account, marker)
            assert result["total"] == len(hits)
            self.read(account, f"/api/v1/search?q={marker[:-3]}x&state=published,retired,merged")
            suggestions = self.read(account, f"/api/v1/suggest?prefix={marker[:5]}&limit=50")["suggestions"]
            assert {(item["vocabulary"], item["id"]) for item in suggestions} <= hits
            assert bool(suggestions) == bool(hits)
        text = " ".join(record.name for vocabulary in self.model.values() for record in vocabulary.records.values())
        response = self.send(account, "POST", "/api/v1/annotate", text or "none", Content_Type="text/plain")
        assert response.status == 200, response.body
        assert {item["vocabulary"] for item in response.json["annotations"]} <= set(readable)

    def check_pages(self, account: str) -> None:
        # A page takes long, so each check covers another vocabulary.
        slug = list(MARKERS)[self.checks % len(MARKERS)]
        for path in ("/browse", "/statistics", "/changes", "/search"):
            for query in ("", f"?vocabulary={slug}"):
                self.get(account, f"{path}{query}")
        queries = encode(json.dumps({"q0": {"query": "apple"}}))
        for path in (
            "/",
            "/vocabularies",
            f"/vocabularies/{slug}",
            "/search?q=apple",
            "/browse/concept",
            "/browse/term",
            "/api/v-alpha/concept",
            "/api/v-alpha/search?q=apple",
            "/api/v1/concept",
            "/api/v1/term",
            "/api/v1/export?format=jsonl",
            "/api/v1/releases",
            "/reconcile",
            f"/reconcile?queries={queries}",
            "/reconcile/suggest/entity?prefix=app",
            "/reconcile/suggest/type?prefix=",
            f"/vocabularies/{slug}/reconcile?queries={queries}",
            "/id/X:1?format=html",
            "/id/ALT:1?format=html",
            "/api/v1/me",
            "/account",
            "/review",
            "/proposals",
        ):
            self.get(account, path)
        for collection in ("concept", "term", "plant"):
            body = {"collection": collection, "record": "X:1", "change": {"name": ""}}
            self.send(account, "POST", "/api/v1/proposals", body)
        self.send(account, "POST", "/api/v1/batch", "{}", Content_Type="application/x-ndjson")
