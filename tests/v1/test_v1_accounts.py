"""Accounts over HTTP: permissions, and immediate effect in all processes."""

from collections.abc import Iterator
from typing import Any

import pytest

from lexarium.domain.account import Role
from lexarium.services.access.accounts import add_account
from lexarium.services.access.tokens import compute_expiry, create_token
from lexarium.store.database import Database
from tests.support.polling import wait_until
from tests.support.server import HttpResponse, Server
from tests.support.v1_client import V1Client

PASSWORD = "correct horse battery"


@pytest.fixture
def admin(server: Server) -> V1Client:
    return V1Client(server, "admin")


def get_own_account(client: V1Client) -> dict[str, Any]:
    account: dict[str, Any] = client.send("GET", "me").json
    return account


def sign_in(server: Server, name: str, password: str) -> HttpResponse:
    return server.post_json("/api/v1/sign-in", {"name": name, "password": password})


@pytest.fixture
def second_server(server: Server) -> Iterator[Server]:
    """Second process on the same catalogue."""
    with Server(server.url) as running:
        yield running


def create_with_token(server: Server, client: V1Client) -> HttpResponse:
    headers = {"Authorization": f"Bearer {client.token}", "Content-Type": "application/json"}
    return server.request("POST", "/api/v1/concept", headers, '{"name": "x"}')


def test_a_demotion_takes_effect_at_once_in_every_process(
    server: Server, second_server: Server, admin: V1Client
) -> None:
    curator = V1Client(server, "curator")
    assert [create_with_token(node, curator).status for node in (server, second_server)] == [201, 201]
    response = admin.send("PATCH", f"users/{get_own_account(curator)['id']}", {"role": "contributor"})
    assert (response.status, response.json["role"]) == (200, "contributor")
    assert create_with_token(server, curator).status == 202
    wait_until(lambda: create_with_token(second_server, curator).status == 202)
    assert get_own_account(curator)["token_role"] == "contributor"
    admin.send("PATCH", f"users/{get_own_account(curator)['id']}", {"role": "curator"})
    assert create_with_token(server, curator).status == 201


@pytest.mark.parametrize("resource", ["users", "tokens"])
def test_an_erasure_or_a_revocation_takes_effect_at_once_in_every_process(
    server: Server, second_server: Server, admin: V1Client, resource: str
) -> None:
    curator = V1Client(server, "curator")
    assert [create_with_token(node, curator).status for node in (server, second_server)] == [201, 201]
    identifier = (
        get_own_account(curator)["id"] if resource == "users" else curator.send("GET", "tokens").json["items"][0]["id"]
    )
    assert admin.send("DELETE", f"{resource}/{identifier}").status == 204
    assert create_with_token(server, curator).status == 401
    wait_until(lambda: create_with_token(second_server, curator).status == 401)


def test_an_erased_account_leaves_only_its_id(server: Server, admin: V1Client) -> None:
    account_response = admin.send("POST", "users", {"name": "Grace Hopper", "role": "curator"})
    assert (
        admin.send("GET", account_response.headers["location"].removeprefix("/api/v1/")).json == account_response.json
    )
    path = f"users/{account_response.json['id']}"
    assert admin.send("PATCH", path, {"password": PASSWORD}).status == 200
    token = admin.send("POST", "tokens", {"account": "Grace Hopper", "label": "of Grace Hopper"}).json
    record = server.post_json("/api/v1/concept", {"name": "x"}, token["token"]).json
    assert admin.send("DELETE", path).status == 204
    for resource in ("users", "tokens", path):
        assert b"Grace" not in admin.send("GET", resource).body
    erased_account = {
        "id": account_response.json["id"],
        "name": account_response.json["id"],
        "role": "contributor",
        "vocabulary_roles": {},
        "erased": True,
    }
    assert admin.send("GET", path).json == erased_account
    assert server.get(f"/api/v1/concept/{record['id']}").json["updated_by"] == account_response.json["id"]
    for name in ("Grace Hopper", account_response.json["id"]):
        assert sign_in(server, name, PASSWORD).status == 401
    assert admin.send("POST", "tokens", {"account": account_response.json["id"]}).status == 409
    for rejected in (admin.send("DELETE", path), admin.send("PATCH", path, {"role": "admin"})):
        assert (rejected.status, "erased" in rejected.json["detail"]) == (409, True)
    new_account = admin.send("POST", "users", {"name": "Grace Hopper", "role": "curator"}).json
    assert new_account["id"] != account_response.json["id"]


def test_the_last_admin_cannot_be_demoted_or_erased(server: Server, admin: V1Client) -> None:
    path = f"users/{get_own_account(admin)['id']}"
    for rejected in (admin.send("DELETE", path), admin.send("PATCH", path, {"role": "curator"})):
        assert rejected.status == 409
        assert "last admin" in rejected.json["detail"]
    assert admin.send("PATCH", path, {"role": "admin"}).status == 200
    second = V1Client(server, "admin")
    assert admin.send("PATCH", path, {"role": "curator"}).json["role"] == "curator"
    assert admin.send("GET", "users").status == 403
    assert second.send("DELETE", f"users/{get_own_account(second)['id']}").status == 409
    assert second.send("DELETE", path).status == 204


