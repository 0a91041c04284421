"""The index follows the log: whatever happens to it, searches come right again."""

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from lexarium.domain.errors import Unready
from lexarium.search.index import Broken, Busy, IndexFolder, OpenIndex, Standing, Writing
from lexarium.service import indexing
from lexarium.service.finding import Asked, Finder
from lexarium.service.indexing import Indexer
from lexarium.store.backend import read_position
from lexarium.store.database import Database
from lexarium.store.schema import catalogue
from tests.server import Server, run
from tests.test_store import entry, save
from tests.waiting import wait_until
from tests.writers import Client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def indexer(database: Database, folder: Path) -> Iterator[Indexer]:
    made = Indexer(database, str(folder))
    yield made
    made.stop()


def write(database: Database, *names: str, version: int = 1, suffix: str = "") -> None:
    with database.write() as transaction:
        save(transaction, *(entry(name, version=version, suffix=suffix) for name in names))


def found(database: Database, indexer: Indexer, text: str) -> list[str]:
    return [hit.name for hit in Finder(database, indexer).search(Asked(text)).hits]


def test_what_is_in_the_catalogue_is_indexed_by_itself_and_so_is_what_comes(
    database: Database, indexer: Indexer
) -> None:
    write(database, "alpha", "beta")
    indexer.start()
    assert found(database, indexer, "alpha") == ["alpha"]
    write(database, "gamma")
    assert found(database, indexer, "gamma") == ["gamma"]
    write(database, "delta", suffix="alpha", version=2)
    assert found(database, indexer, "delta") == ["delta"]
    assert found(database, indexer, "alpha") == []


def test_a_catalogue_without_records_has_an_index_too(database: Database, indexer: Indexer) -> None:
    indexer.start()
    assert found(database, indexer, "alpha") == []


def test_a_search_does_not_wait_for_what_is_new_while_more_is_asked_than_can_be_done(
    database: Database, folder: Path
) -> None:
    hurried = False
    indexer = Indexer(database, str(folder), hurried=lambda: hurried)
    indexer.catch_up()
    write(database, "alpha")
    hurried = True
    assert found(database, indexer, "alpha") == []
    assert not indexer._wanted.is_set()  # as one who waits would have it
    hurried = False
    indexer.start()
    assert found(database, indexer, "alpha") == ["alpha"]
    indexer.stop()


def test_applying_changes_again_does_no_harm(database: Database, indexer: Indexer, folder: Path) -> None:
    write(database, "alpha", "alpha beta")
    write(database, "alpha gamma", suffix="alpha", version=2)
    indexer.catch_up()
    indexer.stop()
    path = IndexFolder(folder).current()
    assert path is not None
    index = OpenIndex(path)
    writing = index.write()
    writing.commit(Standing(index.view.standing.epoch, 0))
    writing.close()
    again = Indexer(database, str(folder))
    again.catch_up()
    assert Finder(database, again).search(Asked("alpha")).total == 2
    again.stop()


def remove(folder: Path) -> None:
    shutil.rmtree(folder)


def remove_index(folder: Path) -> None:
    path = IndexFolder(folder).current()
    assert path is not None
    shutil.rmtree(path)


def spoil_pointer(folder: Path) -> None:
    (folder / "current").write_bytes(b"\xff\x00nonsense")


def spoil_meta(folder: Path) -> None:
    for path in folder.glob("*/meta.json"):
        path.write_text("{")


def spoil_parts(folder: Path) -> None:
    for path in folder.glob("*/*.term"):
        cut = path.read_bytes()[:10]
        path.unlink()  # Cut in place, it would take with it whoever has it in memory: this process, for one.
        path.write_bytes(cut)


def another_format(folder: Path) -> None:
    pointer = folder / "current"
    pointer.write_text("0 " + pointer.read_text().partition(" ")[2])


DAMAGES = [remove, remove_index, spoil_pointer, spoil_meta, spoil_parts, another_format]


