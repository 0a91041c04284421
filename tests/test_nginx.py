"""A real nginx in front, as the site that comes along sets it up: skipped where there is none."""

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.databases import NewUrl
from tests.postgres import HOST, free_port
from tests.server import Answer, Server, SpawnedServer, run
from tests.test_workers import workers
from tests.waiting import DEADLINE, wait_until
from tests.writers import LIST

pytestmark = pytest.mark.full

DEPLOY = Path(__file__).parents[1] / "deploy"
NGINX = shutil.which("nginx", path=os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin")))
_MAIN = """
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder with a short name: the path of a socket has at most a hundred characters."""
    with TemporaryDirectory(prefix="lx-") as name:
        yield Path(name)


@contextmanager
def nginx(folder: Path, name: str, places: Mapping[str, str]) -> Iterator[int]:
    """The port of an nginx with a site that comes along, and where what it names is here."""
    if NGINX is None:
        pytest.skip("no nginx (apt-get install nginx-light)")
    port = free_port()
    site = (DEPLOY / name).read_text().replace("listen 80;", f"listen {HOST}:{port};")
    for there, here in places.items():
        site = site.replace(there, here)
    (folder / "site.conf").write_text(site)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(_MAIN.format(folder=folder, user=user))
    command = [NGINX, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
    process = subprocess.Popen(command)
    try:
        wait_until(lambda: _listens(port))
        yield port
    finally:
        process.terminate()
        process.wait(20)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


@pytest.fixture(scope="module")
def site(folder: Path, new_url: NewUrl) -> Iterator[Server]:
    """A server of two processes on a socket, asked through nginx."""
    options = ("--workers", "2", "--host", f"unix:{folder / 'lexarium.sock'}")
    variables = {"LEXARIUM_SIGN_IN_RATE": "1", "LEXARIUM_WRITE_RATE": "100000", "LEXARIUM_WRITE_BURST": "100000"}
    places = {"/run/lexarium/lexarium.sock": str(folder / "lexarium.sock")}
    with nginx(folder, "nginx.conf", places) as port, SpawnedServer(new_url("sqlite"), *options, **variables) as server:
        server.port = port
        wait_until(lambda: server.get("/readyz").status == 200)
        yield server


def sign_in(server: Server, source: str, **headers: str) -> Answer:
    """Try to sign in from an address of this machine."""
    connection = HTTPConnection(HOST, server.port, timeout=DEADLINE, source_address=(source, 0))
    body = json.dumps({"name": "nobody", "password": "not this one"})
    own = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", "/api/v1/sign-in", body, own)
    response = connection.getresponse()
    answer = Answer(response.status, {}, response.read())
    connection.close()
    return answer


def test_answers_are_the_same_as_without_it(site: Server) -> None:
    first = site.get(LIST, Accept_Encoding="gzip")
    assert (first.status, first.body[:2]) == (200, b"\x1f\x8b")
    assert first.headers["etag"].endswith('gzip"')
    assert first.headers["vary"] == "Accept"
    again = site.get(LIST, Accept_Encoding="gzip", If_None_Match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    manifest = site.get("/reconcile").json
    assert manifest["view"]["url"].startswith(f"http://{HOST}:{site.port}/")


def test_clients_are_told_apart_by_their_own_address_and_cannot_choose_it(site: Server) -> None:
    tries = 8  # more than both processes let through
    spoofed = [sign_in(site, "127.0.0.1", X_Forwarded_For=f"10.0.0.{number}").status for number in range(tries)]
    assert 429 in spoofed
    assert sign_in(site, "127.0.0.2").status == 401


def test_a_reload_replaces_every_worker_and_loses_no_request(site: Server) -> None:
    token = site.token("curator")
    over = threading.Event()

    def ask(number: int) -> list[str]:
        """Reads and writes on one connection, over and over: the ids of what was written."""
        connection = HTTPConnection(HOST, site.port, timeout=DEADLINE)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        written = []
        while not over.is_set():
            connection.request("POST", "/api/v1/task", json.dumps({"name": f"reloaded {number}"}), headers)
            response = connection.getresponse()
            body = response.read()
            assert response.status == 201, body
            written.append(json.loads(body)["id"])
            connection.request("GET", f"{LIST}?id={written[-1]}")
            response = connection.getresponse()
            body = response.read()
            assert response.status == 200, body
        connection.close()
        return written

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask, number) for number in range(4)]
        try:
            for _ in range(2):
                before = workers(site)
                os.kill(site.pid, signal.SIGHUP)
                wait_until(lambda before=before: len(workers(site)) == 2 and not before & workers(site))
                time.sleep(0.1)
        finally:
            over.set()
        written = [identifier for each in asking for identifier in each.result()]
    assert written
    listed = [each["id"] for each in site.get(LIST).json if each["name"].startswith("reloaded")]
    assert sorted(listed) == sorted(written)


def test_a_socket_that_is_in_use_is_refused_and_one_that_was_left_behind_is_not(
    folder: Path, site: Server, new_url: NewUrl
) -> None:
    url = new_url("sqlite")
    path = folder / "other.sock"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    with Server(url, "--host", f"unix:{path}"):
        assert path.stat().st_mode & 0o777 == 0o660
        second = run("serve", "--host", f"unix:{path}", "--database", url)
        assert second.returncode == 1
        assert "Cannot listen on unix:" in second.stderr
        assert path.exists()


class Node(ThreadingHTTPServer):
    """Stands in for a node: what it was asked, and no answer to a write, as where it ends in the midst of one."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((HOST, 0), Asked)
        self.asked: list[tuple[str, str]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Asked(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Node

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.asked.append((self.command, self.path))
        if self.command != "GET":
            self.close_connection = True
            return
        self.send_response(200 if self.path.endswith("/finished") else 503)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def nodes() -> Iterator[tuple[list[Node], Server]]:
    """Three nodes, and the site in front of them."""
    running = [Node() for _ in range(3)]
    places = {f"node{number}:8000": f"{HOST}:{node.server_port}" for number, node in enumerate(running, 1)}
    with TemporaryDirectory(prefix="lx-") as name, nginx(Path(name), "nginx-nodes.conf", places) as port:
        site = Server("sqlite://")
        site.port = port
        yield running, site
    for node in running:
        node.shutdown()
        node.server_close()


def test_nodes_that_refuse_one_thing_are_asked_for_others(nodes: tuple[list[Node], Server]) -> None:
    running, site = nodes
    assert [site.get("/unfinished").status for _ in range(4)] == [503] * 4
    assert [len(node.asked) for node in running] == [4, 4, 4]
    assert [site.get("/finished").status for _ in range(9)] == [200] * 9


def test_who_imports_is_sent_to_one_node_from_any_address_and_others_to_others(
    nodes: tuple[list[Node], Server],
) -> None:
    running, site = nodes

    def asked_of(path: str, source: str, cookie: str) -> int:
        connection = HTTPConnection(HOST, site.port, timeout=DEADLINE, source_address=(source, 0))
        connection.request("GET", path, headers={"Cookie": f"other=1; {cookie}; more=2"})
        connection.getresponse().read()
        connection.close()
        (node,) = [number for number, each in enumerate(running) if each.asked]
        running[node].asked.clear()
        return node

    for name in ("lexarium_session", "__Host-lexarium_session"):
        sources = [f"127.0.0.{number}" for number in range(1, 9)]
        assert len({asked_of("/import/finished", source, f"{name}=lex_one") for source in sources}) == 1
        assert len({asked_of("/import/finished", HOST, f"{name}=lex_{number}") for number in range(20)}) > 1


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE"])
def test_a_write_that_may_have_been_done_is_sent_to_no_other_node(
    nodes: tuple[list[Node], Server], method: str
) -> None:
    running, site = nodes
    assert site.request(method, "/api/v1/task/tsk_1", body="what is written").status == 502
    assert [asked for node in running for asked in node.asked] == [(method, "/api/v1/task/tsk_1")]
