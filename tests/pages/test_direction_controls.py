"""Bidirectional control characters in names: rejected in user input, imported from files with a warning."""

import json
from pathlib import Path

import pytest

from lexarium.domain.account import Role
from lexarium.domain.errors import InvalidInput
from lexarium.services.access.accounts import add_account
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.store.database import Database
from tests.support.browserless_client import BrowserlessClient, strip_tags
from tests.support.server import Server, run_cli

# Embeddings, overrides and isolates, with the characters that end them.
DANGEROUS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
# Invisible marks that Arabic and Hebrew text needs next to digits and punctuation.
MARKS = "\u200e\u200f\u061c"


@pytest.fixture(scope="module")
def curator(shared_server: Server) -> str:
    return shared_server.create_token("curator")


@pytest.mark.parametrize("char", DANGEROUS)
@pytest.mark.parametrize(
    ("draft", "pointer"),
    [({"name": "a{}b"}, "/name"), ({"name": "x", "aliases": [{"text": "a{}b", "lang": "he"}]}, "/aliases/0/text")],
)
def test_v1_rejects_direction_controls_in_names(
    shared_server: Server, curator: str, char: str, draft: dict[str, object], pointer: str
) -> None:
    draft_with_char = json.loads(json.dumps(draft).replace("{}", json.dumps(char)[1:-1]))
    response = shared_server.post_json("/api/v1/concept", draft_with_char, curator)
    assert response.status == 422
    assert [error["pointer"] for error in response.json["errors"]] == [pointer]
    assert f"U+{ord(char):04X}" in response.json["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "a\u202eb"),
        ("alias", "fine, a\u202eb"),
        # The alias text is parsed like HTML: in the list of labels this is the character itself.
        ("alias", "fine; a&#x202E;b"),
    ],
)
def test_v_alpha_rejects_direction_controls_in_names(
    shared_server: Server, curator: str, field: str, value: str
) -> None:
    response = shared_server.post_json("/api/v-alpha/concept", {"name": "x", field: value}, curator)
    assert response.status == 422
    assert [error["pointer"] for error in response.json["errors"]] == [f"/{field}"]
    assert "U+202E" in response.json["errors"][0]["detail"]


def test_direction_marks_and_controls_in_definitions_are_accepted(shared_server: Server, curator: str) -> None:
    draft = {"name": f"a{MARKS}b", "aliases": [{"text": f"c{MARKS}d", "lang": "ar"}], "definition_text": DANGEROUS}
    response = shared_server.post_json("/api/v1/concept", draft, curator)
    assert response.status == 201
    assert {key: response.json[key] for key in ("name", "definition_text")} == {
        "name": draft["name"],
        "definition_text": DANGEROUS,
    }


def test_a_form_with_direction_controls_is_shown_again_with_errors(shared_server: Server) -> None:
    person = BrowserlessClient(shared_server)
    person.sign_in("curator")
    person.open("/propose/concept")
    page = strip_tags(person.press("Publish", {"name": "a\u202eb", "aliases": "c\u2066d"}, status=422))
    assert "U+202E" in page
    assert "U+2066" in page


def test_direction_controls_are_rejected_in_account_names(database: Database) -> None:
    with pytest.raises(InvalidInput) as error:
        add_account(database, "nimda\u202e", Role.CONTRIBUTOR)
    assert [problem.field for problem in error.value.problems] == ["name"]


SKOS = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<http://example.org/1> a skos:Concept ; skos:prefLabel "fine"@en ; skos:altLabel "a\u202eb"@he ."""


@pytest.mark.parametrize(
    ("name", "content", "warning"),
    [
        ("concept.json", json.dumps([{"id": "trm_1", "name": "a\u202eb"}]), "name of trm_1 "),
        ("concept.json", json.dumps([{"id": "trm_1", "name": "fine", "alias": "c; a&#x202E;b"}]), "alias of trm_1 "),
        ("concept.csv", "name,alias\na\u202eb,\n", "name of 'a\\u202eb' "),
        ("concept.ttl", SKOS, "http://example.org/1"),
    ],
)
def test_an_import_keeps_direction_controls_and_reports_the_record(
    database: Database, tmp_path: Path, name: str, content: str, warning: str
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    report = run_import(database, ImportRequest([path], "main"))
    assert report.created == {"concept": 1}
    warnings = [note for note in report.warnings.items if "U+202E" in note.detail]
    assert [note.detail.startswith(warning) for note in warnings] == [True]
    assert name in warnings[0].field


def test_a_record_with_a_direction_control_can_still_be_edited(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "concept.json"
    path.write_text(json.dumps([{"id": "trm_1", "name": "a\u202eb"}]))
    assert run_cli("import", path, LEXARIUM_DATABASE=server.url).returncode == 0
    headers = {"Authorization": f"Bearer {server.create_token('curator')}", "Content-Type": "application/json"}
    change = json.dumps({"name": "a\u202eb", "definition_text": "What it is."})
    response = server.request("PATCH", "/api/v1/concept/trm_1", {**headers, "If-Match": '"1"'}, change)
    assert response.status == 200
    second_response = server.request(
        "PATCH", "/api/v1/concept/trm_1", {**headers, "If-Match": '"2"'}, r'{"name": "\u202e"}'
    )
    assert second_response.status == 422
