"""Export: any format and revision, to a file or over HTTP."""

import asyncio
import bz2
import gzip
import json
import lzma
import socket
from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard
from starlette.requests import Request
from starlette.responses import StreamingResponse

from lexarium.domain.account import Role
from lexarium.domain.change import Change
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.vocabulary import DEFAULT_BASE, Vocabulary
from lexarium.formats.registry import FORMATS, Format
from lexarium.services.access.accounts import add_account
from lexarium.services.access.permissions import Caller
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.services.vocabularies.access import get_read_scope
from lexarium.settings import Settings
from lexarium.store import revisions
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from lexarium.web.http.encodings import encode_chunks
from lexarium.web.http.limits import Limits
from lexarium.web.v1.operations.export import ExportParameters
from lexarium.web.v1.operations.export import export as served_export
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.imports import build_term
from tests.support.polling import wait_until
from tests.support.record_editor import RecordEditor
from tests.support.server import Server, run_cli
from tests.support.terminal import run_in_terminal

VOCABULARY = Vocabulary(
    title="Ours",
    licence="CC0-1.0",
    publisher="A <library>",
    languages=("de",),
    base="https://example.org/terms/",
)
STREAMED_FORMATS = ("v-alpha", "jsonl")
DECOMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".BZ2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


@pytest.fixture
def large_database(database: Database, tmp_path: Path) -> Database:
    """Catalogue that is exported in several batches, with relations between them."""
    parents = [{"relationship": "KINDOF", "direction": "parent", "id": "trm_n0001", "name": ""}]
    records = [
        {**build_term(f"n{number:04}"), "type": "concept", "relationships": parents if number > 1 else []}
        for number in range(1, 2_500)
    ]
    path = tmp_path / "concept.json"
    path.write_text(json.dumps(records))
    import_files(database, [path])
    return database


def apply_edits(database: Database) -> None:
    """Change names, relations, states and records while an export is running."""
    caller = Caller(add_account(database, "Ada", Role.CURATOR), Role.CURATOR, "tok_test")
    concept = COLLECTIONS["concept"]
    with database.write() as transaction:
        writer = RecordEditor(transaction, caller)
        writer.patch(writer.get_published(concept, "trm_n0001"), {"name": "another name"})
        writer.retire(writer.get_published(concept, "trm_n2400"))
        writer.merge(writer.get_published(concept, "trm_n2300"), "trm_n2301")
        writer.remove_relation(writer.get_published(concept, "trm_n2200"), "KINDOF", "trm_n0001")
        writer.create(concept, {"name": "n2250", "relations": {"KINDOF": ["trm_n2201"]}})


@pytest.mark.parametrize("name", STREAMED_FORMATS)
def test_an_export_is_a_consistent_snapshot_during_concurrent_writes(large_database: Database, name: str) -> None:
    file_format = FORMATS[name]
    before = b"".join(export_records(large_database, VOCABULARY, file_format))
    chunks = export_records(large_database, VOCABULARY, file_format)
    first_chunk = next(chunks)
    apply_edits(large_database)
    assert first_chunk + b"".join(chunks) == before
    assert b"".join(export_records(large_database, VOCABULARY, file_format)) != before
    assert b"".join(export_records(large_database, VOCABULARY, file_format, as_of=2_499)) == before


def test_only_requested_collections_are_exported(database: Database, sample_paths: list[Path]) -> None:
    import_files(database, sample_paths)
    collections = [COLLECTIONS["task"], COLLECTIONS["contrast"]]
    shapes = json.loads(b"".join(export_records(database, VOCABULARY, FORMATS["v-alpha"], collections)))
    assert {shape["type"] for shape in shapes} == {"task", "contrast"}
    lines = b"".join(export_records(database, VOCABULARY, FORMATS["jsonl"], collections)).splitlines()
    assert {json.loads(line)["collection"] for line in lines[1:]} == {"task", "contrast"}
    assert len(lines) == len(shapes) + 1


@pytest.fixture
def database_url(tmp_path: Path, sample_paths: list[Path]) -> str:
    url = f"sqlite:///{tmp_path}/catalogue.db"
    assert run_cli("import", *sample_paths, "--database", url).returncode == 0
    return url


def test_the_file_name_determines_format_and_compression(database_url: str, tmp_path: Path) -> None:
    uncompressed = run_cli("export", "--format", "jsonl", "--database", database_url).stdout
    for ending, decompress in DECOMPRESSORS.items():
        path = tmp_path / f"all.jsonl{ending}"
        assert run_cli("export", "-o", path, "--database", database_url).returncode == 0
        assert decompress(path.read_bytes()).decode() == uncompressed
    path = tmp_path / "all.JSON"
    assert run_cli("export", "-o", path, "--database", database_url).returncode == 0
    assert path.read_text() == run_cli("export", "--database", database_url).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "all.pdf"], "Cannot detect the format of"),
        (["-o", "all.pdf.gz"], "Cannot detect the format of"),
        (["-o", "all.jsonl.zip"], "would be an archive"),
        (["-o", "all.jsonl.zip", "--format", "jsonl"], "would be an archive"),
    ],
)
def test_an_invalid_export_is_rejected_before_a_file_is_created(
    database_url: str, tmp_path: Path, arguments: list[str], message: str
) -> None:
    arguments = [str(tmp_path / argument) if argument.startswith("all.") else argument for argument in arguments]
    before = set(tmp_path.iterdir())
    result = run_cli("export", *arguments, "--database", database_url)
    assert (result.returncode, result.stdout) == (1, "")
    assert message in result.stderr
    assert "jsonl" in result.stderr
    assert set(tmp_path.iterdir()) == before


