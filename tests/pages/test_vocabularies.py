"""Pages of several vocabularies and languages over HTTP."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest

from lexarium.domain.change import Action
from lexarium.domain.identifiers import SYSTEM_USER_ID
from lexarium.domain.record import build_record
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.statement import Reference, Statement
from lexarium.domain.vocabulary import register_vocabularies
from lexarium.services.access.accounts import get_account_by_name
from lexarium.services.vocabularies import head_records
from lexarium.store import change_log
from lexarium.store.change_log import RecordWrite
from lexarium.store.database import Database
from lexarium.store.transaction import Transaction
from tests.support.browserless_client import PASSWORD, BrowserlessClient, create_account, extract_text
from tests.support.databases import DatabaseUrlFactory
from tests.support.server import HttpResponse, Server

SCHEMA = """
id: https://example.org/plants
name: plants
prefixes:
  linkml: https://w3id.org/linkml/
  plants: https://example.org/plants/
  rdfs: http://www.w3.org/2000/01/rdf-schema#
default_prefix: plants
default_range: string
imports:
  - linkml:types
classes:
  Plant:
    description: Something that grows.
    slots: [id, label, habitat, height]
slots:
  id: {identifier: true}
  label: {slot_uri: "rdfs:label", title: plant name}
  habitat: {range: Habitat}
  height: {range: integer, description: In centimetres.}
enums:
  Habitat:
    permissible_values:
      meadow:
      forest:
