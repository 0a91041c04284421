"""Event streams of a closed catalogue end with their token, even when nothing changes."""

from http.client import HTTPConnection, HTTPResponse

import pytest

from lexarium.domain.account import Role
from lexarium.domain.text.timestamps import now_ms
from lexarium.services.access.accounts import add_account
from lexarium.services.access.tokens import create_token
from lexarium.store.database import Database
from tests.support.server import Server
from tests.support.v1_client import V1Client


def open_stream(server: Server, secret: str) -> tuple[HTTPConnection, HTTPResponse]:
    """Open a stream and read its first line."""
    connection = server.connect()
    headers = {"Authorization": f"Bearer {secret}", "Accept": "text/event-stream"}
    connection.request("GET", "/api/v1/changes", headers=headers)
    stream = connection.getresponse()
    assert stream.status == 200
    assert stream.readline() == b"retry: 1000\n"
    return connection, stream


@pytest.mark.parametrize("revocation", ["revoked", "made with a revoked one", "erased", "password", "expired"])
def test_a_stream_ends_when_its_token_becomes_invalid(url: str, revocation: str) -> None:
    with Server(url, LEXARIUM_READ="token") as server:
        database = Database(url)
        account = add_account(database, "Ada", Role.CONTRIBUTOR)
        admin = V1Client(server, "admin")
        server.get("/api/v1")  # so that the server is fast until the token expires
        expires = now_ms() + 15_000 if revocation == "expired" else None
        token, secret = create_token(database, "Ada", expires_at=expires)
        database.close()
        if revocation == "made with a revoked one":
            secret = server.post_json("/api/v1/tokens", {}, secret).json["token"]
        if revocation == "password":
            assert admin.send("PATCH", f"users/{account.id}", {"password": "correct horse battery"}).status == 200
            credentials = {"name": "Ada", "password": "correct horse battery"}
            secret = server.post_json("/api/v1/sign-in", credentials).json["token"]
        connection, stream = open_stream(server, secret)
        if "revoked" in revocation:
            assert admin.send("DELETE", f"tokens/{token.id}").status == 204
        elif revocation == "erased":
            assert admin.send("DELETE", f"users/{account.id}").status == 204
        elif revocation == "password":
            assert admin.send("PATCH", f"users/{account.id}", {"password": "another horse battery"}).status == 200
        stream.read()  # to its end: the stream goes on while the token is valid
        connection.close()
