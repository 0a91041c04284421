"""Many clients at once, over HTTP, on several workers: nothing is lost, nothing comes twice, nothing out of order."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from typing import Any

import pytest

from lexarium.service.checking import check
from lexarium.store.database import Database
from tests.databases import ENGINES, NewUrl
from tests.server import Answer, Server
from tests.waiting import DEADLINE, wait_until

JSON = "application/json"


@pytest.fixture(scope="module", params=ENGINES)
def workers(request: pytest.FixtureRequest, new_url: NewUrl) -> Iterator[Server]:
    """A server of three processes that the tests share, on each engine in turn."""
    url = new_url(request.param)
    with Server(url, "--workers", "3") as running:
        wait_until(lambda: running.get("/api/v1").status == 200)
        yield running
    database = Database(url)
    assert check(database).problems == []
    database.close()


class Client:
    """Somebody with a token."""

    def __init__(self, server: Server, token: str) -> None:
        self._server = server
        self._token = token
        self.id: str = self.send("GET", "/me").json["id"]
        self.start = revision(server)
        """Where the catalogue stood before this one wrote anything."""

    def send(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        own = {"Authorization": f"Bearer {self._token}", "Content-Type": JSON}
        own |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self._server.request(method, f"/api/v1{path}", own, None if body is None else json.dumps(body))

    def create(self, name: str, collection: str = "concept", **fields: object) -> dict[str, Any]:
        answer = self.send("POST", f"/{collection}", {"name": name, **fields})
        assert answer.status == 201, answer.body
        made: dict[str, Any] = answer.json
        return made


@pytest.fixture
def client(workers: Server) -> Client:
    return Client(workers, workers.token("curator"))


def revision(server: Server) -> int:
    number: int = server.get("/api/v1").json["revision"]
    return number


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """The results of what begins at the same moment."""
    start = threading.Barrier(len(works))

    def begin(work: Callable[[], Any]) -> Any:
        start.wait(DEADLINE)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(begin, works))


class Events:
    """A live stream of changes, read by an own thread until it is closed."""

    def __init__(self, server: Server, path: str = "/api/v1/changes", **headers: str) -> None:
        self._connection: HTTPConnection = server.connect()
        own = {"Accept": "text/event-stream"} | {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request("GET", path, headers=own)
        self._response = self._connection.getresponse()
        assert self._response.status == 200
        assert self._response.headers["content-type"].startswith("text/event-stream")
        assert self._response.readline().startswith(b"retry:")

    def take(self, number: int) -> list[dict[str, Any]]:
        """So many events, each with its id checked; fewer never: the connection has a time limit."""
        found: list[dict[str, Any]] = []
        event: dict[str, str] = {}
        while len(found) < number:
            line = self._response.readline()
            assert line, "the stream ended"
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                event[name] = value
            elif "data" in event:
                assert event["event"] == "change"
                change: dict[str, Any] = json.loads(event["data"])
                self.last_id = event["id"]
                assert int(self.last_id.partition("-")[0]) == change["seq"]
                found.append(change)
                event = {}
        return found

    def rest(self) -> bytes:
        """All that comes until the stream ends as it should."""
        return self._response.read()

    def close(self) -> None:
        self._response.close()
        self._connection.close()


def fed(server: Server, since: int) -> list[dict[str, Any]]:
    """The whole feed after a seq."""
    found: list[dict[str, Any]] = []
    while items := server.get(f"/api/v1/changes?since={since}&limit=1000").json["items"]:
        found += items
        since = items[-1]["seq"]
    return found


def test_of_two_edits_of_one_version_exactly_one_is_made(workers: Server, client: Client) -> None:
    record = client.create("Raced", definition_text="0")
    path = f"/concept/{record['id']}"
    won: list[str] = []
    for number in range(1, 16):
        rivals = [f"{number}{side}" for side in "abc"]
        edit = partial(client.send, "PATCH", path, If_Match=f'"{number}"')
        answers = at_once(*(partial(edit, {"definition_text": text}) for text in rivals))
        assert sorted(answer.status for answer in answers) == [200, 412, 412]
        [winner] = [text for text, answer in zip(rivals, answers, strict=True) if answer.status == 200]
        [answer] = [answer for answer in answers if answer.status == 200]
        assert (answer.headers["etag"], answer.json["definition_text"]) == (f'"{number + 1}"', winner)
        won.append(winner)
    kept = [
        change["record"]["definition_text"] for change in fed(workers, client.start) if change["id"] == record["id"]
    ]
    assert kept == ["0", *won]


def test_writers_that_read_again_lose_no_update(workers: Server, client: Client) -> None:
    record = client.create("Shared")
    path = f"/concept/{record['id']}"

    def add(source: str) -> None:
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            now = client.send("GET", path)
            change = {"sources": [*now.json["sources"], source]}
            answer = client.send("PATCH", path, change, If_Match=now.headers["etag"])
            if answer.status == 200:
                return
            assert answer.status == 412
        raise AssertionError("an edit never came through")

    sources = [f"source {number}" for number in range(12)]
    at_once(*(lambda source=source: add(source) for source in sources))
    now = client.send("GET", path).json
    assert sorted(now["sources"]) == sorted(sources)
    assert now["version"] == 1 + len(sources)


def write_much(client: Client, name: str, times: int) -> None:
    """Creates, edits and retirements: three changes each time."""
    for number in range(times):
        record = client.create(f"{name} {number}", collection=("concept", "task", "disorder")[number % 3])
        path = f"/{record['collection']}/{record['id']}"
        assert client.send("PATCH", path, {"name": f"{name} {number}, changed"}, If_Match='"1"').status == 200
        assert client.send("DELETE", path, If_Match='"2"').status == 200


def test_the_feed_read_in_pages_while_others_write_has_every_change_once_in_order(
    workers: Server, client: Client
) -> None:
    writing = threading.Event()

    def follow(limit: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        since = client.start
        while True:
            over = not writing.is_set()
            page = workers.get(f"/api/v1/changes?since={since}&limit={limit}").json
            found += page["items"]
            since = page["next"]
            if over and not page["items"]:
                return found

    writing.set()
    with ThreadPoolExecutor(11) as pool:
        readers = [pool.submit(follow, limit) for limit in (1, 7, 1000)]
        writers = [pool.submit(write_much, client, f"writer {number}", 6) for number in range(8)]
        for writer in writers:
            writer.result()
        writing.clear()
        seen = [reader.result() for reader in readers]
    whole = fed(workers, client.start)
    assert [change["seq"] - client.start for change in whole] == list(range(1, 8 * 6 * 3 + 1))
    assert [change["action"] for change in whole].count("retire") == 8 * 6
    for each in seen:
        assert each == whole


def test_the_live_stream_has_every_change_once_in_order_and_resumes_where_it_was_cut(
    workers: Server, client: Client
) -> None:
    client.create("Before anyone listens")
    start = client.start + 1
    streams = [Events(workers, f"/api/v1/changes?since={start}") for _ in range(4)]
    total = 6 * 5 * 3

    def listen(stream: Events) -> list[dict[str, Any]]:
        """Takes some, hangs up, and goes on after the last it has, until it has all."""
        found: list[dict[str, Any]] = []
        while True:
            found += stream.take(min(17, total - len(found)))
            stream.close()
            if len(found) == total:
                return found
            # What the address says is older: the header is heeded.
            stream = Events(workers, "/api/v1/changes?since=0", Last_Event_ID=stream.last_id)

    with ThreadPoolExecutor(10) as pool:
        listeners = [pool.submit(listen, stream) for stream in streams]
        writers = [pool.submit(write_much, client, f"writer {number}", 5) for number in range(6)]
        for writer in writers:
            writer.result()
        heard = [listener.result() for listener in listeners]
    whole = fed(workers, start)
    assert [change["seq"] - start for change in whole] == list(range(1, total + 1))
    for each in heard:
        assert each == whole


def test_a_live_stream_of_one_collection_has_that_collections_changes_alone(workers: Server, client: Client) -> None:
    stream = Events(workers, f"/api/v1/changes?collection=task&since={client.start}")
    at_once(*(lambda number=number: write_much(client, f"writer {number}", 3) for number in range(4)))
    heard = stream.take(4 * 3)
    stream.close()
    assert heard == [change for change in fed(workers, client.start) if change["collection"] == "task"]


@pytest.mark.parametrize("sort", ["name", "-name", "-updated", "id"])
def test_pages_of_a_list_are_of_the_revision_of_the_first_whatever_others_write(
    workers: Server, client: Client, sort: str
) -> None:
    made = [client.create(f"{'abc'[number % 3]} {number // 6}") for number in range(30)]
    retired = made.pop()
    assert client.send("DELETE", f"/concept/{retired['id']}", If_Match='"1"').status == 200
    expected = {record["id"]: client.send("GET", f"/concept/{record['id']}").json for record in made}
    address = f"/api/v1/concept?user={client.id}&limit=4&sort={sort}"
    first = workers.get(address).json

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
            page = workers.get(f"{address}&cursor={cursor}").json
            assert page["total"] == len(expected)
            items += page["items"]
            cursor = page["next"]
        return items

    with ThreadPoolExecutor(5) as pool:
        writers = [pool.submit(disturb, made[number::3]) for number in range(3)]
        while not all(writer.done() for writer in writers):
            assert {record["id"]: record for record in follow()} == expected
        for writer in writers:
            writer.result()
    items = follow()
    assert len(items) == len(expected)
    assert {record["id"]: record for record in items} == expected
    key = {"name": lambda each: each["name"], "updated": lambda each: each["updated"], "id": lambda each: each["id"]}
    told = [key[sort.removeprefix("-")](record) for record in items]
    assert told == sorted(told, reverse=sort.startswith("-"))


def test_one_idempotency_key_sent_twenty_times_at_once_makes_one_record(workers: Server, client: Client) -> None:
    def create() -> Answer:
        return client.send("POST", "/concept", {"name": "Once"}, Idempotency_Key="the same")

    answers = at_once(*[create] * 20)
    assert {answer.status for answer in answers} == {201}
    assert len({answer.body for answer in answers}) == 1
    assert {answer.headers["location"] for answer in answers} == {f"/api/v1/concept/{answers[0].json['id']}"}
    assert {answer.headers["etag"] for answer in answers} == {'"1"'}
    assert workers.get(f"/api/v1/concept?user={client.id}").json["total"] == 1
    assert len(fed(workers, client.start)) == 1
    other = client.send("POST", "/concept", {"name": "Another"}, Idempotency_Key="the same")
    assert other.status == 409
    theirs = Client(workers, workers.token("curator")).send(
        "POST", "/concept", {"name": "Once"}, Idempotency_Key="the same"
    )
    assert theirs.json["id"] != answers[0].json["id"]


def test_a_request_that_failed_may_be_sent_again_under_its_key(workers: Server, client: Client) -> None:
    key = "to be mended"
    answers = at_once(*[lambda: client.send("POST", "/concept", {"name": " "}, Idempotency_Key=key)] * 6)
    assert {answer.status for answer in answers} == {422}
    assert client.send("POST", "/concept", {"name": "Mended"}, Idempotency_Key=key).status == 201