"""
# An id with all characters that are special in URLs.
ODD_ID = "ex:a/b#c%20ü?d"


def create_vocabulary(server: Server, slug: str, **values: Any) -> None:
    """Create a vocabulary in the database of a running server."""
    database = Database(server.url)
    database.run_write(lambda transaction: head_records.create_vocabulary(transaction, SYSTEM_USER_ID, slug, values))
    database.close()


@pytest.fixture(scope="module")
def server(sample_url: DatabaseUrlFactory) -> Iterator[Server]:
    settings = {"LEXARIUM_SIGN_IN_RATE": "1000", "LEXARIUM_WEBHOOKS_PRIVATE": "yes"}
    with Server(sample_url("sqlite"), **settings) as running:
        names = {"uat": "skos", "doid": "obo", "hidden": "skos"}
        for slug, schema in names.items():
            values: dict[str, Any] = {"title": f"Title of {slug}", "schema": schema, "minting": f"{slug}:{{n}}"}
            if slug == "doid":
                values |= {"defines": ["doid"], "description": "Diseases of all kinds."}
            create_vocabulary(running, slug, **values, languages=["en", "fr"], private=slug == "hidden")
        create_vocabulary(running, "plants", title="Plants", schema=SCHEMA, minting="pl_{random}", languages=["de"])
        yield running
    # Other tests of this process have one vocabulary.
    register_vocabularies([])


@pytest.fixture(scope="module")
def curator(server: Server) -> BrowserlessClient:
    client = BrowserlessClient(server)
    client.sign_in("curator")
    return client


@pytest.fixture(scope="module")
def admin(server: Server) -> BrowserlessClient:
    client = BrowserlessClient(server)
    client.sign_in("admin")
    return client


@pytest.fixture
def visitor(server: Server) -> BrowserlessClient:
    return BrowserlessClient(server)


def add(client: BrowserlessClient, vocabulary: str, collection: str, name: str, **fields: str) -> str:
    """Create a record by the form, and return its id."""
    client.open(f"/propose/{collection}?vocabulary={vocabulary}")
    client.press("Publish", {"name": name, **fields})
    body = client.body
    return body.partition('<code id="identifier">')[2].partition("<")[0]


def test_vocabularies_are_listed_and_each_has_a_home_page(visitor: BrowserlessClient) -> None:
    text = extract_text(visitor.open("/vocabularies"))
    assert "Title of uat" in text
    assert "Diseases of all kinds." in text
    home = visitor.open("/vocabularies/doid")
    assert "Diseases of all kinds." in extract_text(home)
    for path in ("/browse?vocabulary=doid", "/statistics?vocabulary=doid", "/changes?vocabulary=doid"):
        assert f'href="{path}"' in home
    assert 'name="vocabulary" value="doid"' in home
    visitor.open("/vocabularies/nothing", 404)


@pytest.mark.parametrize(
    ("vocabulary", "collection", "field", "value"),
    [("uat", "concept", "name", "a star"), ("doid", "term", "def", "ill"), ("plants", "plant", "habitat", "meadow")],
)
def test_records_of_any_schema_are_created_and_edited_by_forms(
    curator: BrowserlessClient, vocabulary: str, collection: str, field: str, value: str
) -> None:
    record_id = add(curator, vocabulary, collection, f"first {vocabulary}")
    query = f"?vocabulary={vocabulary}"
    curator.open(f"/edit/{quote(record_id, safe='')}{query}")
    curator.press("Publish", {"name": f"second {vocabulary}"} | {field: value})
    text = extract_text(curator.body)
    assert "Saved." in text
    assert value in text
    history = extract_text(curator.open(f"/id/{quote(record_id, safe='')}/history{query}"))
    assert "Version 2" in history
    assert "\x1f" not in curator.body
    listed = extract_text(curator.open(f"/browse/{collection}{query}"))
    assert value in listed or f"second {vocabulary}" in listed


def test_menus_offer_relations_that_follow_from_others_only_if_the_record_has_one(curator: BrowserlessClient) -> None:
    def list_options(label: str, body: str) -> list[str]:
        menu = re.search(rf'<select[^>]*(?:name|id)="{label}".*?</select>', body, re.DOTALL)
        assert menu
        return re.findall(r'<option value="(\w+)"', menu[0])

    first, second = (add(curator, "uat", "concept", name) for name in ("lower", "upper"))
    implied = {"broader_transitive", "narrower_transitive", "semantic_relation", "mappingRelation"}
    new = list_options("relations.0.type", curator.open("/propose/concept?vocabulary=uat"))
    assert new[0] == "broader"
    assert implied.isdisjoint(new)
    page = curator.open(f"/edit/{first}/relations?vocabulary=uat")
    assert implied.isdisjoint(list_options("relation", page))
    assert list_options("mapping", page)[:2] == ["exactMatch", "closeMatch"]
    assert implied.isdisjoint(list_options("mapping", page))
    fields = {"version": "1", "act": "add", "relation": "broader_transitive", "target": second}
    curator.send(f"/edit/{first}/relations?vocabulary=uat", fields)
    page = curator.open(f"/edit/{first}/relations?vocabulary=uat")
    assert set(list_options("relation", page)) & implied == {"broader_transitive"}


def test_the_form_of_a_new_record_takes_an_id_except_in_the_main_vocabulary(
    server: Server, curator: BrowserlessClient
) -> None:
    create_vocabulary(server, "weeds", title="Weeds", schema="skos")
    assert 'name="id"' not in curator.open("/propose/concept")
    assert 'name="id"' in curator.open("/propose/concept?vocabulary=weeds")
    curator.press("Publish", {"id": "weed:1", "name": "Nettle"})
    assert "Nettle" in extract_text(curator.open("/id/weed:1?vocabulary=weeds"))


def test_a_change_of_the_default_vocabulary_is_not_shown_as_an_import(
    server: Server, visitor: BrowserlessClient
) -> None:
    database = Database(server.url)

    def choose_default(transaction: Transaction, slug: str) -> None:
        head_records.update_vocabulary(transaction, SYSTEM_USER_ID, slug, {"default": True})

    for slug in ("uat", "main"):
        database.run_write(partial(choose_default, slug=slug))
    database.close()
    assert not re.search(r'class="did">imported</span>\s*<span><a href="[^"]+">2 changes', visitor.open("/"))


def test_an_id_with_special_characters_works_on_every_page(curator: BrowserlessClient) -> None:
    other_id = add(curator, "uat", "concept", "survivor")
    assert add(curator, "uat", "concept", "odd one", id=ODD_ID) == ODD_ID.replace("&", "&amp;")
    assert curator.path.startswith("/id/")
    for label in ("Edit", "Edit relations", "Merge", "Retire"):
        link = curator.open(f"/id/{quote(ODD_ID, safe='')}?vocabulary=uat").partition(f">{label}</a>")[0]
        path = link.rpartition('href="')[2].rpartition('"')[0].replace("&amp;", "&")
        assert "odd one" in extract_text(curator.open(path)), label
    curator.open(f"/edit?id={quote(ODD_ID)}&vocabulary=uat")
    curator.press("Publish", {"name": "odder"})
    assert "Saved." in curator.body
    curator.press("Undo")
    assert "odd one" in extract_text(curator.body)
    version = curator.open(f"/relations?id={quote(ODD_ID)}&vocabulary=uat").partition('name="version" value="')[2][:1]
    fields = {"act": "add", "version": version, "relation": "related", "target": other_id}
    curator.send(f"/relations?id={quote(ODD_ID)}&vocabulary=uat", fields)
    assert "survivor" in extract_text(curator.body)
    curator.press("Remove")
    curator.open(f"/merge?id={quote(ODD_ID)}&vocabulary=uat&into={quote(other_id)}")
    curator.press("Merge")
    assert "was merged into this record" in extract_text(curator.body)
    curator.press("Undo")
    assert "odd one" in extract_text(curator.open(f"/history?id={quote(ODD_ID)}&vocabulary=uat"))
    assert "\x1f" not in curator.body


def test_a_translation_is_edited_shown_and_marked_as_outdated(
    curator: BrowserlessClient, visitor: BrowserlessClient
) -> None:
    record_id = add(curator, "uat", "concept", "moon", definition="It shines.")
    path = f"/edit/{quote(record_id, safe='')}?vocabulary=uat"
    curator.open(path)
    curator.press("Publish", {"name-fr": "lune", "definition-fr": "Elle brille."})
    page = f"/id/{quote(record_id, safe='')}?vocabulary=uat"
    assert '<h1 lang="en">moon</h1>' in visitor.open(page)
    assert '<h1 lang="fr">lune</h1>' in visitor.open(f"{page}&lang=fr-CA")
    assert "outdated" not in visitor.body
    curator.open(path)
    curator.press("Publish", {"name": "the Moon"})
    body = visitor.open(page)
    assert "lune" in body
    assert "outdated" in extract_text(body)
    statistics = extract_text(visitor.open("/statistics?vocabulary=uat"))
    assert "Outdated" in statistics
    assert "lune" in visitor.open("/statistics/gaps/outdated?vocabulary=uat&lang=fr")
    # The other language stays as it is, and can be removed.
    curator.open(path)
    curator.press("Publish", {"name-fr": "", "definition-fr": ""})
    assert "lune" not in visitor.open(page).partition('<section class="history">')[0]


def test_a_mapping_to_a_record_of_another_vocabulary_shows_its_name(
    curator: BrowserlessClient, visitor: BrowserlessClient
) -> None:
    disease = add(curator, "doid", "term", "sunburn")
    record_id = add(curator, "uat", "concept", "Sun")
    curator.open(f"/edit/{quote(record_id, safe='')}/relations?vocabulary=uat")
    curator.send(
        f"/edit/{quote(record_id, safe='')}/relations?vocabulary=uat",
        {"version": "1", "act": "map", "mapping": "relatedMatch", "outside": disease},
    )
    body = visitor.open(f"/id/{quote(record_id, safe='')}?vocabulary=uat")
    assert f'<a href="/id/{quote(disease, safe="")}">sunburn</a>' in body
    assert "Title of doid" in extract_text(body)


def test_a_record_with_an_id_ending_in_history_takes_precedence_over_a_history_page(
    curator: BrowserlessClient, visitor: BrowserlessClient
) -> None:
    add(curator, "uat", "concept", "a book", id="book")
    assert "Version 1" in extract_text(visitor.open("/id/book/history?vocabulary=uat"))
    add(curator, "uat", "concept", "the history of a book", id="book/history")
    assert '<h1 lang="en">the history of a book</h1>' in visitor.open("/id/book/history?vocabulary=uat")
    data = visitor.server.get("/id/book/history?vocabulary=uat", Accept="application/json").json
    assert data["id"] == "book/history"
    assert "Version 1" in extract_text(visitor.open("/history?id=book&vocabulary=uat"))


def test_the_history_page_of_an_ambiguous_id_offers_a_choice_of_vocabularies(
    curator: BrowserlessClient, visitor: BrowserlessClient
) -> None:
    for slug in ("uat", "doid"):
        add(curator, slug, "concept" if slug == "uat" else "term", f"both in {slug}", id="both:1")
    body = visitor.open("/id/both%3A1/history", 300)
    assert "both in uat" in body
    path = "/history?id=both%3A1&amp;vocabulary=doid"
    assert f'href="{path}"' in body
    assert "both in doid" in extract_text(visitor.open(path.replace("&amp;", "&")))


def test_pages_in_the_language_of_the_browser_vary_by_accept_language(
    curator: BrowserlessClient, visitor: BrowserlessClient
) -> None:
    record_id = quote(add(curator, "uat", "concept", "comet"), safe="")
    for path in ("/browse/concept?vocabulary=uat", "/search?q=comet", f"/id/{record_id}?vocabulary=uat"):
        visitor.open(path)
        assert "Accept-Language" in visitor.response.headers["vary"], path
        assert "Accept-Encoding" in visitor.response.headers["vary"], path
    visitor.open("/vocabularies")
    assert visitor.response.headers["vary"] == "Accept-Encoding"


def test_relations_are_labelled_by_the_record_that_defines_them(
    server: Server, curator: BrowserlessClient, visitor: BrowserlessClient
) -> None:
    add(curator, "doid", "typedef", "grows out of", id="RO:0002202")
    bud = add(curator, "doid", "term", "bud", id="doid:bud")
    database = Database(server.url)
    with database.write() as transaction:
        collection = COLLECTIONS["doid/term"]
        targets = {"RO:0002202": bud, "BFO:0000050": bud, "x:1": bud}
        statements = [Statement(predicate, Reference(target)) for predicate, target in targets.items()]
        record = build_record(collection, {"id": "doid:leaf", "name": "leaf"}).add_statements(statements)
        change_log.save_records(transaction, [RecordWrite(record, 1, Action.CREATE)], actor=SYSTEM_USER_ID, at=1)
        change_log.update_relations(transaction, record.relations, set())
    database.close()
    text = extract_text(visitor.open("/id/doid%3Aleaf"))
    for label in ("grows out of", "part of", "x:1"):
        assert label in text.lower()
    text = extract_text(visitor.open("/id/doid%3Abud")).lower()
    for label in ("develops into", "has part", "x:1 of"):
        assert label in text
    items = server.get("/api/v1/vocabularies/doid/records/doid:leaf/relations").json["items"]
    labels = {item["relation"]: item["label"] for item in items}
    assert labels == {"RO:0002202": "grows out of", "BFO:0000050": "part of", "x:1": "x:1"}


def test_a_private_vocabulary_is_not_shown_without_permission(
    server: Server, curator: BrowserlessClient, visitor: BrowserlessClient
) -> None:
    record_id = add(curator, "hidden", "concept", "secretive fox")
    own_id = add(curator, "uat", "concept", "mapped")
    curator.send(
        f"/edit/{quote(own_id, safe='')}/relations?vocabulary=uat",
        {"version": "1", "act": "map", "mapping": "exactMatch", "outside": record_id},
    )
    pages = [
        "/",
        "/vocabularies",
        "/browse",
        "/changes",
        "/statistics",
        "/search?q=fox",
        "/statistics/gaps/undefined",
    ]
    for path in [*pages, f"/id/{quote(own_id, safe='')}?vocabulary=uat"]:
        body = visitor.open(path)
        assert "secretive" not in body, path
        assert "Title of hidden" not in body, path
    for path in (
        "/vocabularies/hidden",
        f"/id/{quote(record_id, safe='')}",
        f"/id/hidden%1F{quote(record_id, safe='')}",
    ):
        assert "secretive" not in visitor.open(path, 404)
    for path in ("/browse?vocabulary=hidden", "/changes?vocabulary=hidden", "/browse/concept?vocabulary=hidden"):
        visitor.open(path, 404)
    assert "secretive" in curator.open("/changes?vocabulary=hidden")


def test_a_role_in_one_vocabulary_allows_writing_only_there(server: Server, admin: BrowserlessClient) -> None:
    member, database = BrowserlessClient(server), Database(server.url)
    name = create_account(server, "none")
    account = get_account_by_name(database, name)
    database.close()
    admin.open(f"/admin/people/{account.id}")
    admin.press("Add role", {"vocabulary": "hidden", "role": "curator"})
    assert "curator" in extract_text(admin.body)
    member.send("/sign-in", {"name": name, "password": PASSWORD, "next": "/"})
    add(member, "hidden", "concept", "by a member")
    assert "by a member" in extract_text(member.body)
    member.open("/propose/concept?vocabulary=uat", 403)
    member.open("/propose/concept", 403)
    token = server.create_token("contributor")
    author = server.get("/api/v1/me", Authorization=f"Bearer {token}").json["id"]
    server.send_write(token, "POST", "task", {"name": "proposed task"})
    assert f'value="{author}"' in admin.open("/review")
    assert author not in member.open("/review")


def test_an_administrator_creates_changes_removes_and_restores_a_vocabulary(
    admin: BrowserlessClient, visitor: BrowserlessClient
) -> None:
    admin.open("/admin/vocabularies")
    fields = {"slug": "soils", "title": "Soils", "languages": "en", "schema": "skos"}
    admin.press("Create", {**fields, "slug": "Not one"}, 422)
    admin.press("Create", fields)
    assert "Vocabulary created." in admin.body
    admin.press("Save", {"title": "All soils", "prefixes": "no prefix"}, 422)
    assert "Must have lines such as" in admin.body
    admin.press("Save", {"title": "All soils", "prefixes": "soil=https://example.org/soil/"})
    assert "All soils" in visitor.open("/vocabularies")
    admin.press("Make default")
    assert "All soils" in extract_text(visitor.open("/"))
    admin.open("/admin/vocabularies/main")
    admin.press("Make default")
    admin.open("/admin/vocabularies/soils/remove")
    admin.press("Remove vocabulary")
    assert "can be restored" in admin.body
    assert "All soils" not in visitor.open("/vocabularies")
    visitor.open("/vocabularies/soils", 404)
    admin.open("/admin/vocabularies/soils")
    admin.press("Restore")
    assert "All soils" in visitor.open("/vocabularies")


def apply_schema(admin: BrowserlessClient, slug: str, content: bytes) -> HttpResponse:
    """Apply a schema from a file by the form."""
    boundary = b"x-boundary"
    disposition = b'Content-Disposition: form-data; name="file"; filename="a.yaml"'
    part = b"\r\n".join([b"--" + boundary, disposition, b"", content, b"--" + boundary + b"--", b""])
    cookie = "; ".join(f"{name}={value}" for name, value in admin.cookies.items())
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary.decode()}", "Cookie": cookie}
    return admin.server.request("POST", f"/admin/vocabularies/{slug}/schema", {**headers, "Accept": "text/html"}, part)


def test_all_problems_of_a_schema_are_shown_with_their_lines(admin: BrowserlessClient) -> None:
    wrong = "id: x\nname: y\nclasses:\n  A:\n    is_a: Nothing\n  B:\n    slots: [unheard]\n"
    response = apply_schema(admin, "uat", wrong.encode())
    text = extract_text(response.body.decode())
    assert response.status == 422
    assert "Line 5" in text
    assert "Line 7" in text


def test_a_schema_file_must_be_utf_8_and_may_have_a_byte_order_mark(admin: BrowserlessClient) -> None:
    response = apply_schema(admin, "plants", SCHEMA.replace("plant name", "Pflanze").encode("utf-16"))
    assert response.status == 422
    assert "Line 1: Invalid UTF-8." in extract_text(response.body.decode())
    assert apply_schema(admin, "plants", SCHEMA.encode("utf-8-sig")).status == 303
    assert admin.server.get("/api/v1/vocabularies/plants/schema").body.decode() == SCHEMA


def test_a_webhook_keeps_its_filters_when_it_is_saved_unchanged(server: Server, admin: BrowserlessClient) -> None:
    token = server.create_token("admin")
    filters = [
        {"vocabularies": ["uat"], "collections": []},
        {"vocabularies": ["plants", "uat"], "collections": ["concept", "plant", "vocabulary"]},
    ]
    for number, values in enumerate(filters):
        url = f"http://127.0.0.1:9/{number}"
        hook = server.send_write(token, "POST", "webhooks", {"url": url, **values})
        admin.open(f"/admin/webhooks/{hook['id']}")
        admin.press("Save")
        saved = server.send_write(token, "GET", f"webhooks/{hook['id']}")
        assert {name: saved[name] for name in values} == values
    listed = extract_text(admin.open("/admin/webhooks"))
    assert "everything in uat" in listed
    assert "concept, plant, vocabulary in plants, uat" in listed
    admin.press("Add", {"url": url, "collections-plant": "1"}, 422)
    assert re.search(r'name="collections-plant" value="1" checked', admin.body)


def test_an_id_in_several_vocabularies_offers_a_choice(curator: BrowserlessClient, visitor: BrowserlessClient) -> None:
    for slug in ("uat", "hidden"):
        add(curator, slug, "concept", f"shared of {slug}", id="shared:1")
    assert "shared of hidden" in extract_text(curator.open("/id/shared%3A1", 300))
    assert "shared of uat" in extract_text(visitor.open("/id/shared%3A1"))


def test_an_id_shared_with_the_main_vocabulary_offers_a_choice_unless_one_defines_its_prefix(
    curator: BrowserlessClient, visitor: BrowserlessClient
) -> None:
    main_id = add(curator, "main", "concept", "remembering in main")
    add(curator, "uat", "concept", "remembering in uat", id=main_id)
    body = visitor.open(f"/id/{main_id}", 300)
    for slug in ("main", "uat"):
        path = f"/id/{main_id}?vocabulary={slug}"
        assert f'href="{path}"' in body
        shown = visitor.open(path)
        assert f"remembering in {slug}" in extract_text(shown)
        turtle = f"{path}&format=turtle"
        assert f'href="{turtle.replace("&", "&amp;")}"' in shown
        assert visitor.server.get(turtle).status == 200
    # The vocabulary that defines the prefix comes first.
    for slug, collection in (("uat", "concept"), ("doid", "term")):
        add(curator, slug, collection, f"defined in {slug}", id="doid:77")
    assert "defined in doid" in extract_text(visitor.open("/id/doid%3A77"))


def test_pages_without_readable_vocabularies_offer_to_sign_in(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite")) as server:
        server.send_write(server.create_token("admin"), "PATCH", "vocabularies/main", {"private": True})
        for path in ("/", "/browse", "/vocabularies", "/statistics", "/changes", "/search?q=a"):
            assert server.get(path).status == 200, path
        assert "There are no vocabularies that you may read." in extract_text(server.get("/browse").body.decode())