def test_a_long_export_to_a_file_shows_its_progress_on_a_terminal(database_url: str, tmp_path: Path) -> None:
    for name in ("all.json", "all.jsonl"):
        output = run_in_terminal("export", "-o", tmp_path / name, "--database", database_url)
        assert "writing" in output
        assert "100%" in output


WRITABLE_FORMATS = [file_format for file_format in FORMATS.values() if file_format.can_write]
RECORD_FORMATS = [file_format for file_format in WRITABLE_FORMATS if not file_format.needs_records]


@pytest.fixture(scope="module", params=ENGINES)
def sample_server(
    request: pytest.FixtureRequest, new_url: DatabaseUrlFactory, sample_paths: list[Path]
) -> Iterator[Server]:
    url = new_url(request.param)
    assert run_cli("import", *sample_paths, "--database", url).returncode == 0
    with Server(url, LEXARIUM_TITLE="Ours & <theirs>", LEXARIUM_LICENCE="CC0-1.0") as server:
        token = {"Authorization": f"Bearer {server.create_token('curator')}", "Content-Type": "application/json"}
        assert server.request("POST", "/api/v1/releases", token, json.dumps({"name": "2026.1"})).status == 201
        record_id = server.get("/api/v-alpha/concept").json[0]["id"]
        assert server.request("DELETE", f"/api/v1/concept/{record_id}", {**token, "If-Match": "*"}).status == 200
        yield server


EXPORT_PATH = "/api/v1/export"


@pytest.mark.parametrize("file_format", WRITABLE_FORMATS, ids=attrgetter("name"))
def test_an_export_over_http_equals_that_of_the_command(sample_server: Server, file_format: Format) -> None:
    variables = {"LEXARIUM_TITLE": "Ours & <theirs>", "LEXARIUM_LICENCE": "CC0-1.0"}
    output = run_cli("export", "--format", file_format.name, "--database", sample_server.url, **variables).stdout
    # The address of records without a base, which the command cannot know.
    host = DEFAULT_BASE.removeprefix("http://").rstrip("/")
    by_name = sample_server.get(f"{EXPORT_PATH}?format={file_format.name}", Host=host)
    responses = [by_name]
    # OWL shares its type with SKOS in RDF/XML.
    if file_format.name != "owl":
        accepted = f"image/png, {file_format.media_type};q=0.5"
        responses.append(sample_server.get(EXPORT_PATH, Accept=accepted, Host=host))
    for response in responses:
        assert response.status == 200
        assert response.body.decode().splitlines() == output.splitlines()
        assert response.headers["content-type"].partition(";")[0] == file_format.media_type
        name = response.headers["content-disposition"].partition("filename=")[2].strip('"')
        assert name == f"ours-theirs-r456{file_format.extensions[0]}"


@pytest.mark.parametrize("file_format", RECORD_FORMATS, ids=attrgetter("name"))
def test_a_collection_of_a_release_can_be_exported(sample_server: Server, file_format: Format) -> None:
    response = sample_server.get(f"{EXPORT_PATH}?format={file_format.name}&release=2026.1&collection=task")
    assert response.status == 200
    assert f"ours-theirs-task-2026.1{file_format.extensions[0]}" in response.headers["content-disposition"]
    assert response.body == sample_server.get(f"{EXPORT_PATH}?format={file_format.name}&as_of=455&collection=task").body
    assert b"Stroop" in response.body
    assert b"dso_" not in response.body


def test_an_export_is_revalidated_and_compressed(sample_server: Server) -> None:
    response = sample_server.get(EXPORT_PATH)
    etag = response.headers["etag"]
    second_response = sample_server.get(EXPORT_PATH, If_None_Match=etag)
    assert (second_response.status, second_response.body, second_response.headers["etag"]) == (304, b"", etag)
    head = sample_server.request("HEAD", EXPORT_PATH)
    assert (head.status, head.body, head.headers["etag"]) == (200, b"", etag)
    assert gzip.decompress(sample_server.get(EXPORT_PATH, Accept_Encoding="gzip").body) == response.body
    zstd = sample_server.get(EXPORT_PATH, Accept_Encoding="zstd")
    assert zstandard.ZstdDecompressor().decompressobj().decompress(zstd.body) == response.body
    other_queries = ("?format=csv", "?collection=task", "?as_of=455", "?release=2026.1")
    etags = {
        etag,
        zstd.headers["etag"],
        *(sample_server.get(EXPORT_PATH + other).headers["etag"] for other in other_queries),
    }
    assert len(etags) == len(other_queries) + 2
    assert response.headers["vary"] == "Accept, Accept-Encoding"
    assert response.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize(
    ("query", "accept", "status", "message"),
    [
        ("?format=pdf", "", 422, "jsonl"),
        ("?collection=animal", "", 422, "concept_class"),
        ("?fromat=csv", "", 422, "fromat"),
        ("?release=2026.1&as_of=1", "", 422, "as_of"),
        ("?as_of=99999", "", 422, "456"),
        ("?release=none", "", 404, "none"),
        ("", "image/png", 406, "skos (text/turtle)"),
    ],
)
def test_an_invalid_export_request_is_reported(
    sample_server: Server, query: str, accept: str, status: int, message: str
) -> None:
    response = sample_server.get(EXPORT_PATH + query, **({"Accept": accept} if accept else {}))
    assert response.status == status
    assert message in response.json["detail"]


