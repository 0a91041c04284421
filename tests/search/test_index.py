"""Index updates, rebuilds and damage."""

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import update

from lexarium.domain.errors import IndexNotReady
from lexarium.search.index import (
    IndexCorrupt,
    IndexDirectory,
    IndexLocked,
    IndexPosition,
    SearchIndex,
    SearchIndexWriter,
)
from lexarium.services.search import indexer
from lexarium.services.search.indexer import Indexer
from lexarium.services.search.record_search import RecordSearch, SearchQuery
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.schema import catalogue_table
from tests.support.imports import build_log_entry, save_entries
from tests.support.polling import wait_until
from tests.support.server import Server, SpawnedServer, run_cli
from tests.support.write_load import RetryingClient


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def fresh_indexer(database: Database, folder: Path) -> Iterator[Indexer]:
    new_indexer = Indexer(database, str(folder))
    yield new_indexer
    new_indexer.stop()


def write_records(database: Database, *names: str, version: int = 1, suffix: str = "") -> None:
    with database.write() as transaction:
        save_entries(transaction, *(build_log_entry(name, version=version, suffix=suffix) for name in names))


def search_names(database: Database, fresh_indexer: Indexer, text: str) -> list[str]:
    return [hit.name for hit in RecordSearch(database, fresh_indexer).search(SearchQuery(text)).hits]


def test_existing_and_new_records_are_indexed_automatically(database: Database, fresh_indexer: Indexer) -> None:
    write_records(database, "alpha", "beta")
    fresh_indexer.start()
    assert search_names(database, fresh_indexer, "alpha") == ["alpha"]
    write_records(database, "gamma")
    assert search_names(database, fresh_indexer, "gamma") == ["gamma"]
    write_records(database, "delta", suffix="alpha", version=2)
    assert search_names(database, fresh_indexer, "delta") == ["delta"]
    assert search_names(database, fresh_indexer, "alpha") == []


def test_an_empty_catalogue_has_an_index(database: Database, fresh_indexer: Indexer) -> None:
    fresh_indexer.start()
    assert search_names(database, fresh_indexer, "alpha") == []


def test_a_search_does_not_wait_for_new_changes_during_overload(database: Database, folder: Path) -> None:
    was_urgent = False
    indexer = Indexer(database, str(folder), is_overloaded=lambda: was_urgent)
    indexer.catch_up()
    write_records(database, "alpha")
    was_urgent = True
    assert search_names(database, indexer, "alpha") == []
    assert not indexer._wake_event.is_set()  # as a waiting search would see it
    was_urgent = False
    indexer.start()
    assert search_names(database, indexer, "alpha") == ["alpha"]
    indexer.stop()


def test_applying_changes_twice_has_no_effect(database: Database, fresh_indexer: Indexer, folder: Path) -> None:
    write_records(database, "alpha", "alpha beta")
    write_records(database, "alpha gamma", suffix="alpha", version=2)
    fresh_indexer.catch_up()
    fresh_indexer.stop()
    path = IndexDirectory(folder).current_path()
    assert path is not None
    index = SearchIndex(path)
    writing = index.open_writer()
    writing.commit(IndexPosition(index.snapshot.position.epoch, 0))
    writing.close()
    second_indexer = Indexer(database, str(folder))
    second_indexer.catch_up()
    assert RecordSearch(database, second_indexer).search(SearchQuery("alpha")).total == 2
    second_indexer.stop()


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder)


def remove_index(folder: Path) -> None:
    path = IndexDirectory(folder).current_path()
    assert path is not None
    shutil.rmtree(path)


def corrupt_pointer(folder: Path) -> None:
    (folder / "current").write_bytes(b"\xff\x00nonsense")


def corrupt_meta(folder: Path) -> None:
    for path in folder.glob("*/meta.json"):
        path.write_text("{")


def truncate_segments(folder: Path) -> None:
    for path in folder.glob("*/*.term"):
        truncated = path.read_bytes()[:10]
        path.unlink()  # truncating it would kill processes that have it mapped, such as this one
        path.write_bytes(truncated)


def change_format(folder: Path) -> None:
    pointer = folder / "current"
    pointer.write_text("0 " + pointer.read_text().partition(" ")[2])


