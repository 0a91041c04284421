"""A real nginx with the site files from deploy/."""

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

from tests.support.databases import DatabaseUrlFactory
from tests.support.polling import DEADLINE_SECONDS, wait_until
from tests.support.postgres import HOST, reserve_port
from tests.support.server import HttpResponse, Server, SpawnedServer, run_cli
from tests.support.workers import list_worker_pids
from tests.support.write_load import TASK_LIST_PATH

pytestmark = pytest.mark.full

DEPLOY = Path(__file__).parents[2] / "deploy"
NGINX = shutil.which("nginx", path=os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin")))
_NGINX_CONFIG = """
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
    """Folder with a short path: the path of a socket has at most a hundred characters."""
    with TemporaryDirectory(prefix="lx-") as name:
        yield Path(name)


@contextmanager
def run_nginx(folder: Path, name: str, addresses: Mapping[str, str]) -> Iterator[int]:
    """Run nginx with a site file from deploy/, its addresses replaced; yield its port."""
    if NGINX is None:
        pytest.skip("no nginx (apt-get install nginx-light)")
    with reserve_port() as port:
        site = (DEPLOY / name).read_text().replace("listen 80;", f"listen {HOST}:{port};")
        for production_address, local_address in addresses.items():
            site = site.replace(production_address, local_address)
        (folder / "site.conf").write_text(site)
        user = "user root;" if os.geteuid() == 0 else ""
        (folder / "nginx.conf").write_text(_NGINX_CONFIG.format(folder=folder, user=user))
        command = [NGINX, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
        process = subprocess.Popen(command)
        try:
            wait_until(lambda: _is_listening(port))
            yield port
        finally:
            process.terminate()
            process.wait(DEADLINE_SECONDS)


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


@pytest.fixture(scope="module")
def site(folder: Path, new_url: DatabaseUrlFactory) -> Iterator[Server]:
    """Server of two processes on a socket, behind nginx."""
    options = ("--workers", "2", "--host", f"unix:{folder / 'lexarium.sock'}")
    variables = {"LEXARIUM_SIGN_IN_RATE": "1", "LEXARIUM_WRITE_RATE": "100000", "LEXARIUM_WRITE_BURST": "100000"}
    addresses = {"/run/lexarium/lexarium.sock": str(folder / "lexarium.sock")}
    with (
        run_nginx(folder, "nginx.conf", addresses) as port,
        SpawnedServer(new_url("sqlite"), *options, **variables) as server,
    ):
        server.port = port
        server.wait_until_ready()
        yield server


def try_sign_in(server: Server, source: str, **headers: str) -> HttpResponse:
    """Try to sign in from a local source address."""
    connection = HTTPConnection(HOST, server.port, timeout=DEADLINE_SECONDS, source_address=(source, 0))
    body = json.dumps({"name": "nobody", "password": "not this one"})
    all_headers = {"Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    connection.request("POST", "/api/v1/sign-in", body, all_headers)
    response = connection.getresponse()
    http_response = HttpResponse(response.status, {}, response.read())
    connection.close()
    return http_response


def test_responses_through_nginx_equal_direct_ones(site: Server) -> None:
    first = site.get(TASK_LIST_PATH, Accept_Encoding="gzip")
    assert (first.status, first.body[:2]) == (200, b"\x1f\x8b")
    assert first.headers["etag"].endswith('gzip"')
    assert first.headers["vary"] == "Accept"
    second_response = site.get(TASK_LIST_PATH, Accept_Encoding="gzip", If_None_Match=first.headers["etag"])
    assert (second_response.status, second_response.body) == (304, b"")
    manifest = site.get("/reconcile").json
    assert manifest["view"]["url"].startswith(f"http://{HOST}:{site.port}/")


def test_clients_are_identified_by_their_real_address_and_cannot_spoof_it(site: Server) -> None:
    tries = 8  # more than both processes allow together
    spoofed = [try_sign_in(site, "127.0.0.1", X_Forwarded_For=f"10.0.0.{number}").status for number in range(tries)]
    assert 429 in spoofed
    assert try_sign_in(site, "127.0.0.2").status == 401


def test_a_reload_replaces_every_worker_and_loses_no_request(site: Server) -> None:
    token = site.create_token("curator")
    over = threading.Event()

    def send_requests(number: int) -> list[str]:
        """Read and write on one connection; return the ids of created records."""
        connection = HTTPConnection(HOST, site.port, timeout=DEADLINE_SECONDS)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        record_ids = []
        while not over.is_set():
            connection.request("POST", "/api/v1/task", json.dumps({"name": f"reloaded {number}"}), headers)
            response = connection.getresponse()
            body = response.read()
            assert response.status == 201, body
            record_ids.append(json.loads(body)["id"])
            connection.request("GET", f"{TASK_LIST_PATH}?id={record_ids[-1]}")
            response = connection.getresponse()
            body = response.read()
            assert response.status == 200, body
        connection.close()
        return record_ids

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(send_requests, number) for number in range(4)]
        try:
            before = list_worker_pids(site)
            os.kill(site.pid, signal.SIGHUP)
            wait_until(lambda: len(list_worker_pids(site)) == 2 and not before & list_worker_pids(site))
            time.sleep(0.1)
        finally:
            over.set()
        record_ids = [record_id for item in asking for record_id in item.result()]
    assert record_ids
    listed_ids = [item["id"] for item in site.get(TASK_LIST_PATH).json if item["name"].startswith("reloaded")]
    assert sorted(listed_ids) == sorted(record_ids)


def test_a_socket_in_use_is_rejected_and_a_stale_one_is_replaced(
    folder: Path, site: Server, new_url: DatabaseUrlFactory
) -> None:
    url = new_url("sqlite")
    path = folder / "other.sock"
    leftover = socket.socket(socket.AF_UNIX)
    leftover.bind(str(path))
    leftover.close()
    with Server(url, "--host", f"unix:{path}"):
        assert path.stat().st_mode & 0o777 == 0o660
        second = run_cli("serve", "--host", f"unix:{path}", "--database", url)
        assert second.returncode == 1
        assert "Cannot listen on unix:" in second.stderr
        assert path.exists()


class FakeNode(ThreadingHTTPServer):
    """Node that records requests and drops every write without a reply."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((HOST, 0), FakeNodeHandler)
        self.requests: list[tuple[str, str]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class FakeNodeHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeNode

    def respond(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.requests.append((self.command, self.path))
        if self.command != "GET":
            self.close_connection = True
            return
        self.send_response(200 if self.path.endswith("/finished") else 503)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = respond  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def nodes() -> Iterator[tuple[list[FakeNode], Server]]:
    """Three fake nodes behind nginx."""
    fake_nodes = [FakeNode() for _ in range(3)]
    addresses = {f"node{number}:8000": f"{HOST}:{node.server_port}" for number, node in enumerate(fake_nodes, 1)}
    with TemporaryDirectory(prefix="lx-") as name, run_nginx(Path(name), "nginx-nodes.conf", addresses) as port:
        site = Server("sqlite://")
        site.port = port
        yield fake_nodes, site
        site.close_connections()
    for node in fake_nodes:
        node.shutdown()
        node.server_close()


def test_nodes_that_reject_one_request_still_receive_others(nodes: tuple[list[FakeNode], Server]) -> None:
    fake_nodes, site = nodes
    assert [site.get("/unfinished").status for _ in range(4)] == [503] * 4
    assert [len(node.requests) for node in fake_nodes] == [4, 4, 4]
    assert [site.get("/finished").status for _ in range(9)] == [200] * 9


def test_all_requests_of_an_importing_session_are_routed_to_one_node(
    nodes: tuple[list[FakeNode], Server],
) -> None:
    fake_nodes, site = nodes

    def find_node(path: str, source: str, cookie: str) -> int:
        connection = HTTPConnection(HOST, site.port, timeout=DEADLINE_SECONDS, source_address=(source, 0))
        connection.request("GET", path, headers={"Cookie": f"other=1; {cookie}; more=2"})
        connection.getresponse().read()
        connection.close()
        (node,) = [number for number, fake_node in enumerate(fake_nodes) if fake_node.requests]
        fake_nodes[node].requests.clear()
        return node

    for name in ("lexarium_session", "__Host-lexarium_session"):
        sources = [f"127.0.0.{number}" for number in range(1, 9)]
        assert len({find_node("/import/finished", source, f"{name}=lex_one") for source in sources}) == 1
        assert len({find_node("/import/finished", HOST, f"{name}=lex_{number}") for number in range(20)}) > 1


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE"])
def test_a_write_that_may_have_succeeded_is_not_retried_on_another_node(
    nodes: tuple[list[FakeNode], Server], method: str
) -> None:
    fake_nodes, site = nodes
    assert site.request(method, "/api/v1/task/tsk_1", body="what is written").status == 502
    assert [request for node in fake_nodes for request in node.requests] == [(method, "/api/v1/task/tsk_1")]
