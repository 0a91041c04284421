"""Metrics, readiness and log."""

import asyncio
import json
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from starlette.types import Message, Receive, Scope, Send

from lexarium.domain.account import Role
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.services.access.accounts import add_account
from lexarium.services.access.permissions import Caller
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.search.indexer import Indexer
from lexarium.store.database import Database
from lexarium.store.engine.position_queries import read_position
from lexarium.store.migrations import SCHEMA_VERSION
from lexarium.web.metrics import METRICS
from lexarium.web.middleware.request_log import RequestLogMiddleware, RequestStats
from tests.support.databases import DatabaseUrlFactory
from tests.support.metrics import read_metrics
from tests.support.polling import wait_until
from tests.support.route_list import list_routes
from tests.support.server import Server

DOCS = Path(__file__).parents[2] / "docs"


def format_requests_metric(method: str, route: str, status: int) -> str:
    return f'lexarium_requests_total{{method="{method}",route="{route}",status="{status}"}}'


def test_requests_are_counted_by_route_and_status_at_every_layer(server: Server) -> None:
    token = server.create_token("curator")
    record = server.post_json("/api/v1/concept", {"name": "x"}, token).json["id"]
    for target in (
        "/api/v-alpha/concept",
        "/api/v-alpha/concept?id=none",
        "/api/v1/concept/none",
        "/id/none",
        "/nothing",
    ):
        for _ in range(3):
            server.get(target)
    server.get(f"/api/v1/concept/{record}")
    server.request("TRACE", "/")
    metrics = read_metrics(server)
    assert metrics[format_requests_metric("GET", "/api/v-alpha/concept", 200)] == 3
    assert metrics[format_requests_metric("GET", "/api/v-alpha/concept", 404)] == 3
    assert metrics[format_requests_metric("GET", "/api/v1/{collection}/{id}", 404)] == 3
    assert metrics[format_requests_metric("GET", "/api/v1/{collection}/{id}", 200)] == 1
    assert metrics[format_requests_metric("POST", "/api/v1/{collection}", 201)] == 1
    assert metrics[format_requests_metric("GET", "/id/{id:path}", 404)] == 3
    assert metrics[format_requests_metric("GET", "none", 404)] == 3
    assert metrics[format_requests_metric("other", "/", 405)] == 1
    assert metrics["lexarium_cache_hits_total"] >= 2
    assert metrics["lexarium_cache_misses_total"] >= 1
    assert metrics["lexarium_cache_bytes"] > 0
    assert metrics['lexarium_request_seconds_count{route="/api/v-alpha/concept"}'] == 6
    assert metrics['lexarium_request_seconds_bucket{route="/api/v-alpha/concept",le="+Inf"}'] == 6
    assert metrics['lexarium_request_seconds_sum{route="/api/v-alpha/concept"}'] > 0
    assert metrics["lexarium_revision"] == 1
    assert metrics["lexarium_database_up"] == 1
    assert metrics["lexarium_memory_bytes"] > 10_000_000
    assert metrics["lexarium_workers"] == 1
    assert metrics["lexarium_connections_most"] > metrics["lexarium_connections_used"] >= 0
    wait_until(lambda: read_metrics(server)["lexarium_index_behind"] == 0)


