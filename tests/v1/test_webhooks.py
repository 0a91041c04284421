"""Webhooks: filters, signatures, retries, forbidden addresses."""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from lexarium.domain.text.timestamps import now_ms
from lexarium.domain.webhook import Webhook, WebhookDelivery
from lexarium.services.webhooks import sender
from lexarium.services.webhooks.sender import DeliveryFailed, start_deadline
from lexarium.services.webhooks.sender import ResolvedTarget as Found
from lexarium.store import leases, webhooks
from lexarium.store.database import Database
from lexarium.store.leases import Lease
from tests.support.polling import wait_until
from tests.support.server import HttpResponse, Server
from tests.support.webhook_receiver import WEBHOOKS_PATH, WebhookReceiver

DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def server(url: str) -> Iterator[Server]:
    with Server(url, LEXARIUM_WEBHOOKS_PRIVATE="yes") as running:
        yield running


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as running:
        yield running


def find_receiver(url: str, *, private: bool) -> Found:
    return sender.resolve_target(url, allow_private=private, deadline=start_deadline())


def send(receiver: Found, headers: dict[str, str] | None = None) -> int:
    return sender.send(receiver, b"{}", headers or {}, deadline=start_deadline())


def send_request(server: Server, method: str, target: str, token: str, body: object = None) -> HttpResponse:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return server.request(method, target, headers, None if body is None else json.dumps(body))


def add_webhook(server: Server, admin: str, url: str, **filters: list[str]) -> Any:
    response = server.post_json(WEBHOOKS_PATH, {"url": url, **filters}, admin)
    assert response.status == 201, response.body
    return response.json


def create_records(server: Server, token: str, *names: str, collection: str = "concept") -> None:
    for name in names:
        assert server.post_json(f"/api/v1/{collection}", {"name": name}, token).status == 201


def test_a_change_is_delivered_signed_and_equal_to_its_feed_entry(server: Server, receiver: WebhookReceiver) -> None:
    admin = server.create_token("admin")
    create_records(server, admin, "before")
    hook = add_webhook(server, admin, receiver.url)
    revision = server.get("/api/v1").json["revision"]
    create_records(server, admin, "Ünï “quoted”")
    wait_until(lambda: len(receiver.received) == 1)
    headers, body = receiver.received[0]
    payload = Verifier(hook["secret"]).verify(body, headers)
    # IRIs of the feed begin with the requested host, those of webhooks with the default base.
    assert payload == server.get("/api/v1/changes?since=1", Host="localhost:8000").json["items"][0]
    assert headers["content-type"] == "application/json"
    assert headers["host"] == f"127.0.0.1:{receiver.port}"
    with pytest.raises(WebhookVerificationError):
        Verifier(hook["secret"]).verify(body + b" ", headers)
    path = f"{WEBHOOKS_PATH}/{hook['id']}"
    wait_until(lambda: bool(send_request(server, "GET", path, admin).json["seq"] == 2))
    (delivery,) = send_request(server, "GET", f"{path}/deliveries", admin).json["items"]
    assert (delivery["seq"], delivery["status"], delivery["error"]) == (2, 204, None)
    assert server.get("/api/v1").json["revision"] == revision + 1


def test_the_secret_is_shown_once(server: Server, receiver: WebhookReceiver) -> None:
    admin = server.create_token("admin")
    response = server.post_json(WEBHOOKS_PATH, {"url": receiver.url}, admin)
    assert response.json["secret"].startswith("whsec_")
    without_secret = {key: value for key, value in response.json.items() if key != "secret"}
    assert send_request(server, "GET", response.headers["location"], admin).json == without_secret
    assert send_request(server, "GET", WEBHOOKS_PATH, admin).json == {"items": [without_secret]}


def test_deliveries_are_filtered_by_collection_and_action(server: Server, receiver: WebhookReceiver) -> None:
    admin = server.create_token("admin")
    tasks = add_webhook(server, admin, receiver.url, collections=["task", "task"])
    assert tasks["collections"] == ["task"]
    with WebhookReceiver() as other_receiver:
        retired = add_webhook(server, admin, other_receiver.url, actions=["retire", "revert"])
        record = server.post_json("/api/v1/concept", {"name": "a concept"}, admin).json
        headers = {"Authorization": f"Bearer {admin}", "If-Match": '"1"'}
        assert server.request("DELETE", f"/api/v1/concept/{record['id']}", headers).status == 200
        create_records(server, admin, "a task", collection="task")
        wait_until(lambda: len(receiver.received) == 1 and len(other_receiver.received) == 1)
        assert receiver.list_names(tasks["secret"]) == ["a task"]
        payload = Verifier(retired["secret"]).verify(other_receiver.received[0][1], other_receiver.received[0][0])
        assert (payload["action"], payload["id"]) == ("retire", record["id"])
        # Skipped changes are not read again.
        wait_until(
            lambda: {hook["seq"] for hook in send_request(server, "GET", WEBHOOKS_PATH, admin).json["items"]} == {3}
        )


