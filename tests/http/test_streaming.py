"""A collection larger than the cache limit is streamed, with the same content."""

import gzip
import json
import socket
from collections.abc import Iterator

import pytest
import zstandard

from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.imports import build_term
from tests.support.server import Server, run_cli

COUNT = 6_000


@pytest.fixture(scope="module", params=ENGINES)
def large_catalogue(
    request: pytest.FixtureRequest, new_url: DatabaseUrlFactory, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, list[dict[str, object]]]]:
    folder = tmp_path_factory.mktemp("large")
    records = [build_term(f"n{number:06}", definition_text=f"Definition {number} " * 20) for number in range(COUNT)]
    path = folder / "concept.json"
    path.write_text(json.dumps(records))
    url = new_url(request.param)
    assert run_cli("import", path, "--database", url).returncode == 0
    with Server(url, LEXARIUM_CACHE_MB="1") as server:
        yield server, records


LargeCatalogue = tuple[Server, list[dict[str, object]]]


def test_a_collection_larger_than_the_cache_limit_is_sent_completely(large_catalogue: LargeCatalogue) -> None:
    server, records = large_catalogue
    for _ in range(2):
        response = server.get("/api/v-alpha/concept")
        assert response.json == records
        assert "content-length" not in response.headers
        assert response.headers["allow"] == "GET, POST, HEAD, OPTIONS"
        assert response.headers["vary"] == "Accept"
        assert response.headers["content-type"] == "application/json"


def test_a_streamed_collection_is_compressed(large_catalogue: LargeCatalogue) -> None:
    server, records = large_catalogue
    zipped = server.get("/api/v-alpha/concept", Accept_Encoding="gzip")
    assert json.loads(gzip.decompress(zipped.body)) == records
    zstd = server.get("/api/v-alpha/concept", Accept_Encoding="zstd")
    assert json.loads(zstandard.ZstdDecompressor().decompressobj().decompress(zstd.body)) == records


def test_a_streamed_collection_supports_etags_and_head(large_catalogue: LargeCatalogue) -> None:
    server, _ = large_catalogue
    etag = server.get("/api/v-alpha/concept").headers["etag"]
    assert server.get("/api/v-alpha/concept", If_None_Match=etag).status == 304
    head = server.request("HEAD", "/api/v-alpha/concept")
    assert (head.status, head.body, head.headers["etag"]) == (200, b"", etag)


def test_search_results_are_streamed(large_catalogue: LargeCatalogue) -> None:
    server, records = large_catalogue
    hits = server.get("/api/v-alpha/search").json
    assert [hit["ID(c)"] for hit in hits] == list(range(1, len(records) + 1))


def test_single_records_of_a_large_collection_are_cached(large_catalogue: LargeCatalogue) -> None:
    server, records = large_catalogue
    response = server.get(f"/api/v-alpha/concept?id={records[5]['id']}")
    assert response.json["name"] == records[5]["name"]
    assert "content-length" in response.headers


def test_clients_that_disconnect_during_a_stream_do_not_block_writes(large_catalogue: LargeCatalogue) -> None:
    server, _ = large_catalogue
    token = server.create_token("curator")
    for number in range(20):
        connection = server.connect()
        connection.request("GET", "/api/v-alpha/concept")
        connection.getresponse().read(1000)
        connection.close()
        response = server.post_json("/api/v-alpha/task", {"name": f"after a leaver {number}"}, token)
        assert response.status == 201
        assert server.get(response.headers["location"]).json["id"] == response.json["id"]


def test_a_streamed_response_is_a_consistent_snapshot_during_writes(large_catalogue: LargeCatalogue) -> None:
    server, _ = large_catalogue
    before = server.get("/api/v-alpha/concept")
    token = server.create_token("curator")
    connection = server.connect()
    connection.request("GET", "/api/v-alpha/concept")
    response = connection.getresponse()
    start = response.read(1000)
    names = ("0 comes first", "n003000 comes in the middle", "z comes last")
    records = [server.post_json("/api/v-alpha/concept", {"name": name}, token).json for name in names]
    assert start + response.read() == before.body
    assert response.getheader("ETag") == before.headers["etag"]
    connection.close()
    after = server.get("/api/v-alpha/concept").json
    assert {record["id"] for record in after} >= {record["id"] for record in records}


def test_slow_readers_do_not_block_other_requests(large_catalogue: LargeCatalogue) -> None:
    server, records = large_catalogue
    slow = []
    for _ in range(60):
        connection = server.connect()
        connection.request("GET", "/api/v-alpha/concept")
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.append(connection)
    assert server.get(f"/api/v-alpha/concept?id={records[7]['id']}").status == 200
    token = server.create_token("curator")
    assert server.post_json("/api/v-alpha/task", {"name": "meanwhile"}, token).status == 201
    for connection in slow:
        connection.close()


@pytest.mark.full
def test_a_worker_without_a_cache_serves_requests(sample_url: DatabaseUrlFactory) -> None:
    with Server(sample_url("sqlite"), LEXARIUM_CACHE_MB="0") as server:
        records = server.get("/api/v-alpha/task").json
        assert server.get(f"/api/v-alpha/task?id={records[0]['id']}").json["type"] == "task"
        assert server.get("/api/v-alpha/task?id=none").status == 404