def spoil_columns(folder: Path) -> None:
    for path in folder.glob("*/*.fast"):
        spoilt = bytes(path.stat().st_size * 2 // 3) + path.read_bytes()[path.stat().st_size * 2 // 3 :]
        path.unlink()
        path.write_bytes(spoilt)


def test_an_index_that_proves_broken_in_a_search_is_made_anew(database: Database, folder: Path) -> None:
    write(database, *(f"alpha {number}" for number in range(50)))
    before = Indexer(database, str(folder))
    before.catch_up()
    before.stop()
    was = IndexFolder(folder).current()
    spoil_columns(folder)
    after = Indexer(database, str(folder))
    after.start()
    with pytest.raises(Unready):
        found(database, after, "alpha")
    while IndexFolder(folder).current() == was:
        time.sleep(0.01)
    write(database, "beta")
    assert found(database, after, "beta") == ["beta"]
    assert len(found(database, after, "alpha")) == 10
    after.stop()


def test_only_indexes_are_removed_from_the_folder(database: Database, indexer: Indexer, folder: Path) -> None:
    (folder / "photographs").mkdir(parents=True)
    (folder / "photographs" / "one.jpg").write_text("precious")
    indexer.catch_up()
    indexer.rebuild()
    assert (folder / "photographs" / "one.jpg").read_text() == "precious"
    assert len(list(folder.glob("index_*"))) == 1


def test_the_index_is_followed_again_after_writing_to_it_failed_once(
    database: Database, indexer: Indexer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(database, "alpha")
    indexer.catch_up()
    before = IndexFolder(folder).current()
    failures: list[Standing] = []
    commit = Writing.commit

    def failing(writing: Writing, standing: Standing) -> None:
        if not failures:
            failures.append(standing)
            raise Broken("No space left on device")
        commit(writing, standing)

    monkeypatch.setattr(Writing, "commit", failing)
    write(database, "beta")
    indexer.start()
    assert found(database, indexer, "beta") == ["beta"]
    assert failures
    assert before == IndexFolder(folder).current()


def test_an_index_is_made_by_one_process_at_a_time(folder: Path) -> None:
    one, other = IndexFolder(folder), IndexFolder(folder)
    with one.building(None) as writing:
        with pytest.raises(Busy), other.building(None):
            pass
        writing.commit(Standing("epoch", 0))
    with pytest.raises(Busy), other.building(None):
        pass  # It has been made meanwhile.


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_index_that_is_missing_old_or_broken_is_made_anew(
    database: Database, folder: Path, damage: Callable[[Path], None]
) -> None:
    write(database, "alpha")
    before = Indexer(database, str(folder))
    before.catch_up()
    before.stop()
    damage(folder)
    after = Indexer(database, str(folder))
    after.start()
    assert found(database, after, "alpha") == ["alpha"]
    write(database, "beta")
    assert found(database, after, "beta") == ["beta"]
    after.stop()


def test_the_index_of_another_catalogue_is_not_used(database: Database, folder: Path) -> None:
    write(database, "alpha")
    before = Indexer(database, str(folder))
    before.catch_up()
    before.stop()
    with database.backend.engine.begin() as connection:
        connection.execute(update(catalogue).values(epoch="restored"))
    after = Indexer(database, str(folder))
    after.start()
    assert found(database, after, "alpha") == ["alpha"]
    path = IndexFolder(folder).current()
    assert path is not None
    assert OpenIndex(path).view.standing.epoch == "restored"
    after.stop()


def test_an_index_that_is_removed_under_a_server_is_made_anew_while_it_serves(
    database: Database, indexer: Indexer, folder: Path
) -> None:
    write(database, "alpha")
    indexer.start()
    assert found(database, indexer, "alpha") == ["alpha"]
    away = folder.rename(folder.with_name("removed"))  # at one blow: in the midst of it something would be written
    shutil.rmtree(away, ignore_errors=True)
    assert found(database, indexer, "alpha") == ["alpha"]
    write(database, "beta")
    assert found(database, indexer, "beta") == ["beta"]


def test_an_index_that_could_not_be_read_is_made_anew(database: Database, indexer: Indexer, folder: Path) -> None:
    write(database, "alpha")
    indexer.catch_up()
    before = IndexFolder(folder).current()
    indexer.distrust()
    indexer.catch_up()
    assert before != IndexFolder(folder).current()
    assert found(database, indexer, "alpha") == ["alpha"]


def test_one_writes_while_others_read_and_take_over(database: Database, folder: Path) -> None:
    write(database, "alpha")
    one, other = Indexer(database, str(folder)), Indexer(database, str(folder))
    one.start()
    write(database, "beta")
    assert found(database, one, "beta") == ["beta"]
    other.start()
    write(database, "gamma")
    assert found(database, other, "gamma") == ["gamma"]
    one.stop()
    write(database, "delta")
    assert found(database, other, "delta") == ["delta"]
    other.stop()


def opened(folder: Path) -> set[str]:
    """The files of the index that this process has open; what is removed ends so in their names."""
    links = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    return {Path(link).name for link in links if link.startswith(str(folder)) and not link.endswith(".lock")}


def parts(folder: Path) -> set[str]:
    path = IndexFolder(folder).current()
    assert path is not None
    return {entry.name for entry in path.iterdir() if entry.suffix not in (".json", ".lock")}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux tells which files are open")
def test_each_file_is_held_open_until_it_is_gone_so_that_no_view_frees_it(
    database: Database, indexer: Indexer, folder: Path
) -> None:
    write(database, "alpha")
    indexer.start()
    seen: set[str] = set()
    for number in range(20):  # so that parts are merged, more than once
        write(database, f"beta {number}")
        assert found(database, indexer, f"beta {number}")
        seen |= opened(folder)
    assert any(name.endswith("(deleted)") for name in seen)
    wait_until(lambda: opened(folder) == parts(folder))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux tells which files are open")
def test_files_that_are_gone_do_not_pile_up_while_much_is_caught_up_with(
    database: Database, indexer: Indexer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_CHANGES", 1)
    write(database, "alpha")
    indexer.catch_up()
    write(database, *(f"beta {number}" for number in range(60)))
    indexer.catch_up()
    assert found(database, indexer, "beta 59") == ["beta 59"]
    assert sum(name.endswith("(deleted)") for name in opened(folder)) < 100


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux tells which files are open")
def test_an_index_that_is_let_go_of_has_no_file_open(database: Database, folder: Path) -> None:
    write(database, "alpha")
    Indexer(database, str(folder)).rebuild()
    gc.collect()
    path = IndexFolder(folder).current()
    assert path is not None
    index = OpenIndex(path)
    assert opened(folder) == parts(folder)
    del index
    assert opened(folder) == set()


def test_searches_go_on_while_the_index_is_made_anew(database: Database, indexer: Indexer) -> None:
    write(database, *(f"alpha {number}" for number in range(50)))
    indexer.start()
    assert len(found(database, indexer, "alpha")) == 10
    seen: list[int] = []

    def look(what: str, done: int, total: int) -> None:
        if not seen:
            write(database, "written meanwhile", suffix="A")
        seen.append(len(found(database, indexer, "alpha")))

    builder = Indexer(database, str(indexer._folder.path))
    assert builder.rebuild(look) == 50
    builder.stop()
    assert seen == [10]
    assert found(database, indexer, "meanwhile") == ["written meanwhile"]


def test_a_server_takes_over_from_one_that_is_killed(url: str, folder: Path) -> None:
    def named(server: Server, name: str) -> list[str]:
        return [hit["name"] for hit in server.get(f"/api/v1/search?q={name}").json["hits"]]

    where = {"LEXARIUM_INDEX": str(folder)}
    with Server(url, **where) as first, Server(url, **where) as second:
        token = first.token("curator")
        assert first.post_json("/api/v1/concept", {"name": "alpha"}, token).status == 201
        assert named(first, "alpha") == ["alpha"]
        assert named(second, "alpha") == ["alpha"]
        os.kill(first.pid, signal.SIGKILL)
        assert second.post_json("/api/v1/concept", {"name": "beta"}, token).status == 201
        assert named(second, "beta") == ["beta"]


def test_what_a_killed_process_left_in_the_index_stands_in_nobodys_way(
    database: Database, folder: Path, tmp_path: Path
) -> None:
    """It was killed after it had written the files of a commit, and before it committed."""
    write(database, "alpha", "beta")
    indexer = Indexer(database, str(folder))
    indexer.rebuild()
    index = IndexFolder(folder).current()
    assert index is not None
    write(database, "delta", suffix="alpha", version=2)
    shutil.copytree(index, tmp_path / "before")
    indexer.catch_up()
    indexer.stop()
    for file in (tmp_path / "before").iterdir():
        if file.name != ".managed.json":
            shutil.copy(file, index)
    another = Indexer(database, str(folder))
    another.catch_up()
    assert IndexFolder(folder).current() == index
    assert found(database, another, "delta") == ["delta"]
    another.stop()


def test_reindex_gives_a_running_server_a_new_index(url: str, folder: Path) -> None:
    where = {"LEXARIUM_INDEX": str(folder)}
    with Server(url, "--sample", **where) as server:
        assert server.get("/api/v1/search?q=memory").json["total"]
        before = IndexFolder(folder).current()
        made = run("reindex", "--database", url, **where)
        assert made.returncode == 0, made.stderr
        assert "Indexed" in made.stdout
        assert before != IndexFolder(folder).current()
        token = server.token("curator")
        assert server.post_json("/api/v1/concept", {"name": "after reindexing"}, token).status == 201
        assert server.get("/api/v1/search?q=reindexing").json["total"] == 1


def test_the_command_searches_with_and_without_a_server(url: str, folder: Path) -> None:
    where = {"LEXARIUM_INDEX": str(folder)}
    with Server(url, "--sample", **where) as server:
        served = server.get("/api/v1/search?q=work%20mem").json
        assert json.loads(run("search", "work mem", "--json", "--database", url, **where).stdout) == served
    assert json.loads(run("search", "work mem", "--json", "--database", url, **where).stdout) == served
    table = run("search", "workin memroy", "--limit", "1", "--database", url, **where)
    assert "working memory" in table.stdout
    assert "Did you mean 'working memory'?" in table.stderr
    assert table.stdout.splitlines() == [line.rstrip() for line in table.stdout.splitlines()]
    unquoted = run("search", "work", "mem", "--json", "--database", url, **where)
    assert json.loads(unquoted.stdout) == served
    odd = subprocess.run(
        [sys.executable, "-m", "lexarium", "search", b"\xff", "--database", url],
        env={**os.environ, **where},
        capture_output=True,
        check=False,
    )
    assert odd.returncode == 0
    nothing = run("search", "qqqqqqq", "--database", url, **where)
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "0 found.\n")


def test_the_command_finds_what_a_server_has_written_a_moment_ago(url: str, folder: Path) -> None:
    where = {"LEXARIUM_INDEX": str(folder)}

    def finds(name: str) -> bool:
        result = json.loads(run("search", name, "--json", "--database", url, **where).stdout)
        return [hit["name"] for hit in result["hits"]] == [name]

    with Server(url, **where) as server:
        token = server.token("curator")
        for name in ("zebra 0", "zebra 1", "zebra 2"):
            assert server.post_json("/api/v1/concept", {"name": name}, token).status == 201
            wait_until(finds, name)


def test_the_commands_tell_what_is_retired_and_what_to_use_instead(url: str, folder: Path) -> None:
    where = {"LEXARIUM_INDEX": str(folder)}
    with Server(url, **where) as server:
        token = server.token("curator")
        old, new = (
            server.post_json("/api/v1/concept", {"name": name}, token).json["id"] for name in ("zebra one", "zebra two")
        )
        headers = {"Authorization": f"Bearer {token}", "If-Match": '"1"'}
        assert server.request("DELETE", f"/api/v1/concept/{old}?replaced_by={new}", headers).status == 200
        assert old not in run("search", "zebra", "--database", url, **where).stdout
        found = run("search", "zebra", "--state", "retired", "--database", url, **where).stdout
        assert f"zebra one (retired, see {new})" in found
        shown = run("show", old, "--database", url).stdout
        assert f"retired, see {new}" in shown
        assert "published" in run("show", new, "--database", url).stdout
    missing = run("show", "zebra one", "--database", url)
    assert missing.returncode == 1
    assert "lexarium search" in missing.stderr


def test_the_index_is_beside_the_file(tmp_path: Path) -> None:
    with Server(f"sqlite:///{tmp_path}/here.db", "--sample") as server:
        assert server.get("/api/v1/search?q=memory").json["total"]
    assert IndexFolder(tmp_path / "here.db-search").current()


def test_a_search_stands_where_its_node_has_written(database: Database, indexer: Indexer) -> None:
    indexer.start()
    for number in range(20):
        write(database, f"alpha {number}")
        with database.read() as snapshot:
            position = read_position(snapshot)
        assert indexer.at(position).standing == Standing(position.epoch, position.revision)


def test_an_answer_is_kept_only_as_long_as_the_index_stands(database: Database, indexer: Indexer) -> None:
    indexer.start()
    write(database, "alpha one")
    finder = Finder(database, indexer)
    first = finder.search(Asked("alpha"))
    assert finder.search(Asked("alpha")) is first
    assert finder.search(Asked("alpha", limit=1)) is not first
    write(database, "alpha two")
    assert finder.search(Asked("alpha")).total == 2
    assert len(finder.suggest("alpha")) == 2


def test_a_search_that_the_index_is_behind_for_has_the_bytes_that_its_etag_stands_for(url: str, folder: Path) -> None:
    path = "/api/v-alpha/search?q=lagging"
    with Server(url, LEXARIUM_INDEX=str(folder)) as server:
        client = Client(server)
        made = client.send("POST", "/api/v1/concept", json.dumps({"name": "lagging behind"})).json["id"]
        wait_until(lambda: len(server.get(path).json) == 1)
        before = server.get(path)
    current = IndexFolder(folder).current()
    assert current is not None
    writing = OpenIndex(current).write()  # so that no server can follow
    try:
        with Server(url, LEXARIUM_INDEX=str(folder)) as server:
            edit = json.dumps({"definition_text": "No longer what it was."})
            written = Client(server, client.token).send("PATCH", f"/api/v1/concept/{made}", edit, If_Match='"1"')
            assert written.status == 200
            answers = [server.get(path) for _ in range(2)]
            assert {(answer.headers["etag"], answer.body) for answer in answers} == {
                (before.headers["etag"], before.body)
            }
    finally:
        writing.close()
    with Server(url, LEXARIUM_INDEX=str(folder)) as server:
        wait_until(lambda: b"No longer" in server.get(path).body)
        assert server.get(path).headers["etag"] != before.headers["etag"]
