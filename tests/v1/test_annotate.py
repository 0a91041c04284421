"""Annotation of text, over HTTP on both engines and by the command."""

import asyncio
import csv
import io
import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Connection, update

from lexarium.domain.errors import DatabaseUnavailable
from lexarium.search.annotator import Annotator, DictionaryTerm, Mention
from lexarium.services.search import annotator_cache
from lexarium.services.search.annotator_cache import AnnotatorCache
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.settings import Settings
from lexarium.store import revisions
from lexarium.store.database import Database
from lexarium.store.schema import catalogue_table
from lexarium.web.annotator import get_annotator
from lexarium.web.http.limits import Limits
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.streaming import read_first_chunk
from lexarium.web.v1.operations import annotate
from lexarium.web.v1.operations.annotate import render_annotations
from tests.support.databases import DatabaseUrlFactory
from tests.support.fork_server import ForkedProcess
from tests.support.imports import build_log_entry, save_entries
from tests.support.polling import DEADLINE_SECONDS, wait_until
from tests.support.server import HttpResponse, Server, build_environment, run_cli, run_cli_with_input
from tests.support.terminal import run_in_terminal

ANNOTATE_PATH = "/api/v1/annotate"


@pytest.fixture(scope="module")
def curator(shared_server: Server) -> str:
    return shared_server.create_token("curator")


@pytest.fixture(scope="module")
def memory(shared_server: Server, curator: str) -> dict[str, Any]:
    return create_record(
        shared_server, curator, "concept", "working memory", aliases=[{"text": "WM"}, {"text": "short-term store"}]
    )


def create_record(server: Server, token: str, collection: str, name: str, **fields: Any) -> dict[str, Any]:
    response = server.post_json(f"/api/v1/{collection}", {"name": name, **fields}, token)
    assert response.status == 201, response.body
    record: dict[str, Any] = response.json
    return record


def change_record(server: Server, token: str, method: str, record: dict[str, Any], body: object = None) -> HttpResponse:
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "If-Match": f'"{record["version"]}"',
    }
    path = f"/api/v1/{record['collection']}/{record['id']}"
    return server.request(method, path, headers, None if body is None else json.dumps(body))


def post_text(server: Server, text: str | bytes, kind: str = "text/plain", query: str = "") -> HttpResponse:
    return server.request(
        "POST", ANNOTATE_PATH + query, {"Content-Type": kind}, text.encode() if isinstance(text, str) else text
    )


def get_annotations(response: HttpResponse) -> list[dict[str, Any]]:
    assert response.status == 200, response.body
    assert response.headers["content-type"] == "application/json"
    items: list[dict[str, Any]] = response.json["annotations"]
    return items


def list_mentions(server: Server, text: str, query: str = "") -> list[str]:
    return [annotation["text"] for annotation in get_annotations(post_text(server, text, query=query))]


def test_every_mention_has_its_position_and_record(shared_server: Server, memory: dict[str, Any]) -> None:
    text = "𝕎 Ⱥ: Working\nmemories (WM, not wm) and a short-term store."
    record_summary = {"id": memory["id"], "name": "working memory", "vocabulary": "main", "collection": "concept"}
    spans = [(5, 21), (23, 25), (41, 57)]
    expected = [{"start": start, "end": end, "text": text[start:end], **record_summary} for start, end in spans]
    assert get_annotations(post_text(shared_server, text)) == expected
    assert get_annotations(shared_server.post_json(ANNOTATE_PATH, {"text": text})) == expected


def test_a_text_without_terms_and_an_empty_one_have_no_annotations(shared_server: Server) -> None:
    for text in ("", "nothing of note"):
        assert post_text(shared_server, text).json == {"annotations": [], "truncated": False}


def test_an_ambiguous_name_is_listed_once_for_each_record(shared_server: Server, curator: str) -> None:
    record_ids = [
        create_record(shared_server, curator, kind, "mirror drawing")["id"] for kind in ("concept", "task", "task")
    ]
    annotations = get_annotations(post_text(shared_server, "Mirror drawings"))
    assert sorted(annotation["id"] for annotation in annotations) == sorted(record_ids)
    assert {(annotation["start"], annotation["end"]) for annotation in annotations} == {(0, 15)}