def test_failed_deliveries_are_retried_in_order(server: Server) -> None:
    admin = server.create_token("admin")
    with WebhookReceiver(204, 500, 302) as receiver:
        hook = add_webhook(server, admin, receiver.url)
        create_records(server, admin, "one", "two", "three")
        wait_until(lambda: len(receiver.received) == 5)
        assert receiver.list_names(hook["secret"]) == ["one", "two", "two", "two", "three"]
        ids = [headers["webhook-id"] for headers, _ in receiver.received]
        assert len(set(ids)) == 3
        assert ids[1] == ids[2] == ids[3]
        path = f"{WEBHOOKS_PATH}/{hook['id']}"
        wait_until(lambda: len(send_request(server, "GET", f"{path}/deliveries", admin).json["items"]) == 5)
        items = send_request(server, "GET", f"{path}/deliveries", admin).json["items"]
        assert [delivery["status"] for delivery in items] == [204, 204, 302, 500, 204]
        assert [delivery["error"] for delivery in items][2:4] == ["answered 302", "answered 500"]
        assert len(send_request(server, "GET", f"{path}/deliveries?limit=2", admin).json["items"]) == 2
        after = send_request(server, "GET", path, admin).json
        assert (after["attempts"], after["failing_since"], after["next_attempt"]) == (0, None, None)


def test_an_unresponsive_receiver_does_not_delay_others(server: Server, receiver: WebhookReceiver) -> None:
    admin = server.create_token("admin")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hook = add_webhook(server, admin, f"http://127.0.0.1:{silent.getsockname()[1]}/")
        add_webhook(server, admin, receiver.url)
        started = time.monotonic()
        create_records(server, admin, "one", "two")
        wait_until(lambda: len(receiver.received) == 2)
        attempts = send_request(server, "GET", f"{WEBHOOKS_PATH}/{hook['id']}", admin).json["attempts"]
        if time.monotonic() - started < sender.TIMEOUT_SECONDS:
            assert attempts == 0, "it is still waited for"


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL])
def test_deliveries_survive_a_restart(url: str, signal_number: int) -> None:
    with WebhookReceiver(204, 500) as receiver:
        with Server(url, LEXARIUM_WEBHOOKS_PRIVATE="yes") as server:
            admin = server.create_token("admin")
            hook = add_webhook(server, admin, receiver.url)
            create_records(server, admin, "one", "two", "three")
            wait_until(lambda: len(receiver.received) == 2)
            os.kill(server.pid, signal_number)
        with Server(url, LEXARIUM_WEBHOOKS_PRIVATE="yes") as restarted_server:
            wait_until(lambda: len(receiver.received) >= 4)
            path = f"{WEBHOOKS_PATH}/{hook['id']}"
            wait_until(lambda: bool(send_request(restarted_server, "GET", path, admin).json["seq"] == 3))
        names = receiver.list_names(hook["secret"])
        assert names == ["one", "two", "two", "three"]


def test_a_change_is_delivered_once_by_several_workers(url: str, receiver: WebhookReceiver) -> None:
    with Server(url, "--workers", "3", LEXARIUM_WEBHOOKS_PRIVATE="yes") as server:
        admin = server.create_token("admin")
        hook = add_webhook(server, admin, receiver.url)
        names = [str(number) for number in range(30)]
        create_records(server, admin, *names)
        path = f"{WEBHOOKS_PATH}/{hook['id']}"
        wait_until(lambda: bool(send_request(server, "GET", path, admin).json["seq"] == 30))
        assert receiver.list_names(hook["secret"]) == names