def test_accounts_can_be_changed_only_by_admins(server: Server, admin: V1Client) -> None:
    curator = V1Client(server, "curator")
    own_path, admin_path = f"users/{get_own_account(curator)['id']}", f"users/{get_own_account(admin)['id']}"
    assert curator.send("GET", admin_path).status == 403
    assert curator.send("DELETE", own_path).status == 403
    assert curator.send("PATCH", admin_path, {"password": PASSWORD}).status == 403
    assert curator.send("PATCH", own_path, {"role": "admin"}).status == 403
    for method, body in (("GET", None), ("PATCH", {"role": "curator"}), ("DELETE", None)):
        for identifier in ("usr_none", "%00"):
            assert admin.send(method, f"users/{identifier}", body).status == 404
    response = admin.send("PATCH", own_path, {"role": "king", "password": "short", "nick": "x"})
    assert response.status == 422
    assert {error["pointer"] for error in response.json["errors"]} == {"/role", "/password", "/nick"}


def test_a_user_changes_their_own_password_with_the_old_one(server: Server, admin: V1Client) -> None:
    curator = V1Client(server, "curator")
    name, path = get_own_account(curator)["name"], f"users/{get_own_account(curator)['id']}"
    new_password = "another horse battery"
    # The first password comes from an admin: a token may have a lower role than its account.
    assert curator.send("PATCH", path, {"password": PASSWORD}).status == 403
    assert admin.send("PATCH", path, {"password": PASSWORD}).status == 200
    for change in ({"password": new_password}, {"password": new_password, "old_password": "wrong"}):
        rejected = curator.send("PATCH", path, change)
        assert rejected.status == 422
        assert [error["pointer"] for error in rejected.json["errors"]] == ["/old_password"]
    assert curator.send("PATCH", path, {"password": new_password, "old_password": PASSWORD}).status == 200
    assert sign_in(server, name, PASSWORD).status == 401
    # Guesses of the old password count as sign-in attempts. A slow machine allows some more meanwhile.
    assert [sign_in(server, name, new_password).status for _ in range(8)][-1] == 429


def test_a_new_password_ends_sessions_but_not_program_tokens(server: Server, admin: V1Client) -> None:
    program = V1Client(server, "curator")
    account = get_own_account(program)
    path = f"users/{account['id']}"
    assert admin.send("PATCH", path, {"password": PASSWORD}).status == 200
    secret = sign_in(server, account["name"], PASSWORD).json["token"]
    me = {"authorization": f"Bearer {secret}"}
    assert server.get("/api/v1/me", **me).status == 200
    assert admin.send("PATCH", path, {"password": "another horse battery"}).status == 200
    assert server.get("/api/v1/me", **me).status == 401
    assert program.send("GET", "me").status == 200


def test_a_password_with_a_lone_surrogate_is_rejected(server: Server, admin: V1Client) -> None:
    path = f"users/{get_own_account(V1Client(server, 'curator'))['id']}"
    assert admin.send("PATCH", path, {"password": "\ud800 and then some"}).status in (400, 422)


def test_a_token_cannot_create_one_that_expires_later(server: Server) -> None:
    database = Database(server.url)
    account = add_account(database, "Ada", Role.CURATOR)
    token, secret = create_token(database, account.name, expires_at=compute_expiry(3))
    database.close()
    assert token.expires_at is not None

    def make(secret: str, **options: object) -> HttpResponse:
        return server.post_json("/api/v1/tokens", options, secret)

    first = make(secret).json
    assert (
        first["expires"] == server.get("/api/v1/tokens", Authorization=f"Bearer {secret}").json["items"][0]["expires"]
    )
    assert make(first["token"]).json["expires"] == first["expires"]
    assert make(secret, days=2).json["expires"] < first["expires"]
    rejected = make(secret, days=4)
    assert (rejected.status, "expire before" in rejected.json["detail"]) == (403, True)


def test_a_token_cannot_revoke_one_with_a_higher_role(server: Server, admin: V1Client) -> None:
    lower = admin.send("POST", "tokens", {"role": "contributor"}).json
    same_role_token = admin.send("POST", "tokens", {"role": "contributor"}).json
    higher = admin.send("GET", "tokens").json["items"][0]["id"]
    authorization = f"Bearer {lower['token']}"
    rejected = admin.send("DELETE", f"tokens/{higher}", Authorization=authorization)
    assert (rejected.status, "admin" in rejected.json["detail"]) == (403, True)
    assert get_own_account(admin)["role"] == "admin"
    for identifier in (same_role_token["id"], lower["id"]):
        assert admin.send("DELETE", f"tokens/{identifier}", Authorization=authorization).status == 204
    assert admin.send("GET", "me", Authorization=authorization).status == 401
