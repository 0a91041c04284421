"""Exporting: any format, any state, to a file or over HTTP."""

import asyncio
import bz2
import gzip
import json
import lzma
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from starlette.requests import Request
from starlette.responses import StreamingResponse

from lexarium.domain.about import About
from lexarium.domain.accounts import Role
from lexarium.domain.changes import Change
from lexarium.domain.collections import COLLECTIONS
from lexarium.exchange.formats import FORMATS, Format
from lexarium.service.access import Caller, add_account
from lexarium.service.desk import Desk
from lexarium.service.exporting import export
from lexarium.service.importing import import_files
from lexarium.settings import Settings
from lexarium.store import versions
from lexarium.store.database import Database
from lexarium.store.migrate import open_database
from lexarium.web.encodings import encoded_pieces
from lexarium.web.limits import Limits
from lexarium.web.v1.export import export as served_export
from tests.databases import ENGINES, NewUrl
from tests.server import Server, run
from tests.test_commands import on_terminal
from tests.test_import import term

ABOUT = About("Ours", "CC0-1.0", "A <library>", "de", "https://example.org/terms/")
STREAMED = ("v-alpha", "jsonl")
DECOMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".BZ2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


@pytest.fixture
def grown(database: Database, tmp_path: Path) -> Database:
    """A catalogue that is read in several parts, with relations across them."""
    parents = [{"relationship": "KINDOF", "direction": "parent", "id": "trm_n0001", "name": ""}]
    records = [
        {**term(f"n{number:04}"), "type": "concept", "relationships": parents if number > 1 else []}
        for number in range(1, 2_500)
    ]
    path = tmp_path / "concept.json"
    path.write_text(json.dumps(records))
    import_files(database, [path])
    return database


def rewrite(database: Database) -> None:
    """Change what an export that has begun is still to tell: names, relations, states, and what there is."""
    caller = Caller(add_account(database, "Ada", Role.CURATOR), Role.CURATOR, "tok_test")
    concept = COLLECTIONS["concept"]
    with database.write() as transaction:
        desk = Desk(transaction, caller)
        desk.patch(desk.current(concept, "trm_n0001"), {"name": "another name"})
        desk.retire(desk.current(concept, "trm_n2400"))
        desk.merge(desk.current(concept, "trm_n2300"), "trm_n2301")
        desk.unrelate(desk.current(concept, "trm_n2200"), "KINDOF", "trm_n0001")
        desk.create(concept, {"name": "n2250", "relations": {"KINDOF": ["trm_n2201"]}})


@pytest.mark.parametrize("name", STREAMED)
def test_an_export_stays_of_one_state_while_others_write(grown: Database, name: str) -> None:
    wanted = FORMATS[name]
    before = b"".join(export(grown, ABOUT, wanted))
    pieces = export(grown, ABOUT, wanted)
    begun = next(pieces)
    rewrite(grown)
    assert begun + b"".join(pieces) == before
    assert b"".join(export(grown, ABOUT, wanted)) != before
    assert b"".join(export(grown, ABOUT, wanted, as_of=2_499)) == before


def test_only_the_collections_that_are_asked_for_are_exported(database: Database, sample_paths: list[Path]) -> None:
    import_files(database, sample_paths)
    wanted = [COLLECTIONS["task"], COLLECTIONS["contrast"]]
    shapes = json.loads(b"".join(export(database, ABOUT, FORMATS["v-alpha"], wanted)))
    assert {shape["type"] for shape in shapes} == {"task", "contrast"}
    lines = b"".join(export(database, ABOUT, FORMATS["jsonl"], wanted)).splitlines()
    assert {json.loads(line)["collection"] for line in lines[1:]} == {"task", "contrast"}
    assert len(lines) == len(shapes) + 1


@pytest.fixture
def at(tmp_path: Path, sample_paths: list[Path]) -> str:
    url = f"sqlite:///{tmp_path}/catalogue.db"
    assert run("import", *sample_paths, "--database", url).returncode == 0
    return url


