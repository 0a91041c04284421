"""Mirroring: a second real Lexarium, by its lists and by its feed; interrupted, gone on with; and sources that lie."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lexarium import transport
from lexarium.domain.errors import ImportRefused, LexariumError
from lexarium.service import mirroring as mirrors
from lexarium.service.importing import import_files
from lexarium.service.mirroring import Wish, mirror
from lexarium.store.database import Database
from lexarium.store.migrate import open_database
from tests.databases import NewUrl
from tests.go_between import GoBetween, answering, dropped, endless, halved, passed_on
from tests.server import Server, run
from tests.test_import import listed, one
from tests.waiting import DEADLINE, wait_until

FAST = Wish(rate=10_000)
NAMES = ("concept", "task", "disorder")
NO_V1 = answering(404, b"<html>not here</html>")


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(transport, "_FIRST_PAUSE", 0.001)
    monkeypatch.chdir(tmp_path)


def without_v1(between: GoBetween, handler: Any) -> None:
    """A v-alpha server that is no Lexarium."""
    (NO_V1 if handler.path.startswith("/api/v1") else passed_on)(between, handler)


class Source:
    """A small catalogue that is served, and can be written to."""

    def __init__(self, server: Server, between: GoBetween) -> None:
        self.server = server
        self.between = between
        self.url = between.url
        self._token = server.token("curator")

    def send(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json", "If-Match": "*"}
        answer = self.server.request(method, f"/api/v1{path}", headers, None if body is None else json.dumps(body))
        assert answer.status < 300, answer.body
        return answer.json

    def create(self, collection: str, name: str, **fields: Any) -> str:
        identifier: str = self.send("POST", f"/{collection}", {"name": name, **fields})["id"]
        return identifier

    def asked(self) -> list[str]:
        """The targets that were asked for since the last time."""
        targets = self.between.targets
        self.between.asked.clear()
        return targets


@pytest.fixture
def catalogue(new_url: NewUrl) -> Iterator[Database]:
    """A fresh, empty catalogue, where the engine makes no difference."""
    opened = open_database(new_url("sqlite"))
    yield opened
    opened.close()


@pytest.fixture
def source(new_url: NewUrl) -> Iterator[Source]:
    with Server(new_url("sqlite")) as server, GoBetween(server.port) as between:
        made = Source(server, between)
        memory = made.create("concept", "memory", definition_text='Line\nbreak, "quotes", é')
        working = made.create("concept", "working memory", relations={"KINDOF": [memory]})
        made.create("task", "n-back", relations={"ASSERTS": [working]})
        parent = made.create("disorder", "amnesia")
        made.create("disorder", "global amnesia", relations={"ISA": [parent]})
        yield made


@pytest.fixture
def lists(source: Source) -> Source:
    """The same, as a v-alpha server that is no Lexarium."""
    source.between.every = without_v1
    return source


def whole(server: Server) -> dict[str, Any]:
    """All that v-alpha shows of a catalogue, with relations."""
    return {
        record["id"]: server.get(f"/api/v-alpha/{name}?id={record['id']}").json
        for name in NAMES
        for record in server.get(f"/api/v-alpha/{name}").json
    }


def mirrored(database: Database) -> dict[str, Any]:
    return {record["id"]: one(database, record["id"]) for name in NAMES for record in listed(database, name)}


def v1_of(server: Server) -> dict[str, Any]:
    """All that v1 tells of the records of a catalogue, whatever their state, but for when they came to it."""
    found = {}
    for name in (*NAMES, "contrast", "concept_class"):
        for state in ("published", "retired", "merged"):
            for record in server.get(f"/api/v1/{name}?state={state}&limit=1000").json["items"]:
                found[record["id"]] = {
                    key: value
                    for key, value in record.items()
                    if key not in ("version", "updated", "updated_by", "last_updated")
                }
    return found


# By lists


def test_a_mirror_holds_what_the_source_holds(database: Database, lists: Source) -> None:
    made = mirror(database, lists.url + "/", FAST)
    assert made.report.created == {"concept": 2, "task": 1, "disorder": 2}
    assert mirrored(database) == whole(lists.server)
    asked = lists.asked()
    assert asked[:5] == ["/api/v1", *(f"/api/v-alpha/{name}" for name in (*NAMES, "search"))]
    assert len(asked) == made.requests == 10


def test_the_next_mirror_asks_only_whether_lists_have_changed(catalogue: Database, lists: Source) -> None:
    mirror(catalogue, lists.url, FAST)
    lists.between.asked.clear()
    made = mirror(catalogue, lists.url + "/api/v-alpha/", FAST)
    assert not made.report.changed
    assert [each.status for each in lists.between.asked] == [404, 304, 304, 304, 304]


def test_then_only_what_has_changed_is_asked_for(catalogue: Database, lists: Source) -> None:
    mirror(catalogue, lists.url, FAST)
    new = lists.create("concept", "new")
    changed = next(iter(listed(catalogue, "task")))["id"]
    lists.send("PATCH", f"/task/{changed}", {"definition_text": "New."})
    lists.asked()
    made = mirror(catalogue, lists.url, FAST)
    assert [target for target in lists.asked() if "?" in target] == [
        f"/api/v-alpha/concept?id={new}",
        f"/api/v-alpha/task?id={changed}",
    ]
    assert (made.report.created, made.report.updated) == ({"concept": 1}, {"task": 1})
    assert mirrored(catalogue) == whole(lists.server)


def test_relations_that_changed_alone_are_seen_with_all_and_known_records_are_not_sent_again(
    catalogue: Database, lists: Source
) -> None:
    mirror(catalogue, lists.url, FAST)
    child = lists.create("concept", "child")
    mirror(catalogue, lists.url, FAST)
    parent = next(record["id"] for record in listed(catalogue) if record["name"] == "memory")
    lists.send("PUT", f"/concept/{child}/relations", {"relation": "PARTOF", "target": parent})
    everything = Wish(rate=10_000, everything=True)
    made = mirror(catalogue, lists.url, everything)
    assert mirrored(catalogue) == whole(lists.server)
    assert made.report.relations_added == 1
    lists.between.asked.clear()
    assert not mirror(catalogue, lists.url, everything).report.changed
    assert [each.status for each in lists.between.asked] == [404, *[304] * 10]


def test_without_etags_lists_are_read_again_but_records_only_where_they_changed(
    catalogue: Database, lists: Source
) -> None:
    def plain(between: GoBetween, handler: Any) -> None:
        del handler.headers["If-None-Match"]
        without_v1(between, handler)

    lists.between.every = plain
    mirror(catalogue, lists.url, FAST)
    lists.asked()
    assert not mirror(catalogue, lists.url, FAST).report.changed
    assert len(lists.asked()) == 5


def test_a_dry_run_changes_nothing_and_keeps_what_it_fetched(catalogue: Database, lists: Source) -> None:
    made = mirror(catalogue, lists.url, Wish(rate=10_000, dry_run=True))
    assert made.report.created == {"concept": 2, "task": 1, "disorder": 2}
    assert mirrored(catalogue) == {}
    lists.asked()
    mirror(catalogue, lists.url, FAST)
    assert len(lists.asked()) == 5
    assert mirrored(catalogue) == whole(lists.server)


def test_what_is_gone_is_told_and_retired_only_where_asked_for(database: Database, lists: Source) -> None:
    mirror(database, lists.url, FAST)
    gone = next(record["id"] for record in listed(database) if record["name"] == "working memory")
    lists.send("DELETE", f"/concept/{gone}")
    for _ in range(2):
        made = mirror(database, lists.url, FAST)
        assert (made.gone, made.pruned) == ([gone], 0)
        assert gone in mirrored(database)
    made = mirror(database, lists.url, Wish(rate=10_000, prune=True))
    assert (made.gone, made.pruned) == ([gone], 1)
    assert gone not in mirrored(database)
    assert mirror(database, lists.url, FAST).gone == []
    lists.send("POST", f"/concept/{gone}/revert", {"version": 1})
    mirror(database, lists.url, FAST)
    assert gone in mirrored(database)


def test_a_list_that_is_suddenly_empty_is_not_pruned(catalogue: Database, lists: Source) -> None:
    mirror(catalogue, lists.url, FAST)
    lists.between.faults.extend([None, answering(200, b"[]")])
    made = mirror(catalogue, lists.url, Wish(rate=10_000, prune=True))
    assert (len(made.gone), made.pruned) == (2, 0)
    assert any("no concept any more" in each.detail for each in made.report.warnings.kept)
    assert len(listed(catalogue)) == 2


def test_a_server_that_tells_no_single_records_is_mirrored_without_relations(
    catalogue: Database, lists: Source
) -> None:
    def lists_only(between: GoBetween, handler: Any) -> None:
        handler.path = handler.path.partition("?")[0]
        without_v1(between, handler)

    lists.between.every = lists_only
    made = mirror(catalogue, lists.url, FAST)
    assert made.report.created == {"concept": 2, "task": 1, "disorder": 2}
    assert made.requests == 6
    assert any("single records" in each.detail for each in made.report.warnings.kept)
    assert mirror(catalogue, lists.url, FAST).requests == 5


def test_a_record_that_cannot_be_asked_for_is_taken_as_it_is_listed(catalogue: Database, lists: Source) -> None:
    lists.between.faults.extend([None] * 5 + [answering(404), answering(200, b"[]")])
    assert mirror(catalogue, lists.url, FAST).report.created == {"concept": 2, "task": 1, "disorder": 2}


def test_another_catalogue_begins_anew(lists: Source, new_url: NewUrl, tmp_path: Path) -> None:
    for _ in range(2):
        (tmp_path / "c.db").unlink(missing_ok=True)
        database = open_database(f"sqlite:///{tmp_path}/c.db")
        mirror(database, lists.url, FAST)
        assert len(listed(database)) == 2
        database.close()
    assert (tmp_path / "c.db-mirror").is_file()


def test_two_sources_are_kept_apart(catalogue: Database, lists: Source, tmp_path: Path, new_url: NewUrl) -> None:
    with Server(new_url("sqlite")) as server, GoBetween(server.port) as between:
        other = Source(server, between)
        between.every = without_v1
        other.create("concept", "elsewhere")
        mirror(catalogue, lists.url, FAST)
        mirror(catalogue, other.url, FAST)
        assert mirror(catalogue, lists.url, Wish(rate=10_000, prune=True)).gone == []
        assert len(listed(catalogue)) == 3


# By changes


def test_a_lexarium_is_followed_by_its_changes(url: str, database: Database, source: Source) -> None:
    kind = source.create("concept_class", "Memory")
    aliases = [("Abruf", "de", "exact"), ("remembering, again; anew", "en", "broad")]
    source.create(
        "concept",
        "recall",
        id_concept_class=kind,
        sources=["A book"],
        aliases=[{"text": text, "lang": lang, "scope": scope} for text, lang, scope in aliases],
        relations={"exactMatch": ["DOID:1"]},
    )
    made = mirror(database, source.url, FAST)
    assert made.report.created == {"concept": 3, "task": 1, "disorder": 2, "concept_class": 1}
    assert source.asked() == ["/api/v1", "/api/v1/changes?since=0&limit=500"]
    with Server(url) as copy:
        assert v1_of(copy) == v1_of(source.server)


def test_then_only_new_changes_are_asked_for_also_of_relations_and_of_what_is_retired_and_merged(
    url: str, database: Database, source: Source
) -> None:
    mirror(database, source.url, FAST)
    ids = {record["name"]: record["id"] for name in NAMES for record in listed(database, name)}
    other, twin = source.create("concept", "other"), source.create("concept", "twin")
    mirror(database, source.url, FAST)
    source.send("PUT", f"/concept/{other}/relations", {"relation": "PARTOF", "target": ids["memory"]})
    source.send("DELETE", f"/disorder/{ids['amnesia']}?replaced_by={ids['global amnesia']}")
    source.send("POST", f"/concept/{twin}/merge", {"into": other})
    source.asked()
    made = mirror(database, source.url, FAST)
    assert source.asked() == ["/api/v1", "/api/v1/changes?since=6&limit=500"]
    assert made.report.relations_added == 1
    with Server(url) as copy:
        assert v1_of(copy) == v1_of(source.server)
    assert not mirror(database, source.url, FAST).report.changed


@pytest.mark.full
def test_the_real_catalogue_is_mirrored_whole(real_catalogue: Path, catalogue: Database, new_url: NewUrl) -> None:
    store = open_database(new_url("sqlite"))
    import_files(store, sorted(real_catalogue.glob("*.full.json")))
    with Server(f"sqlite:///{store.backend.file}") as server:
        made = mirror(catalogue, f"http://127.0.0.1:{server.port}", FAST)
    assert made.requests < 20
    for name in NAMES:
        assert listed(catalogue, name) == listed(store, name)
    some = [record["id"] for record in listed(store)[::20]]
    assert [one(catalogue, each) for each in some] == [one(store, each) for each in some]
    store.close()


def test_a_source_with_another_past_is_read_anew(catalogue: Database, source: Source, new_url: NewUrl) -> None:
    mirror(catalogue, source.url, FAST)
    with Server(new_url("sqlite")) as restored:
        behind, source.between.port_behind = source.between.port_behind, restored.port
        assert restored.port != behind
        before = mirrored(catalogue)
        token = restored.token("curator")
        for number in range(9):
            restored.post_json("/api/v1/concept", {"name": f"restored {number}"}, token)
        made = mirror(catalogue, source.url, FAST)
        assert made.report.created == {"concept": 9}
        assert mirrored(catalogue).keys() > before.keys()


def test_pages_of_changes_are_kept_as_they_come(
    catalogue: Database, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrors, "_PAGE", 2)
    source.between.faults.extend([None, None, *[dropped] * 10])
    with pytest.raises(LexariumError, match="cannot be reached"):
        mirror(catalogue, source.url, FAST)
    assert mirrored(catalogue) == {}
    source.between.faults.clear()
    source.asked()
    made = mirror(catalogue, source.url, FAST)
    assert source.asked()[1] == "/api/v1/changes?since=1&limit=2"
    assert sum(made.report.created.values()) == 5


# Local edits


def test_local_edits_are_kept_and_what_both_changed_is_a_conflict(url: str, database: Database, source: Source) -> None:
    mirror(database, source.url, FAST)
    identifier = next(record["id"] for record in listed(database) if record["name"] == "memory")
    with Server(url) as server, GoBetween(server.port) as between:
        local = Source(server, between)
        local.send("PATCH", f"/concept/{identifier}", {"name": "Memory (ours)"})
    source.send("PATCH", f"/concept/{identifier}", {"definition_text": "Theirs."})
    assert mirror(database, source.url, FAST).report.conflicts.count == 0
    assert one(database, identifier)["name"] == "Memory (ours)"
    assert one(database, identifier)["definition_text"] == "Theirs."
    source.send("PATCH", f"/concept/{identifier}", {"name": "Memory (theirs)"})
    [conflict] = mirror(database, source.url, FAST).report.conflicts.kept
    assert (conflict.record, conflict.field, conflict.ours) == (identifier, "name", "Memory (ours)")
    source.send("PATCH", f"/concept/{identifier}", {"name": "Memory (theirs, again)"})
    mirror(database, source.url, Wish(rate=10_000, prefer="theirs"))
    assert one(database, identifier)["name"] == "Memory (theirs, again)"


# Interruptions


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_after_a_kill_it_goes_on_where_it_was(new_url: NewUrl, ending: signal.Signals, sample_source: Source) -> None:
    url, between = new_url("sqlite"), sample_source.between
    command = [sys.executable, "-m", "lexarium", "mirror", sample_source.url, "--rate", "100", "--database", url]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: sum("?id=" in target for target in between.targets) >= 30)
    process.send_signal(ending)
    _, said = process.communicate(timeout=DEADLINE)
    fetched = sum("?id=" in target for target in sample_source.asked())
    if ending == signal.SIGINT:
        assert process.returncode == 130
        assert "the same command goes on from there" in said
    database = open_database(url)
    assert mirrored(database) == {}
    made = json.loads(run("mirror", sample_source.url, "--rate", "1000", "--json", "--database", url).stdout)
    again = sum("?id=" in target for target in sample_source.asked())
    total = sum(made["created"][name] for name in NAMES)
    assert total <= fetched + again <= total + 1
    assert again < total - 25
    assert mirrored(database) == whole(sample_source.server)
    database.close()


@pytest.fixture(scope="module")
def sample_server(new_url: NewUrl) -> Iterator[Server]:
    with Server(new_url("sqlite"), "--sample") as server:
        yield server


@pytest.fixture
def sample_source(sample_server: Server) -> Iterator[Source]:
    with GoBetween(sample_server.port) as between:
        between.every = without_v1
        yield Source(sample_server, between)


def test_trouble_on_the_way_is_outlived(catalogue: Database, lists: Source) -> None:
    trouble = [dropped, halved, answering(503, Retry_After="0"), answering(429, Retry_After="0"), answering(500)]
    lists.between.faults.extend(each for fault in trouble for each in (fault, fault, without_v1))
    mirror(catalogue, lists.url, FAST)
    assert mirrored(catalogue) == whole(lists.server)


def test_it_keeps_to_its_rate(catalogue: Database, lists: Source) -> None:
    began = time.monotonic()
    made = mirror(catalogue, lists.url, Wish(rate=20))
    assert time.monotonic() - began >= (made.requests - 1) / 20


# Sources that lie


HTML = b"<!doctype html><p>Welcome</p>"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (answering(200, HTML), "this is not JSON that holds records"),
        (answering(404, HTML), "answers 404, which no v-alpha server should"),
        (answering(500, HTML), "answers 500"),
        (answering(503, HTML), "answers 503"),
        (answering(204), "answers 204"),
        (answering(304), "answers 304"),
        (answering(200, b""), "the file is empty"),
        (answering(200, b'[{"id": "trm_1", "name": "half'), "line 1, column"),
        (answering(200, b'{"id": "trm_1"} x'), "nothing was expected after"),
        (answering(200, b'"text"'), "this is not JSON that holds records"),
        (answering(200, b"[1, 2]"), "an object, one record, was expected"),
        (answering(200, b'[{"name": "no id"}]'), "a record without a usable id, on line 1"),
        (answering(200, b'[{"id": 7}]'), "a record without a usable id"),
        (answering(200, b'[{"id": "' + b"x" * 600 + b'"}]'), "a record without a usable id"),
        (answering(200, b'[{"id": "trm_1", "name": ' + b"[" * 100_000), "nested too deeply"),
        (answering(200, b"\xff\xfe[]"), "the text is not UTF-8"),
        (answering(302, Location="http://169.254.169.254/"), "which is not followed"),
        (answering(302, Location="file:///etc/passwd"), "is not an address"),
        (endless, "answers more than 1,000,000 bytes"),
        (dropped, "cannot be reached"),
    ],
)
def test_nonsense_gets_a_clear_sentence_and_changes_nothing(
    answer: Callable[..., None], told: str, new_url: NewUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrors, "_LARGEST_LIST", 1_000_000)
    database = open_database(new_url("sqlite"))
    with GoBetween() as between:
        between.faults.append(NO_V1)
        between.every = answer
        with pytest.raises(LexariumError) as refused:
            mirror(database, between.url, FAST)
    assert told in str(refused.value)
    assert mirrored(database) == {}
    database.close()


@pytest.mark.parametrize("told", [b"[" * 200_000, b'{"service": "lexarium", "revision": 1e999}'])
def test_a_service_that_tells_nonsense_of_itself_is_no_lexarium(told: bytes, new_url: NewUrl) -> None:
    database = open_database(new_url("sqlite"))
    with GoBetween() as between:
        between.faults.append(answering(200, told))
        between.every = answering(404, HTML)
        with pytest.raises(LexariumError, match="answers 404, which no v-alpha server should"):
            mirror(database, between.url, FAST)
    database.close()


@pytest.mark.parametrize(
    "record",
    [
        {"name": 7},
        {"name": "\u0000"},
        {"creation_time": "yesterday"},
        {"relationships": {"id": "trm_2"}},
        {"relationships": [{"id": "trm_2"}]},
        {"creation_time": 10**30},
    ],
)
def test_wrong_types_are_refused_with_everything_else(record: dict[str, Any], new_url: NewUrl) -> None:
    database = open_database(new_url("sqlite"))
    rows = json.dumps([{"id": "trm_1", "name": "one"} | record]).encode()
    with GoBetween() as between:
        empty = answering(200, b"[]")
        between.faults.extend([NO_V1, answering(200, rows), empty, empty, empty])
        between.every = answering(200, rows)
        with pytest.raises(ImportRefused, match="Nothing was imported"):
            mirror(database, between.url, FAST)
    assert mirrored(database) == {}
    database.close()


CHANGE = {"seq": 1, "id": "trm_1", "version": 1, "at": "2026-01-01T00:00:00"}
RECORD: dict[str, Any] = {
    "id": "trm_1", "collection": "concept", "state": "published", "replaced_by": None, "name": "one",
    "aliases": [], "sources": [], "relations": {},
}  # fmt: skip


@pytest.mark.parametrize(
    "page",
    [
        HTML,
        b'{"items": 7}',
        b'{"items": ' + b"[" * 200_000,
        b'{"items": [7]}',
        b'{"items": [{"seq": "1"}]}',
        json.dumps({"items": [CHANGE | {"record": 7}]}).encode(),
        json.dumps({"items": [CHANGE | {"record": RECORD | {"name": 7}}]}).encode(),
        json.dumps({"items": [CHANGE | {"record": RECORD | {"aliases": [7]}}]}).encode(),
        json.dumps({"items": [CHANGE | {"record": RECORD | {"state": "lost"}}]}).encode(),
        json.dumps({"items": [CHANGE | {"record": RECORD | {"relations": [7]}}]}).encode(),
        json.dumps({"items": [CHANGE | {"record": {"collection": "concept"}}]}).encode(),
    ],
)
def test_a_feed_of_nonsense_is_refused(page: bytes, new_url: NewUrl) -> None:
    database = open_database(new_url("sqlite"))
    with GoBetween() as between:
        between.faults.append(answering(200, b'{"service": "lexarium", "revision": 1}'))
        between.every = answering(200, page)
        with pytest.raises(LexariumError, match="Nothing was"):
            mirror(database, between.url, FAST)
    assert mirrored(database) == {}
    database.close()


def test_what_a_newer_lexarium_tells_beyond_us_is_left_out(new_url: NewUrl) -> None:
    database = open_database(new_url("sqlite"))
    items = [
        CHANGE | {"record": RECORD | {"relations": {"FUTURE": ["trm_2"]}, "new_field": 1}},
        CHANGE | {"seq": 2, "id": "abc_1", "record": RECORD | {"id": "abc_1", "collection": "future"}},
    ]
    with GoBetween() as between:
        between.faults.append(answering(200, b'{"service": "lexarium", "revision": 2}'))
        between.every = answering(200, json.dumps({"items": items}).encode())
        made = mirror(database, between.url, FAST)
    assert [record["name"] for record in listed(database)] == ["one"]
    told = " ".join(each.detail for each in made.report.warnings.kept)
    assert "FUTURE of trm_1 is not known here" in told
    assert "abc_1 is of a collection that is not known here" in told
    database.close()


# The command


def test_the_command_tells_what_it_did(url: str, source: Source) -> None:
    first = run("mirror", source.url, "--database", url)
    assert first.returncode == 0, first.stderr
    assert "2 requests" in first.stdout
    assert "Nothing changed." in run("mirror", source.url, "--dry-run", "--database", url).stdout
    source.create("concept", "new")
    told = json.loads(run("mirror", source.url, "--json", "--database", url).stdout)
    assert (told["created"], told["requests"], told["gone"], told["changed"]) == ({"concept": 1}, 2, [], True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["file:///etc/passwd"], "is not an address"),
        (["http://user:secret@example.org"], "is not an address"),
        (["http://127.0.0.1:1", "--theirs", "--ours"], "not both"),
    ],
)
def test_a_mistake_gets_a_sentence(arguments: list[str], told: str, tmp_path: Path) -> None:
    result = run("mirror", *arguments, "--database", f"sqlite:///{tmp_path}/c.db")
    assert result.returncode == 1
    assert told in result.stderr


def test_two_at_once_are_refused(catalogue: Database, lists: Source) -> None:
    refused: list[LexariumError] = []

    def meanwhile(between: GoBetween, handler: Any) -> None:
        with pytest.raises(LexariumError, match="another mirror may be under way") as error:
            mirror(catalogue, lists.url, FAST)
        refused.append(error.value)
        without_v1(between, handler)

    lists.between.faults.extend([without_v1, meanwhile])
    assert mirror(catalogue, lists.url, FAST).report.changed
    assert refused


def test_a_damaged_file_is_told_by_name(new_url: NewUrl, lists: Source) -> None:
    database = open_database(new_url("sqlite"))
    assert database.backend.file is not None
    Path(f"{database.backend.file}-mirror").write_bytes(b"not a database" * 1_000)
    with pytest.raises(LexariumError, match="Delete it"):
        mirror(database, lists.url, FAST)
    database.close()
