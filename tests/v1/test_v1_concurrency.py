"""Concurrent clients on several workers: nothing is lost, duplicated or reordered."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from lexarium.services.maintenance.database_check import check_database
from lexarium.store.database import Database
from tests.support.change_stream import ChangeStream
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.polling import DEADLINE_SECONDS, wait_until
from tests.support.server import HttpResponse, Server

JSON = "application/json"


@pytest.fixture(scope="module", params=ENGINES)
def workers(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> Iterator[Server]:
    """Server of three processes shared by the tests, on each engine."""
    url = new_url(request.param)
    with Server(url, "--workers", "3") as running:
        wait_until(lambda: running.get("/api/v1").status == 200)
        yield running
    database = Database(url)
    assert check_database(database).problems == []
    database.close()


class ConcurrentClient:
    """Client with a token."""

    def __init__(self, server: Server, token: str) -> None:
        self._server = server
        self._token = token
        self.id: str = self.send("GET", "/me").json["id"]
        # Revision before this client's first write.
        self.start_revision = get_revision(server)

    def send(self, method: str, path: str, body: object = None, **headers: str) -> HttpResponse:
        all_headers = {"Authorization": f"Bearer {self._token}", "Content-Type": JSON}
        all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self._server.request(method, f"/api/v1{path}", all_headers, None if body is None else json.dumps(body))

    def create(self, name: str, collection: str = "concept", **fields: object) -> dict[str, Any]:
        response = self.send("POST", f"/{collection}", {"name": name, **fields})
        assert response.status == 201, response.body
        record: dict[str, Any] = response.json
        return record


@pytest.fixture
def client(workers: Server) -> ConcurrentClient:
    return ConcurrentClient(workers, workers.create_token("curator"))


def get_revision(server: Server) -> int:
    number: int = server.get("/api/v1").json["revision"]
    return number


def run_at_once(*actions: Callable[[], Any]) -> list[Any]:
    """Run actions at the same time and return their results."""
    start = threading.Barrier(len(actions))

    def begin(action: Callable[[], Any]) -> Any:
        start.wait(DEADLINE_SECONDS)
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(begin, actions))


def read_feed(server: Server, since: int) -> list[dict[str, Any]]:
    """Return all changes after a seq."""
    changes: list[dict[str, Any]] = []
    while items := server.get(f"/api/v1/changes?since={since}&limit=1000").json["items"]:
        changes += items
        since = items[-1]["seq"]
    return changes


def test_only_one_of_several_concurrent_edits_of_a_version_succeeds(workers: Server, client: ConcurrentClient) -> None:
    record = client.create("Raced", definition_text="0")
    path = f"/concept/{record['id']}"
    won: list[str] = []
    for number in range(1, 16):
        rivals = [f"{number}{side}" for side in "abc"]
        edit = partial(client.send, "PATCH", path, If_Match=f'"{number}"')
        responses = run_at_once(*(partial(edit, {"definition_text": text}) for text in rivals))
        assert sorted(response.status for response in responses) == [200, 412, 412]
        [winner] = [text for text, response in zip(rivals, responses, strict=True) if response.status == 200]
        [response] = [response for response in responses if response.status == 200]
        assert (response.headers["etag"], response.json["definition_text"]) == (f'"{number + 1}"', winner)
        won.append(winner)
    saved_versions = [
        change["record"]["definition_text"]
        for change in read_feed(workers, client.start_revision)
        if change["id"] == record["id"]
    ]
    assert saved_versions == ["0", *won]


def test_writers_that_retry_after_a_conflict_lose_no_update(workers: Server, client: ConcurrentClient) -> None:
    record = client.create("Shared")
    path = f"/concept/{record['id']}"

    def add(source: str) -> None:
        end = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < end:
            current = client.send("GET", path)
            change = {"sources": [*current.json["sources"], source]}
            response = client.send("PATCH", path, change, If_Match=current.headers["etag"])
            if response.status == 200:
                return
            assert response.status == 412
        raise AssertionError("an edit never came through")

    sources = [f"source {number}" for number in range(12)]
    run_at_once(*(lambda source=source: add(source) for source in sources))
    current = client.send("GET", path).json
    assert sorted(current["sources"]) == sorted(sources)
    assert current["version"] == 1 + len(sources)


def write_repeatedly(client: ConcurrentClient, name: str, times: int) -> None:
    """Create, edit and retire: three changes each time."""
    for number in range(times):
        record = client.create(f"{name} {number}", collection=("concept", "task", "disorder")[number % 3])
        path = f"/{record['collection']}/{record['id']}"
        assert client.send("PATCH", path, {"name": f"{name} {number}, changed"}, If_Match='"1"').status == 200
        assert client.send("DELETE", path, If_Match='"2"').status == 200


def test_the_paginated_feed_has_every_change_once_in_order_during_writes(
    workers: Server, client: ConcurrentClient
) -> None:
    writing = threading.Event()

    def follow(limit: int) -> list[dict[str, Any]]:
        changes: list[dict[str, Any]] = []
        since = client.start_revision
        while True:
            is_over = not writing.is_set()
            page = workers.get(f"/api/v1/changes?since={since}&limit={limit}").json
            changes += page["items"]
            since = page["next"]
            if is_over and not page["items"]:
                return changes

    writing.set()
    with ThreadPoolExecutor(11) as pool:
        readers = [pool.submit(follow, limit) for limit in (1, 7, 1000)]
        writers = [pool.submit(write_repeatedly, client, f"writer {number}", 6) for number in range(8)]
        for writer in writers:
            writer.result()
        writing.clear()
        feeds_read = [reader.result() for reader in readers]
    feed = read_feed(workers, client.start_revision)
    assert [change["seq"] - client.start_revision for change in feed] == list(range(1, 8 * 6 * 3 + 1))
    assert [change["action"] for change in feed].count("retire") == 8 * 6
    for feed_read in feeds_read:
        assert feed_read == feed


def test_the_live_stream_has_every_change_once_in_order_and_resumes_after_a_disconnect(
    workers: Server, client: ConcurrentClient
) -> None:
    client.create("Before anyone listens")
    start = client.start_revision + 1
    streams = [ChangeStream(workers, f"/api/v1/changes?since={start}") for _ in range(4)]
    total = 6 * 5 * 3

    def listen(stream: ChangeStream) -> list[dict[str, Any]]:
        """Read some events, disconnect, and resume after the last one until all are read."""
        changes: list[dict[str, Any]] = []
        while True:
            changes += stream.read_events(min(17, total - len(changes)))
            stream.close()
            if len(changes) == total:
                return changes
            # The query parameter is older than the header, which takes precedence.
            stream = ChangeStream(workers, "/api/v1/changes?since=0", Last_Event_ID=stream.last_id)

    with ThreadPoolExecutor(10) as pool:
        listeners = [pool.submit(listen, stream) for stream in streams]
        writers = [pool.submit(write_repeatedly, client, f"writer {number}", 5) for number in range(6)]
        for writer in writers:
            writer.result()
        streams_read = [listener.result() for listener in listeners]
    feed = read_feed(workers, start)
    assert [change["seq"] - start for change in feed] == list(range(1, total + 1))
    for stream_read in streams_read:
        assert stream_read == feed


def test_a_live_stream_of_one_collection_has_only_its_changes(workers: Server, client: ConcurrentClient) -> None:
    stream = ChangeStream(workers, f"/api/v1/changes?collection=task&since={client.start_revision}")
    run_at_once(*(lambda number=number: write_repeatedly(client, f"writer {number}", 3) for number in range(4)))
    events = stream.read_events(4 * 3)
    stream.close()
    assert events == [change for change in read_feed(workers, client.start_revision) if change["collection"] == "task"]


@pytest.mark.parametrize("sort", ["name", "-name", "-updated", "id"])
def test_pages_of_a_list_are_read_at_the_revision_of_the_first_page(
    workers: Server, client: ConcurrentClient, sort: str
) -> None:
    created = [client.create(f"{'abc'[number % 3]} {number // 6}") for number in range(30)]
    retired = created.pop()
    assert client.send("DELETE", f"/concept/{retired['id']}", If_Match='"1"').status == 200
    expected = {record["id"]: client.send("GET", f"/concept/{record['id']}").json for record in created}
    list_path = f"/api/v1/concept?user={client.id}&limit=4&sort={sort}"
    first = workers.get(list_path).json

    def disturb(records: list[dict[str, Any]]) -> None:
        for number, record in enumerate(records):
            path = f"/concept/{record['id']}"
            client.create(f"b {number}")
            assert client.send("PATCH", path, {"name": f"{'zab'[number % 3]} moved"}, If_Match='"1"').status == 200
            if number % 2:
                assert client.send("DELETE", path, If_Match='"2"').status == 200

    def follow() -> list[dict[str, Any]]:
        items, cursor = list(first["items"]), first["next"]
        while cursor is not None:
            page = workers.get(f"{list_path}&cursor={cursor}").json
            assert page["total"] == len(expected)
            items += page["items"]
            cursor = page["next"]
        return items

    with ThreadPoolExecutor(5) as pool:
        writers = [pool.submit(disturb, created[number::3]) for number in range(3)]
        while not all(writer.done() for writer in writers):
            assert {record["id"]: record for record in follow()} == expected
        for writer in writers:
            writer.result()
    items = follow()
    assert len(items) == len(expected)
    assert {record["id"]: record for record in items} == expected
    key = {
        "name": lambda record: record["name"],
        "updated": lambda record: record["updated"],
        "id": lambda record: record["id"],
    }
    sort_values = [key[sort.removeprefix("-")](record) for record in items]
    assert sort_values == sorted(sort_values, reverse=sort.startswith("-"))


def test_concurrent_requests_with_one_idempotency_key_create_one_record(
    workers: Server, client: ConcurrentClient
) -> None:
    def create() -> HttpResponse:
        return client.send("POST", "/concept", {"name": "Once"}, Idempotency_Key="the same")

    responses = run_at_once(*[create] * 20)
    assert {response.status for response in responses} == {201}
    assert len({response.body for response in responses}) == 1
    assert {response.headers["location"] for response in responses} == {f"/api/v1/concept/{responses[0].json['id']}"}
    assert {response.headers["etag"] for response in responses} == {'"1"'}
    assert workers.get(f"/api/v1/concept?user={client.id}").json["total"] == 1
    assert len(read_feed(workers, client.start_revision)) == 1
    other_body_response = client.send("POST", "/concept", {"name": "Another"}, Idempotency_Key="the same")
    assert other_body_response.status == 409
    other_client_response = ConcurrentClient(workers, workers.create_token("curator")).send(
        "POST", "/concept", {"name": "Once"}, Idempotency_Key="the same"
    )
    assert other_client_response.json["id"] != responses[0].json["id"]


def test_a_failed_request_may_be_repeated_with_its_idempotency_key(workers: Server, client: ConcurrentClient) -> None:
    key = "to be mended"
    responses = run_at_once(*[lambda: client.send("POST", "/concept", {"name": " "}, Idempotency_Key=key)] * 6)
    assert {response.status for response in responses} == {422}
    assert client.send("POST", "/concept", {"name": "Mended"}, Idempotency_Key=key).status == 201