def test_a_text_can_be_annotated_with_one_collection(shared_server: Server, curator: str) -> None:
    create_record(shared_server, curator, "concept", "tapping")
    create_record(shared_server, curator, "task", "finger tapping")
    create_record(shared_server, curator, "contrast", "finger tapping versus rest")
    text = "finger tapping versus rest"
    assert list_mentions(shared_server, text) == ["finger tapping"]
    assert list_mentions(shared_server, text, "?collection=concept") == ["tapping"]
    assert list_mentions(shared_server, text, "?collection=contrast") == [text]


def test_new_names_are_found_at_once_and_removed_ones_are_not(shared_server: Server, curator: str) -> None:
    assert list_mentions(shared_server, "flumming and grobbling") == []
    record = create_record(shared_server, curator, "concept", "flumming")
    assert list_mentions(shared_server, "flumming and grobbling") == ["flumming"]
    record = change_record(shared_server, curator, "PATCH", record, {"name": "grobbling"}).json
    assert list_mentions(shared_server, "flumming and grobbling") == ["grobbling"]
    record = change_record(shared_server, curator, "PATCH", record, {"aliases": [{"text": "flumming"}]}).json
    assert list_mentions(shared_server, "flumming and grobbling") == ["flumming", "grobbling"]
    change_record(shared_server, curator, "DELETE", record)
    assert list_mentions(shared_server, "flumming and grobbling") == []


def test_a_text_of_ten_megabytes_is_annotated_completely(shared_server: Server, memory: dict[str, Any]) -> None:
    line = "Nothing much about a working memory that is held in mind for a while, and so on. "
    text = line * (10_000_000 // len(line))
    annotations = get_annotations(post_text(shared_server, text))
    assert len(annotations) == text.count("working memory")
    assert all(
        text[annotation["start"] : annotation["end"]] == "working memory"
        for annotation in (annotations[0], annotations[-1])
    )


@pytest.mark.parametrize(
    "text",
    ["x" * 10_000_000, " " * 10_000_000, "\x00\x01\x1b" * 300_000, "\u202eשלום \u200f" * 100_000,
     "e" + "\u0301" * 500_000, "'" * 1_000_000, "工" * 300_000, "\ufeff\uffff\U0010ffff"],
    ids=["no-space", "only-spaces", "controls", "right-to-left", "accents", "apostrophes", "han", "odd"],
)  # fmt: skip
def test_any_text_can_be_annotated(shared_server: Server, memory: dict[str, Any], text: str) -> None:
    # After a space: text without one may be an unfinished word.
    annotations = get_annotations(
        post_text(shared_server, f"working memory, {text[: 10_000_000 - 40]}, working memory")
    )
    assert [annotation["text"] for annotation in annotations] == ["working memory"] * 2


@pytest.mark.parametrize(
    ("body", "kind", "query", "expected"),
    [
        (b"caf\xe9 x", "text/plain", "", (400, "byte 3")),
        (b"caf\xc3", "text/plain", "", (400, "byte 3")),
        (b"x" * (70_000) + b"\xff", "text/plain; charset=UTF-8", "", (400, "byte 70000")),
        (b"x", "text/plain; charset=latin-1", "", (415, "latin-1")),
        (b"x", "text/html", "", (415, "text/plain")),
        (b"x", "", "", (415, "text/plain")),
        (b"x" * ((10 << 20) + 1), "text/plain", "", (413, "10485760")),
        (b"{", "application/json", "", (400, "JSON")),
        (b"[]", "application/json", "", (400, "object")),
        (b"{}", "application/json", "", (422, "text")),
        (b'{"text": 1}', "application/json", "", (422, "text")),
        (b'{"text": "x", "lang": "en"}', "application/json", "", (422, "lang")),
        (b'{"text": "' + b"x" * (1 << 20) + b'"}', "application/json", "", (413, "1048576")),
        (b"x", "text/plain", "?collection=animal", (422, "concept")),
        (b"x", "text/plain", "?lang=en", (422, "lang")),
    ],
)  # fmt: skip
def test_an_invalid_annotation_request_is_rejected_with_the_reason(
    shared_server: Server, body: bytes, kind: str, query: str, expected: tuple[int, str]
) -> None:
    response = post_text(shared_server, body, kind, query)
    assert response.status == expected[0]
    assert expected[1] in response.json["detail"]


def test_a_body_of_unknown_length_is_rejected_as_soon_as_it_is_too_large(shared_server: Server) -> None:
    connection = shared_server.connect()
    chunks = (b"x" * 65_536 for _ in range(170))
    try:
        connection.request("POST", ANNOTATE_PATH, chunks, {"Content-Type": "text/plain"}, encode_chunked=True)
        assert connection.getresponse().status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # the server had replied and closed before all was sent
    finally:
        connection.close()


def test_concurrent_texts_are_annotated_while_terms_are_written(
    shared_server: Server, curator: str, memory: dict[str, Any]
) -> None:
    text = "a working memory span " * 5_000
    counts = list[int]()

    def count_mentions() -> None:
        counts.append(list_mentions(shared_server, text).count("working memory"))

    threads = [threading.Thread(target=count_mentions) for _ in range(8)]
    for thread in threads:
        thread.start()
    for number in range(20):
        create_record(shared_server, curator, "concept", f"passing thought {number}")
    for thread in threads:
        thread.join()
    assert counts == [5_000] * 8


def test_the_operation_is_documented(shared_server: Server) -> None:
    operation = shared_server.get("/openapi.json").json["paths"][ANNOTATE_PATH]["post"]
    assert set(operation["requestBody"]["content"]) == {"text/plain", "application/json"}
    assert "example" in operation["responses"]["200"]["content"]["application/json"]


@pytest.fixture
def catalogue(url: str, sample_paths: list[Path]) -> str:
    assert run_cli("import", *sample_paths, "--database", url).returncode == 0
    return url


def parse_csv(output: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(output)))


