"""Webhooks: who is told of which change, signed how, how often, and where never."""

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
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from lexarium.domain.webhooks import Delivery, Webhook
from lexarium.service import receivers
from lexarium.service.receivers import Receiver as Found
from lexarium.service.receivers import Unreachable, deadline
from lexarium.store import leases, webhooks
from lexarium.store.database import Database
from lexarium.store.leases import Lease
from tests.server import Answer, Server
from tests.waiting import wait_until

HOOKS = "/api/v1/webhooks"
DAY = 24 * 60 * 60 * 1000


class Receiver:
    """A program that is told of changes: it keeps what it gets, and answers as it was told to."""

    def __init__(self, *statuses: int, certificate: Path | None = None) -> None:
        self.statuses = list(statuses)
        """What to answer, one after the other; afterwards 204."""
        self.got: list[tuple[dict[str, str], bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(outer.statuses.pop(0) if outer.statuses else 204)
                self.send_header("location", "/elsewhere")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hook?key=a%20b"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def names(self, secret: str) -> list[str]:
        """The names of the records that it was told of; every signature must be right."""
        return [Verifier(secret).verify(body, headers)["record"]["name"] for headers, body in list(self.got)]


@pytest.fixture
def server(url: str) -> Iterator[Server]:
    with Server(url, LEXARIUM_WEBHOOKS_PRIVATE="yes") as running:
        yield running


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def find_receiver(url: str, *, private: bool) -> Found:
    return receivers.find_receiver(url, private=private, until=deadline())


def send(receiver: Found, headers: dict[str, str] | None = None) -> int:
    return receivers.send(receiver, b"{}", headers or {}, until=deadline())


def ask(server: Server, method: str, target: str, token: str, body: object = None) -> Answer:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return server.request(method, target, headers, None if body is None else json.dumps(body))


def add(server: Server, admin: str, url: str, **filters: list[str]) -> Any:
    answer = server.post_json(HOOKS, {"url": url, **filters}, admin)
    assert answer.status == 201, answer.body
    return answer.json


def write(server: Server, token: str, *names: str, collection: str = "concept") -> None:
    for name in names:
        assert server.post_json(f"/api/v1/{collection}", {"name": name}, token).status == 201


def test_a_change_is_delivered_signed_as_the_feed_tells_it(server: Server, receiver: Receiver) -> None:
    admin = server.token("admin")
    write(server, admin, "before")
    hook = add(server, admin, receiver.url)
    revision = server.get("/api/v1").json["revision"]
    write(server, admin, "Ünï “quoted”")
    wait_until(lambda: len(receiver.got) == 1)
    headers, body = receiver.got[0]
    told = Verifier(hook["secret"]).verify(body, headers)
    assert told == server.get("/api/v1/changes?since=1").json["items"][0]
    assert headers["content-type"] == "application/json"
    assert headers["host"] == f"127.0.0.1:{receiver.port}"
    with pytest.raises(WebhookVerificationError):
        Verifier(hook["secret"]).verify(body + b" ", headers)
    path = f"{HOOKS}/{hook['id']}"
    wait_until(lambda: bool(ask(server, "GET", path, admin).json["seq"] == 2))
    (delivery,) = ask(server, "GET", f"{path}/deliveries", admin).json["items"]
    assert (delivery["seq"], delivery["status"], delivery["error"]) == (2, 204, None)
    assert server.get("/api/v1").json["revision"] == revision + 1


def test_the_secret_is_told_once(server: Server, receiver: Receiver) -> None:
    admin = server.token("admin")
    answer = server.post_json(HOOKS, {"url": receiver.url}, admin)
    assert answer.json["secret"].startswith("whsec_")
    told = {key: value for key, value in answer.json.items() if key != "secret"}
    assert ask(server, "GET", answer.headers["location"], admin).json == told
    assert ask(server, "GET", HOOKS, admin).json == {"items": [told]}


def test_filters_choose_collections_and_actions(server: Server, receiver: Receiver) -> None:
    admin = server.token("admin")
    tasks = add(server, admin, receiver.url, collections=["task", "task"])
    assert tasks["collections"] == ["task"]
    with Receiver() as other:
        retired = add(server, admin, other.url, actions=["retire", "revert"])
        made = server.post_json("/api/v1/concept", {"name": "a concept"}, admin).json
        headers = {"Authorization": f"Bearer {admin}", "If-Match": '"1"'}
        assert server.request("DELETE", f"/api/v1/concept/{made['id']}", headers).status == 200
        write(server, admin, "a task", collection="task")
        wait_until(lambda: len(receiver.got) == 1 and len(other.got) == 1)
        assert receiver.names(tasks["secret"]) == ["a task"]
        told = Verifier(retired["secret"]).verify(other.got[0][1], other.got[0][0])
        assert (told["action"], told["id"]) == ("retire", made["id"])
        # What is passed over is not looked at again.
        wait_until(lambda: {hook["seq"] for hook in ask(server, "GET", HOOKS, admin).json["items"]} == {3})


def test_what_fails_is_tried_again_and_the_order_is_kept(server: Server) -> None:
    admin = server.token("admin")
    with Receiver(204, 500, 302) as receiver:
        hook = add(server, admin, receiver.url)
        write(server, admin, "one", "two", "three")
        wait_until(lambda: len(receiver.got) == 5)
        assert receiver.names(hook["secret"]) == ["one", "two", "two", "two", "three"]
        ids = [headers["webhook-id"] for headers, _ in receiver.got]
        assert len(set(ids)) == 3
        assert ids[1] == ids[2] == ids[3]
        path = f"{HOOKS}/{hook['id']}"
        wait_until(lambda: len(ask(server, "GET", f"{path}/deliveries", admin).json["items"]) == 5)
        items = ask(server, "GET", f"{path}/deliveries", admin).json["items"]
        assert [each["status"] for each in items] == [204, 204, 302, 500, 204]
        assert [each["error"] for each in items][2:4] == ["answered 302", "answered 500"]
        assert len(ask(server, "GET", f"{path}/deliveries?limit=2", admin).json["items"]) == 2
        after = ask(server, "GET", path, admin).json
        assert (after["attempts"], after["failing_since"], after["next_attempt"]) == (0, None, None)


def test_a_receiver_that_does_not_answer_holds_up_no_other(server: Server, receiver: Receiver) -> None:
    admin = server.token("admin")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hook = add(server, admin, f"http://127.0.0.1:{silent.getsockname()[1]}/")
        add(server, admin, receiver.url)
        write(server, admin, "one", "two")
        wait_until(lambda: len(receiver.got) == 2)
        assert ask(server, "GET", f"{HOOKS}/{hook['id']}", admin).json["attempts"] == 0, "it is still waited for"


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL])
def test_deliveries_survive_a_restart(url: str, signal_number: int) -> None:
    with Receiver(204, 500) as receiver:
        with Server(url, LEXARIUM_WEBHOOKS_PRIVATE="yes") as server:
            admin = server.token("admin")
            hook = add(server, admin, receiver.url)
            write(server, admin, "one", "two", "three")
            wait_until(lambda: len(receiver.got) == 2)
            os.kill(server.pid, signal_number)
        with Server(url, LEXARIUM_WEBHOOKS_PRIVATE="yes") as again:
            wait_until(lambda: len(receiver.got) >= 4)
            path = f"{HOOKS}/{hook['id']}"
            wait_until(lambda: bool(ask(again, "GET", path, admin).json["seq"] == 3))
        names = receiver.names(hook["secret"])
        assert names == ["one", "two", "two", "three"]


