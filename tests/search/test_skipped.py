"""Records that cannot be indexed are skipped, logged and counted, and indexing continues."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tantivy import Document

from lexarium.domain.record import Record
from lexarium.search import documents
from lexarium.search.index import IndexCorrupt
from lexarium.services.maintenance.index_check import check_index
from lexarium.services.search.indexer import Indexer
from lexarium.services.search.record_search import RecordSearch, SearchQuery
from lexarium.store.database import Database
from tests.support.imports import build_log_entry, save_entries
from tests.support.metrics import read_metrics
from tests.support.server import Server, run_cli

build_document = documents.build_document


@pytest.fixture
def indexer(database: Database, tmp_path: Path) -> Iterator[Indexer]:
    new_indexer = Indexer(database, str(tmp_path / "index"))
    yield new_indexer
    new_indexer.stop()


def fail_on_bad(record: Record, version: int) -> Document:
    if record.fields["name"].startswith("bad"):
        raise KeyError(record.fields["name"])
    return build_document(record, version)


@pytest.fixture
def some_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "build_document", fail_on_bad)


def write_records(database: Database, *names: str, version: int = 1, suffix: str = "") -> None:
    with database.write() as transaction:
        save_entries(transaction, *(build_log_entry(name, version=version, suffix=suffix) for name in names))


def search_names(database: Database, indexer: Indexer, text: str) -> list[str]:
    return sorted(hit.name for hit in RecordSearch(database, indexer).search(SearchQuery(text)).hits)


@pytest.mark.usefixtures("some_fail")
class TestIndex:
    """An index of records some of which cannot be indexed."""

    @pytest.mark.parametrize("is_new", [True, False], ids=["built", "updated"])
    def test_other_records_are_indexed_and_failing_ones_counted(
        self, database: Database, indexer: Indexer, tmp_path: Path, *, is_new: bool
    ) -> None:
        if not is_new:
            indexer.catch_up()
        write_records(database, "good memory", "bad memory", "worse memory")
        indexer.catch_up()
        assert search_names(database, indexer, "memory") == ["good memory", "worse memory"]
        assert indexer.count_skipped() == 1
        assert indexer.lag(database.get_position()) == 0
        report = check_index(database, tmp_path / "index")
        assert report.problems == []
        assert any("1 record could not be indexed" in remark for remark in report.remarks)

    def test_each_failing_record_is_logged_once_with_its_id(
        self, database: Database, indexer: Indexer, caplog: pytest.LogCaptureFixture
    ) -> None:
        write_records(database, "bad memory", "good memory")
        indexer.catch_up()
        indexer.rebuild()
        [logged] = [record for record in caplog.records if record.levelname == "ERROR"]
        assert build_log_entry("bad memory").record.id in logged.getMessage()

    def test_a_record_that_can_be_indexed_again_is_no_longer_counted(
        self, database: Database, indexer: Indexer, tmp_path: Path
    ) -> None:
        write_records(database, "bad memory")
        indexer.catch_up()
        write_records(database, "fine memory", version=2, suffix="bad memory")
        indexer.catch_up()
        assert search_names(database, indexer, "memory") == ["fine memory"]
        assert indexer.count_skipped() == 0
        assert check_index(database, tmp_path / "index").remarks == []

    def test_the_count_is_kept_across_restarts(self, database: Database, indexer: Indexer, tmp_path: Path) -> None:
        write_records(database, "bad memory")
        indexer.catch_up()
        indexer.stop()
        other = Indexer(database, str(tmp_path / "index"))
        other.catch_up()
        assert other.count_skipped() == 1
        other.stop()


def test_an_error_of_tantivy_marks_the_index_as_broken(
    database: Database, indexer: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(writer: object, change: object) -> None:
        raise IndexCorrupt("No space left on device")

    write_records(database, "memory")
    indexer.catch_up()
    monkeypatch.setattr("lexarium.search.index.SearchIndexWriter.add", fail)
    write_records(database, "recall")
    indexer.advance_to(database.get_position())
    assert indexer.lag(database.get_position()) is None  # It is opened again.


def test_a_server_is_ready_and_reports_the_number_of_unindexed_records(
    url: str, database: Database, tmp_path: Path
) -> None:
    write_records(database, "bad memory", "good memory")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "build_document", fail_on_bad)
        indexer = Indexer(database, str(tmp_path / "index"))
        indexer.catch_up()
        indexer.stop()
    environment = {"LEXARIUM_INDEX": str(tmp_path / "index")}
    with Server(url, **environment) as server:
        server.wait_until_ready()
        assert server.get("/readyz").json == {"status": "ok", "unindexed_records": 1}
        assert read_metrics(server)["lexarium_index_skipped"] == 1
    result = run_cli("check", "--json", "--database", url, **environment)
    assert result.returncode == 0
    assert "could not be indexed" in "".join(json.loads(result.stdout)["remarks"])