def test_a_request_rejected_before_routing_is_counted_without_a_route(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite"), LEXARIUM_READ="token") as server:
        assert server.get("/api/v1/concept").status == 401
        metrics = read_metrics(server, authorization=f"Bearer {server.create_token('contributor')}")
    assert metrics[format_requests_metric("GET", "none", 401)] == 1
    assert not [name for name in metrics if "/api/v1none" in name]


def test_the_number_of_route_labels_is_limited_by_the_known_routes(server: Server) -> None:
    for number in range(50):
        server.get(f"/made/up/{number}")
        server.get(f"/id/trm_{number}")
        server.get(f"/api/v1/made-up-{number}")
    reported_routes = {re.search(r'route="([^"]*)"', name)[1] for name in read_metrics(server) if "route=" in name}  # type: ignore[index]
    known_routes = {route.path for route in list_routes(server.url)} | {"none", "/static", "/api/v1/{rest:path}"}
    assert reported_routes <= known_routes, reported_routes - known_routes


def test_exactly_the_declared_metrics_are_exposed(server: Server) -> None:
    server.get("/")
    text = server.get("/metrics").body.decode()
    assert re.findall(r"^# TYPE (\w+)", text, re.MULTILINE) == list(METRICS)
    reported_metrics = {re.sub(r"_(bucket|sum|count)$", "", name.partition("{")[0]) for name in read_metrics(server)}
    assert reported_metrics == set(METRICS)


def test_the_metrics_of_several_workers_are_added_up(url: str) -> None:
    with Server(url, "--workers", "2") as server:
        wait_until(lambda: read_metrics(server)["lexarium_workers"] == 2)
        for _ in range(40):
            server.get("/healthz")
        counted = format_requests_metric("GET", "/healthz", 200)
        wait_until(lambda: read_metrics(server).get(counted) == 40)  # at most a second late, from any worker


def test_failing_webhooks_are_counted(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite"), LEXARIUM_WEBHOOKS_PRIVATE="yes") as server:
        token = server.create_token("admin")
        server.post_json("/api/v1/webhooks", {"url": "http://127.0.0.1:9/"}, token)
        server.post_json("/api/v1/concept", {"name": "x"}, token)
        wait_until(lambda: read_metrics(server)["lexarium_webhooks_failing"] == 1)
        assert read_metrics(server)["lexarium_webhook_backlog"] == 1


def test_every_fault_counter_starts_at_0(new_url: DatabaseUrlFactory) -> None:
    url = new_url("sqlite")
    with Server(url) as server:
        before = list_faults(server)
        assert len(before) == 8
        assert set(before.values()) == {0}
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            database.execute("DROP TABLE token")
        assert server.get("/api/v1/me", Authorization="Bearer lex_x").status == 500
        assert list_faults(server) == before | {'lexarium_server_errors_total{part="v1",reason="http_500"}': 1}


def list_faults(server: Server) -> dict[str, float]:
    return {
        name: value for name, value in read_metrics(server).items() if name.startswith("lexarium_server_errors_total")
    }


def test_a_response_aborted_by_an_error_is_counted_as_a_fault() -> None:
    traffic = RequestStats(log_all=False)

    async def abort_response(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    async def receive_disconnect() -> Message:
        return {"type": "http.disconnect"}

    async def check_status(message: Message) -> None:
        assert message["status"] == 200

    scope = {"type": "http", "method": "GET", "path": "/api/v-alpha/concept", "headers": []}
    with pytest.raises(ZeroDivisionError):
        asyncio.run(RequestLogMiddleware(abort_response, traffic)(scope, receive_disconnect, check_status))
    assert {fault for fault, count in traffic.server_errors.items() if count} == {("v-alpha", "aborted")}


def test_active_requests_are_reported(new_url: DatabaseUrlFactory) -> None:
    url = new_url("sqlite")
    with Server(url, LEXARIUM_TEST_LOCK_SECONDS="200") as server, ThreadPoolExecutor(3) as threads:
        token = server.create_token("curator")
        server.post_json("/api/v1/concept", {"name": "before"}, token)
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")  # so that nothing else can write
            futures = [threads.submit(server.post_json, "/api/v1/concept", {"name": "x"}, token) for _ in range(3)]
            wait_until(lambda: read_metrics(server)["lexarium_requests_in_progress"] == 3)
        assert [future.result().status for future in futures] == [201] * 3
        assert read_metrics(server)["lexarium_requests_in_progress"] == 0


def test_alerts_use_only_declared_metrics_and_every_metric_is_documented() -> None:
    page = (DOCS / "operations" / "monitor.md").read_text()
    rules = "".join(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    used_metrics = {
        re.sub(r"_(bucket|sum|count)$", "", metric_name) for metric_name in re.findall(r"\blexarium_\w+", rules)
    }
    assert len(re.findall(r"- alert: \w+", rules)) >= 6
    assert used_metrics <= set(METRICS)
    documented_metrics = re.findall(r"^\| `(lexarium_\w+)` \| (\w+) \| (.+) \|$", page, re.MULTILINE)
    assert documented_metrics == [(name, metric.type, metric.help) for name, metric in METRICS.items()]


def test_a_node_is_not_ready_while_its_database_has_another_schema_version(new_url: DatabaseUrlFactory) -> None:
    url = new_url("sqlite")
    with Server(url) as server:
        server.wait_until_ready()
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as database:
            database.execute("UPDATE alembic_version SET version_num = '0001'")
            response = server.get("/readyz")
            assert (response.status, "does not match" in response.json["detail"]) == (503, True)
            database.execute("UPDATE alembic_version SET version_num = ?", [SCHEMA_VERSION])
        assert server.get("/readyz").status == 200


def test_the_indexer_reports_its_lag(database: Database) -> None:
    caller = Caller(add_account(database, "Ada", Role.CURATOR), Role.CURATOR, "tok_test")
    with TemporaryDirectory() as folder:
        indexer = Indexer(database, folder)
        with database.read() as snapshot:
            assert indexer.lag(read_position(snapshot)) is None
        indexer.catch_up()
        with database.write() as transaction:
            writer = RecordWriter(transaction, caller)
            for number in range(3):
                writer.create(COLLECTIONS["concept"], {"name": f"n {number}"})
        with database.read() as snapshot:
            assert indexer.lag(read_position(snapshot)) == 3
        indexer.catch_up()
        with database.read() as snapshot:
            assert indexer.lag(read_position(snapshot)) == 0
        indexer.stop()


def parse_request_log(log: str) -> list[dict[str, object]]:
    return [line for line in map(json.loads, log.splitlines()) if line["logger"] == "lexarium.requests"]


def test_every_request_is_logged_if_enabled(url: str) -> None:
    with Server(url, LEXARIUM_LOG_REQUESTS="yes") as server:
        token = server.create_token("curator")
        request_id_header = {"X-Request-ID": "from-a-proxy.7"}
        for _ in range(2):
            assert (
                server.get("/api/v-alpha/concept?q=secret", **request_id_header).headers["x-request-id"]
                == "from-a-proxy.7"
            )
        server.get(f"/id/{token}?token={token}", Authorization=f"Bearer {token}")
        missing = server.get("/nothing")
        log = server.stop()
    log_lines = parse_request_log(log)
    assert [(line["method"], line["path"], line["status"]) for line in log_lines] == [
        ("GET", "/api/v-alpha/concept", 200),
        ("GET", "/api/v-alpha/concept", 200),
        ("GET", "/id/lex_...", 404),
        ("GET", "/nothing", 404),
    ]
    assert [line["request"] for line in log_lines[:2]] == ["from-a-proxy.7"] * 2
    assert log_lines[3]["request"] == missing.headers["x-request-id"]
    assert all(isinstance(line["ms"], float) for line in log_lines)
    assert len({line["request"] for line in log_lines}) == 3
    assert "secret" not in log
    assert token not in log


def test_an_invalid_request_id_is_replaced(server: Server) -> None:
    for request_id in ("a b", "<script>", "x" * 129, "ü", ""):
        returned_id = server.request(
            "GET", "/nothing", {"X-Request-ID": request_id.encode().decode("latin-1")}
        ).headers["x-request-id"]
        assert returned_id != request_id
        assert re.fullmatch(r"[0-9a-f]+-[0-9a-f]+", returned_id)
    assert "x-request-id" not in server.get("/api/v-alpha/concept").headers


def test_only_faults_are_logged_by_default(new_url: DatabaseUrlFactory) -> None:
    url = new_url("sqlite")
    with Server(url) as server:
        server.get("/")
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            database.execute("DROP TABLE token")
        error_response = server.get("/api/v1/me", Authorization="Bearer lex_x")
        assert error_response.status == 500
        log = server.stop()
    log_lines = parse_request_log(log)
    assert [(line["path"], line["status"], line["level"]) for line in log_lines] == [("/api/v1/me", 500, "error")]
    assert log_lines[0]["request"] == error_response.headers["x-request-id"]


def test_the_log_is_plain_text_in_text_mode(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite"), LEXARIUM_LOG="text", LEXARIUM_LOG_REQUESTS="yes") as server:
        server.get("/healthz")
        log = server.stop()
    assert re.search(r"^\S+ \S+ INFO GET /healthz 200 in \d+\.\d\d ms, request \S+$", log, re.MULTILINE)
