"""Curators who write, whatever becomes of the server meanwhile."""

import json
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tests.server import Answer, Server
from tests.waiting import DEADLINE, wait_until

LIST = "/api/v-alpha/task"


class Client:
    """A curator whose every write has a key, so that it can be sent again until it is answered."""

    def __init__(self, server: Server, token: str | None = None) -> None:
        self._server = server
        self.token = token or server.token("curator")
        assert self.send("GET", "/api/v1/me").status == 200  # from now on the server remembers the token

    def send(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        own = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        own |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self._server.request(method, path, own, body)

    def create(self, name: str, key: str) -> Answer:
        return self.send("POST", "/api/v1/task", json.dumps({"name": name}), Idempotency_Key=key)

    def create_at_last(self, name: str) -> str:
        """Send a record until it is taken: its id."""
        key = uuid.uuid4().hex
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            answer = self.create(name, key)
            if answer.status == 201:
                identifier: str = answer.json["id"]
                return identifier
            assert answer.status == 503, answer.body
            assert int(answer.headers["retry-after"]) > 0
            time.sleep(0.05)
        raise AssertionError("a write was never taken")

    def named(self, beginning: str) -> dict[str, str]:
        """The records whose names begin so: their names by id."""
        found = self._server.get(LIST)
        assert found.status == 200, found.body
        return {each["id"]: each["name"] for each in found.json if each["name"].startswith(beginning)}


class Load:
    """Several who write one record after another, and count what was acknowledged."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self._over = threading.Event()
        self.acknowledged: dict[str, str] = {}

    def write(self, writer: int) -> None:
        number = 0
        while not self._over.is_set():
            name = f"{self._name} {writer} {number}"
            self.acknowledged[self._client.create_at_last(name)] = name
            number += 1

    def wait_for_more(self) -> None:
        """Until each could have written something since."""
        enough = len(self.acknowledged) + 20
        wait_until(lambda: len(self.acknowledged) >= enough)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        with ThreadPoolExecutor(4) as pool:
            writers = [pool.submit(self.write, number) for number in range(4)]
            try:
                self.wait_for_more()
                yield
            finally:
                self._over.set()
            for writer in writers:
                writer.result()
