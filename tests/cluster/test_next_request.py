"""A write by any process is seen by the very next request to any other."""

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event

import pytest

from tests.support.databases import DatabaseUrlFactory
from tests.support.server import Server
from tests.support.v1_client import V1Client

_PIPELINED = 20


@pytest.mark.parametrize(
    ("servers", "writes"),
    [pytest.param(2, 15, marks=pytest.mark.short), pytest.param(4, 12, marks=pytest.mark.full)],
    ids=["short", "long"],
)
def test_a_write_is_seen_by_the_next_request_to_any_process_under_load(
    new_url: DatabaseUrlFactory, servers: int, writes: int
) -> None:
    url = new_url("sqlite")
    with ExitStack() as stack:
        nodes = [stack.enter_context(Server(url)) for _ in range(servers)]
        clients = [V1Client(node, "curator") for node in nodes]
        names = [f"written by {number}" for number in range(servers)]
        ids = [client.create(name=name)["id"] for client, name in zip(clients, names, strict=True)]
        is_done = Event()
        with ThreadPoolExecutor() as threads:
            # Rounds of the event loop that read many requests at once.
            loads = [threads.submit(send_load, node, ids[0], is_done) for node in nodes]
            try:
                writers = [
                    threads.submit(write_and_read, clients[number], nodes, ids[number], writes)
                    for number in range(servers)
                ]
                for writer in writers:
                    writer.result()
            finally:
                is_done.set()
            assert all(load.result() > 0 for load in loads)


def write_and_read(client: V1Client, nodes: list[Server], record_id: str, writes: int) -> None:
    connections = [node.connect() for node in nodes]
    paths = (f"/api/v-alpha/concept?id={record_id}", f"/api/v1/concept/{record_id}", f"/id/{record_id}")
    record = client.send("GET", f"concept/{record_id}").json
    for number in range(writes):
        text = f"Definition number {number}."
        record = client.patch(record, definition_text=text)
        for connection in connections:
            for path in paths:
                connection.request("GET", path, headers={"Accept": "text/html" if path.startswith("/id") else "*/*"})
                response = connection.getresponse()
                body = response.read()
                assert response.status == 200, body
                assert text.encode() in body, (path, number)
    for connection in connections:
        connection.close()


def send_load(node: Server, record_id: str, is_done: Event) -> int:
    """Send pipelined requests for a cached response until stopped; return their number."""
    request = f"GET /api/v-alpha/concept?id={record_id} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    sent = 0
    with socket.create_connection(("127.0.0.1", node.port)) as connection, connection.makefile("rb") as file:
        while not is_done.is_set():
            connection.sendall(request * _PIPELINED)
            for _ in range(_PIPELINED):
                length = 0
                while (line := file.readline()) not in (b"\r\n", b""):
                    if line.startswith(b"content-length: "):
                        length = int(line.split()[1])
                file.read(length)
                sent += 1
    return sent