def test_a_webhook_is_disabled_after_a_day_of_failures_until_it_is_enabled(server: Server) -> None:
    admin = server.create_token("admin")
    with WebhookReceiver(500) as receiver:
        hook = add_webhook(server, admin, receiver.url)
        path = f"{WEBHOOKS_PATH}/{hook['id']}"
        database = Database(server.url)
        with database.write() as transaction:
            new = webhooks.find(transaction.flush(), hook["id"])
            assert new is not None
            webhooks.save(transaction, replace(new, attempts=1, failing=now_ms() - DAY_MS))
        database.close()
        create_records(server, admin, "one")
        wait_until(lambda: send_request(server, "GET", path, admin).json["disabled"] is not None)
        create_records(server, admin, "two")
        assert len(receiver.received) == 1
        assert send_request(server, "POST", f"{path}/enable", admin).json["disabled"] is None
        wait_until(lambda: len(receiver.received) == 3)
        assert receiver.list_names(hook["secret"]) == ["one", "one", "two"]
    assert f"Webhook {hook['id']} was disabled after 2 failed attempts: answered 500" in server.stop()


def test_a_receiver_that_responds_with_410_disables_its_webhook(server: Server) -> None:
    admin = server.create_token("admin")
    with WebhookReceiver(410) as receiver:
        path = f"{WEBHOOKS_PATH}/{add_webhook(server, admin, receiver.url)['id']}"
        create_records(server, admin, "one")
        wait_until(lambda: send_request(server, "GET", path, admin).json["disabled"] is not None)


def test_an_updated_webhook_continues_at_its_position(server: Server, receiver: WebhookReceiver) -> None:
    admin = server.create_token("admin")
    with WebhookReceiver(*[500] * 1000) as failing_receiver:
        hook = add_webhook(server, admin, failing_receiver.url, actions=["create"])
        path = f"{WEBHOOKS_PATH}/{hook['id']}"
        create_records(server, admin, "one")
        wait_until(lambda: bool(send_request(server, "GET", path, admin).json["attempts"] >= 1))
        updated = send_request(server, "PATCH", path, admin, {"url": receiver.url, "collections": ["task", "concept"]})
        assert updated.status == 200
        expected_fields = {
            "url": receiver.url,
            "collections": ["task", "concept"],
            "actions": ["create"],
            "attempts": 0,
        }
        assert {key: updated.json[key] for key in expected_fields} == expected_fields
        assert "secret" not in updated.json
        create_records(server, admin, "a disorder", collection="disorder")
        create_records(server, admin, "two")
        wait_until(lambda: len(receiver.received) == 2)
        assert receiver.list_names(hook["secret"]) == ["one", "two"]
    assert send_request(server, "PATCH", path, admin, {"collections": None}).json["collections"] == []
    rejected = send_request(
        server, "PATCH", path, admin, {"url": "file:///x", "collections": ["nope"], "actions": None, "seq": 1}
    )
    assert rejected.status == 422
    assert {error["pointer"] for error in rejected.json["errors"]} == {"/url", "/collections/0", "/seq"}
    assert send_request(server, "GET", path, admin).json["url"] == receiver.url


def test_a_disabled_webhook_is_sent_nothing_until_it_is_enabled(server: Server, receiver: WebhookReceiver) -> None:
    admin = server.create_token("admin")
    hook, other = add_webhook(server, admin, receiver.url), add_webhook(server, admin, receiver.url)
    path = f"{WEBHOOKS_PATH}/{hook['id']}"
    disabled = send_request(server, "POST", f"{path}/disable", admin).json["disabled"]
    assert disabled
    assert send_request(server, "POST", f"{path}/disable", admin).json["disabled"] == disabled
    create_records(server, admin, "one")
    wait_until(lambda: bool(send_request(server, "GET", f"{WEBHOOKS_PATH}/{other['id']}", admin).json["seq"] == 1))
    assert send_request(server, "GET", path, admin).json["seq"] == 0
    assert send_request(server, "POST", f"{path}/enable", admin).json["disabled"] is None
    wait_until(lambda: len(receiver.received) == 2)


def test_a_rotated_secret_signs_together_with_the_previous_one(server: Server, receiver: WebhookReceiver) -> None:
    admin = server.create_token("admin")
    hook = add_webhook(server, admin, receiver.url)
    path = f"{WEBHOOKS_PATH}/{hook['id']}"
    secrets = [
        hook["secret"],
        *(send_request(server, "POST", f"{path}/rotate", admin).json["secret"] for _ in range(2)),
    ]
    assert len(set(secrets)) == 3
    assert "secret" not in send_request(server, "GET", path, admin).json
    create_records(server, admin, "one")
    wait_until(lambda: len(receiver.received) == 1)
    for secret in secrets[1:]:
        assert receiver.list_names(secret) == ["one"]
    with pytest.raises(WebhookVerificationError):
        receiver.list_names(secrets[0])