def test_the_name_of_the_file_tells_its_format_and_whether_it_is_compressed(at: str, tmp_path: Path) -> None:
    plain = run("export", "--format", "jsonl", "--database", at).stdout
    for ending, decompress in DECOMPRESSED.items():
        path = tmp_path / f"all.jsonl{ending}"
        assert run("export", "-o", path, "--database", at).returncode == 0
        assert decompress(path.read_bytes()).decode() == plain
    path = tmp_path / "all.JSON"
    assert run("export", "-o", path, "--database", at).returncode == 0
    assert path.read_text() == run("export", "--database", at).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "owl"], "can only be imported"),
        (["-o", "all.owl"], "can only be imported"),
        (["-o", "all.pdf"], "does not tell a format"),
        (["-o", "all.pdf.gz"], "does not tell a format"),
        (["-o", "all.jsonl.zip"], "would be an archive"),
        (["-o", "all.jsonl.zip", "--format", "jsonl"], "would be an archive"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(
    at: str, tmp_path: Path, arguments: list[str], said: str
) -> None:
    arguments = [str(tmp_path / each) if each.startswith("all.") else each for each in arguments]
    before = set(tmp_path.iterdir())
    result = run("export", *arguments, "--database", at)
    assert (result.returncode, result.stdout) == (1, "")
    assert said in result.stderr
    assert "jsonl" in result.stderr
    assert set(tmp_path.iterdir()) == before


def test_a_long_export_to_a_file_shows_its_progress_on_a_terminal(at: str, tmp_path: Path) -> None:
    for name in ("all.json", "all.jsonl"):
        seen = on_terminal("export", "-o", tmp_path / name, "--database", at)
        assert "writing" in seen
        assert "100%" in seen


WRITTEN = [each for each in FORMATS.values() if each.writes]


@pytest.fixture(scope="module", params=ENGINES)
def served(request: pytest.FixtureRequest, new_url: NewUrl, sample_paths: list[Path]) -> Iterator[Server]:
    url = new_url(request.param)
    assert run("import", *sample_paths, "--database", url).returncode == 0
    with Server(url, LEXARIUM_TITLE="Ours & <theirs>", LEXARIUM_LICENCE="CC0-1.0") as server:
        token = {"Authorization": f"Bearer {server.token('curator')}", "Content-Type": "application/json"}
        assert server.request("POST", "/api/v1/releases", token, json.dumps({"name": "2026.1"})).status == 201
        one = server.get("/api/v-alpha/concept").json[0]["id"]
        assert server.request("DELETE", f"/api/v1/concept/{one}", {**token, "If-Match": "*"}).status == 200
        yield server


EXPORT = "/api/v1/export"


@pytest.mark.parametrize("each", WRITTEN, ids=[each.name for each in WRITTEN])
def test_an_export_over_http_is_what_the_command_writes(served: Server, each: Format) -> None:
    variables = {"LEXARIUM_TITLE": "Ours & <theirs>", "LEXARIUM_LICENCE": "CC0-1.0"}
    written = run("export", "--format", each.name, "--database", served.url, **variables).stdout
    by_name = served.get(f"{EXPORT}?format={each.name}")
    by_type = served.get(EXPORT, Accept=f"image/png, {each.media_type};q=0.5")
    for answer in (by_name, by_type):
        assert answer.status == 200
        assert answer.body.decode().splitlines() == written.splitlines()
        assert answer.headers["content-type"].partition(";")[0] == each.media_type
        name = answer.headers["content-disposition"].partition("filename=")[2].strip('"')
        assert name == f"ours-theirs-r437{each.extensions[0]}"


@pytest.mark.parametrize("each", WRITTEN, ids=[each.name for each in WRITTEN])
def test_a_release_and_a_collection_of_it_can_be_had(served: Server, each: Format) -> None:
    answer = served.get(f"{EXPORT}?format={each.name}&release=2026.1&collection=task")
    assert answer.status == 200
    assert f"ours-theirs-task-2026.1{each.extensions[0]}" in answer.headers["content-disposition"]
    assert answer.body == served.get(f"{EXPORT}?format={each.name}&as_of=436&collection=task").body
    assert b"Stroop" in answer.body
    assert b"dso_" not in answer.body


def test_an_export_is_known_again_and_compressed(served: Server) -> None:
    answer = served.get(EXPORT)
    etag = answer.headers["etag"]
    again = served.get(EXPORT, If_None_Match=etag)
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
    head = served.request("HEAD", EXPORT)
    assert (head.status, head.body, head.headers["etag"]) == (200, b"", etag)
    assert gzip.decompress(served.get(EXPORT, Accept_Encoding="gzip").body) == answer.body
    zstd = served.get(EXPORT, Accept_Encoding="zstd")
    assert zstandard.ZstdDecompressor().decompressobj().decompress(zstd.body) == answer.body
    others = ("?format=csv", "?collection=task", "?as_of=436", "?release=2026.1")
    etags = {etag, zstd.headers["etag"], *(served.get(EXPORT + other).headers["etag"] for other in others)}
    assert len(etags) == len(others) + 1  # the release is of the revision 436
    assert answer.headers["vary"] == "Accept, Accept-Encoding"
    assert answer.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize(
    ("query", "accept", "status", "said"),
    [
        ("?format=pdf", "", 422, "jsonl"),
        ("?format=owl", "", 422, "can only be imported"),
        ("?collection=animal", "", 422, "concept_class"),
        ("?fromat=csv", "", 422, "fromat"),
        ("?release=2026.1&as_of=1", "", 422, "as_of"),
        ("?as_of=99999", "", 422, "437"),
        ("?release=none", "", 404, "none"),
        ("", "image/png", 406, "skos (text/turtle)"),
    ],
)
def test_what_cannot_be_exported_is_told(served: Server, query: str, accept: str, status: int, said: str) -> None:
    answer = served.get(EXPORT + query, **({"Accept": accept} if accept else {}))
    assert answer.status == status
    assert said in answer.json["detail"]


def test_the_service_tells_where_exports_are(served: Server) -> None:
    assert served.get("/api/v1").json["links"]["export"] == EXPORT


@pytest.mark.parametrize("engine", ENGINES)
def test_slow_readers_of_exports_hold_nothing_that_others_need(engine: str, new_url: NewUrl, tmp_path: Path) -> None:
    path = tmp_path / "concept.json"
    path.write_text(json.dumps([term(f"n{number:04}", definition_text="Words. " * 300) for number in range(4_000)]))
    url = new_url(engine)
    assert run("import", path, "--database", url).returncode == 0
    with Server(url) as server:
        token, slow = server.token("curator"), []
        for number in range(60):
            connection = server.connect()
            connection.request("GET", f"{EXPORT}?format={('v-alpha', 'jsonl', 'skos')[number % 3]}")
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.append(connection)
        assert server.post_json("/api/v-alpha/task", {"name": "meanwhile"}, token).status == 201
        assert server.get(f"{EXPORT}?collection=task").json[0]["name"] == "meanwhile"
        for connection in slow:
            connection.close()


@pytest.mark.parametrize("encoding", ["identity", "gzip", "zstd"])
def test_however_little_is_wanted_of_a_long_log_each_piece_takes_one_read_of_it(
    grown: Database, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    reads = []
    since = versions.since

    def counted(*given: Any) -> list[Change]:
        reads.append(given)
        return since(*given)

    monkeypatch.setattr(versions, "since", counted)
    document = export(grown, ABOUT, FORMATS["jsonl"], [COLLECTIONS["task"]])
    for number, _ in enumerate(encoded_pieces(encoding, document), 1):
        assert len(reads) <= number
    assert len(reads) > 2


def test_an_export_over_http_never_reads_the_catalogue_on_the_event_loop(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, reads = Database.read, []

    def watched(self: Database) -> Any:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        reads.append(self)
        return read(self)

    monkeypatch.setattr(Database, "read", watched)
    settings = Settings.of({})

    async def answered() -> bytes:
        request = Request({"type": "http", "method": "GET", "headers": [], "query_string": b""})
        answer = await served_export(request, database, settings, Limits(settings), "csv")
        assert isinstance(answer, StreamingResponse)
        return b"".join([piece async for piece in answer.body_iterator if isinstance(piece, bytes)])

    assert b"definition" in asyncio.run(answered())
    assert reads


@pytest.mark.parametrize("format", ["skos", "rdfxml", "ntriples", "jsonld"])
def test_rdf_of_a_catalogue_that_has_moved_to_another_base_keeps_its_ids(
    new_url: NewUrl, sample_paths: list[Path], tmp_path: Path, format: str
) -> None:
    before, after = open_database(new_url("sqlite")), open_database(new_url("sqlite"))
    import_files(before, sample_paths)
    path = tmp_path / f"all{FORMATS[format].extensions[0]}"
    path.write_bytes(b"".join(export(before, ABOUT, FORMATS[format])))
    moved = replace(ABOUT, base="https://new.example/")
    report = import_files(after, [path], about=moved)
    assert sum(report.created.values()) == sum(import_files(before, sample_paths).unchanged.values())
    ours, theirs = (json.loads(b"".join(export(each, ABOUT, FORMATS["v-alpha"]))) for each in (before, after))
    assert [(each["id"], each.get("relationships")) for each in theirs] == [
        (each["id"], each.get("relationships")) for each in ours
    ]
    before.close()
    after.close()
