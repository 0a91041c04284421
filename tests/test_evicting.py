"""Evicting an intruder: what ends with a password, a token or an account, and where a token comes from."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.databases import NewUrl
from tests.disks import small_disk
from tests.person import PASSWORD, Person, account, text
from tests.server import Answer, Server, run
from tests.test_upgrade import old_file
from tests.test_v1 import Client
from tests.waiting import wait_until

NEW = "another horse battery"


def sign_in(server: Server, name: str) -> str:
    secret: str = server.post_json("/api/v1/sign-in", {"name": name, "password": PASSWORD}).json["token"]
    return secret


def make(server: Server, secret: str, **wanted: object) -> Answer:
    return server.post_json("/api/v1/tokens", wanted, secret)


def works(server: Server, secret: str) -> bool:
    return server.get("/api/v1/me", Authorization=f"Bearer {secret}").status == 200


def tokens(server: Server, secret: str) -> dict[str, Any]:
    """The tokens that are shown to whoever has this one, by id."""
    items = server.get("/api/v1/tokens", Authorization=f"Bearer {secret}").json["items"]
    return {token["id"]: token for token in items}


def identifier(server: Server, name: str, admin: Client) -> str:
    users = admin.send("GET", "users").json["items"]
    return next(str(user["id"]) for user in users if user["name"] == name)


@pytest.mark.parametrize("how", ["page", "api", "admin's page", "admin's api", "command"])
def test_a_new_password_ends_every_session_and_all_that_was_made_from_one(server: Server, how: str) -> None:
    admin = Client(server, "admin")
    name = account(server, "curator")
    path = f"users/{identifier(server, name, admin)}"
    program = admin.send("POST", "tokens", {"account": name}).json["token"]
    session, person = sign_in(server, name), Person(server)
    person.send("/sign-in", {"name": name, "password": PASSWORD})
    made = make(server, session, old_password=PASSWORD).json["token"]
    made_with_it = make(server, made).json["token"]
    person.open("/account")
    person.press("Make a token", {"label": "from the page", "old_password": PASSWORD}, 201)
    on_the_page = next(line for line in text(person.body).split() if line.startswith("lex_"))
    ending, staying = [session, made, made_with_it, on_the_page], [program, admin.token]
    assert all(works(server, secret) for secret in ending + staying)
    if how == "page":
        person.open("/account")
        person.press("Change the password", {"old_password": PASSWORD, "password": NEW})
    elif how == "api":
        wanted = {"password": NEW, "old_password": PASSWORD}
        headers = {"Authorization": f"Bearer {program}", "Content-Type": "application/json"}
        assert server.request("PATCH", f"/api/v1/{path}", headers, json.dumps(wanted)).status == 200
    elif how == "admin's page":
        keeper = Person(server)
        keeper.sign_in("admin")
        keeper.open(f"/admin/people/{path.removeprefix('users/')}")
        keeper.press("Set the password", {"password": NEW})
    elif how == "admin's api":
        assert admin.send("PATCH", path, {"password": NEW}).status == 200
    else:
        set_password(server, name)
    assert [works(server, secret) for secret in ending] == [False] * 4
    assert [works(server, secret) for secret in staying] == [True] * 2
    person.open("/account")
    assert person.path.startswith("/sign-in")


def set_password(server: Server, name: str) -> None:
    """Set a password at the command line, which reads it from standard input."""
    command = [sys.executable, "-m", "lexarium", "user", "password", name, "--database", server.url]
    subprocess.run(command, input=f"{NEW}\n", text=True, check=True, capture_output=True)


def test_a_new_password_of_an_admin_ends_what_their_sessions_made_for_others(server: Server) -> None:
    name, other = account(server, "admin"), account(server, "curator")
    session = sign_in(server, name)
    made = make(server, session, account=other, old_password=PASSWORD).json["token"]
    assert works(server, made)
    set_password(server, name)
    assert not works(server, made)


def test_revoking_a_token_revokes_all_that_was_made_with_it(server: Server) -> None:
    first = Client(server, "curator")
    second = make(server, first.token).json
    third = make(server, second["token"]).json
    beside = make(server, first.token).json
    assert first.send("DELETE", f"tokens/{second['id']}").status == 204
    assert [works(server, token["token"]) for token in (second, third, beside)] == [False, False, True]
    shown = tokens(server, first.token)
    assert all(shown[each["id"]]["revoked"] for each in (second, third))


def test_revoking_at_the_command_line_and_on_the_page_does_too(server: Server) -> None:
    first, person = Client(server, "curator"), Person(server)
    second = make(server, first.token).json
    parent = next(iter(tokens(server, first.token)))
    assert run("token", "revoke", parent, "--database", server.url).returncode == 0
    assert not works(server, second["token"])
    name = person.sign_in("contributor")
    made = make(server, sign_in(server, name), old_password=PASSWORD).json
    child = make(server, made["token"]).json
    person.open(f"/account/tokens/{made['id']}/revoke")
    person.press("Revoke this token")
    assert not works(server, child["token"])


def test_erasing_an_account_ends_what_was_made_with_its_tokens(server: Server) -> None:
    admin, second = Client(server, "admin"), Client(server, "admin")
    other = account(server, "curator")
    made = make(server, second.token, account=other).json["token"]
    assert admin.send("DELETE", f"users/{second.send('GET', 'me').json['id']}").status == 204
    assert not works(server, made)


def test_signing_out_ends_the_session_and_leaves_what_was_made_from_it(server: Server) -> None:
    person = Person(server)
    person.sign_in("contributor", "/account")
    person.press("Make a token", {"label": "nightly", "old_password": PASSWORD}, 201)
    secret = next(line for line in text(person.body).split() if line.startswith("lex_"))
    cookie = person.cookies["lexarium_session"]
    person.press("Sign out")
    assert not works(server, cookie)
    assert works(server, secret)


def test_a_token_made_from_a_session_by_a_program_needs_the_password(server: Server) -> None:
    name = account(server, "curator")
    session = sign_in(server, name)
    for wrong in ({}, {"old_password": "wrong horse battery"}):
        refused = make(server, session, **wrong)
        assert refused.status == 422
        assert [error["pointer"] for error in refused.json["errors"]] == ["/old_password"]
    made = make(server, session, days=30, old_password=PASSWORD)
    assert made.status == 201
    assert made.json["expires"] > tokens(server, session)[made.json["made_with"]]["expires"]
    assert make(server, made.json["token"]).status == 201


def test_guesses_at_the_password_for_a_token_are_limited(server: Server) -> None:
    session = sign_in(server, account(server, "curator"))
    statuses = [make(server, session, old_password="wrong horse battery").status for _ in range(6)]
    assert statuses[0] == 422
    assert statuses[-1] == 429


def test_a_label_of_the_owners_own_makes_no_session(server: Server) -> None:
    program = Client(server, "curator")
    made = make(server, program.token, label="signed in").json
    assert make(server, made["token"]).status == 201
    set_password(server, program.send("GET", "me").json["name"])
    assert works(server, made["token"])


def test_where_a_token_comes_from_is_shown_everywhere(server: Server) -> None:
    person = Person(server)
    name = person.sign_in("curator")
    assert run("token", "create", name, "--label", "typed", "--database", server.url).returncode == 0
    session = sign_in(server, name)
    made = make(server, session, label="from a session", old_password=PASSWORD).json
    child = make(server, made["token"], label="made with it").json
    wait_until(lambda: tokens(server, made["token"])[made["id"]]["last_used"] is not None)  # noted by and by
    shown = tokens(server, made["token"])
    typed = next(token for token in shown.values() if token["label"] == "typed")
    origins = {token["id"]: (token["origin"], token["made_with"]) for token in shown.values()}
    assert origins[typed["id"]] == ("command-line", None)
    assert origins[made["id"]][0] == "session"
    assert origins[origins[made["id"]][1]] == ("sign-in", None)
    assert origins[child["id"]] == ("token", made["id"])
    assert shown[child["id"]]["last_used"] is None
    listed = " ".join(run("token", "list", "--database", server.url, COLUMNS="250").stdout.split())
    page = text(person.open("/account"))
    for words in ("command line", f"session {origins[made['id']][1]}", f"token {made['id']}", "sign-in"):
        assert words in listed, listed
        assert words in page, page
    listing = json.loads(run("token", "list", "--json", "--database", server.url).stdout)
    assert {token["id"]: (token["origin"], token["made_with"]) for token in listing} == origins


def test_using_a_token_writes_once_and_not_again_soon(new_url: NewUrl) -> None:
    with Server(new_url("sqlite"), LEXARIUM_READ="token") as server:
        secret = server.token("contributor")
        with closing(sqlite3.connect(server.url.removeprefix("sqlite:///"))) as database:

            def writes() -> int:
                count: int = database.execute("SELECT writes FROM catalogue").fetchone()[0]
                return count

            before = writes()
            for _ in range(20):
                assert server.get("/api/v1/concept", Authorization=f"Bearer {secret}").status == 200
            assert writes() <= before + 1


def test_a_full_disk_keeps_nobody_from_reading_with_a_token(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 4_000) as disk,
        Server(f"sqlite:///{disk.path}/catalogue.db", LEXARIUM_READ="token") as server,
    ):
        secrets = [server.token("contributor") for _ in range(2)]
        disk.fill()
        for secret in secrets * 2:
            assert server.get("/api/v1/me", Authorization=f"Bearer {secret}").status == 200


def test_an_upgrade_knows_the_sessions_there_were_and_leaves_other_tokens_unknown(tmp_path: Path) -> None:
    url = old_file("0010", tmp_path / "old.db")
    with closing(sqlite3.connect(tmp_path / "old.db")) as old, old:
        old.execute(
            "INSERT INTO token (id, account, label, role, hash, created, expires)"
            " SELECT 'tok_session', id, 'signed in', role, 'x', 1, 2 FROM account LIMIT 1"
        )
    listed = json.loads(run("token", "list", "--json", "--database", url).stdout)
    assert [(token["id"] == "tok_session", token["origin"]) for token in listed] == [
        (True, "sign-in"),
        (False, "unknown"),
    ]