def test_a_webhook_is_tested(server: Server) -> None:
    admin = server.create_token("admin")
    with WebhookReceiver(204, 500) as receiver:
        hook = add_webhook(server, admin, receiver.url)
        path = f"{WEBHOOKS_PATH}/{hook['id']}"
        assert send_request(server, "POST", f"{path}/test", admin).json == {"status": 204, "error": None}
        assert send_request(server, "POST", f"{path}/test", admin).json == {"status": 500, "error": "answered 500"}
        headers, body = receiver.received[0]
        assert Verifier(hook["secret"]).verify(body, headers)["action"] == "test"
    response = send_request(server, "POST", f"{path}/test", admin).json
    assert (response["status"], "no response" in response["error"]) == (None, True)
    logged = send_request(server, "GET", f"{path}/deliveries", admin).json["items"]
    assert [(delivery["seq"], delivery["status"], delivery["error"] is None) for delivery in logged] == [
        (0, None, False),
        (0, 500, False),
        (0, 204, True),
    ]
    assert send_request(server, "GET", path, admin).json["attempts"] == 0


def test_a_deleted_webhook_receives_no_more_changes(server: Server, receiver: WebhookReceiver) -> None:
    admin = server.create_token("admin")
    deleted, remaining = add_webhook(server, admin, receiver.url), add_webhook(server, admin, receiver.url)
    create_records(server, admin, "one")
    wait_until(lambda: len(receiver.received) == 2)
    path = f"{WEBHOOKS_PATH}/{deleted['id']}"
    wait_until(lambda: len(send_request(server, "GET", f"{path}/deliveries", admin).json["items"]) == 1)
    assert send_request(server, "DELETE", path, admin).status == 204
    create_records(server, admin, "two")
    wait_until(lambda: bool(send_request(server, "GET", f"{WEBHOOKS_PATH}/{remaining['id']}", admin).json["seq"] == 2))
    assert len(receiver.received) == 3
    for method, target in (
        ("GET", path),
        ("DELETE", path),
        ("GET", f"{path}/deliveries"),
        ("PATCH", path),
        *(("POST", f"{path}/{deed}") for deed in ("enable", "disable", "rotate", "test")),
        ("GET", f"{WEBHOOKS_PATH}/%00"),
    ):
        assert send_request(server, method, target, admin, {}).status == 404


def test_webhooks_are_managed_only_by_admins(shared_server: Server) -> None:
    curator = shared_server.create_token("curator")
    for method, target in (
        ("GET", WEBHOOKS_PATH),
        ("GET", f"{WEBHOOKS_PATH}/x"),
        ("DELETE", f"{WEBHOOKS_PATH}/x"),
        ("GET", f"{WEBHOOKS_PATH}/x/deliveries"),
        ("PATCH", f"{WEBHOOKS_PATH}/x"),
        *(("POST", f"{WEBHOOKS_PATH}/x/{deed}") for deed in ("enable", "disable", "rotate", "test")),
    ):
        assert send_request(shared_server, method, target, curator, {}).status == 403
        assert shared_server.request(method, target).status == 401
    assert shared_server.post_json(WEBHOOKS_PATH, {"url": "https://example.org"}, curator).status == 403


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://localhost:8000/",
        "http://localhost./",
        "http://127.1/",
        "http://2130706433/",
        "http://0.0.0.0/",
        "http://10.0.0.1/",
        "http://100.64.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://192.168.1.1/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "https://[::1]/",
        "https://[::]/",
        "https://[fe80::1]/",
        "https://[fd00::1]/",
        "https://[fec0::1]/",
        "https://[ff02::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[2002:7f00:1::]/",
        "https://[64:ff9b::a00:1]/",
        "http://there-is-no-such-host.invalid/",
        "file:///etc/passwd",
        "ftp://example.org/",
        "https://",
        "//example.org/",
        "http://user:word@192.0.2.1/",
        "http://8.8.8.8:99999/",
        "http://8.8.8.8:0/",
        "http://[8.8.8.8/",
        "http://8.8.8.8/\r\nx: y",
        "http://8.8.8.8/\x00",
        "http://8.8.8.8/a b",
        "http://ex\u00e4mple.org/",
        "",
    ],
)
def test_urls_that_are_not_public_are_rejected(shared_server: Server, url: str) -> None:
    admin = shared_server.create_token("admin")
    response = shared_server.post_json(WEBHOOKS_PATH, {"url": url}, admin)
    assert response.status == 422
    assert [error["pointer"] for error in response.json["errors"]] == ["/url"]
    assert send_request(shared_server, "GET", WEBHOOKS_PATH, admin).json == {"items": []}