def test_the_command_counts_the_terms_of_each_document(catalogue: str, tmp_path: Path) -> None:
    first_file, other = tmp_path / "one.txt", tmp_path / "other.txt"
    first_file.write_text("Working memory and working memories; the Stroop task.")
    other.write_bytes("naïve working memory".encode("cp1252"))
    result = run_cli("annotate", first_file, other, "--database", catalogue)
    assert result.returncode == 0
    assert f"{other} is not UTF-8" in result.stderr
    counts = {(row["document"], row["name"], row["collection"]): row["count"] for row in parse_csv(result.stdout)}
    assert counts[str(first_file), "working memory", "concept"] == "2"
    assert counts[str(first_file), "Stroop task", "task"] == "1"
    assert counts[str(other), "working memory", "concept"] == "1"
    tasks_only = run_cli(
        "annotate", first_file, "--collection", "task", "-o", tmp_path / "counts.csv", "--database", catalogue
    )
    assert (tasks_only.returncode, tasks_only.stdout) == (0, "")
    assert {row["collection"] for row in parse_csv((tmp_path / "counts.csv").read_text())} == {"task"}
    second_result = run_cli(
        "annotate", first_file, "--collection", "task", "--collection", "concept", "--database", catalogue
    )
    assert {row["collection"] for row in parse_csv(second_result.stdout)} == {"concept", "task"}