def test_several_workers_deliver_a_change_once(url: str, receiver: Receiver) -> None:
    with Server(url, "--workers", "3", LEXARIUM_WEBHOOKS_PRIVATE="yes") as server:
        admin = server.token("admin")
        hook = add(server, admin, receiver.url)
        names = [str(number) for number in range(30)]
        write(server, admin, *names)
        path = f"{HOOKS}/{hook['id']}"
        wait_until(lambda: bool(ask(server, "GET", path, admin).json["seq"] == 30))
        assert receiver.names(hook["secret"]) == names


def test_after_a_day_of_failures_a_webhook_is_disabled_until_it_is_enabled(server: Server) -> None:
    admin = server.token("admin")
    with Receiver(500, 500) as receiver:
        hook = add(server, admin, receiver.url)
        path = f"{HOOKS}/{hook['id']}"
        write(server, admin, "one")
        wait_until(lambda: bool(ask(server, "GET", path, admin).json["attempts"] == 1))
        database = Database(server.url)
        with database.write() as transaction:
            failing = webhooks.find(transaction.connection, hook["id"])
            assert failing is not None
            assert failing.failing is not None
            webhooks.save(transaction, replace(failing, failing=failing.failing - DAY, due=0))
        database.close()
        wait_until(lambda: ask(server, "GET", path, admin).json["disabled"] is not None)
        write(server, admin, "two")
        assert len(receiver.got) == 2
        assert ask(server, "POST", f"{path}/enable", admin).json["disabled"] is None
        wait_until(lambda: len(receiver.got) == 4)
        assert receiver.names(hook["secret"]) == ["one", "one", "one", "two"]
    assert f"The webhook {hook['id']} is disabled, after 2 attempts: answered 500" in server.stop()


