"""`lexarium vocabulary`: vocabularies are listed, added, changed, removed, restored and purged."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lexarium.domain.comment import Comment, CommentAction
from lexarium.domain.identifiers import qualify_id
from lexarium.store import comments
from lexarium.store.database import Database
from tests.support.databases import DatabaseUrlFactory
from tests.support.server import Server, run_cli
from tests.support.terminal import run_in_terminal

ADD_UAT = (
    *("vocabulary", "add", "uat", "--schema", "skos", "--title", "Unified Astronomy Thesaurus", "--licence", "CC0-1.0"),
    *("--language", "EN", "--language", "de-at", "--prefix", "uat=http://astrothesaurus.org/uat/", "--defines", "uat"),
    *("--minting", "uat:{n}", "--base", "https://example.org/uat"),
)


@pytest.fixture
def uat_url(new_url: DatabaseUrlFactory) -> str:
    """URL of a catalogue that has a second vocabulary."""
    url = new_url("sqlite")
    result = run_cli(*ADD_UAT, "--database", url)
    assert result.returncode == 0, result.stderr
    return url


def list_vocabularies(url: str) -> dict[str, Any]:
    listed = json.loads(run_cli("vocabulary", "list", "--json", "--database", url).stdout)
    return {item["slug"]: item for item in listed}


def fail(*arguments: object, url: str) -> str:
    """Run a command that must fail and change nothing; return its message in one line."""
    before = list_vocabularies(url)
    result = run_cli(*arguments, "--database", url)
    assert (result.returncode, result.stdout) == (1, "")
    assert list_vocabularies(url) == before
    return " ".join(result.stderr.split())


def test_a_vocabulary_is_added_with_its_metadata_and_rules(uat_url: str) -> None:
    listed = list_vocabularies(uat_url)
    assert list(listed) == ["main", "uat"]
    assert listed["uat"] == {
        "slug": "uat",
        "title": "Unified Astronomy Thesaurus",
        "description": "",
        "licence": "CC0-1.0",
        "publisher": "",
        "base": "https://example.org/uat/",
        "languages": ["en", "de-AT"],
        "schema": "skos",
        "prefixes": {"uat": "http://astrothesaurus.org/uat/"},
        "defines": ["uat"],
        "minting": "uat:{n}",
        "sources": [],
        "private": False,
        "default": False,
        "valpha": False,
        "removed": False,
        "records": 0,
    }
    table = run_cli("vocabulary", "list", "--database", uat_url).stdout.splitlines()
    assert table[0].split() == ["vocabulary", "title", "schema", "languages", "records"]
    assert table[2].split() == ["uat", "Unified", "Astronomy", "Thesaurus", "skos", "en,", "de-AT", "0"]
    shown = run_cli("vocabulary", "show", "uat", "--database", uat_url).stdout
    assert "concept_scheme" in shown
    assert "https://example.org/uat/" in shown


def test_values_are_changed_and_cleared(uat_url: str) -> None:
    assignments = ("title=UAT=5", "licence=", "languages=fr,en", "prefixes=a=http://a.org/,b=http://b.org/", "base=")
    assert run_cli("vocabulary", "set", "uat", *assignments, "private=yes", "--database", uat_url).returncode == 0
    changed = list_vocabularies(uat_url)["uat"]
    assert [changed[key] for key in ("title", "licence", "languages", "private")] == ["UAT=5", "", ["fr", "en"], True]
    assert changed["prefixes"] == {"a": "http://a.org/", "b": "http://b.org/"}
    assert changed["base"] == "http://localhost:8000/"
    assert changed["minting"] == "uat:{n}"


def test_all_errors_are_reported_at_once_and_nothing_is_changed(uat_url: str) -> None:
    wrong = ("title=", "languages=en_GB,?", "minting=uat:{x}", "prefixes=uat", "colour=red", "default=yes", "private=x")
    message = fail("vocabulary", "set", "uat", *wrong, url=uat_url)
    for key in ("title", "languages", "minting", "prefixes", "colour", "default", "private"):
        assert f"\u2022 {key}: " in message, key
    assert "Write en-GB." in message
    options = ("--schema", "skos", "--title", "Other", "--defines", "uat", "--language", "xx_", "--prefix", "p")
    message = fail("vocabulary", "add", "Other!", *options, url=uat_url)
    assert "defined by another vocabulary" in message
    for key in ("slug", "languages", "prefixes"):
        assert f"\u2022 {key}: " in message, key


def test_an_unknown_vocabulary_is_reported_with_the_available_ones(uat_url: str) -> None:
    for command in (("show",), ("set", "title=x"), ("default",), ("valpha",), ("remove",), ("restore",), ("purge",)):
        message = fail("vocabulary", command[0], "animals", *command[1:], url=uat_url)
        assert "Vocabulary 'animals' not found; available: main, uat." in message
    assert "already exists" in fail(*ADD_UAT, url=uat_url)


def test_a_schema_must_be_built_in_or_a_valid_file(uat_url: str, tmp_path: Path) -> None:
    add = ("vocabulary", "add", "animals", "--title", "Animals", "--schema")
    assert "File nothing.yaml not found" in fail(*add, "nothing.yaml", url=uat_url)
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("id: https://example.org/x\nname: x\nclasses:\n  A:\n    slots:\n      - missing\n")
    assert "schema: line 6: " in fail(*add, wrong, url=uat_url)
    animals = Path(__file__).parents[1] / "schema" / "animals.yaml"
    assert run_cli(*add, animals, "--database", uat_url).returncode == 0
    assert list_vocabularies(uat_url)["animals"]["schema"] == "animals"


def test_the_default_and_the_v_alpha_vocabulary_can_be_chosen(uat_url: str) -> None:
    assert "no class that v-alpha serves" in fail("vocabulary", "valpha", "uat", url=uat_url)
    assert run_cli("vocabulary", "default", "uat", "--database", uat_url).returncode == 0  # v-alpha stays with main
    listed = list_vocabularies(uat_url)
    assert [(slug, item["default"], item["valpha"]) for slug, item in listed.items()] == [
        ("uat", True, False),
        ("main", False, True),
    ]
    assert run_cli("vocabulary", "valpha", "main", "--database", uat_url).returncode == 0
    assert list_vocabularies(uat_url)["main"]["valpha"]
    assert "is the default vocabulary" in fail("vocabulary", "remove", "uat", "--yes", url=uat_url)


def test_a_removed_vocabulary_is_restored_or_purged_and_the_catalogue_stays_consistent(
    uat_url: str, tmp_path: Path
) -> None:
    add_comment(uat_url)
    assert "Use --yes" in fail("vocabulary", "remove", "uat", url=uat_url)
    assert "Remove it first" in fail("vocabulary", "purge", "uat", "--yes", url=uat_url)
    removed = run_cli("vocabulary", "remove", "uat", "--yes", "--database", uat_url)
    assert "Restore it with `lexarium vocabulary restore uat`" in removed.stdout
    assert list_vocabularies(uat_url)["uat"]["removed"]
    assert run_cli("vocabulary", "restore", "uat", "--database", uat_url).returncode == 0
    assert "not removed" in fail("vocabulary", "restore", "uat", url=uat_url)
    shown = run_in_terminal("vocabulary", "remove", "uat", "--database", uat_url, answer="y\n")
    assert "It can be restored." in " ".join(shown.split())
    assert "Use --yes" in fail("vocabulary", "purge", "uat", url=uat_url)
    shown = run_in_terminal("vocabulary", "purge", "uat", "--database", uat_url, answer="y\n")
    assert "This cannot be undone." in " ".join(shown.split())
    assert list(list_vocabularies(uat_url)) == ["main"]
    checked = run_cli("check", "--database", uat_url)
    assert checked.returncode == 0, checked.stderr
    assert "4 changes of purged vocabularies are not in the log" in checked.stderr
    assert run_cli("backup", tmp_path / "backup.db", "--database", uat_url).returncode == 0
    assert run_cli(*ADD_UAT, "--database", uat_url).returncode == 0


def add_comment(url: str) -> None:
    """Comment on a record of the second vocabulary."""
    database = Database(url)
    comment = Comment("cmt_1", qualify_id("uat", "uat:1"), "cmt_1", "usr_1", 1, CommentAction.OPEN, "a comment")
    database.run_write(lambda transaction: comments.add(transaction, comment))
    database.close()


METADATA = {
    "LEXARIUM_TITLE": "Ours",
    "LEXARIUM_LANGUAGE": "de",
    "LEXARIUM_BASE": "https://example.org/terms",
    "LEXARIUM_LICENCE": "CC0-1.0",
}


def test_metadata_settings_are_copied_once_and_ignored_afterwards(new_url: DatabaseUrlFactory) -> None:
    url = new_url("sqlite")
    carried = run_cli("user", "add", "Ada", "--role", "admin", "--database", url, **METADATA)
    assert "LEXARIUM_TITLE, LEXARIUM_LICENCE, LEXARIUM_LANGUAGE, LEXARIUM_BASE" in " ".join(carried.stderr.split())
    main = list_vocabularies(url)["main"]
    assert [main[key] for key in ("title", "languages", "base", "licence", "publisher")] == [
        *("Ours", ["de"], "https://example.org/terms/", "CC0-1.0", "")
    ]
    assert "Copied to" not in run_cli("user", "add", "Eve", "--role", "admin", "--database", url, **METADATA).stderr
    assert run_cli("vocabulary", "set", "main", "title=New", "--database", url).returncode == 0
    with Server(url, **METADATA) as server:
        assert server.get("/reconcile").json["name"] == "New"
        log = server.stop()
    assert log.count("Ignored, because the vocabulary main has its own value: LEXARIUM_TITLE;") == 1
    assert "`lexarium vocabulary set main title=VALUE`" in log


def test_invalid_settings_are_reported_before_anything_is_copied(new_url: DatabaseUrlFactory) -> None:
    url = new_url("sqlite")
    result = run_cli("user", "add", "Ada", "--role", "admin", "--database", url, LEXARIUM_LANGUAGE="en_GB")
    assert result.returncode == 1
    assert "Write en-GB." in " ".join(result.stderr.split())


def test_a_server_shows_a_changed_title_without_a_restart(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite"), LEXARIUM_TITLE="Before") as server:
        assert server.get("/reconcile").json["name"] == "Before"
        assert run_cli("vocabulary", "set", "main", "title=After", "--database", server.url).returncode == 0
        assert server.get("/api/v-alpha/concept").json == []  # every read of records looks for changes
        assert server.get("/reconcile").json["name"] == "After"


def test_an_account_has_a_global_role_and_roles_in_single_vocabularies(uat_url: str) -> None:
    run_cli("user", "add", "Ada", "--role", "none", "--database", uat_url)
    result = run_cli("user", "role", "Ada", "curator", "--vocabulary", "uat", "--database", uat_url)
    assert (result.returncode, result.stdout) == (0, "Ada now has the role curator in uat.\n")
    listed = json.loads(run_cli("user", "list", "--json", "--database", uat_url).stdout)
    assert [(item["role"], item["vocabularies"]) for item in listed] == [("none", {"uat": "curator"})]
    assert run_cli("user", "list", "--database", uat_url).stdout.split()[-3:] == ["none", "uat:", "curator"]
    token = run_cli("token", "create", "Ada", "--database", uat_url)
    assert "with role curator" in token.stderr
    assert run_cli("token", "create", "Ada", "--role", "admin", "--database", uat_url).returncode == 1
    message = fail("user", "role", "Ada", "reader", "--vocabulary", "animals", url=uat_url)
    assert "Vocabulary 'animals' not found; available: main, uat." in message
    result = run_cli("user", "role", "Ada", "none", "--vocabulary", "uat", "--database", uat_url)
    assert result.stdout == "Ada now has no role of its own in uat.\n"
    assert json.loads(run_cli("user", "list", "--json", "--database", uat_url).stdout)[0]["vocabularies"] == {}


def test_the_roles_none_and_reader_cannot_propose(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite")) as server:
        for role in ("none", "reader"):
            token = server.create_token(role)
            assert server.get("/api/v1/me", Authorization=f"Bearer {token}").json["role"] == role
            for path in ("/api/v1/concept", "/api/v-alpha/concept"):
                assert server.post_json(path, {"name": "memory"}, token).status == 403
            proposal = {"collection": "concept", "change": {"name": "memory"}}
            assert server.post_json("/api/v1/proposals", proposal, token).status == 403


def test_show_omits_fields_without_a_value(blank_url: DatabaseUrlFactory, tmp_path: Path) -> None:
    url, file = blank_url("sqlite"), tmp_path / "trees.ttl"
    file.write_text(
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix t: <https://example.org/trees/> ."
        't:s a skos:ConceptScheme . t:oak a skos:Concept ; skos:inScheme t:s ; skos:prefLabel "oak"@en .'
    )
    assert run_cli("import", file, "--vocabulary", "trees", "--database", url).returncode == 0
    shown = run_cli("show", "https://example.org/trees/oak", "--database", url).stdout
    assert "oak" in shown
    assert "created" not in shown
    assert "fields" not in shown


@pytest.fixture
def colours_url(new_url: DatabaseUrlFactory, tmp_path: Path) -> str:
    """URL of a catalogue with a vocabulary that was imported from SKOS, with what `check` finds."""
    url, path = new_url("sqlite"), tmp_path / "colours.ttl"
    path.write_text(
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix ex: <https://colours.example/> .\n"
        'ex:red a skos:Concept ; skos:prefLabel "red"@en ; skos:altLabel "crimson"@en ; skos:broader ex:colour .\n'
        'ex:pale a skos:Concept ; skos:broader ex:red ; skos:definition "With white."@en .\n'
    )
    result = run_cli("import", str(path), "--vocabulary", "colours", "--database", url)
    assert "refers to a record that does not exist" in result.stderr
    assert "colours:red broader colours:colour" in result.stderr
    assert "colours:pale: has no name" in result.stderr
    return url


def test_counts_of_commands_are_without_the_head_records_of_vocabularies(colours_url: str, tmp_path: Path) -> None:
    copies = [f"sqlite:///{tmp_path}/{name}.db" for name in ("restored", "copied")]
    commands = (
        ("check", "--database", colours_url),
        ("backup", tmp_path / "backup.db", "--database", colours_url),
        ("restore", tmp_path / "backup.db", "--database", copies[0]),
        ("copy", colours_url, copies[1]),
        ("reindex", "--database", colours_url),
    )
    for command in commands:
        result = run_cli(*command)
        assert re.findall(r"(\d+) records", result.stdout) == ["2"], (command, result)


def test_check_names_relations_to_missing_records(colours_url: str) -> None:
    result = run_cli("check", "--database", colours_url)
    assert result.returncode == 0
    message = "1 relation refers to a missing record: colours:red broader colours:colour"
    assert message in " ".join(result.stderr.split())


def test_json_of_a_vocabulary_with_another_schema_is_exported_with_all_statements(
    colours_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "colours.json"
    arguments = ("export", "--vocabulary", "colours", "--database", colours_url)
    assert run_cli(*arguments, "-o", str(path)).returncode == 0
    assert "crimson" in path.read_text()
    assert run_cli(*arguments).stdout == path.read_text()
    result = run_cli("import", str(path), "--vocabulary", "colours", "--database", colours_url)
    assert "Nothing changed" in result.stdout


def test_show_prints_a_name_in_one_language_once(colours_url: str) -> None:
    assert run_cli("show", "colours:red", "--database", colours_url).stdout.count("red") == 3  # also in ID and IRI
    assert run_cli("show", "colours:pale", "--database", colours_url).stdout.count("With white.") == 1
