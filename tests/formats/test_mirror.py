"""Mirroring of another server by lists and by feed: interruptions, local edits, faulty sources."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lexarium.client import transport
from lexarium.domain.errors import ImportRejected, LexariumError
from lexarium.services.transfer import mirror_source
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.services.transfer.mirror import MirrorOptions, mirror
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from tests.support.databases import DatabaseUrlFactory
from tests.support.fault_proxy import (
    FaultProxy,
    drop_connection,
    forward_request,
    reply_with,
    send_endless_body,
    truncate_body,
)
from tests.support.fork_server import ForkedProcess
from tests.support.imports import get_valpha_record, list_records
from tests.support.polling import DEADLINE_SECONDS, wait_until
from tests.support.server import Server, build_environment, run_cli
from tests.support.vocabularies import create_vocabulary

FAST_OPTIONS = MirrorOptions(rate=10_000)
COLLECTION_NAMES = ("concept", "task", "disorder")
REPLY_NOT_FOUND = reply_with(404, b"<html>not here</html>")


@pytest.fixture(autouse=True)
def shorten_pauses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(transport, "_INITIAL_BACKOFF", 0.001)
    monkeypatch.chdir(tmp_path)


def hide_v1(proxy: FaultProxy, handler: Any) -> None:
    """Respond like a v-alpha server that is not Lexarium."""
    (REPLY_NOT_FOUND if handler.path.startswith("/api/v1") else forward_request)(proxy, handler)


class Source:
    """Small catalogue on a server, for writing to."""

    def __init__(self, server: Server, proxy: FaultProxy) -> None:
        self.server = server
        self.proxy = proxy
        self.url = proxy.url
        self._token = server.create_token("curator")

    def send(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json", "If-Match": "*"}
        response = self.server.request(method, f"/api/v1{path}", headers, None if body is None else json.dumps(body))
        assert response.status < 300, response.body
        return response.json

    def create(self, collection: str, name: str, **fields: Any) -> str:
        record_id: str = self.send("POST", f"/{collection}", {"name": name, **fields})["id"]
        return record_id

    def take_targets(self) -> list[str]:
        """Return the targets requested since the last call."""
        targets = self.proxy.targets
        self.proxy.requests.clear()
        return targets


@pytest.fixture
def catalogue(new_url: DatabaseUrlFactory) -> Iterator[Database]:
    """Empty catalogue on SQLite: the engine makes no difference here."""
    new_database = open_database(new_url("sqlite"))
    yield new_database
    new_database.close()


@pytest.fixture
def source(new_url: DatabaseUrlFactory) -> Iterator[Source]:
    with Server(new_url("sqlite")) as server, FaultProxy(server.port) as proxy:
        new_source = Source(server, proxy)
        memory = new_source.create("concept", "memory", definition_text='Line\nbreak, "quotes", é')
        working = new_source.create("concept", "working memory", relations={"KINDOF": [memory]})
        new_source.create("task", "n-back", relations={"ASSERTS": [working]})
        parent = new_source.create("disorder", "amnesia")
        new_source.create("disorder", "global amnesia", relations={"ISA": [parent]})
        yield new_source


@pytest.fixture
def valpha_source(source: Source) -> Source:
    """The same source as a plain v-alpha server."""
    source.proxy.default_fault = hide_v1
    return source


def read_all_valpha(server: Server) -> dict[str, Any]:
    """Return everything v-alpha shows of a catalogue, with relations."""
    return {
        record["id"]: server.get(f"/api/v-alpha/{name}?id={record['id']}").json
        for name in COLLECTION_NAMES
        for record in server.get(f"/api/v-alpha/{name}").json
    }


def read_mirror(database: Database) -> dict[str, Any]:
    return {
        record["id"]: get_valpha_record(database, record["id"])
        for name in COLLECTION_NAMES
        for record in list_records(database, name)
    }


def read_all_v1(server: Server) -> dict[str, Any]:
    """Return everything v1 shows of the records in any state, except import times."""
    records = {}
    for name in (*COLLECTION_NAMES, "contrast", "concept_class"):
        for state in ("published", "retired", "merged"):
            # IRIs begin with the URL of the server.
            for record in server.get(f"/api/v1/{name}?state={state}&limit=1000", Host="localhost").json["items"]:
                records[record["id"]] = {
                    key: value
                    for key, value in record.items()
                    if key not in ("version", "updated", "updated_by", "last_updated")
                }
    return records


# Lists


def test_a_mirror_has_the_content_of_its_source(database: Database, valpha_source: Source) -> None:
    result = mirror(database, valpha_source.url + "/", FAST_OPTIONS)
    assert result.report.created == {"concept": 2, "task": 1, "disorder": 2}
    assert read_mirror(database) == read_all_valpha(valpha_source.server)
    targets = valpha_source.take_targets()
    assert targets[:5] == ["/api/v1", *(f"/api/v-alpha/{name}" for name in (*COLLECTION_NAMES, "search"))]
    assert len(targets) == result.requests == 10


def test_the_next_run_only_revalidates_the_lists(catalogue: Database, valpha_source: Source) -> None:
    mirror(catalogue, valpha_source.url, FAST_OPTIONS)
    valpha_source.proxy.requests.clear()
    result = mirror(catalogue, valpha_source.url + "/api/v-alpha/", FAST_OPTIONS)
    assert not result.report.has_changes
    assert [request.status for request in valpha_source.proxy.requests] == [404, 304, 304, 304, 304]


def test_the_next_run_fetches_only_changed_records(catalogue: Database, valpha_source: Source) -> None:
    mirror(catalogue, valpha_source.url, FAST_OPTIONS)
    new = valpha_source.create("concept", "new")
    changed = next(iter(list_records(catalogue, "task")))["id"]
    valpha_source.send("PATCH", f"/task/{changed}", {"definition_text": "New."})
    valpha_source.take_targets()
    result = mirror(catalogue, valpha_source.url, FAST_OPTIONS)
    assert [target for target in valpha_source.take_targets() if "?" in target] == [
        f"/api/v-alpha/concept?id={new}",
        f"/api/v-alpha/task?id={changed}",
    ]
    assert (result.report.created, result.report.updated) == ({"concept": 1}, {"task": 1})
    assert read_mirror(catalogue) == read_all_valpha(valpha_source.server)


def test_refetching_finds_relation_changes_and_revalidates_unchanged_records(
    catalogue: Database, valpha_source: Source
) -> None:
    mirror(catalogue, valpha_source.url, FAST_OPTIONS)
    child = valpha_source.create("concept", "child")
    mirror(catalogue, valpha_source.url, FAST_OPTIONS)
    parent = next(record["id"] for record in list_records(catalogue) if record["name"] == "memory")
    valpha_source.send("PUT", f"/concept/{child}/relations", {"relation": "PARTOF", "target": parent})
    full_options = MirrorOptions(rate=10_000, refetch_all=True)
    result = mirror(catalogue, valpha_source.url, full_options)
    assert read_mirror(catalogue) == read_all_valpha(valpha_source.server)
    assert result.report.relations_added == 1
    valpha_source.proxy.requests.clear()
    assert not mirror(catalogue, valpha_source.url, full_options).report.has_changes
    assert [request.status for request in valpha_source.proxy.requests] == [404, *[304] * 10]


def test_without_etags_all_lists_but_only_changed_records_are_fetched(
    catalogue: Database, valpha_source: Source
) -> None:
    def drop_etag(proxy: FaultProxy, handler: Any) -> None:
        del handler.headers["If-None-Match"]
        hide_v1(proxy, handler)

    valpha_source.proxy.default_fault = drop_etag
    mirror(catalogue, valpha_source.url, FAST_OPTIONS)
    valpha_source.take_targets()
    assert not mirror(catalogue, valpha_source.url, FAST_OPTIONS).report.has_changes
    assert len(valpha_source.take_targets()) == 5


def test_a_dry_run_changes_nothing_and_caches_what_it_fetched(catalogue: Database, valpha_source: Source) -> None:
    result = mirror(catalogue, valpha_source.url, MirrorOptions(rate=10_000, dry_run=True))
    assert result.report.created == {"concept": 2, "task": 1, "disorder": 2}
    assert read_mirror(catalogue) == {}
    valpha_source.take_targets()
    mirror(catalogue, valpha_source.url, FAST_OPTIONS)
    assert len(valpha_source.take_targets()) == 5
    assert read_mirror(catalogue) == read_all_valpha(valpha_source.server)


def test_missing_records_are_reported_and_retired_only_on_request(database: Database, valpha_source: Source) -> None:
    mirror(database, valpha_source.url, FAST_OPTIONS)
    missing_id = next(record["id"] for record in list_records(database) if record["name"] == "working memory")
    valpha_source.send("DELETE", f"/concept/{missing_id}")
    for _ in range(2):
        result = mirror(database, valpha_source.url, FAST_OPTIONS)
        assert (result.missing, result.pruned) == ([missing_id], 0)
        assert missing_id in read_mirror(database)
    result = mirror(database, valpha_source.url, MirrorOptions(rate=10_000, prune=True))
    assert (result.missing, result.pruned) == ([missing_id], 1)
    assert missing_id not in read_mirror(database)
    assert mirror(database, valpha_source.url, FAST_OPTIONS).missing == []
    valpha_source.send("POST", f"/concept/{missing_id}/revert", {"version": 1})
    mirror(database, valpha_source.url, FAST_OPTIONS)
    assert missing_id in read_mirror(database)


def test_a_suddenly_empty_list_is_not_pruned(catalogue: Database, valpha_source: Source) -> None:
    mirror(catalogue, valpha_source.url, FAST_OPTIONS)
    valpha_source.proxy.faults.extend([None, reply_with(200, b"[]")])
    result = mirror(catalogue, valpha_source.url, MirrorOptions(rate=10_000, prune=True))
    assert (len(result.missing), result.pruned) == (2, 0)
    assert any("no longer has any concept" in warning.detail for warning in result.report.warnings.items)
    assert len(list_records(catalogue)) == 2


def test_a_source_without_single_records_is_mirrored_without_relations(
    catalogue: Database, valpha_source: Source
) -> None:
    def serve_lists_only(proxy: FaultProxy, handler: Any) -> None:
        handler.path = handler.path.partition("?")[0]
        hide_v1(proxy, handler)

    valpha_source.proxy.default_fault = serve_lists_only
    result = mirror(catalogue, valpha_source.url, FAST_OPTIONS)
    assert result.report.created == {"concept": 2, "task": 1, "disorder": 2}
    assert result.requests == 6
    assert any("single records" in warning.detail for warning in result.report.warnings.items)
    assert mirror(catalogue, valpha_source.url, FAST_OPTIONS).requests == 5


def test_a_record_that_cannot_be_fetched_is_imported_as_listed(catalogue: Database, valpha_source: Source) -> None:
    valpha_source.proxy.faults.extend([None] * 5 + [reply_with(404), reply_with(200, b"[]")])
    assert mirror(catalogue, valpha_source.url, FAST_OPTIONS).report.created == {"concept": 2, "task": 1, "disorder": 2}


def test_a_new_catalogue_is_mirrored_from_the_start(
    valpha_source: Source, new_url: DatabaseUrlFactory, tmp_path: Path
) -> None:
    for _ in range(2):
        (tmp_path / "c.db").unlink(missing_ok=True)
        database = open_database(f"sqlite:///{tmp_path}/c.db")
        mirror(database, valpha_source.url, FAST_OPTIONS)
        assert len(list_records(database)) == 2
        database.close()
    assert (tmp_path / "c.db-mirror").is_file()


def test_two_sources_are_independent(
    catalogue: Database, valpha_source: Source, tmp_path: Path, new_url: DatabaseUrlFactory
) -> None:
    with Server(new_url("sqlite")) as server, FaultProxy(server.port) as proxy:
        other = Source(server, proxy)
        proxy.default_fault = hide_v1
        other.create("concept", "elsewhere")
        mirror(catalogue, valpha_source.url, FAST_OPTIONS)
        mirror(catalogue, other.url, FAST_OPTIONS)
        assert mirror(catalogue, valpha_source.url, MirrorOptions(rate=10_000, prune=True)).missing == []
        assert len(list_records(catalogue)) == 3


# Change feed


def test_a_lexarium_source_is_mirrored_by_its_change_feed(url: str, database: Database, source: Source) -> None:
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
    result = mirror(database, source.url, FAST_OPTIONS)
    assert result.report.created == {"concept": 3, "task": 1, "disorder": 2, "concept_class": 1}
    assert source.take_targets() == ["/api/v1", "/api/v1/changes?since=0&limit=500"]
    with Server(url) as copy:
        assert read_all_v1(copy) == read_all_v1(source.server)


@pytest.mark.parametrize("has_feed", [True, False])
def test_only_the_main_vocabulary_is_mirrored(catalogue: Database, source: Source, has_feed: bool) -> None:
    values = ("--title", "Minds", "--schema", "cognitive-atlas")
    run_cli("vocabulary", "add", "minds", *values, "--database", source.server.url)
    source.send("POST", "/vocabularies/minds/collections/concept", {"name": "elsewhere"})
    create_vocabulary(catalogue, "minds", schema="cognitive-atlas")
    source.proxy.default_fault = forward_request if has_feed else hide_v1
    result = mirror(catalogue, source.url, FAST_OPTIONS)
    assert result.report.created == {"concept": 2, "task": 1, "disorder": 2}


def test_the_next_run_fetches_only_new_changes_including_relations_retirements_and_merges(
    url: str, database: Database, source: Source
) -> None:
    mirror(database, source.url, FAST_OPTIONS)
    ids = {record["name"]: record["id"] for name in COLLECTION_NAMES for record in list_records(database, name)}
    other, twin = source.create("concept", "other"), source.create("concept", "twin")
    mirror(database, source.url, FAST_OPTIONS)
    source.send("PUT", f"/concept/{other}/relations", {"relation": "PARTOF", "target": ids["memory"]})
    source.send("DELETE", f"/disorder/{ids['amnesia']}?replaced_by={ids['global amnesia']}")
    source.send("POST", f"/concept/{twin}/merge", {"into": other})
    source.take_targets()
    result = mirror(database, source.url, FAST_OPTIONS)
    assert source.take_targets() == ["/api/v1", "/api/v1/changes?since=6&limit=500"]
    assert result.report.relations_added == 1
    with Server(url) as copy:
        assert read_all_v1(copy) == read_all_v1(source.server)
    assert not mirror(database, source.url, FAST_OPTIONS).report.has_changes


@pytest.mark.full
def test_the_real_catalogue_is_mirrored_completely(
    real_catalogue: Path, catalogue: Database, new_url: DatabaseUrlFactory
) -> None:
    store = open_database(new_url("sqlite"))
    import_files(store, sorted(real_catalogue.glob("*.full.json")))
    with Server(f"sqlite:///{store.backend.path}") as server:
        result = mirror(catalogue, f"http://127.0.0.1:{server.port}", FAST_OPTIONS)
    assert result.requests < 20
    for name in COLLECTION_NAMES:
        assert list_records(catalogue, name) == list_records(store, name)
    sample_ids = [record["id"] for record in list_records(store)[::20]]
    assert [get_valpha_record(catalogue, item) for item in sample_ids] == [
        get_valpha_record(store, item) for item in sample_ids
    ]
    store.close()


def test_a_source_with_another_history_is_mirrored_from_the_start(
    catalogue: Database, source: Source, new_url: DatabaseUrlFactory
) -> None:
    mirror(catalogue, source.url, FAST_OPTIONS)
    with Server(new_url("sqlite")) as restored:
        upstream_port, source.proxy.upstream_port = source.proxy.upstream_port, restored.port
        assert restored.port != upstream_port
        before = read_mirror(catalogue)
        token = restored.create_token("curator")
        for number in range(9):
            restored.post_json("/api/v1/concept", {"name": f"restored {number}"}, token)
        result = mirror(catalogue, source.url, FAST_OPTIONS)
        assert result.report.created == {"concept": 9}
        assert read_mirror(catalogue).keys() > before.keys()


def test_pages_of_changes_are_stored_as_they_arrive(
    catalogue: Database, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_source, "_PAGE_SIZE", 2)
    source.proxy.faults.extend([None, None, *[drop_connection] * 10])
    with pytest.raises(LexariumError, match="cannot be reached"):
        mirror(catalogue, source.url, FAST_OPTIONS)
    assert read_mirror(catalogue) == {}
    source.proxy.faults.clear()
    source.take_targets()
    result = mirror(catalogue, source.url, FAST_OPTIONS)
    assert source.take_targets()[1] == "/api/v1/changes?since=1&limit=2"
    assert sum(result.report.created.values()) == 5


# Local edits


def test_local_edits_are_kept_and_fields_changed_on_both_sides_are_conflicts(
    url: str, database: Database, source: Source
) -> None:
    mirror(database, source.url, FAST_OPTIONS)
    record_id = next(record["id"] for record in list_records(database) if record["name"] == "memory")
    with Server(url) as server, FaultProxy(server.port) as proxy:
        local = Source(server, proxy)
        local.send("PATCH", f"/concept/{record_id}", {"name": "Memory (ours)"})
    source.send("PATCH", f"/concept/{record_id}", {"definition_text": "Theirs."})
    assert mirror(database, source.url, FAST_OPTIONS).report.conflicts.count == 0
    assert get_valpha_record(database, record_id)["name"] == "Memory (ours)"
    assert get_valpha_record(database, record_id)["definition_text"] == "Theirs."
    source.send("PATCH", f"/concept/{record_id}", {"name": "Memory (theirs)"})
    [conflict] = mirror(database, source.url, FAST_OPTIONS).report.conflicts.items
    assert (conflict.record, conflict.field, conflict.ours) == (record_id, "name", "Memory (ours)")
    source.send("PATCH", f"/concept/{record_id}", {"name": "Memory (theirs, again)"})
    mirror(database, source.url, MirrorOptions(rate=10_000, prefer="theirs"))
    assert get_valpha_record(database, record_id)["name"] == "Memory (theirs, again)"


# Interruptions


@pytest.mark.parametrize("ending", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.full)])
def test_a_killed_mirror_resumes_where_it_stopped(
    new_url: DatabaseUrlFactory, ending: signal.Signals, sample_source: Source
) -> None:
    url, proxy = new_url("sqlite"), sample_source.proxy
    process = ForkedProcess(["mirror", sample_source.url, "--rate", "100", "--database", url], build_environment())
    wait_until(lambda: sum("?id=" in target for target in proxy.targets) >= 30)
    process.send_signal(ending)
    _, output = process.communicate(DEADLINE_SECONDS)
    fetched = sum("?id=" in target for target in sample_source.take_targets())
    if ending == signal.SIGINT:
        assert process.returncode == 130
        assert "Run the same command to resume" in output
    database = open_database(url)
    assert read_mirror(database) == {}
    result = json.loads(run_cli("mirror", sample_source.url, "--rate", "1000", "--json", "--database", url).stdout)
    repeated = sum("?id=" in target for target in sample_source.take_targets())
    total = sum(result["created"][name] for name in COLLECTION_NAMES)
    assert total <= fetched + repeated <= total + 1
    assert repeated < total - 25
    assert read_mirror(database) == read_all_valpha(sample_source.server)
    database.close()


@pytest.fixture
def sample_source(sqlite_sample: Server) -> Iterator[Source]:
    with FaultProxy(sqlite_sample.port) as proxy:
        proxy.default_fault = hide_v1
        yield Source(sqlite_sample, proxy)


def test_transient_errors_of_the_source_are_retried(catalogue: Database, valpha_source: Source) -> None:
    fault_list = [
        drop_connection,
        truncate_body,
        reply_with(503, Retry_After="0"),
        reply_with(429, Retry_After="0"),
        reply_with(500),
    ]
    valpha_source.proxy.faults.extend(step for fault in fault_list for step in (fault, fault, hide_v1))
    mirror(catalogue, valpha_source.url, FAST_OPTIONS)
    assert read_mirror(catalogue) == read_all_valpha(valpha_source.server)


def test_the_rate_limit_is_kept(catalogue: Database, valpha_source: Source) -> None:
    started = time.monotonic()
    result = mirror(catalogue, valpha_source.url, MirrorOptions(rate=20))
    assert time.monotonic() - started >= (result.requests - 1) / 20


# Faulty sources


HTML = b"<!doctype html><p>Welcome</p>"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (reply_with(200, HTML), "this is not JSON that holds records"),
        (reply_with(404, HTML), "responds with 404, which is not valid for a v-alpha server"),
        (reply_with(500, HTML), "responds with 500"),
        (reply_with(503, HTML), "responds with 503"),
        (reply_with(204), "responds with 204"),
        (reply_with(304), "responds with 304"),
        (reply_with(200, b""), "the file is empty"),
        (reply_with(200, b'[{"id": "trm_1", "name": "half'), "line 1, column"),
        (reply_with(200, b'{"id": "trm_1"} x'), "nothing was expected after"),
        (reply_with(200, b'"text"'), "this is not JSON that holds records"),
        (reply_with(200, b"[1, 2]"), "an object, one record, was expected"),
        (reply_with(200, b'[{"name": "no id"}]'), "a record without a usable id, on line 1"),
        (reply_with(200, b'[{"id": 7}]'), "a record without a usable id"),
        (reply_with(200, b'[{"id": "' + b"x" * 600 + b'"}]'), "a record without a usable id"),
        (reply_with(200, b'[{"id": "trm_1", "name": ' + b"[" * 100_000), "nested too deeply"),
        (reply_with(200, b"\xff\xfe[]"), "the text is not UTF-8"),
        (reply_with(302, Location="http://169.254.169.254/"), "which is not followed"),
        (reply_with(302, Location="file:///etc/passwd"), "is not a URL"),
        (send_endless_body, "sent more than 1,000,000 bytes"),
        (drop_connection, "cannot be reached"),
    ],
)
def test_invalid_responses_are_reported_clearly_and_change_nothing(
    reply: Callable[..., None], message: str, new_url: DatabaseUrlFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_source, "_MAX_LIST_BYTES", 1_000_000)
    database = open_database(new_url("sqlite"))
    with FaultProxy() as proxy:
        proxy.faults.append(REPLY_NOT_FOUND)
        proxy.default_fault = reply
        with pytest.raises(LexariumError) as error:
            mirror(database, proxy.url, FAST_OPTIONS)
    assert message in str(error.value)
    assert read_mirror(database) == {}
    database.close()


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"service": "lexarium", "revision": 1e999}'])
def test_an_invalid_service_document_is_treated_as_v_alpha(body: bytes, new_url: DatabaseUrlFactory) -> None:
    database = open_database(new_url("sqlite"))
    with FaultProxy() as proxy:
        proxy.faults.append(reply_with(200, body))
        proxy.default_fault = reply_with(404, HTML)
        with pytest.raises(LexariumError, match="responds with 404, which is not valid for a v-alpha server"):
            mirror(database, proxy.url, FAST_OPTIONS)
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
def test_wrong_types_are_reported_with_all_other_problems(record: dict[str, Any], new_url: DatabaseUrlFactory) -> None:
    database = open_database(new_url("sqlite"))
    rows = json.dumps([{"id": "trm_1", "name": "one"} | record]).encode()
    with FaultProxy() as proxy:
        empty = reply_with(200, b"[]")
        proxy.faults.extend([REPLY_NOT_FOUND, reply_with(200, rows), empty, empty, empty])
        proxy.default_fault = reply_with(200, rows)
        with pytest.raises(ImportRejected, match="Nothing was imported"):
            mirror(database, proxy.url, FAST_OPTIONS)
    assert read_mirror(database) == {}
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
def test_an_invalid_change_feed_is_rejected(page: bytes, new_url: DatabaseUrlFactory) -> None:
    database = open_database(new_url("sqlite"))
    with FaultProxy() as proxy:
        proxy.faults.append(reply_with(200, b'{"service": "lexarium", "revision": 1}'))
        proxy.default_fault = reply_with(200, page)
        with pytest.raises(LexariumError, match="Nothing was"):
            mirror(database, proxy.url, FAST_OPTIONS)
    assert read_mirror(database) == {}
    database.close()


def test_unknown_content_of_a_newer_lexarium_is_skipped(new_url: DatabaseUrlFactory) -> None:
    database = open_database(new_url("sqlite"))
    items = [
        CHANGE | {"record": RECORD | {"relations": {"FUTURE": ["trm_2"]}, "new_field": 1}},
        CHANGE | {"seq": 2, "id": "abc_1", "record": RECORD | {"id": "abc_1", "collection": "future"}},
    ]
    with FaultProxy() as proxy:
        proxy.faults.append(reply_with(200, b'{"service": "lexarium", "revision": 2}'))
        proxy.default_fault = reply_with(200, json.dumps({"items": items}).encode())
        result = mirror(database, proxy.url, FAST_OPTIONS)
    assert [record["name"] for record in list_records(database)] == ["one"]
    text = " ".join(warning.detail for warning in result.report.warnings.items)
    assert "FUTURE of trm_1 is unknown" in text
    assert "abc_1 is of an unknown collection" in text
    database.close()


# Command


def test_the_command_reports_its_result(url: str, source: Source) -> None:
    first = run_cli("mirror", source.url, "--database", url)
    assert first.returncode == 0, first.stderr
    assert "2 requests" in first.stdout
    assert "Nothing changed." in run_cli("mirror", source.url, "--dry-run", "--database", url).stdout
    source.create("concept", "new")
    data = json.loads(run_cli("mirror", source.url, "--json", "--database", url).stdout)
    assert (data["created"], data["requests"], data["gone"], data["changed"]) == ({"concept": 1}, 2, [], True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["file:///etc/passwd"], "is not a URL"),
        (["http://user:secret@example.org"], "is not a URL"),
        (["http://127.0.0.1:1", "--theirs", "--ours"], "not both"),
    ],
)
def test_an_error_has_a_clear_message(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = run_cli("mirror", *arguments, "--database", f"sqlite:///{tmp_path}/c.db")
    assert result.returncode == 1
    assert message in result.stderr


def test_concurrent_mirrors_are_rejected(catalogue: Database, valpha_source: Source) -> None:
    errors: list[LexariumError] = []

    def mirror_meanwhile(proxy: FaultProxy, handler: Any) -> None:
        with pytest.raises(LexariumError, match="another mirror may be running") as error:
            mirror(catalogue, valpha_source.url, FAST_OPTIONS)
        errors.append(error.value)
        hide_v1(proxy, handler)

    valpha_source.proxy.faults.extend([hide_v1, mirror_meanwhile])
    assert mirror(catalogue, valpha_source.url, FAST_OPTIONS).report.has_changes
    assert errors


def test_a_damaged_mirror_file_is_reported(new_url: DatabaseUrlFactory, valpha_source: Source) -> None:
    database = open_database(new_url("sqlite"))
    assert database.backend.path is not None
    Path(f"{database.backend.path}-mirror").write_bytes(b"not a database" * 1_000)
    with pytest.raises(LexariumError, match="Delete it"):
        mirror(database, valpha_source.url, FAST_OPTIONS)
    database.close()
