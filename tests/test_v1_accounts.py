"""Accounts over HTTP: who may change whom, and that it counts at once, everywhere."""

from collections.abc import Iterator
from typing import Any

import pytest

from lexarium.domain.accounts import Role
from lexarium.service.access import add_account, create_token, in_days
from lexarium.store.database import Database
from tests.server import Answer, Server
from tests.test_v1 import Client
from tests.waiting import wait_until

PASSWORD = "correct horse battery"


@pytest.fixture
def admin(server: Server) -> Client:
    return Client(server, "admin")


def own(client: Client) -> dict[str, Any]:
    found: dict[str, Any] = client.send("GET", "me").json
    return found


def sign_in(server: Server, name: str, password: str) -> Answer:
    return server.post_json("/api/v1/sign-in", {"name": name, "password": password})


@pytest.fixture
def other(server: Server) -> Iterator[Server]:
    """A second process on the same catalogue."""
    with Server(server.url) as running:
        yield running


def with_token(server: Server, client: Client) -> Answer:
    headers = {"Authorization": f"Bearer {client.token}", "Content-Type": "application/json"}
    return server.request("POST", "/api/v1/concept", headers, '{"name": "x"}')


def test_a_demotion_counts_at_once_in_every_process(server: Server, other: Server, admin: Client) -> None:
    curator = Client(server, "curator")
    assert [with_token(each, curator).status for each in (server, other)] == [201, 201]
    changed = admin.send("PATCH", f"users/{own(curator)['id']}", {"role": "contributor"})
    assert (changed.status, changed.json["role"]) == (200, "contributor")
    assert with_token(server, curator).status == 202
    wait_until(lambda: with_token(other, curator).status == 202)
    assert own(curator)["token_role"] == "contributor"
    admin.send("PATCH", f"users/{own(curator)['id']}", {"role": "curator"})
    assert with_token(server, curator).status == 201


@pytest.mark.parametrize("how", ["users", "tokens"])
def test_an_erasure_or_a_revocation_counts_at_once_in_every_process(
    server: Server, other: Server, admin: Client, how: str
) -> None:
    curator = Client(server, "curator")
    assert [with_token(each, curator).status for each in (server, other)] == [201, 201]
    identifier = own(curator)["id"] if how == "users" else curator.send("GET", "tokens").json["items"][0]["id"]
    assert admin.send("DELETE", f"{how}/{identifier}").status == 204
    assert with_token(server, curator).status == 401
    wait_until(lambda: with_token(other, curator).status == 401)


def test_an_erased_account_leaves_its_id_and_nothing_else(server: Server, admin: Client) -> None:
    made = admin.send("POST", "users", {"name": "Grace Hopper", "role": "curator"})
    assert admin.send("GET", made.headers["location"].removeprefix("/api/v1/")).json == made.json
    path = f"users/{made.json['id']}"
    assert admin.send("PATCH", path, {"password": PASSWORD}).status == 200
    token = admin.send("POST", "tokens", {"account": "Grace Hopper", "label": "of Grace Hopper"}).json
    record = server.post_json("/api/v1/concept", {"name": "x"}, token["token"]).json
    assert admin.send("DELETE", path).status == 204
    for what in ("users", "tokens", path):
        assert b"Grace" not in admin.send("GET", what).body
    gone = {"id": made.json["id"], "name": made.json["id"], "role": "contributor", "erased": True}
    assert admin.send("GET", path).json == gone
    assert server.get(f"/api/v1/concept/{record['id']}").json["updated_by"] == made.json["id"]
    for name in ("Grace Hopper", made.json["id"]):
        assert sign_in(server, name, PASSWORD).status == 401
    assert admin.send("POST", "tokens", {"account": made.json["id"]}).status == 409
    for refused in (admin.send("DELETE", path), admin.send("PATCH", path, {"role": "admin"})):
        assert (refused.status, "erased" in refused.json["detail"]) == (409, True)
    again = admin.send("POST", "users", {"name": "Grace Hopper", "role": "curator"}).json
    assert again["id"] != made.json["id"]


def test_the_last_admin_stays_one(server: Server, admin: Client) -> None:
    path = f"users/{own(admin)['id']}"
    for refused in (admin.send("DELETE", path), admin.send("PATCH", path, {"role": "curator"})):
        assert refused.status == 409
        assert "last admin" in refused.json["detail"]
    assert admin.send("PATCH", path, {"role": "admin"}).status == 200
    second = Client(server, "admin")
    assert admin.send("PATCH", path, {"role": "curator"}).json["role"] == "curator"
    assert admin.send("GET", "users").status == 403
    assert second.send("DELETE", f"users/{own(second)['id']}").status == 409
    assert second.send("DELETE", path).status == 204