def test_the_command_prints_every_mention_as_json(catalogue: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("— working\nmemory")
    (tmp_path / "none.txt").write_text("")
    result = run_cli("annotate", tmp_path / "text.txt", tmp_path / "none.txt", "--json", "--database", catalogue)
    first, second = map(json.loads, result.stdout.splitlines())
    assert [(annotation["start"], annotation["end"], annotation["name"]) for annotation in first["annotations"]] == [
        (2, 16, "working memory")
    ]
    assert second == {"document": str(tmp_path / "none.txt"), "annotations": []}


@pytest.fixture(scope="module")
def sample(sample_url: DatabaseUrlFactory) -> str:
    return sample_url("sqlite")


def test_the_command_reads_standard_input(sample: str) -> None:
    result = run_cli_with_input("working memory", "annotate", "-", "--database", sample)
    assert [(row["document"], row["count"]) for row in parse_csv(result.stdout)] == [("standard input", "1")]


def test_on_a_terminal_the_command_prints_a_table_unless_csv_is_requested(sample: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("working memory")
    for options, header in (([], False), (["--csv"], True)):
        printed = run_in_terminal("annotate", tmp_path / "text.txt", "--database", sample, *options)
        assert "working memory" in printed
        assert ("document,id,name,collection,count" in printed) is header


@pytest.mark.parametrize("options", [[], ["--csv"], ["--json"]])
def test_no_progress_bar_is_printed_between_results_on_a_terminal(
    sample: str, tmp_path: Path, options: list[str]
) -> None:
    (tmp_path / "text.txt").write_text("working memory")
    printed = run_in_terminal("annotate", tmp_path / "text.txt", "--database", sample, *options)
    assert "reading" not in printed
    assert "\x1b[2K" not in printed


def test_the_command_reads_a_named_pipe(sample: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    process = ForkedProcess(["annotate", str(tmp_path / "pipe"), "--database", sample], build_environment())
    (tmp_path / "pipe").write_text("working memory")
    assert [row["count"] for row in parse_csv(process.communicate(DEADLINE_SECONDS)[0])] == ["1"]


def test_all_unreadable_files_are_reported_at_once(sample: str, tmp_path: Path) -> None:
    result = run_cli("annotate", tmp_path / "a.txt", tmp_path / "b.txt", tmp_path, "--database", sample)
    assert (result.returncode, result.stdout) == (1, "")
    assert all(name in result.stderr for name in ("a.txt", "b.txt", "directory"))


def test_formulas_in_cells_are_escaped(sample: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "=cmd").write_text("working memory")
    result = run_cli("annotate", "=cmd", "--database", sample)
    assert parse_csv(result.stdout)[0]["document"] == "'=cmd"


def test_a_response_is_truncated_after_the_maximum_of_annotations_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotate, "_MAX_ANNOTATIONS", 10_000)
    terms = tuple(DictionaryTerm(f"trm_{number}", "memory", "concept") for number in range(100))
    mention = Mention(0, 6, "memory", terms)
    for mentions, expected, end in (
        (99, 9_900, b'],"truncated":false}'),
        (101, 10_000, b'],"truncated":true}'),
    ):
        chunks = list(render_annotations(iter([[mention] * mentions])))
        assert sum(chunk.count(b'"start"') for chunk in chunks) == expected
        assert chunks[-1] == end


def test_at_most_two_texts_are_read_concurrently() -> None:
    reading: list[int] = []
    concurrency: list[int] = []
    go_on = threading.Event()

    def read_text(number: int) -> Iterator[bytes]:
        reading.append(number)
        concurrency.append(len(reading))
        assert go_on.wait(DEADLINE_SECONDS)
        reading.remove(number)
        yield b"read"

    async def run_requests() -> list[bytes | None]:
        limits = Limits(Settings())
        tasks = [asyncio.create_task(read_first_chunk(read_text(number), limits)) for number in range(6)]
        while len(reading) < 2:
            await asyncio.sleep(0)
        # Without a limit, the others would have started by now.
        for _ in range(20):
            await asyncio.to_thread(str)
        go_on.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(run_requests()) == [b"read"] * 6
    assert max(concurrency) == 2


def test_a_request_gets_a_503_with_retry_after_while_names_are_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    coming: Future[Annotator] = Future()
    annotating = SimpleNamespace(get_current=lambda: coming)
    monkeypatch.setattr("lexarium.web.annotator._WAIT_SECONDS", 0)
    with pytest.raises(HTTPProblem, match="still loading") as error:
        asyncio.run(get_annotator(annotating))  # type: ignore[arg-type]
    assert (error.value.status, "Retry-After" in error.value.headers) == (503, True)


def test_loading_names_continues_after_an_error(
    database: Database, sample_paths: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import_files(database, sample_paths)
    annotating = AnnotatorCache(database, str(tmp_path))
    labelled = revisions.list_changed_labels

    def fail_after_first(connection: Connection, seq: int, revision: int, limit: int) -> list[revisions.ChangedLabels]:
        if seq:
            raise DatabaseUnavailable("The database has gone.")
        return labelled(connection, seq, revision, limit)

    monkeypatch.setattr(revisions, "list_changed_labels", fail_after_first)
    with pytest.raises(DatabaseUnavailable):
        annotating.get_current().result(DEADLINE_SECONDS)
    monkeypatch.undo()
    text = "Stroop tasks and working memory"
    batches = annotating.get_current().result(DEADLINE_SECONDS).find_mentions([text], ("concept", "task"))
    assert [mention.text for batch in batches for mention in batch] == ["Stroop tasks", "working memory"]


class TestFile:
    """The file that keeps the names for the next start."""

    @pytest.fixture
    def reads(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """Revisions from which labels are read."""
        revisions_read: list[int] = []
        list_changed_labels = revisions.list_changed_labels

        def record_read(connection: Connection, seq: int, *args: int) -> list[revisions.ChangedLabels]:
            revisions_read.append(seq)
            return list_changed_labels(connection, seq, *args)

        monkeypatch.setattr(revisions, "list_changed_labels", record_read)
        return revisions_read

    @pytest.fixture
    def start(self, database: Database, sample_paths: list[Path], tmp_path: Path) -> Callable[[], AnnotatorCache]:
        """Return a function that creates the annotator cache of a newly started process."""
        import_files(database, sample_paths)
        return lambda: AnnotatorCache(database, str(tmp_path))

    def find_texts(self, cache: AnnotatorCache, text: str) -> list[str]:
        annotator = cache.get_current().result(DEADLINE_SECONDS)
        found = [mention.text for batch in annotator.find_mentions([text], ("concept",)) for mention in batch]
        cache.get_current().result(DEADLINE_SECONDS)  # after the file is written
        return found

    def test_no_names_are_read_from_the_database_at_a_second_start(
        self, start: Callable[[], AnnotatorCache], reads: list[int]
    ) -> None:
        assert self.find_texts(start(), "a working memory") == ["working memory"]
        assert reads
        reads.clear()
        assert self.find_texts(start(), "a working memory") == ["working memory"]
        assert reads == []

    def test_after_a_start_only_changes_are_read(
        self, start: Callable[[], AnnotatorCache], reads: list[int], database: Database
    ) -> None:
        self.find_texts(start(), "")
        revision = database.get_position().revision
        with database.write() as transaction:
            save_entries(transaction, build_log_entry("flumming"))
        reads.clear()
        assert self.find_texts(start(), "flumming and working memory") == ["flumming", "working memory"]
        assert reads == [revision]

    def test_the_file_is_rewritten_after_many_changes(
        self,
        start: Callable[[], AnnotatorCache],
        reads: list[int],
        database: Database,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(annotator_cache, "_MIN_UNSAVED_CHANGES", 1)
        monkeypatch.setattr(annotator_cache, "_UNSAVED_PART", 0)
        self.find_texts(start(), "")
        with database.write() as transaction:
            save_entries(transaction, build_log_entry("flumming"), build_log_entry("grobbling"))
        self.find_texts(start(), "")
        reads.clear()
        assert self.find_texts(start(), "flumming, grobbling") == ["flumming", "grobbling"]
        assert reads == []

    @pytest.mark.parametrize("content", [b"", b"lexarium", bytes(1_000)])
    def test_a_damaged_file_is_rebuilt(
        self, start: Callable[[], AnnotatorCache], reads: list[int], tmp_path: Path, content: bytes
    ) -> None:
        self.find_texts(start(), "")
        (tmp_path / "annotator").write_bytes(content)
        assert self.find_texts(start(), "a working memory") == ["working memory"]
        reads.clear()
        self.find_texts(start(), "")
        assert reads == []

    def test_the_file_of_another_catalogue_is_not_used(
        self, start: Callable[[], AnnotatorCache], reads: list[int], database: Database
    ) -> None:
        self.find_texts(start(), "")
        with database.backend.engine.begin() as connection:
            connection.execute(update(catalogue_table).values(epoch="restored"))
        reads.clear()
        assert self.find_texts(start(), "a working memory") == ["working memory"]
        assert reads[0] == 0

    def test_annotation_works_without_a_writable_folder(
        self, database: Database, sample_paths: list[Path], tmp_path: Path
    ) -> None:
        import_files(database, sample_paths)
        (tmp_path / "file").write_text("")
        cache = AnnotatorCache(database, str(tmp_path / "file" / "folder"))
        assert self.find_texts(cache, "a working memory") == ["working memory"]

    def test_a_server_reads_the_file_written_by_the_previous_one(self, url: str, tmp_path: Path) -> None:
        path = tmp_path / "annotator"
        with Server(url, "--sample", LEXARIUM_INDEX=str(tmp_path)) as server:
            assert list_mentions(server, "a working memory") == ["working memory"]
            wait_until(path.exists)
        written = path.stat().st_ino
        with Server(url, LEXARIUM_INDEX=str(tmp_path)) as server:
            assert list_mentions(server, "a working memory") == ["working memory"]
        assert path.stat().st_ino == written  # Names read from the database would have been written.