def test_a_receiver_that_is_gone_for_good_may_say_so(server: Server) -> None:
    admin = server.token("admin")
    with Receiver(410) as receiver:
        path = f"{HOOKS}/{add(server, admin, receiver.url)['id']}"
        write(server, admin, "one")
        wait_until(lambda: ask(server, "GET", path, admin).json["disabled"] is not None)


def test_a_webhook_is_changed_and_goes_on_where_it_stood(server: Server, receiver: Receiver) -> None:
    admin = server.token("admin")
    with Receiver(500) as wrong:
        hook = add(server, admin, wrong.url, actions=["create"])
        path = f"{HOOKS}/{hook['id']}"
        write(server, admin, "one")
        wait_until(lambda: bool(ask(server, "GET", path, admin).json["attempts"] == 1))
        changed = ask(server, "PATCH", path, admin, {"url": receiver.url, "collections": ["task", "concept"]})
        assert changed.status == 200
        told = {"url": receiver.url, "collections": ["task", "concept"], "actions": ["create"], "attempts": 0}
        assert {key: changed.json[key] for key in told} == told
        assert "secret" not in changed.json
        write(server, admin, "a disorder", collection="disorder")
        write(server, admin, "two")
        wait_until(lambda: len(receiver.got) == 2)
        assert receiver.names(hook["secret"]) == ["one", "two"]
    assert ask(server, "PATCH", path, admin, {"collections": None}).json["collections"] == []
    refused = ask(
        server, "PATCH", path, admin, {"url": "file:///x", "collections": ["nope"], "actions": None, "seq": 1}
    )
    assert refused.status == 422
    assert {error["pointer"] for error in refused.json["errors"]} == {"/url", "/collections/0", "/seq"}
    assert ask(server, "GET", path, admin).json["url"] == receiver.url


def test_a_webhook_that_is_disabled_is_sent_nothing_until_it_is_enabled(server: Server, receiver: Receiver) -> None:
    admin = server.token("admin")
    hook, other = add(server, admin, receiver.url), add(server, admin, receiver.url)
    path = f"{HOOKS}/{hook['id']}"
    disabled = ask(server, "POST", f"{path}/disable", admin).json["disabled"]
    assert disabled
    assert ask(server, "POST", f"{path}/disable", admin).json["disabled"] == disabled
    write(server, admin, "one")
    wait_until(lambda: bool(ask(server, "GET", f"{HOOKS}/{other['id']}", admin).json["seq"] == 1))
    assert ask(server, "GET", path, admin).json["seq"] == 0
    assert ask(server, "POST", f"{path}/enable", admin).json["disabled"] is None
    wait_until(lambda: len(receiver.got) == 2)


def test_a_new_secret_signs_beside_the_last_one(server: Server, receiver: Receiver) -> None:
    admin = server.token("admin")
    hook = add(server, admin, receiver.url)
    path = f"{HOOKS}/{hook['id']}"
    secrets = [hook["secret"], *(ask(server, "POST", f"{path}/rotate", admin).json["secret"] for _ in range(2))]
    assert len(set(secrets)) == 3
    assert "secret" not in ask(server, "GET", path, admin).json
    write(server, admin, "one")
    wait_until(lambda: len(receiver.got) == 1)
    for secret in secrets[1:]:
        assert receiver.names(secret) == ["one"]
    with pytest.raises(WebhookVerificationError):
        receiver.names(secrets[0])


def test_a_webhook_is_tried_out(server: Server) -> None:
    admin = server.token("admin")
    with Receiver(204, 500) as receiver:
        hook = add(server, admin, receiver.url)
        path = f"{HOOKS}/{hook['id']}"
        assert ask(server, "POST", f"{path}/test", admin).json == {"status": 204, "error": None}
        assert ask(server, "POST", f"{path}/test", admin).json == {"status": 500, "error": "answered 500"}
        headers, body = receiver.got[0]
        assert Verifier(hook["secret"]).verify(body, headers)["action"] == "test"
    answer = ask(server, "POST", f"{path}/test", admin).json
    assert (answer["status"], "no answer" in answer["error"]) == (None, True)
    logged = ask(server, "GET", f"{path}/deliveries", admin).json["items"]
    assert [(each["seq"], each["status"], each["error"] is None) for each in logged] == [
        (0, None, False),
        (0, 500, False),
        (0, 204, True),
    ]
    assert ask(server, "GET", path, admin).json["attempts"] == 0


