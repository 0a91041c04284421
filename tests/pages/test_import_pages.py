"""Imports from the page into several vocabularies over HTTP: permissions, preview and attribution."""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from urllib.parse import parse_qsl

import pytest

from lexarium.domain.account import Role
from lexarium.domain.vocabulary import register_vocabularies
from lexarium.services.access.accounts import add_account
from lexarium.services.access.passwords import set_password
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.vocabularies import head_records
from lexarium.store.accounts import set_vocabulary_role
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from tests.support.browserless_client import PASSWORD, BrowserlessClient, extract_text
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.server import Server
from tests.support.uploads import send_files, wait_for_upload


@pytest.fixture(scope="module", params=ENGINES)
def server(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> Iterator[Server]:
    with Server(new_url(request.param), LEXARIUM_SIGN_IN_RATE="1000") as running:
        yield running
        database = open_database(running.url)
        assert list(check_database(database).problems) == []
        database.close()
    # Other tests of this process have one vocabulary.
    register_vocabularies([])


@pytest.fixture
def slug() -> str:
    return f"colours-{uuid.uuid4().hex[:6]}"


class Member(BrowserlessClient):
    """Signed-in client with a global role, and roles in some vocabularies."""

    def __init__(self, server: Server, role: Role, vocabulary_roles: Mapping[str, Role] | None = None) -> None:
        super().__init__(server)
        database = Database(server.url)
        account = add_account(database, f"{role} {uuid.uuid4().hex[:8]}", role)
        self.account_id, self.name = account.id, account.name
        set_password(database, account.name, PASSWORD)
        for slug, given in (vocabulary_roles or {}).items():
            database.run_write(partial(set_vocabulary_role, account_id=account.id, vocabulary=slug, role=given))
        database.close()
        self.send("/sign-in", {"name": account.name, "password": PASSWORD, "next": "/"})


@pytest.fixture
def admin(server: Server) -> Member:
    return Member(server, Role.ADMIN)


def encode_scheme(slug: str, *concepts: str) -> bytes:
    """Return a concept scheme in Turtle. A concept is its id with further statements."""
    lines = [
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .",
        f"@prefix : <https://example.org/{slug}/> .",
        f"<https://example.org/{slug}> a skos:ConceptScheme .",
        *(f":{concept.partition(' ')[0]} a skos:Concept ; {concept.partition(' ')[2]} ." for concept in concepts),
    ]
    return "\n".join(lines).encode()


RED = 'red skos:prefLabel "red"@en ; skos:definition "Like blood."@en'
BLUE = 'blue skos:prefLabel "blue"@en'


def preview(person: Member, content: bytes, file_name: str = "scheme.ttl", **fields: str) -> str:
    send_files(person, [(file_name, content)], 200, **fields)
    return extract_text(wait_for_upload(person))


def import_file(person: Member, content: bytes, file_name: str = "scheme.ttl", **fields: str) -> str:
    text = preview(person, content, file_name, **fields)
    assert "Import preview" in text, text
    person.press("Import")
    text = extract_text(wait_for_upload(person))
    assert "Import complete." in text
    return text


def find_changes_link(person: Member) -> str:
    """Return the query of the link to the changes of an import."""
    return person.body.partition('href="/changes?')[2].partition('"')[0].replace("&amp;", "&")


def edit(person: Member, slug: str, local_id: str, change: dict[str, str]) -> None:
    server = person.server
    path = f"/api/v1/vocabularies/{slug}/records/{local_id}"
    headers = {"Authorization": f"Bearer {server.create_token('curator')}", "Content-Type": "application/json"}
    response = server.request("PATCH", path, {**headers, "If-Match": "*"}, json.dumps(change))
    assert response.status == 200, response.body


def list_actors(server: Server, slug: str) -> list[str]:
    items = server.get(f"/api/v1/changes?vocabulary={slug}&limit=1000").json["items"]
    return [item["actor"] for item in items]


def get_record(server: Server, slug: str, local_id: str) -> dict[str, object]:
    response = server.get(f"/api/v1/vocabularies/{slug}/records/{local_id}")
    assert response.status == 200, response.body
    record: dict[str, object] = response.json
    return record


def test_a_new_vocabulary_is_previewed_without_being_created_then_imported_by_the_user(
    server: Server, admin: Member, slug: str
) -> None:
    text = preview(admin, encode_scheme(slug, RED, BLUE))
    assert f"New vocabulary: {slug}" in text
    assert "New: 3 records" in text
    assert server.get(f"/api/v1/vocabularies/{slug}").status == 404
    assert slug not in admin.open("/vocabularies")
    import_file(admin, encode_scheme(slug, RED, BLUE))
    assert f'href="/vocabularies/{slug}"' in admin.body
    assert get_record(server, slug, f"{slug}:red")["name"] == "red"
    assert f'href="/id/{slug}%3Ared?vocabulary={slug}"' in admin.body
    assert set(list_actors(server, slug)) == {admin.account_id}
    assert admin.name in extract_text(admin.open(f"/changes?vocabulary={slug}"))


def test_a_new_edition_is_merged_with_edits_since_the_import_by_a_user(
    server: Server, admin: Member, slug: str
) -> None:
    import_file(admin, encode_scheme(slug, RED, BLUE))
    red, blue = f"{slug}:red", f"{slug}:blue"
    edit(admin, slug, red, {"definition": "Like a rose."})
    person = Member(server, Role.NONE, {slug: Role.CURATOR})
    newer = [RED.replace('"red"@en', '"bright red"@en'), BLUE.replace('"blue"', '"dark blue"')]
    text = preview(person, encode_scheme(slug, *newer))
    assert "Changed: 2 records" in text
    assert "conflict" not in text
    assert "<del>blue (en)</del> <ins>dark blue (en)</ins>" in person.body
    assert "Like blood" not in text
    person.press("Import")
    assert "Import complete." in wait_for_upload(person)
    record = get_record(server, slug, red)
    assert (record["name"], record["definition"]) == ("bright red", "Like a rose.")
    assert get_record(server, slug, blue)["name"] == "dark blue"
    assert list_actors(server, slug)[-2:] == [person.account_id] * 2
    conflicting = preview(person, encode_scheme(slug, newer[0].replace("Like blood.", "Like wine."), newer[1]))
    assert "1 conflict" in conflicting
    assert "Like a rose. Like wine." in conflicting


def test_an_edition_with_new_metadata_alone_is_imported(admin: Member, slug: str) -> None:
    scheme = encode_scheme(slug, RED)
    import_file(admin, scheme)
    version = f'<https://example.org/{slug}> <http://www.w3.org/2002/07/owl#versionInfo> "[8]" .'
    text = import_file(admin, scheme + version.encode())
    assert "Metadata of the vocabulary Owl:versionInfo [8]" in text


def test_a_table_of_the_main_vocabulary_is_merged_with_edits_since_its_import_by_a_user(
    server: Server, admin: Member
) -> None:
    record_id = f"trm_{uuid.uuid4().hex[:8]}"
    first = {"id": record_id, "name": "one", "definition_text": "First."}
    import_file(admin, json.dumps([first]).encode(), "concept.json")
    edit(admin, "main", record_id, {"definition_text": "Edited."})
    import_file(admin, json.dumps([{**first, "name": "two"}]).encode(), "concept.json")
    record = server.get(f"/api/v1/concept/{record_id}").json
    assert (record["name"], record["definition_text"]) == ("two", "Edited.")
    changes = [item for item in server.get("/api/v1/changes?limit=1000").json["items"] if item["id"] == record_id]
    assert [item["actor"] == admin.account_id for item in changes] == [True, False, True]


def test_an_undone_import_shows_who_undid_it_and_does_not_count_as_an_edit(
    server: Server, admin: Member, slug: str
) -> None:
    import_file(admin, encode_scheme(slug, RED))
    person = Member(server, Role.NONE, {slug: Role.CURATOR})
    import_file(person, encode_scheme(slug, RED, BLUE))
    link = find_changes_link(person)
    stranger = Member(server, Role.CONTRIBUTOR, {"main": Role.CURATOR})
    refusal = stranger.send("/changes/undo", dict(parse_qsl(link)), 409)
    assert f"Role curator required in the vocabulary {slug}" in extract_text(refusal)
    other = Member(server, Role.NONE, {slug: Role.CURATOR})
    other.open(f"/changes?{link}")
    other.press("Undo import")
    assert list_actors(server, slug)[-1] == other.account_id
    assert server.get(f"/api/v1/vocabularies/{slug}/records/{slug}:blue").status == 410
    import_file(person, encode_scheme(slug, RED, BLUE))
    assert get_record(server, slug, f"{slug}:blue")["name"] == "blue"


def test_a_curator_of_one_vocabulary_imports_into_that_one_only(server: Server, admin: Member, slug: str) -> None:
    other = f"{slug}-other"
    for name in (slug, other):
        import_file(admin, encode_scheme(name, RED))
    person = Member(server, Role.NONE, {slug: Role.CURATOR})
    form = person.open("/import")
    assert f'<option value="{slug}"' in form
    assert f'<option value="{other}"' not in form
    assert 'name="new_vocabulary"' not in form
    revision = server.get("/api/v1").json["revision"]
    text = preview(person, encode_scheme(other, RED, BLUE))
    assert f"Role curator required in the vocabulary {other}" in text
    for content, fields in (
        (encode_scheme(slug, RED, BLUE), {"new_vocabulary": other}),
        (encode_scheme(f"{slug}-new", RED), {}),
        (encode_scheme(f"{slug}-new", RED), {"new_vocabulary": f"{slug}-new"}),
        (json.dumps([{"id": "trm_1", "name": "one"}]).encode(), {"format": "v-alpha"}),
    ):
        text = preview(person, content, **fields)
        assert "Nothing was imported" in text
        assert ">Import</button>" not in person.body
    send_files(person, [("scheme.ttl", encode_scheme(other, RED))], 422, vocabulary=other)
    assert server.get("/api/v1").json["revision"] == revision
    import_file(person, encode_scheme(f"{slug}-new", RED, BLUE), vocabulary=slug)
    assert get_record(server, slug, f"https://example.org/{slug}-new/blue".replace("/", "%2F"))["name"] == "blue"


def test_a_private_vocabulary_is_indistinguishable_from_a_missing_one(server: Server, admin: Member, slug: str) -> None:
    hidden, missing = f"{slug}-hid", f"{slug}-mis"
    for name in (slug, hidden):
        import_file(admin, encode_scheme(name, RED))
    link = find_changes_link(admin)
    admin.open(f"/admin/vocabularies/{hidden}")
    admin.press("Save", {"private": "1"})
    assert server.get(f"/api/v1/vocabularies/{hidden}").status == 404
    person = Member(server, Role.NONE, {slug: Role.CURATOR})
    assert hidden not in person.open("/import")
    assert "Undo import" not in person.open(f"/changes?{link}")
    undone = extract_text(person.send("/changes/undo", dict(parse_qsl(link)), 409))
    assert "These are not the changes of one import" in undone
    assert hidden not in undone
    attempts: list[Callable[[str], str]] = [
        lambda name: preview(person, encode_scheme(name, RED, BLUE)),
        lambda name: preview(person, encode_scheme(slug, RED), new_vocabulary=name),
        lambda name: preview(person, encode_scheme(slug, RED).replace(f"/{slug}>".encode(), f"/{name}>".encode())),
        lambda name: preview(person, f'{{"lexarium":"jsonl","format":3,"vocabulary":"{name}"}}\n'.encode(), "x.jsonl"),
        lambda name: extract_text(
            send_files(person, [("x.ttl", encode_scheme(slug, RED))], 422, vocabulary=name).replace(name, "NAME")
        ),
    ]
    for attempt in attempts:
        assert attempt(hidden).replace(hidden, "NAME") == attempt(missing).replace(missing, "NAME")


def test_records_missing_from_a_newer_edition_are_shown_before_they_are_retired(
    server: Server, admin: Member, slug: str
) -> None:
    import_file(admin, encode_scheme(slug, RED, BLUE))
    text = preview(admin, encode_scheme(slug, RED), mode="replace")
    assert "1 record would be retired." in text
    assert "Retired: 1 record blue" in text
    assert get_record(server, slug, f"{slug}:blue")["name"] == "blue"
    admin.press("Import")
    wait_for_upload(admin)
    assert server.get(f"/api/v1/vocabularies/{slug}/records/{slug}:blue").status == 410


def test_a_record_changed_after_the_preview_requires_a_new_preview(server: Server, admin: Member, slug: str) -> None:
    import_file(admin, encode_scheme(slug, RED, BLUE))
    preview(admin, encode_scheme(slug, RED.replace('"red"', '"scarlet"'), BLUE))
    edit(admin, slug, f"{slug}:red", {"definition": "Edited meanwhile."})
    admin.press("Import")
    text = extract_text(wait_for_upload(admin))
    assert f"{slug}:red was changed after the preview. Nothing was imported." in text
    assert get_record(server, slug, f"{slug}:red")["name"] == "red"
    admin.press("Import")
    wait_for_upload(admin)
    record = get_record(server, slug, f"{slug}:red")
    assert (record["name"], record["definition"]) == ("scarlet", "Edited meanwhile.")


def test_warnings_are_shown_by_kind_with_three_examples(admin: Member, slug: str) -> None:
    concepts = [f'c{number} skos:prefLabel "one"@en, "two"@en' for number in range(5)]
    text = preview(admin, encode_scheme(slug, *concepts))
    assert "7 warnings" in text, "all have the same name, too, and the scheme has none"
    assert text.count("has several names in one language") == 4


def test_a_file_cannot_change_the_settings_of_its_vocabulary(server: Server, admin: Member, slug: str) -> None:
    import_file(admin, encode_scheme(slug, RED))
    content = encode_scheme(slug, RED, BLUE).replace(
        b"skos:ConceptScheme", b'skos:ConceptScheme ; <lexarium:private> "true"'
    )
    import_file(admin, content)
    assert server.get(f"/api/v1/vocabularies/{slug}").status == 200


def test_purging_a_vocabulary_removes_its_imports(server: Server, admin: Member, slug: str) -> None:
    import_file(admin, encode_scheme(slug, RED))
    database = open_database(server.url)
    database.run_write(lambda transaction: head_records.remove_vocabulary(transaction, admin.account_id, slug))
    database.run_write(lambda transaction: head_records.purge_vocabulary(transaction, slug))
    assert not list(check_database(database).problems)
    database.close()
