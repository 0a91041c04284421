"""Curators who write, whatever becomes of the server meanwhile."""

import json
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tests.support.polling import DEADLINE_SECONDS, wait_until
from tests.support.server import HttpResponse, Server

TASK_LIST_PATH = "/api/v-alpha/task"


class RetryingClient:
    """A curator whose every write has a key, so that it can be sent again until it is answered."""

    def __init__(self, server: Server, token: str | None = None) -> None:
        self._server = server
        self.token = token or server.create_token("curator")
        assert self.send("GET", "/api/v1/me").status == 200  # from now on the server remembers the token

    def send(self, method: str, path: str, body: str | None = None, **headers: str) -> HttpResponse:
        all_headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self._server.request(method, path, all_headers, body)

    def create(self, name: str, key: str) -> HttpResponse:
        return self.send("POST", "/api/v1/task", json.dumps({"name": name}), Idempotency_Key=key)

    def create_with_retry(self, name: str) -> str:
        """Send a record until it is taken: its id."""
        key = uuid.uuid4().hex
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            response = self.create(name, key)
            if response.status == 201:
                record_id: str = response.json["id"]
                return record_id
            assert response.status == 503, response.body
            assert int(response.headers["retry-after"]) > 0
            time.sleep(0.05)
        raise AssertionError("a write was never taken")

    def list_by_prefix(self, prefix: str) -> dict[str, str]:
        """The records whose names begin so: their names by id."""
        response = self._server.get(TASK_LIST_PATH)
        assert response.status == 200, response.body
        return {record["id"]: record["name"] for record in response.json if record["name"].startswith(prefix)}


class WriteLoad:
    """Several who write one record after another, and count what was acknowledged."""

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
        """Until each could have written something since."""
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