def test_a_webhook_that_is_taken_away_gets_no_more(server: Server, receiver: Receiver) -> None:
    admin = server.token("admin")
    gone, stays = add(server, admin, receiver.url), add(server, admin, receiver.url)
    write(server, admin, "one")
    wait_until(lambda: len(receiver.got) == 2)
    path = f"{HOOKS}/{gone['id']}"
    wait_until(lambda: len(ask(server, "GET", f"{path}/deliveries", admin).json["items"]) == 1)
    assert ask(server, "DELETE", path, admin).status == 204
    write(server, admin, "two")
    wait_until(lambda: bool(ask(server, "GET", f"{HOOKS}/{stays['id']}", admin).json["seq"] == 2))
    assert len(receiver.got) == 3
    for method, target in (
        ("GET", path),
        ("DELETE", path),
        ("GET", f"{path}/deliveries"),
        ("PATCH", path),
        *(("POST", f"{path}/{deed}") for deed in ("enable", "disable", "rotate", "test")),
        ("GET", f"{HOOKS}/%00"),
    ):
        assert ask(server, method, target, admin, {}).status == 404


def test_webhooks_are_an_admins(shared_server: Server) -> None:
    curator = shared_server.token("curator")
    for method, target in (
        ("GET", HOOKS),
        ("GET", f"{HOOKS}/x"),
        ("DELETE", f"{HOOKS}/x"),
        ("GET", f"{HOOKS}/x/deliveries"),
        ("PATCH", f"{HOOKS}/x"),
        *(("POST", f"{HOOKS}/x/{deed}") for deed in ("enable", "disable", "rotate", "test")),
    ):
        assert ask(shared_server, method, target, curator, {}).status == 403
        assert shared_server.request(method, target).status == 401
    assert shared_server.post_json(HOOKS, {"url": "https://example.org"}, curator).status == 403


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
def test_addresses_that_are_not_public_are_refused(shared_server: Server, url: str) -> None:
    admin = shared_server.token("admin")
    answer = shared_server.post_json(HOOKS, {"url": url}, admin)
    assert answer.status == 422
    assert [error["pointer"] for error in answer.json["errors"]] == ["/url"]
    assert ask(shared_server, "GET", HOOKS, admin).json == {"items": []}


def test_every_wrong_field_is_named(shared_server: Server) -> None:
    admin = shared_server.token("admin")
    for body, wrong in (
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
        answer = shared_server.post_json(HOOKS, body, admin)
        assert answer.status == 422
        assert {error["pointer"] for error in answer.json["errors"]} == wrong


def test_a_name_that_has_a_private_address_among_others_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*addresses: str) -> Callable[..., Any]:
        return lambda *_, **__: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", found("8.8.8.8"))
    assert find_receiver("http://name.example/", private=False).places == ((socket.AF_INET, ("8.8.8.8", 80)),)
    monkeypatch.setattr(socket, "getaddrinfo", found("8.8.8.8", "127.0.0.1"))
    with pytest.raises(Unreachable, match="private"):
        find_receiver("http://name.example/", private=False)


def test_a_name_is_looked_up_once_for_the_check_and_the_connection(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = find_receiver(receiver.url.replace("127.0.0.1", "localhost"), private=True)

    def fail(*_: object, **__: object) -> Any:
        raise AssertionError("it was looked up again")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert send(found, {"content-type": "application/json"}) == 204
    assert receiver.got[0][0]["host"] == f"localhost:{receiver.port}"


def test_a_name_that_is_never_found_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receivers, "SECONDS", 0.1)
    ended = threading.Event()

    def hang(*_: object, **__: object) -> list[object]:
        ended.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with pytest.raises(Unreachable, match="not found in time"):
        find_receiver("http://name.example/", private=True)
    ended.set()


def test_looking_up_connecting_and_answering_share_one_deadline(receiver: Receiver) -> None:
    found = find_receiver(receiver.url, private=True)
    with pytest.raises(Unreachable, match="timed out"):
        receivers.send(found, b"{}", {}, until=time.monotonic())
    assert receiver.got == []


def test_a_connection_that_is_never_taken_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receivers, "SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(address)
        with pytest.raises(Unreachable, match="timed out"):
            send(find_receiver(f"http://127.0.0.1:{address[1]}/", private=True))
        for each in waiting:
            each.close()


