"""Concurrent writers that retry with an idempotency key."""

import json
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tests.support.polling import wait_until
from tests.support.server import HttpResponse, Server

TASK_LIST_PATH = "/api/v-alpha/task"


def list_task_ids(server: Server) -> set[str]:
    """Return the ids of all tasks, as soon as the server can read them."""
    return {*list_task_names(server)}


def list_task_names(server: Server) -> dict[str, str]:
    """Return the names of all tasks by id, as soon as the server can read them."""
    response = wait_until(_get_task_list, server)
    assert response is not None
    return {record["id"]: record["name"] for record in response.json}


def _get_task_list(server: Server) -> HttpResponse | None:
    response = server.get(TASK_LIST_PATH)
    return response if response.status == 200 else None


class RetryingClient:
    """Curator that repeats each write, with an idempotency key, until it succeeds."""

    def __init__(self, server: Server, token: str | None = None) -> None:
        self._server = server
        self.token = token or server.create_token("curator")
        assert self.send("GET", "/api/v1/me").status == 200  # the server now has the token in its cache

    def send(self, method: str, path: str, body: str | None = None, **headers: str) -> HttpResponse:
        all_headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self._server.request(method, path, all_headers, body)

    def create(self, name: str, key: str) -> HttpResponse:
        return self.send("POST", "/api/v1/task", json.dumps({"name": name}), Idempotency_Key=key)

    def create_with_retry(self, name: str) -> str:
        """Create a record, retrying while the server is unavailable; return its id."""
        return wait_until(self._try_create, name, uuid.uuid4().hex)

    def _try_create(self, name: str, key: str) -> str:
        response = self.create(name, key)
        if response.status == 201:
            return str(response.json["id"])
        assert response.status in (429, 503), response.body
        assert int(response.headers["retry-after"]) > 0
        return ""

    def list_by_prefix(self, prefix: str) -> dict[str, str]:
        """Return the records whose names begin with a prefix: name by id."""
        names = list_task_names(self._server)
        return {record_id: name for record_id, name in names.items() if name.startswith(prefix)}


class WriteLoad:
    """Four writers that create records and note what was acknowledged."""

    def __init__(self, client: RetryingClient, name: str) -> None:
        self._client = client
        self._name = name
        self._stopped = threading.Event()
        self.acknowledged: dict[str, str] = {}

    def write(self, writer: int) -> None:
        number = 0
        while not self._stopped.is_set():
            name = f"{self._name} {writer} {number}"
            self.acknowledged[self._client.create_with_retry(name)] = name
            number += 1

    def wait_for_more(self) -> None:
        """Wait until every writer has probably written again."""
        target_count = len(self.acknowledged) + 20
        wait_until(lambda: len(self.acknowledged) >= target_count)

    @contextmanager
    def run(self) -> Iterator[None]:
        with ThreadPoolExecutor(4) as pool:
            writers = [pool.submit(self.write, number) for number in range(4)]
            try:
                self.wait_for_more()
                yield
            finally:
                self._stopped.set()
            for writer in writers:
                writer.result()
