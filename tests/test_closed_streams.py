"""Live streams of a closed catalogue end with the token that they were opened with, though nothing changes."""

from http.client import HTTPConnection, HTTPResponse

import pytest

from lexarium.domain.accounts import Role
from lexarium.domain.stamps import now
from lexarium.service.access import add_account, create_token
from lexarium.store.database import Database
from tests.server import Server
from tests.test_v1 import Client


def listen(server: Server, secret: str) -> tuple[HTTPConnection, HTTPResponse]:
    """Open a stream, and read that it has begun."""
    connection = server.connect()
    headers = {"Authorization": f"Bearer {secret}", "Accept": "text/event-stream"}
    connection.request("GET", "/api/v1/changes", headers=headers)
    stream = connection.getresponse()
    assert stream.status == 200
    assert stream.readline() == b"retry: 1000\n"
    return connection, stream


@pytest.mark.parametrize("how", ["revoked", "made with a revoked one", "erased", "password", "expired"])
def test_a_stream_ends_with_its_token(url: str, how: str) -> None:
    with Server(url, LEXARIUM_READ="token") as server:
        database = Database(url)
        account = add_account(database, "Ada", Role.CONTRIBUTOR)
        expires = now() + 15_000 if how == "expired" else None
        token, secret = create_token(database, "Ada", expires=expires)
        database.close()
        admin = Client(server, "admin")
        if how == "made with a revoked one":
            secret = server.post_json("/api/v1/tokens", {}, secret).json["token"]
        if how == "password":
            assert admin.send("PATCH", f"users/{account.id}", {"password": "correct horse battery"}).status == 200
            told = {"name": "Ada", "password": "correct horse battery"}
            secret = server.post_json("/api/v1/sign-in", told).json["token"]
        connection, stream = listen(server, secret)
        if "revoked" in how:
            assert admin.send("DELETE", f"tokens/{token.id}").status == 204
        elif how == "erased":
            assert admin.send("DELETE", f"users/{account.id}").status == 204
        elif how == "password":
            assert admin.send("PATCH", f"users/{account.id}", {"password": "another horse battery"}).status == 200
        stream.read()  # to its end: while the token is valid, it goes on and on
        connection.close()