def test_the_service_document_links_to_the_export(sample_server: Server) -> None:
    assert sample_server.get("/api/v1").json["links"]["export"] == EXPORT_PATH


@pytest.mark.full
@pytest.mark.parametrize("engine", ENGINES)
def test_slow_readers_of_exports_block_no_other_requests(
    engine: str, new_url: DatabaseUrlFactory, tmp_path: Path
) -> None:
    path = tmp_path / "concept.json"
    path.write_text(
        json.dumps([build_term(f"n{number:04}", definition_text="Words. " * 3_000) for number in range(400)])
    )
    url = new_url(engine)
    assert run_cli("import", path, "--database", url).returncode == 0
    with Server(url) as server:
        token, slow = server.create_token("curator"), []
        for number in range(60):
            connection = server.connect()
            connection.request("GET", f"{EXPORT_PATH}?format={('v-alpha', 'jsonl', 'skos')[number % 3]}")
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.append(connection)
        assert server.post_json("/api/v-alpha/task", {"name": "meanwhile"}, token).status == 201
        # On a busy machine, starting the others may take all places for heavy requests for a moment.
        wait_until(lambda: server.get(f"{EXPORT_PATH}?collection=task").status == 200)
        assert server.get(f"{EXPORT_PATH}?collection=task").json[0]["name"] == "meanwhile"
        for connection in slow:
            connection.close()


@pytest.mark.parametrize(
    "encoding", ["identity", *(pytest.param(name, marks=pytest.mark.full) for name in ("gzip", "zstd"))]
)
def test_each_chunk_of_an_export_needs_at_most_one_read_of_the_log(
    large_database: Database, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    reads = []
    since = revisions.list_since

    def count_read(*args: Any) -> list[Change]:
        reads.append(args)
        return since(*args)

    monkeypatch.setattr(revisions, "list_since", count_read)
    document = export_records(large_database, VOCABULARY, FORMATS["jsonl"], [COLLECTIONS["task"]])
    for number, _ in enumerate(encode_chunks(encoding, document), 1):
        assert len(reads) <= number
    assert len(reads) > 2


def test_an_export_over_http_never_reads_the_catalogue_on_the_event_loop(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    original_read, reads = Database.read, []

    def check_read(self: Database) -> Any:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        reads.append(self)
        return original_read(self)

    monkeypatch.setattr(Database, "read", check_read)
    settings = Settings.from_environment({})

    async def export_csv() -> bytes:
        request = Request({"type": "http", "method": "GET", "headers": [], "query_string": b""})
        limits, address = Limits(settings), DEFAULT_BASE
        site = SimpleNamespace(database=database, limits=limits, settings=settings, get_base=lambda _: address)
        context: Any = SimpleNamespace(site=site, request=request, reader=None, get_scope=partial(get_read_scope, None))
        query = ExportParameters.model_validate({"format": "csv"})
        response = await served_export(context, query)
        assert isinstance(response, StreamingResponse)
        return b"".join([chunk async for chunk in response.body_iterator if isinstance(chunk, bytes)])

    assert b"definition" in asyncio.run(export_csv())
    assert reads


@pytest.mark.parametrize(
    "format",
    ["skos", "owl", "obo", *(pytest.param(name, marks=pytest.mark.full) for name in ("rdfxml", "ntriples", "jsonld"))],
)
def test_rdf_and_obo_exports_recreate_the_catalogue_under_another_base(
    new_url: DatabaseUrlFactory, sample_paths: list[Path], tmp_path: Path, format: str
) -> None:
    before, after = open_database(new_url("sqlite")), open_database(new_url("sqlite"))
    count = sum(import_files(before, sample_paths).created.values())
    path = tmp_path / f"all{FORMATS[format].extensions[0]}"
    path.write_bytes(b"".join(export_records(before, VOCABULARY, FORMATS[format])))
    report = run_import(after, ImportRequest([path]))
    assert (report.vocabulary, sum(report.created.values())) == ("main", count)
    assert [kind.message for kind in report.warnings.kinds if kind.is_loss] == []
    report = run_import(before, ImportRequest([path]))
    assert (sum(report.unchanged.values()), report.has_changes) == (count, False)
    exported_before, exported_after = (
        b"".join(export_records(database, VOCABULARY, FORMATS["v-alpha"])) for database in (before, after)
    )
    assert exported_after == exported_before
    before.close()
    after.close()