def test_all_invalid_fields_are_reported(shared_server: Server) -> None:
    admin = shared_server.create_token("admin")
    for body, wrong_fields in (
        ({}, {"/url"}),
        ({"url": 5, "collections": "task"}, {"/url", "/collections"}),
        (
            {"url": "notaurl", "collections": ["task", "nope"], "actions": ["zap"], "x": 1},
            {"/url", "/collections/1", "/actions/0", "/x"},
        ),
        ({"url": "http://8.8.8.8/", "actions": ["explode"]}, {"/actions/0"}),
        ({"url": "http://8.8.8.8/", "secret": "mine"}, {"/secret"}),
        ({"url": "http://8.8.8.8/" + "x" * 2_000}, {"/url"}),
    ):
        response = shared_server.post_json(WEBHOOKS_PATH, body, admin)
        assert response.status == 422
        assert {error["pointer"] for error in response.json["errors"]} == wrong_fields


def test_a_host_name_with_any_private_address_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve_to(*addresses: str) -> Callable[..., Any]:
        return lambda *_, **__: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve_to("8.8.8.8"))
    assert find_receiver("http://name.example/", private=False).addresses == ((socket.AF_INET, ("8.8.8.8", 80)),)
    monkeypatch.setattr(socket, "getaddrinfo", resolve_to("8.8.8.8", "127.0.0.1"))
    with pytest.raises(DeliveryFailed, match="private"):
        find_receiver("http://name.example/", private=False)


def test_a_host_name_is_resolved_once_for_the_check_and_the_connection(
    receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_receiver = find_receiver(receiver.url.replace("127.0.0.1", "localhost"), private=True)

    def fail(*_: object, **__: object) -> Any:
        raise AssertionError("it was looked up again")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert send(found_receiver, {"content-type": "application/json"}) == 204
    assert receiver.received[0][0]["host"] == f"localhost:{receiver.port}"


def test_resolving_a_host_name_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "TIMEOUT_SECONDS", 0.1)
    is_finished = threading.Event()

    def hang(*_: object, **__: object) -> list[object]:
        is_finished.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with pytest.raises(DeliveryFailed, match="timed out"):
        find_receiver("http://name.example/", private=True)
    is_finished.set()


def test_resolving_connecting_and_responding_share_one_deadline(receiver: WebhookReceiver) -> None:
    found_receiver = find_receiver(receiver.url, private=True)
    with pytest.raises(DeliveryFailed, match="timed out"):
        sender.send(found_receiver, b"{}", {}, deadline=time.monotonic())
    assert receiver.received == []


def test_an_address_of_a_family_that_the_host_lacks_is_skipped(receiver: WebhookReceiver) -> None:
    found = find_receiver(receiver.url, private=True)
    lacking = (socket.AF_ECONET, ("::1", receiver.port))  # no longer in Linux
    assert send(replace(found, addresses=(lacking, *found.addresses))) == 204


def test_connecting_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for waiting_socket in waiting:
            waiting_socket.setblocking(False)
            waiting_socket.connect_ex(address)
        with pytest.raises(DeliveryFailed, match="timed out"):
            send(find_receiver(f"http://127.0.0.1:{address[1]}/", private=True))
        for waiting_socket in waiting:
            waiting_socket.close()


def test_a_webhook_with_a_url_that_is_no_longer_allowed_is_not_delivered(url: str, receiver: WebhookReceiver) -> None:
    with Server(url, LEXARIUM_WEBHOOKS_PRIVATE="yes") as server:
        admin = server.create_token("admin")
        path = f"{WEBHOOKS_PATH}/{add_webhook(server, admin, receiver.url)['id']}"
    with Server(url) as server:
        create_records(server, admin, "one")
        wait_until(lambda: bool(send_request(server, "GET", path, admin).json["attempts"]))
        (delivery,) = send_request(server, "GET", f"{path}/deliveries", admin).json["items"]
        assert delivery["status"] is None
        assert "private" in delivery["error"]
    assert receiver.received == []