DAMAGES = [remove_folder, remove_index, corrupt_pointer, corrupt_meta, truncate_segments, change_format]


def corrupt_columns(folder: Path) -> None:
    for path in folder.glob("*/*.fast"):
        corrupted = bytes(path.stat().st_size * 2 // 3) + path.read_bytes()[path.stat().st_size * 2 // 3 :]
        path.unlink()
        path.write_bytes(corrupted)


def test_an_index_that_fails_during_a_search_is_rebuilt(database: Database, folder: Path) -> None:
    write_records(database, *(f"alpha {number}" for number in range(50)))
    before = Indexer(database, str(folder))
    before.catch_up()
    before.stop()
    old_path = IndexDirectory(folder).current_path()
    corrupt_columns(folder)
    second_indexer = Indexer(database, str(folder))
    second_indexer.start()
    with pytest.raises(IndexNotReady):
        search_names(database, second_indexer, "alpha")
    wait_until(lambda: IndexDirectory(folder).current_path() != old_path)
    write_records(database, "beta")
    assert search_names(database, second_indexer, "beta") == ["beta"]
    assert len(search_names(database, second_indexer, "alpha")) == 10
    second_indexer.stop()


def test_only_indexes_are_removed_from_the_folder(database: Database, fresh_indexer: Indexer, folder: Path) -> None:
    (folder / "photographs").mkdir(parents=True)
    (folder / "photographs" / "one.jpg").write_text("precious")
    fresh_indexer.catch_up()
    fresh_indexer.rebuild()
    assert (folder / "photographs" / "one.jpg").read_text() == "precious"
    assert len(list(folder.glob("index_*"))) == 1


def test_indexing_continues_after_a_failed_write(
    database: Database, fresh_indexer: Indexer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_records(database, "alpha")
    fresh_indexer.catch_up()
    before = IndexDirectory(folder).current_path()
    failures: list[IndexPosition] = []
    commit = SearchIndexWriter.commit

    def fail_once(writing: SearchIndexWriter, position: IndexPosition) -> None:
        if not failures:
            failures.append(position)
            raise IndexCorrupt("No space left on device")
        commit(writing, position)

    monkeypatch.setattr(SearchIndexWriter, "commit", fail_once)
    write_records(database, "beta")
    fresh_indexer.start()
    assert search_names(database, fresh_indexer, "beta") == ["beta"]
    assert failures
    assert before == IndexDirectory(folder).current_path()


def test_an_index_is_built_by_one_process_at_a_time(folder: Path) -> None:
    first_folder, other = IndexDirectory(folder), IndexDirectory(folder)
    with first_folder.build_next(None) as writing:
        with pytest.raises(IndexLocked), other.build_next(None):
            pass
        writing.commit(IndexPosition("epoch", 0))
    with pytest.raises(IndexLocked), other.build_next(None):
        pass  # it has been built meanwhile


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_missing_outdated_or_broken_index_is_rebuilt(
    database: Database, folder: Path, damage: Callable[[Path], None]
) -> None:
    write_records(database, "alpha")
    before = Indexer(database, str(folder))
    before.catch_up()
    before.stop()
    damage(folder)
    second_indexer = Indexer(database, str(folder))
    second_indexer.start()
    assert search_names(database, second_indexer, "alpha") == ["alpha"]
    write_records(database, "beta")
    assert search_names(database, second_indexer, "beta") == ["beta"]
    second_indexer.stop()


def test_the_index_of_another_catalogue_is_not_used(database: Database, folder: Path) -> None:
    write_records(database, "alpha")
    before = Indexer(database, str(folder))
    before.catch_up()
    before.stop()
    with database.backend.engine.begin() as connection:
        connection.execute(update(catalogue_table).values(epoch="restored"))
    second_indexer = Indexer(database, str(folder))
    second_indexer.start()
    assert search_names(database, second_indexer, "alpha") == ["alpha"]
    path = IndexDirectory(folder).current_path()
    assert path is not None
    assert SearchIndex(path).snapshot.position.epoch == "restored"
    second_indexer.stop()


def test_an_index_removed_while_in_use_is_rebuilt_without_interruption(
    database: Database, fresh_indexer: Indexer, folder: Path
) -> None:
    write_records(database, "alpha")
    fresh_indexer.start()
    assert search_names(database, fresh_indexer, "alpha") == ["alpha"]
    away = folder.rename(folder.with_name("removed"))  # in one step: otherwise files might be added meanwhile
    shutil.rmtree(away, ignore_errors=True)
    assert search_names(database, fresh_indexer, "alpha") == ["alpha"]
    write_records(database, "beta")
    assert search_names(database, fresh_indexer, "beta") == ["beta"]


def test_an_unreadable_index_is_rebuilt(database: Database, fresh_indexer: Indexer, folder: Path) -> None:
    write_records(database, "alpha")
    fresh_indexer.catch_up()
    before = IndexDirectory(folder).current_path()
    fresh_indexer.mark_broken()
    fresh_indexer.catch_up()
    assert before != IndexDirectory(folder).current_path()
    assert search_names(database, fresh_indexer, "alpha") == ["alpha"]


def test_one_process_writes_while_others_read_and_can_take_over(database: Database, folder: Path) -> None:
    write_records(database, "alpha")
    first_indexer, other = Indexer(database, str(folder)), Indexer(database, str(folder))
    first_indexer.start()
    write_records(database, "beta")
    assert search_names(database, first_indexer, "beta") == ["beta"]
    other.start()
    write_records(database, "gamma")
    assert search_names(database, other, "gamma") == ["gamma"]
    first_indexer.stop()
    write_records(database, "delta")
    assert search_names(database, other, "delta") == ["delta"]
    other.stop()


def list_open_files(folder: Path) -> set[str]:
    """Return the index files this process has open; names of removed files end in `(deleted)`."""
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            links.append(os.readlink(entry))
    return {Path(link).name for link in links if link.startswith(str(folder)) and not link.endswith(".lock")}


def list_segment_files(folder: Path) -> set[str]:
    path = IndexDirectory(folder).current_path()
    assert path is not None
    return {entry.name for entry in path.iterdir() if entry.suffix not in (".json", ".lock")}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux tells which files are open")
def test_segment_files_stay_open_until_they_are_deleted(
    database: Database, fresh_indexer: Indexer, folder: Path
) -> None:
    write_records(database, "alpha")
    fresh_indexer.start()
    open_files: set[str] = set()
    for number in range(20):  # so that segments are merged more than once
        write_records(database, f"beta {number}")
        assert search_names(database, fresh_indexer, f"beta {number}")
        open_files |= list_open_files(folder)
    assert any(name.endswith("(deleted)") for name in open_files)
    wait_until(lambda: list_open_files(folder) == list_segment_files(folder))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux tells which files are open")
def test_deleted_segment_files_do_not_accumulate_while_catching_up(
    database: Database, fresh_indexer: Indexer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "_BATCH_SIZE", 1)
    write_records(database, "alpha")
    fresh_indexer.catch_up()
    write_records(database, *(f"beta {number}" for number in range(60)))
    fresh_indexer.catch_up()
    assert search_names(database, fresh_indexer, "beta 59") == ["beta 59"]
    assert sum(name.endswith("(deleted)") for name in list_open_files(folder)) < 100


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux tells which files are open")
def test_a_released_index_has_no_open_files(database: Database, folder: Path) -> None:
    write_records(database, "alpha")
    Indexer(database, str(folder)).rebuild()
    gc.collect()
    path = IndexDirectory(folder).current_path()
    assert path is not None
    index = SearchIndex(path)
    # The library opens its metadata for a moment, whenever it looks for changes.
    wait_until(lambda: list_open_files(folder) == list_segment_files(folder))
    del index
    wait_until(lambda: list_open_files(folder) == set())


def test_searches_continue_while_the_index_is_rebuilt(database: Database, fresh_indexer: Indexer) -> None:
    write_records(database, *(f"alpha {number}" for number in range(50)))
    fresh_indexer.start()
    assert len(search_names(database, fresh_indexer, "alpha")) == 10
    hit_counts: list[int] = []

    def search_meanwhile(task: str, done: int, total: int) -> None:
        if not hit_counts:
            write_records(database, "written meanwhile", suffix="A")
        hit_counts.append(len(search_names(database, fresh_indexer, "alpha")))

    builder = Indexer(database, str(fresh_indexer._folder.path))
    assert builder.rebuild(search_meanwhile) == 50
    builder.stop()
    assert hit_counts == [10]
    assert search_names(database, fresh_indexer, "meanwhile") == ["written meanwhile"]


def test_another_server_takes_over_indexing_from_a_killed_one(url: str, folder: Path) -> None:
    def search_by_name(server: Server, name: str) -> list[str]:
        return [hit["name"] for hit in server.get(f"/api/v1/search?q={name}").json["hits"]]

    environment = {"LEXARIUM_INDEX": str(folder)}
    with Server(url, **environment) as first, Server(url, **environment) as second:
        token = first.create_token("curator")
        assert first.post_json("/api/v1/concept", {"name": "alpha"}, token).status == 201
        assert search_by_name(first, "alpha") == ["alpha"]
        assert search_by_name(second, "alpha") == ["alpha"]
        os.kill(first.pid, signal.SIGKILL)
        assert second.post_json("/api/v1/concept", {"name": "beta"}, token).status == 201
        assert search_by_name(second, "beta") == ["beta"]


def test_leftovers_of_a_killed_process_do_not_block_indexing(database: Database, folder: Path, tmp_path: Path) -> None:
    """The process was killed after writing the files of a commit, before committing."""
    write_records(database, "alpha", "beta")
    indexer = Indexer(database, str(folder))
    indexer.rebuild()
    index = IndexDirectory(folder).current_path()
    assert index is not None
    write_records(database, "delta", suffix="alpha", version=2)
    shutil.copytree(index, tmp_path / "before")
    indexer.catch_up()
    indexer.stop()
    for file in (tmp_path / "before").iterdir():
        if file.name != ".managed.json":
            shutil.copy(file, index)
    another = Indexer(database, str(folder))
    another.catch_up()
    assert IndexDirectory(folder).current_path() == index
    assert search_names(database, another, "delta") == ["delta"]
    another.stop()


def test_reindex_replaces_the_index_of_a_running_server(url: str, folder: Path) -> None:
    environment = {"LEXARIUM_INDEX": str(folder)}
    with Server(url, "--sample", **environment) as server:
        assert server.get("/api/v1/search?q=memory").json["total"]
        before = IndexDirectory(folder).current_path()
        result = run_cli("reindex", "--database", url, **environment)
        assert result.returncode == 0, result.stderr
        assert "Indexed" in result.stdout
        assert before != IndexDirectory(folder).current_path()
        token = server.create_token("curator")
        assert server.post_json("/api/v1/concept", {"name": "after reindexing"}, token).status == 201
        assert server.get("/api/v1/search?q=reindexing").json["total"] == 1


def test_the_command_searches_with_and_without_a_running_server(url: str, folder: Path) -> None:
    environment = {"LEXARIUM_INDEX": str(folder)}
    with Server(url, "--sample", **environment) as server:
        served = server.get("/api/v1/search?q=work%20mem").json
        assert json.loads(run_cli("search", "work mem", "--json", "--database", url, **environment).stdout) == served
    assert json.loads(run_cli("search", "work mem", "--json", "--database", url, **environment).stdout) == served
    table = run_cli("search", "workin memroy", "--limit", "1", "--database", url, **environment)
    assert "working memory" in table.stdout
    assert "Did you mean 'working memory'?" in table.stderr
    assert table.stdout.splitlines() == [line.rstrip() for line in table.stdout.splitlines()]
    unquoted = run_cli("search", "work", "mem", "--json", "--database", url, **environment)
    assert json.loads(unquoted.stdout) == served
    result = subprocess.run(
        [sys.executable, "-m", "lexarium", "search", b"\xff", "--database", url],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )
    assert result.returncode == 0
    no_hits = run_cli("search", "qqqqqqq", "--database", url, **environment)
    assert (no_hits.returncode, no_hits.stdout, no_hits.stderr) == (0, "", "0 found.\n")


def test_the_command_finds_records_just_written_by_a_server(url: str, folder: Path) -> None:
    environment = {"LEXARIUM_INDEX": str(folder)}

    def is_searchable(name: str) -> bool:
        result = json.loads(run_cli("search", name, "--json", "--database", url, **environment).stdout)
        return [hit["name"] for hit in result["hits"]] == [name]

    with Server(url, **environment) as server:
        token = server.create_token("curator")
        for name in ("zebra 0", "zebra 1", "zebra 2"):
            assert server.post_json("/api/v1/concept", {"name": name}, token).status == 201
            wait_until(is_searchable, name)


def test_the_commands_show_retired_records_with_their_replacements(url: str, folder: Path) -> None:
    environment = {"LEXARIUM_INDEX": str(folder)}
    with Server(url, **environment) as server:
        token = server.create_token("curator")
        old, new = (
            server.post_json("/api/v1/concept", {"name": name}, token).json["id"] for name in ("zebra one", "zebra two")
        )
        headers = {"Authorization": f"Bearer {token}", "If-Match": '"1"'}
        assert server.request("DELETE", f"/api/v1/concept/{old}?replaced_by={new}", headers).status == 200
        assert old not in run_cli("search", "zebra", "--database", url, **environment).stdout
        output = run_cli("search", "zebra", "--state", "retired", "--database", url, **environment).stdout
        assert f"zebra one (retired, see {new})" in output
        show_output = run_cli("show", old, "--database", url).stdout
        assert f"retired, see {new}" in show_output
        assert "published" in run_cli("show", new, "--database", url).stdout
    missing = run_cli("show", "zebra one", "--database", url)
    assert missing.returncode == 1
    assert "lexarium search" in missing.stderr


def test_the_index_is_stored_beside_the_database_file(tmp_path: Path) -> None:
    with Server(f"sqlite:///{tmp_path}/here.db", "--sample") as server:
        assert server.get("/api/v1/search?q=memory").json["total"]
    assert IndexDirectory(tmp_path / "here.db-search").current_path()


def test_a_search_uses_an_index_at_the_revision_last_written_by_its_node(
    database: Database, fresh_indexer: Indexer
) -> None:
    fresh_indexer.start()
    for number in range(20):
        write_records(database, f"alpha {number}")
        with database.read() as snapshot:
            position = read_position(snapshot)
        assert fresh_indexer.get_snapshot(position).position == IndexPosition(position.epoch, position.revision)


def test_search_results_are_cached_until_the_index_changes(database: Database, fresh_indexer: Indexer) -> None:
    fresh_indexer.start()
    write_records(database, "alpha one")
    finder = RecordSearch(database, fresh_indexer)
    first = finder.search(SearchQuery("alpha"))
    assert finder.search(SearchQuery("alpha")) is first
    assert finder.search(SearchQuery("alpha", limit=1)) is not first
    write_records(database, "alpha two")
    assert finder.search(SearchQuery("alpha")).total == 2
    assert len(finder.suggest("alpha")) == 2


def test_a_search_on_a_lagging_index_has_content_that_matches_its_etag(url: str, folder: Path) -> None:
    path = "/api/v-alpha/search?q=lagging"
    with Server(url, LEXARIUM_INDEX=str(folder)) as server:
        client = RetryingClient(server)
        record_id = client.send("POST", "/api/v1/concept", json.dumps({"name": "lagging behind"})).json["id"]
        wait_until(lambda: len(server.get(path).json) == 1)
        before = server.get(path)
    current = IndexDirectory(folder).current_path()
    assert current is not None
    writing = SearchIndex(current).open_writer()  # so that no server can update the index
    try:
        with SpawnedServer(url, LEXARIUM_INDEX=str(folder)) as server:
            server.wait_until_ready()
            edit = json.dumps({"definition_text": "No longer what it was."})
            response = RetryingClient(server, client.token).send(
                "PATCH", f"/api/v1/concept/{record_id}", edit, If_Match='"1"'
            )
            assert response.status == 200
            responses = [server.get(path) for _ in range(2)]
            assert {(response.headers["etag"], response.body) for response in responses} == {
                (before.headers["etag"], before.body)
            }
    finally:
        writing.close()
    with Server(url, LEXARIUM_INDEX=str(folder)) as server:
        wait_until(lambda: b"No longer" in server.get(path).body)
        assert server.get(path).headers["etag"] != before.headers["etag"]
