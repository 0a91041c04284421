"""Forms for records of any vocabulary, with notes, notations and aliases in each language, over HTTP."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from lexarium.domain.change import Action
from lexarium.domain.identifiers import SYSTEM_USER_ID, qualify_id
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.statement import Node, Statement, Text, normalize
from lexarium.domain.vocabulary import register_vocabularies
from lexarium.store import change_log
from lexarium.store.change_log import RecordWrite
from lexarium.store.database import Database
from tests.support.browser import Browser
from tests.support.browserless_client import BrowserlessClient, extract_text, parse_forms
from tests.support.databases import DatabaseUrlFactory
from tests.support.server import Server
from tests.support.vocabularies import create_vocabulary

SOURCE = Statement("dcterms:source", Text("a dictionary"))
# As in imported files: texts with datatypes and qualifiers, several in one language, notes that are nodes.
STATEMENTS = (
    Statement("skos:prefLabel", Text("moon", "en")),
    Statement("skos:prefLabel", Text("lune", "fr")),
    Statement("skos:prefLabel", Text("satellite", "fr")),
    Statement("skos:altLabel", Text("Luna", "en")),
    Statement("skos:altLabel", Text("Selene", "en"), (SOURCE,)),
    Statement("skos:hiddenLabel", Text("mooon", "en")),
    Statement("skos:altLabel", Text("astre", "fr")),
    Statement("skos:altLabel", Text("Mond", "de")),
    Statement("skos:definition", Text("It shines.", "en")),
    Statement("skos:definition", Node((Statement("rdf:value", Text("Elle brille.", "fr")),))),
    Statement("skos:scopeNote", Text("Of the Earth.", "en"), (SOURCE,)),
    Statement("skos:scopeNote", Text("First part.\n\nSecond part.", "en")),
    Statement("skos:scopeNote", Text("De la Terre.", "fr")),
    Statement("skos:editorialNote", Node((Statement("rdf:value", Text("Check it.")),))),
    Statement("rdfs:comment", Text("Not declared.", "en")),
    Statement("skos:notation", Text("523.3", "", "xsd:string")),
    Statement("skos:notation", Text("523.3", "", "https://example.org/udc")),
)


@pytest.fixture(scope="module")
def server(new_url: DatabaseUrlFactory) -> Iterator[Server]:
    with Server(new_url("sqlite"), LEXARIUM_SIGN_IN_RATE="1000") as running:
        database = Database(running.url)
        create_vocabulary(database, "sky", title="Sky", minting="sky:{n}", languages=["en", "fr"], defines=["sky"])
        create_vocabulary(database, "ills", title="Ills", schema="obo", minting="ill:{n}", defines=["ill"])
        database.close()
        yield running
    # Other tests of this process have one vocabulary.
    register_vocabularies([])


@pytest.fixture(scope="module")
def curator(server: Server) -> BrowserlessClient:
    client = BrowserlessClient(server)
    client.sign_in("curator")
    return client


def write_record(server: Server, local_id: str) -> None:
    """Write a record as an import does."""
    database = Database(server.url)
    record = Record(COLLECTIONS["sky/concept"], qualify_id("sky", local_id), normalize(STATEMENTS))
    with database.write() as transaction:
        change_log.save_records(transaction, [RecordWrite(record, 1, Action.CREATE)], actor=SYSTEM_USER_ID, at=1)
    database.close()


def read_statements(server: Server, local_id: str, slug: str = "sky") -> tuple[Statement, ...]:
    database = Database(server.url)
    with database.read() as snapshot:
        record_id = qualify_id(slug, local_id)
        statements = change_log.find_latest(snapshot, [record_id])[record_id].to_record().statements
    database.close()
    return statements


def read_record(server: Server, local_id: str) -> dict[str, Any]:
    record: dict[str, Any] = server.get(f"/api/v1/records/{quote(local_id, safe='')}").json
    return record


def get_fields(client: BrowserlessClient) -> dict[str, str]:
    form = next(form for form in parse_forms(client.body) if "aliases" in form.fields)
    return {name: value.replace("\r\n", "\n") for name, value in form.fields.items()}


def test_the_form_shows_all_texts_and_saving_it_unchanged_changes_nothing(curator: BrowserlessClient) -> None:
    write_record(curator.server, "sky:whole")
    curator.open("/edit/sky%3Awhole")
    fields = get_fields(curator)
    assert fields["aliases"] == "Luna\nSelene\nmooon | hidden"
    assert (fields["aliases-fr"], fields["aliases-de"]) == ("astre", "Mond")
    assert fields["name-fr"] == "lune"
    assert fields["notes.scope_note"] == "Of the Earth.\n---\nFirst part.\n\nSecond part."
    assert fields["notes.scope_note-fr"] == "De la Terre."
    assert fields["notes.example-de"] == ""
    assert fields["notations"] == "523.3\n523.3"
    curator.press("Publish")
    assert read_statements(curator.server, "sky:whole") == normalize(STATEMENTS)


def test_statements_not_shown_in_the_form_are_kept(curator: BrowserlessClient) -> None:
    write_record(curator.server, "sky:partly")
    curator.open("/edit/sky%3Apartly")
    changes = {
        "name-fr": "la Lune",
        "definition-fr": "Elle luit.",
        "aliases-de": "Trabant\nErdmond | narrow",
        "notes.scope_note": "Of the Earth.\r\n---\r\nOnly one part.",
        "notes.scope_note-fr": "",
        "notes.editorial_note": "Checked.",
        "notations": "523.3\r\n523.3\r\nM",
    }
    curator.press("Publish", changes)
    changed = {
        Statement("skos:prefLabel", Text("lune", "fr")),
        Statement("skos:altLabel", Text("Mond", "de")),
        STATEMENTS[11],
        STATEMENTS[12],
    }
    kept = {statement for statement in STATEMENTS if statement not in changed}
    after = set(read_statements(curator.server, "sky:partly"))
    assert kept <= after
    source = (Statement("lexarium:source", Text("moon")),)
    assert after - kept == {
        Statement("skos:prefLabel", Text("la Lune", "fr"), source),
        Statement("skos:definition", Text("Elle luit.", "fr"), (Statement("lexarium:source", Text("It shines.")),)),
        Statement("skos:altLabel", Text("Trabant", "de")),
        Statement("oboInOwl:hasNarrowSynonym", Text("Erdmond", "de")),
        Statement("skos:scopeNote", Text("Only one part.", "en")),
        Statement("skos:editorialNote", Text("Checked.", "en")),
        Statement("skos:notation", Text("M")),
    }
    history = extract_text(curator.open("/id/sky%3Apartly/history"))
    assert "Checked. (editorial_note, en)" in history


def test_a_new_record_can_have_notes_notations_and_aliases_in_each_language(curator: BrowserlessClient) -> None:
    curator.open("/propose/concept?vocabulary=sky")
    values = {
        "name": "star",
        "name-fr": "étoile",
        "aliases": "sun\r\nStern | de\r\nluminary | broad",
        "aliases-fr": "astre",
        "notes.example": "Sirius",
        "notes.example-fr": "Véga\r\n---\r\nAltaïr",
        "notations": "S",
    }
    curator.press("Publish", values)
    record = read_record(curator.server, curator.path.rpartition("/")[2].partition("?")[0].replace("%3A", ":"))
    assert [(item["text"], item["lang"], item["scope"]) for item in record["aliases"]] == [
        ("sun", "en", "exact"),
        ("Stern", "de", "exact"),
        ("astre", "fr", "exact"),
        ("luminary", "en", "broad"),
    ]
    assert record["notes"] == [
        {"type": "example", "text": "Sirius", "lang": "en"},
        {"type": "example", "text": "Véga", "lang": "fr"},
        {"type": "example", "text": "Altaïr", "lang": "fr"},
    ]
    assert record["notations"] == ["S"]


def test_comments_of_ontologies_are_edited(curator: BrowserlessClient) -> None:
    curator.open("/propose/term?vocabulary=ills")
    curator.press("Publish", {"name": "flu", "notes.comment": "Seasonal.\r\n\r\nMostly."})
    record = read_record(curator.server, "ill:1")
    assert record["notes"] == [{"type": "comment", "text": "Seasonal.\n\nMostly.", "lang": "en"}]
    curator.open("/edit/ill%3A1")
    assert "notations" not in get_fields(curator)
    curator.press("Publish", {"notes.comment": ""})
    assert read_record(curator.server, "ill:1")["notes"] == []


def test_an_added_language_has_all_fields_without_scripts(curator: BrowserlessClient) -> None:
    write_record(curator.server, "sky:added")
    curator.open("/edit/sky%3Aadded")
    fields = {**get_fields(curator), "new_language": "PT-br", "act": "language", "name": "typed"}
    curator.send("/edit/sky%3Aadded", fields)
    assert get_fields(curator)["name"] == "typed"
    curator.press("Publish", {"name": "moon", "notes.scope_note-pt-BR": "Da Terra."})
    assert {"type": "scope_note", "text": "Da Terra.", "lang": "pt-BR"} in read_record(curator.server, "sky:added")[
        "notes"
    ]


def test_errors_are_shown_beside_the_field_of_their_language(curator: BrowserlessClient) -> None:
    write_record(curator.server, "sky:wrong")
    curator.open("/edit/sky%3Awrong")
    values = {
        "name-fr": "x" * 501,
        "aliases-fr": "astre\r\nbon | fr | mauvais",
        "notes.scope_note-fr": "y" * 50_001,
        "notations": "\x02",
    }
    curator.press("Publish", values, 422)
    for name in values:
        assert f'id="{name}-wrong"' in curator.body, name
        assert f'<a href="#{name}">' in curator.body, name
    assert "Line 2, its scope, must be one of" in extract_text(curator.body)
    assert "Scope note (fr)" in extract_text(curator.body)
    assert get_fields(curator)["name-fr"] == values["name-fr"]
    assert read_record(curator.server, "sky:wrong")["version"] == 1


def test_concurrent_changes_of_texts_in_any_language_are_not_overwritten(curator: BrowserlessClient) -> None:
    write_record(curator.server, "sky:both")
    other = BrowserlessClient(curator.server)
    other.sign_in("curator")
    for client in (curator, other):
        client.open("/edit/sky%3Aboth")
    other.press("Publish", {"name-fr": "Lune", "aliases-fr": "astre\nSéléné", "notes.scope_note-fr": "Theirs."})
    body = curator.press("Publish", {"notes.scope_note-fr": "Ours.", "notes.example": "Full."}, 409)
    fields = get_fields(curator)
    assert (fields["name-fr"], fields["aliases-fr"]) == ("Lune", "astre\nSéléné")
    assert (fields["notes.scope_note-fr"], fields["notes.example"]) == ("Ours.", "Full.")
    assert '<pre class="wrap" tabindex="0">Theirs.</pre>' in body
    assert "Changed fields: Preferred label (fr) , Aliases (fr) and Scope note (fr) ." in extract_text(body)
    curator.press("Publish")
    record = read_record(curator.server, "sky:both")
    assert [note["text"] for note in record["notes"] if note["lang"] == "fr"] == ["Ours."]
    assert {"text": "Lune", "lang": "fr"} in record["names"]
    assert {"text": "Séléné", "lang": "fr", "scope": "exact"} in record["aliases"]


def test_notes_are_proposed_reviewed_and_accepted(server: Server, curator: BrowserlessClient) -> None:
    write_record(server, "sky:proposed")
    contributor = BrowserlessClient(server)
    contributor.sign_in("contributor")
    contributor.open("/edit/sky%3Aproposed")
    contributor.press("Propose", {"notes.example": "Full\r\nmoon.", "notations": "523.3\n523.3\nM"})
    proposal = contributor.path.partition("did=")[2]
    body = curator.open(f"/review/{proposal}")
    assert "example | en | Full ⏎ moon." in body
    curator.press("Accept", {"notations": "523.3\r\n523.3\r\nMOON"})
    record = read_record(server, "sky:proposed")
    assert {"type": "example", "text": "Full\nmoon.", "lang": "en"} in record["notes"]
    assert record["notations"] == ["523.3", "523.3", "MOON"]
    assert "Check it." in str(record["statements"])


@pytest.mark.full
def test_the_form_in_several_languages_has_an_accessible_layout(shared_browser: Browser, server: Server) -> None:
    write_record(server, "sky:seen")
    shared_browser.base_url = f"http://127.0.0.1:{server.port}"
    shared_browser.reset()
    shared_browser.sign_in(server, "curator")
    shared_browser.open("/edit/sky%3Aseen")
    shared_browser.check_appearance("record-form-languages")
    assert shared_browser.console_errors() == []