def test_accounts_are_changed_by_admins_alone(server: Server, admin: Client) -> None:
    curator = Client(server, "curator")
    mine, theirs = f"users/{own(curator)['id']}", f"users/{own(admin)['id']}"
    assert curator.send("GET", theirs).status == 403
    assert curator.send("DELETE", mine).status == 403
    assert curator.send("PATCH", theirs, {"password": PASSWORD}).status == 403
    assert curator.send("PATCH", mine, {"role": "admin"}).status == 403
    for method, body in (("GET", None), ("PATCH", {"role": "curator"}), ("DELETE", None)):
        for identifier in ("usr_none", "%00"):
            assert admin.send(method, f"users/{identifier}", body).status == 404
    answer = admin.send("PATCH", mine, {"role": "king", "password": "short", "nick": "x"})
    assert answer.status == 422
    assert {error["pointer"] for error in answer.json["errors"]} == {"/role", "/password", "/nick"}


def test_a_person_changes_their_own_password_with_the_old_one(server: Server, admin: Client) -> None:
    curator = Client(server, "curator")
    name, path = own(curator)["name"], f"users/{own(curator)['id']}"
    new = "another horse battery"
    # Whoever has none gets the first from an admin: a token may have a lower role than signing in would give.
    assert curator.send("PATCH", path, {"password": PASSWORD}).status == 403
    assert admin.send("PATCH", path, {"password": PASSWORD}).status == 200
    for wrong in ({"password": new}, {"password": new, "old_password": "wrong"}):
        refused = curator.send("PATCH", path, wrong)
        assert refused.status == 422
        assert [error["pointer"] for error in refused.json["errors"]] == ["/old_password"]
    assert curator.send("PATCH", path, {"password": new, "old_password": PASSWORD}).status == 200
    assert sign_in(server, name, PASSWORD).status == 401
    assert sign_in(server, name, new).status == 429  # guesses at the old one count as tries to sign in


def test_a_new_password_ends_what_the_old_one_opened_but_no_token_of_a_program(server: Server, admin: Client) -> None:
    program = Client(server, "curator")
    account = own(program)
    path = f"users/{account['id']}"
    assert admin.send("PATCH", path, {"password": PASSWORD}).status == 200
    secret = sign_in(server, account["name"], PASSWORD).json["token"]
    me = {"authorization": f"Bearer {secret}"}
    assert server.get("/api/v1/me", **me).status == 200
    assert admin.send("PATCH", path, {"password": "another horse battery"}).status == 200
    assert server.get("/api/v1/me", **me).status == 401
    assert program.send("GET", "me").status == 200


def test_a_password_of_half_a_character_is_refused(server: Server, admin: Client) -> None:
    path = f"users/{own(Client(server, 'curator'))['id']}"
    assert admin.send("PATCH", path, {"password": "\ud800 and then some"}).status in (400, 422)


def test_a_token_makes_none_that_outlives_it(server: Server) -> None:
    database = Database(server.url)
    account = add_account(database, "Ada", Role.CURATOR)
    token, secret = create_token(database, account.name, expires=in_days(3))
    database.close()
    assert token.expires is not None

    def make(secret: str, **wanted: object) -> Answer:
        return server.post_json("/api/v1/tokens", wanted, secret)

    first = make(secret).json
    assert (
        first["expires"] == server.get("/api/v1/tokens", Authorization=f"Bearer {secret}").json["items"][0]["expires"]
    )
    assert make(first["token"]).json["expires"] == first["expires"]
    assert make(secret, days=2).json["expires"] < first["expires"]
    refused = make(secret, days=4)
    assert (refused.status, "outlives" in refused.json["detail"]) == (403, True)


def test_a_token_revokes_none_with_a_higher_role(server: Server, admin: Client) -> None:
    lower = admin.send("POST", "tokens", {"role": "contributor"}).json
    same = admin.send("POST", "tokens", {"role": "contributor"}).json
    higher = admin.send("GET", "tokens").json["items"][0]["id"]
    authorization = f"Bearer {lower['token']}"
    refused = admin.send("DELETE", f"tokens/{higher}", Authorization=authorization)
    assert (refused.status, "admin" in refused.json["detail"]) == (403, True)
    assert own(admin)["role"] == "admin"
    for identifier in (same["id"], lower["id"]):
        assert admin.send("DELETE", f"tokens/{identifier}", Authorization=authorization).status == 204
    assert admin.send("GET", "me", Authorization=authorization).status == 401
