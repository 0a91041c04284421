"""Commands that change the catalogue leave a search index that is up to date."""

import json
from pathlib import Path

import pytest

from lexarium.search.index import IndexDirectory, SearchIndex
from lexarium.services.search.indexer import index_folder
from lexarium.store.database import Database
from tests.support.databases import DatabaseUrlFactory
from tests.support.polling import wait_until
from tests.support.server import Server, run_cli

UP_TO_DATE = "The search index is up to date."


@pytest.fixture
def sqlite_url(new_url: DatabaseUrlFactory) -> str:
    return new_url("sqlite")


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Files of a few records in the v-alpha shape."""
    paths = []
    for name in ("working memory", "attention"):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps([{"id": f"trm_{name[:4]}", "name": name, "type": "concept", "relationships": []}]))
        paths.append(path)
    return paths


def get_index_path(url: str, setting: str = "auto") -> Path | None:
    database = Database(url)
    try:
        return IndexDirectory(index_folder(database, setting)).current_path()
    finally:
        database.close()


def get_indexed_revision(url: str, setting: str = "auto") -> int | None:
    """Return the revision of the index on disk without updating it."""
    path = get_index_path(url, setting)
    return None if path is None else SearchIndex(path).snapshot.position.revision


def get_revision(url: str) -> int:
    database = Database(url)
    try:
        return database.get_position().revision
    finally:
        database.close()


def test_an_import_builds_a_complete_index_that_a_server_uses(sqlite_url: str, paths: list[Path]) -> None:
    result = run_cli("import", *paths, "--database", sqlite_url)
    assert UP_TO_DATE in result.stderr
    assert get_indexed_revision(sqlite_url) == get_revision(sqlite_url) > 0
    path = get_index_path(sqlite_url)
    with Server(sqlite_url) as server:
        assert server.get("/api/v1/search?q=working+memory").json["hits"][0]["name"] == "working memory"
    assert get_index_path(sqlite_url) == path  # no other was built


def test_a_second_import_updates_the_index(sqlite_url: str, paths: list[Path]) -> None:
    run_cli("import", paths[0], "--database", sqlite_url)
    path = get_index_path(sqlite_url)
    result = run_cli("import", *paths, "--database", sqlite_url)
    assert UP_TO_DATE in result.stderr
    assert get_indexed_revision(sqlite_url) == get_revision(sqlite_url)
    assert get_index_path(sqlite_url) == path


def test_an_import_without_changes_does_not_mention_the_index(sqlite_url: str, paths: list[Path]) -> None:
    assert "index" not in run_cli("import", *paths, "--dry-run", "--database", sqlite_url).stderr
    assert get_index_path(sqlite_url) is None
    run_cli("import", *paths, "--database", sqlite_url)
    assert "index" not in run_cli("import", *paths, "--database", sqlite_url).stderr


def test_an_import_beside_a_running_server_updates_its_index(sqlite_url: str, paths: list[Path]) -> None:
    with Server(sqlite_url) as server:
        token = server.create_token("curator")
        assert server.post_json("/api/v1/concept", {"name": "flumming"}, token).status == 201
        wait_until(
            lambda: server.get("/api/v1/search?q=flumming").json["total"] == 1
        )  # the server holds the index writer
        result = run_cli("import", *paths, "--database", sqlite_url)
        assert result.returncode == 0
        assert "search index" in result.stderr
        wait_until(server.finds, "working memory")


def test_an_unwritable_index_folder_is_a_warning(sqlite_url: str, paths: list[Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run_cli("import", *paths, "--database", sqlite_url, LEXARIUM_INDEX=str(tmp_path / "file" / "index"))
    assert result.returncode == 0
    assert "Warning: Cannot write the search index" in result.stderr


def test_an_import_to_postgresql_builds_an_index_only_if_a_folder_is_configured(
    new_url: DatabaseUrlFactory, paths: list[Path], tmp_path: Path
) -> None:
    url = new_url("postgres")
    assert "index" not in run_cli("import", paths[0], "--database", url).stderr
    result = run_cli("import", *paths, "--database", url, LEXARIUM_INDEX=str(tmp_path))
    assert UP_TO_DATE in result.stderr
    assert get_indexed_revision(url, str(tmp_path)) == get_revision(url)


def test_restore_and_copy_build_a_complete_index(sqlite_url: str, paths: list[Path], tmp_path: Path) -> None:
    run_cli("import", *paths, "--database", sqlite_url)
    run_cli("backup", tmp_path / "backup", "--database", sqlite_url)
    restored, copied = (f"sqlite:///{tmp_path / name}" for name in ("restored.db", "copied.db"))
    for result in (
        run_cli("restore", tmp_path / "backup", "--database", restored),
        run_cli("copy", sqlite_url, copied),
    ):
        assert result.returncode == 0
        assert UP_TO_DATE in result.stderr
    for url in (restored, copied):
        assert get_indexed_revision(url) == get_revision(url)