def test_a_webhook_whose_address_is_no_longer_allowed_is_not_sent_to(url: str, receiver: Receiver) -> None:
    with Server(url, LEXARIUM_WEBHOOKS_PRIVATE="yes") as server:
        admin = server.token("admin")
        path = f"{HOOKS}/{add(server, admin, receiver.url)['id']}"
    with Server(url) as server:
        write(server, admin, "one")
        wait_until(lambda: bool(ask(server, "GET", path, admin).json["attempts"]))
        (delivery,) = ask(server, "GET", f"{path}/deliveries", admin).json["items"]
        assert delivery["status"] is None
        assert "private" in delivery["error"]
    assert receiver.got == []


def test_a_receiver_that_answers_drop_by_drop_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receivers, "SECONDS", 0.5)
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not ended.wait(0.05):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        receiver = find_receiver(f"http://127.0.0.1:{listener.getsockname()[1]}/", private=True)
        with pytest.raises(Unreachable, match="timed out"):
            send(receiver)
        ended.set()
        thread.join()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_a_certificate_must_be_for_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = tmp_path / "localhost.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run(
        [*command.split(), "-keyout", certificate, "-out", tmp_path / "x.pem"], check=True, capture_output=True
    )
    certificate.write_bytes(certificate.read_bytes() + (tmp_path / "x.pem").read_bytes())
    with Receiver(certificate=certificate) as receiver:
        trusted = ssl.create_default_context(cafile=tmp_path / "x.pem")
        address = f"https://localhost:{receiver.port}/"
        with pytest.raises(Unreachable, match="certificate verify failed"):
            send(find_receiver(address, private=True))
        monkeypatch.setattr(receivers, "_trust", lambda: trusted)
        assert send(find_receiver(address, private=True)) == 204
        with pytest.raises(Unreachable, match="certificate verify failed"):
            send(find_receiver(address.replace("localhost", "127.0.0.1"), private=True))


HOOK = Webhook("whk_1", "https://example.org/", ("whsec_",), (), (), 0, created=0)


def test_waits_grow_from_seconds_to_hours_and_end_after_a_day() -> None:
    hook, waits = HOOK, []
    while hook.disabled is None:
        at = hook.due
        hook = hook.failed(at, 1.0)
        waits.append(hook.due - at)
    assert waits == sorted(waits)
    assert waits[0] < 10_000
    assert waits[-1] > 60 * 60 * 1000
    assert DAY <= hook.disabled < 1.25 * DAY
    assert 10 <= hook.attempts <= 30
    assert HOOK.failed(0, 1.2).due > HOOK.failed(0, 0.8).due
    assert hook.succeeded(5).failing is None


def test_a_failure_does_not_enable_what_someone_disabled_meanwhile() -> None:
    assert replace(HOOK, disabled=5).failed(9, 1.0).disabled == 5


def test_a_lease_is_one_holders_until_it_runs_out_or_is_given_back(database: Database) -> None:
    def take(holder: str, at: int) -> bool:
        return database.run(lambda transaction: leases.take(transaction, Lease("x", holder, at + 10), at=at))

    before = database.position()
    assert take("a", 0)
    assert not take("b", 9)
    assert take("a", 9)
    assert not take("b", 18)
    assert take("b", 19)
    assert not take("a", 20)
    database.run(lambda transaction: leases.release(transaction, "x", "a"))
    assert not take("a", 20)
    database.run(lambda transaction: leases.release(transaction, "x", "b"))
    assert take("a", 20)
    assert database.position()[:3] == before[:3]  # the epoch, the revision and the accounts


def test_the_log_of_deliveries_keeps_the_newest(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "KEPT", 3)
    other = replace(HOOK, id="whk_2")
    with database.write() as transaction:
        webhooks.add(transaction, HOOK)
        webhooks.add(transaction, other)
        for seq in range(5):
            webhooks.note(transaction, Delivery(HOOK.id, seq, 0, 204))
            webhooks.note(transaction, Delivery(other.id, seq, 0, None, "no answer"))
    with database.read() as snapshot:
        assert [each.seq for each in webhooks.deliveries(snapshot, HOOK.id, 100)] == [4, 3, 2]
    with database.write() as transaction:
        assert webhooks.remove(transaction, HOOK.id)
        assert not webhooks.remove(transaction, HOOK.id)
    with database.read() as snapshot:
        assert webhooks.deliveries(snapshot, HOOK.id, 100) == []
        assert len(webhooks.deliveries(snapshot, other.id, 100)) == 3