def test_a_slow_response_of_a_receiver_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    is_finished = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not is_finished.wait(0.05):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,), daemon=True)
        thread.start()
        receiver = find_receiver(f"http://127.0.0.1:{listener.getsockname()[1]}/", private=True)
        monkeypatch.setattr(sender, "TIMEOUT_SECONDS", 0.5)
        with pytest.raises(DeliveryFailed, match="timed out"):
            send(receiver)
        is_finished.set()
        thread.join()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_the_certificate_must_match_the_host_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = tmp_path / "localhost.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run(
        [*command.split(), "-keyout", certificate, "-out", tmp_path / "x.pem"], check=True, capture_output=True
    )
    certificate.write_bytes(certificate.read_bytes() + (tmp_path / "x.pem").read_bytes())
    with WebhookReceiver(certificate=certificate) as receiver:
        trusted = ssl.create_default_context(cafile=tmp_path / "x.pem")
        receiver_url = f"https://localhost:{receiver.port}/"
        with pytest.raises(DeliveryFailed, match="certificate verify failed"):
            send(find_receiver(receiver_url, private=True))
        monkeypatch.setattr(sender, "_get_ssl_context", lambda: trusted)
        assert send(find_receiver(receiver_url, private=True)) == 204
        with pytest.raises(DeliveryFailed, match="certificate verify failed"):
            send(find_receiver(receiver_url.replace("localhost", "127.0.0.1"), private=True))


WEBHOOK = Webhook("whk_1", "https://example.org/", ("whsec_",), (), (), 0, created=0)


def test_retry_delays_grow_from_seconds_to_hours_and_end_after_a_day() -> None:
    hook, waits = WEBHOOK, []
    while hook.disabled is None:
        at = hook.due
        hook = hook.with_failure(at, 1.0)
        waits.append(hook.due - at)
    assert waits == sorted(waits)
    assert waits[0] < 10_000
    assert waits[-1] > 60 * 60 * 1000
    assert DAY_MS <= hook.disabled < 1.25 * DAY_MS
    assert 10 <= hook.attempts <= 30
    assert WEBHOOK.with_failure(0, 1.2).due > WEBHOOK.with_failure(0, 0.8).due
    assert hook.with_success(5).failing is None


def test_a_failure_does_not_enable_a_webhook_disabled_meanwhile() -> None:
    assert replace(WEBHOOK, disabled=5).with_failure(9, 1.0).disabled == 5


def test_a_lease_has_one_holder_until_it_expires_or_is_released(database: Database) -> None:
    def take(holder: str, at: int) -> bool:
        return database.run_write(lambda transaction: leases.acquire(transaction, Lease("x", holder, at + 10), at=at))

    before = database.get_position()
    assert take("a", 0)
    assert not take("b", 9)
    assert take("a", 9)
    assert not take("b", 18)
    assert take("b", 19)
    assert not take("a", 20)
    database.run_write(lambda transaction: leases.release(transaction, "x", "a"))
    assert not take("a", 20)
    database.run_write(lambda transaction: leases.release(transaction, "x", "b"))
    assert take("a", 20)
    assert database.get_position()[:3] == before[:3]  # epoch, revision and accounts


def test_the_delivery_log_keeps_the_newest_entries(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "MAX_DELIVERIES", 3)
    other = replace(WEBHOOK, id="whk_2")
    with database.write() as transaction:
        webhooks.add(transaction, WEBHOOK)
        webhooks.add(transaction, other)
        for seq in range(5):
            webhooks.add_delivery(transaction, WebhookDelivery(WEBHOOK.id, seq, 0, 204))
            webhooks.add_delivery(transaction, WebhookDelivery(other.id, seq, 0, None, "no answer"))
    with database.read() as snapshot:
        assert [delivery.seq for delivery in webhooks.list_deliveries(snapshot, WEBHOOK.id, 100)] == [4, 3, 2]
    with database.write() as transaction:
        assert webhooks.delete_webhook(transaction, WEBHOOK.id)
        assert not webhooks.delete_webhook(transaction, WEBHOOK.id)
    with database.read() as snapshot:
        assert webhooks.list_deliveries(snapshot, WEBHOOK.id, 100) == []
        assert len(webhooks.list_deliveries(snapshot, other.id, 100)) == 3
