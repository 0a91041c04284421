"""Evicting an intruder: ending passwords, tokens and accounts, and the origin of tokens."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.browserless_client import PASSWORD, BrowserlessClient, create_account, strip_tags
from tests.support.databases import DatabaseUrlFactory
from tests.support.full_disk import mount_small_disk
from tests.support.old_databases import create_old_database
from tests.support.polling import wait_until
from tests.support.server import HttpResponse, Server, run_cli, run_cli_with_input
from tests.support.v1_client import V1Client

NEW_PASSWORD = "another horse battery"


def sign_in(server: Server, name: str) -> str:
    secret: str = server.post_json("/api/v1/sign-in", {"name": name, "password": PASSWORD}).json["token"]
    return secret


def create_token(server: Server, secret: str, **options: object) -> HttpResponse:
    return server.post_json("/api/v1/tokens", options, secret)


def is_token_valid(server: Server, secret: str) -> bool:
    return server.get("/api/v1/me", Authorization=f"Bearer {secret}").status == 200


def list_tokens(server: Server, secret: str) -> dict[str, Any]:
    """Return the tokens visible with a token, by id."""
    items = server.get("/api/v1/tokens", Authorization=f"Bearer {secret}").json["items"]
    return {token["id"]: token for token in items}


def find_user_id(server: Server, name: str, admin: V1Client) -> str:
    users = admin.send("GET", "users").json["items"]
    return next(str(user["id"]) for user in users if user["name"] == name)


@pytest.mark.parametrize("method", ["page", "api", "admin's page", "admin's api", "command"])
def test_a_new_password_revokes_all_sessions_and_tokens_created_from_them(server: Server, method: str) -> None:
    admin = V1Client(server, "admin")
    name = create_account(server, "curator")
    path = f"users/{find_user_id(server, name, admin)}"
    program = admin.send("POST", "tokens", {"account": name}).json["token"]
    session, person = sign_in(server, name), BrowserlessClient(server)
    person.send("/sign-in", {"name": name, "password": PASSWORD})
    new_token = create_token(server, session, old_password=PASSWORD).json["token"]
    derived_token = create_token(server, new_token).json["token"]
    person.open("/account")
    person.press("Create token", {"label": "from the page", "old_password": PASSWORD}, 201)
    on_the_page = next(line for line in strip_tags(person.body).split() if line.startswith("lex_"))
    ending, staying = [session, new_token, derived_token, on_the_page], [program, admin.token]
    assert all(is_token_valid(server, secret) for secret in ending + staying)
    if method == "page":
        person.open("/account")
        person.press("Change password", {"old_password": PASSWORD, "password": NEW_PASSWORD})
    elif method == "api":
        password_change = {"password": NEW_PASSWORD, "old_password": PASSWORD}
        headers = {"Authorization": f"Bearer {program}", "Content-Type": "application/json"}
        assert server.request("PATCH", f"/api/v1/{path}", headers, json.dumps(password_change)).status == 200
    elif method == "admin's page":
        keeper = BrowserlessClient(server)
        keeper.sign_in("admin")
        keeper.open(f"/admin/people/{path.removeprefix('users/')}")
        keeper.press("Set password", {"password": NEW_PASSWORD})
    elif method == "admin's api":
        assert admin.send("PATCH", path, {"password": NEW_PASSWORD}).status == 200
    else:
        set_password(server, name)
        wait_until(lambda: not is_token_valid(server, session))  # on PostgreSQL, the server is notified
    assert [is_token_valid(server, secret) for secret in ending] == [False] * 4
    assert [is_token_valid(server, secret) for secret in staying] == [True] * 2
    person.open("/account")
    assert person.path.startswith("/sign-in")


def set_password(server: Server, name: str) -> None:
    """Set a password by the command, which reads it from standard input."""
    result = run_cli_with_input(f"{NEW_PASSWORD}\n", "user", "password", name, "--database", server.url)
    assert result.returncode == 0, result.stderr


def test_a_new_password_of_an_admin_revokes_tokens_their_sessions_created_for_other_accounts(server: Server) -> None:
    name, other = create_account(server, "admin"), create_account(server, "curator")
    session = sign_in(server, name)
    new_token = create_token(server, session, account=other, old_password=PASSWORD).json["token"]
    assert is_token_valid(server, new_token)
    set_password(server, name)
    wait_until(lambda: not is_token_valid(server, new_token))


def test_revoking_a_token_revokes_all_tokens_created_with_it(server: Server) -> None:
    first = V1Client(server, "curator")
    second = create_token(server, first.token).json
    third = create_token(server, second["token"]).json
    sibling = create_token(server, first.token).json
    assert first.send("DELETE", f"tokens/{second['id']}").status == 204
    assert [is_token_valid(server, token["token"]) for token in (second, third, sibling)] == [False, False, True]
    tokens_by_id = list_tokens(server, first.token)
    assert all(tokens_by_id[token["id"]]["revoked"] for token in (second, third))


def test_revoking_by_command_or_page_revokes_derived_tokens_too(server: Server) -> None:
    first, person = V1Client(server, "curator"), BrowserlessClient(server)
    second = create_token(server, first.token).json
    parent = next(iter(list_tokens(server, first.token)))
    assert run_cli("token", "revoke", parent, "--database", server.url).returncode == 0
    wait_until(lambda: not is_token_valid(server, second["token"]))
    name = person.sign_in("contributor")
    new_token = create_token(server, sign_in(server, name), old_password=PASSWORD).json
    child = create_token(server, new_token["token"]).json
    person.open(f"/account/tokens/{new_token['id']}/revoke")
    person.press("Revoke token")
    assert not is_token_valid(server, child["token"])


def test_erasing_an_account_revokes_tokens_created_with_its_tokens(server: Server) -> None:
    admin, second = V1Client(server, "admin"), V1Client(server, "admin")
    other = create_account(server, "curator")
    new_token = create_token(server, second.token, account=other).json["token"]
    assert admin.send("DELETE", f"users/{second.send('GET', 'me').json['id']}").status == 204
    assert not is_token_valid(server, new_token)


def test_signing_out_ends_the_session_and_keeps_tokens_created_from_it(server: Server) -> None:
    person = BrowserlessClient(server)
    person.sign_in("contributor", "/account")
    person.press("Create token", {"label": "nightly", "old_password": PASSWORD}, 201)
    secret = next(line for line in strip_tags(person.body).split() if line.startswith("lex_"))
    cookie = person.cookies["lexarium_session"]
    person.press("Sign out")
    assert not is_token_valid(server, cookie)
    assert is_token_valid(server, secret)


def test_creating_a_token_from_a_session_requires_the_password(server: Server) -> None:
    name = create_account(server, "curator")
    session = sign_in(server, name)
    for invalid_options in ({}, {"old_password": "wrong horse battery"}):
        response = create_token(server, session, **invalid_options)
        assert response.status == 422
        assert [error["pointer"] for error in response.json["errors"]] == ["/old_password"]
    new_token = create_token(server, session, days=30, old_password=PASSWORD)
    assert new_token.status == 201
    assert new_token.json["expires"] > list_tokens(server, session)[new_token.json["made_with"]]["expires"]
    assert create_token(server, new_token.json["token"]).status == 201


def test_password_guesses_when_creating_a_token_are_limited(server: Server) -> None:
    session = sign_in(server, create_account(server, "curator"))
    statuses = [create_token(server, session, old_password="wrong horse battery").status for _ in range(6)]
    assert statuses[0] == 422
    assert statuses[-1] == 429


def test_a_token_labelled_signed_in_is_not_a_session(server: Server) -> None:
    program = V1Client(server, "curator")
    new_token = create_token(server, program.token, label="signed in").json
    assert create_token(server, new_token["token"]).status == 201
    set_password(server, program.send("GET", "me").json["name"])
    assert is_token_valid(server, new_token["token"])


def test_the_origin_of_a_token_is_shown_in_every_list(server: Server) -> None:
    person = BrowserlessClient(server)
    name = person.sign_in("curator")
    assert run_cli("token", "create", name, "--label", "typed", "--database", server.url).returncode == 0
    session = sign_in(server, name)
    new_token = create_token(server, session, label="from a session", old_password=PASSWORD).json
    child = create_token(server, new_token["token"], label="made with it").json
    wait_until(
        lambda: list_tokens(server, new_token["token"])[new_token["id"]]["last_used"] is not None
    )  # recorded with a delay
    tokens_by_id = list_tokens(server, new_token["token"])
    session_token = next(token for token in tokens_by_id.values() if token["label"] == "typed")
    origins = {token["id"]: (token["origin"], token["made_with"]) for token in tokens_by_id.values()}
    assert origins[session_token["id"]] == ("command-line", None)
    assert origins[new_token["id"]][0] == "session"
    assert origins[origins[new_token["id"]][1]] == ("sign-in", None)
    assert origins[child["id"]] == ("token", new_token["id"])
    assert tokens_by_id[child["id"]]["last_used"] is None
    list_text = " ".join(run_cli("token", "list", "--database", server.url, COLUMNS="250").stdout.split())
    page = strip_tags(person.open("/account"))
    for words in ("command line", f"session {origins[new_token['id']][1]}", f"token {new_token['id']}", "sign-in"):
        assert words in list_text, list_text
        assert words in page, page
    listing = json.loads(run_cli("token", "list", "--json", "--database", server.url).stdout)
    assert {token["id"]: (token["origin"], token["made_with"]) for token in listing} == origins


def test_the_last_use_of_a_token_is_written_at_most_once_in_a_short_time(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite"), LEXARIUM_READ="token") as server:
        secret = server.create_token("contributor")
        with closing(sqlite3.connect(server.url.removeprefix("sqlite:///"))) as database:

            def count_writes() -> int:
                count: int = database.execute("SELECT writes FROM catalogue").fetchone()[0]
                return count

            before = count_writes()
            for _ in range(20):
                assert server.get("/api/v1/concept", Authorization=f"Bearer {secret}").status == 200
            assert count_writes() <= before + 1


def test_tokens_can_be_used_to_read_while_the_disk_is_full(tmp_path: Path) -> None:
    with (
        mount_small_disk(tmp_path / "disk", 4_000) as disk,
        Server(f"sqlite:///{disk.path}/catalogue.db", LEXARIUM_READ="token") as server,
    ):
        secrets = [server.create_token("contributor") for _ in range(2)]
        disk.fill()
        for secret in secrets * 2:
            assert server.get("/api/v1/me", Authorization=f"Bearer {secret}").status == 200


def test_an_upgrade_marks_existing_sessions_and_leaves_the_origin_of_other_tokens_unknown(tmp_path: Path) -> None:
    url = create_old_database("0010", tmp_path / "old.db")
    with closing(sqlite3.connect(tmp_path / "old.db")) as old, old:
        old.execute(
            "INSERT INTO token (id, account, label, role, hash, created, expires)"
            " SELECT 'tok_session', id, 'signed in', role, 'x', 1, 2 FROM account LIMIT 1"
        )
    assert run_cli("migrate", "--database", url).returncode == 0
    entries = json.loads(run_cli("token", "list", "--json", "--database", url).stdout)
    assert [(token["id"] == "tok_session", token["origin"]) for token in entries] == [
        (True, "sign-in"),
        (False, "unknown"),
    ]
