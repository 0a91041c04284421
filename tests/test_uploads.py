"""Files that wait to be imported: how long, for whom, and what is left of an import whose server is gone."""

import os
import signal
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from lexarium.domain.about import About
from lexarium.domain.accounts import Account, Role
from lexarium.domain.errors import Conflict, Forbidden, NotFound, StoreError, Unavailable
from lexarium.service.access import Caller
from lexarium.service.importing import import_files
from lexarium.service.reports import Report
from lexarium.service.uploads import KEPT_SECONDS, How, Stage, Uploads
from lexarium.store.database import Database
from tests.databases import NewUrl
from tests.person import Person
from tests.server import Server

ONE = b'[{"id": "trm_one", "name": "one"}]'
PATIENCE = 60.0


def caller(name: str, role: Role = Role.CURATOR) -> Caller:
    return Caller(Account(f"usr_{name}", name, role), role, "tok_1")


@pytest.fixture
def uploads(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Uploads:
    monkeypatch.setattr("lexarium.service.uploads.gettempdir", lambda: str(tmp_path))
    return Uploads(database, About())


def test_an_upload_is_found_by_its_sender_and_ticket_alone(uploads: Uploads) -> None:
    found = uploads.receive(caller("ada"), [("concept.json", BytesIO(ONE))], How(), PATIENCE)
    assert found.stage == Stage.LOOKED
    assert uploads.find(caller("ada"), found.ticket).report["created"] == {"concept": 1}
    for who, ticket in ((caller("bob"), found.ticket), (caller("ada"), "another"), (caller("ada"), "../..")):
        with pytest.raises(NotFound, match="on the server that got them"):
            uploads.find(who, ticket)
    with pytest.raises(Forbidden):
        uploads.receive(caller("eve", Role.CONTRIBUTOR), [], How())


def test_files_are_gone_after_their_import_and_what_came_of_it_after_an_hour(uploads: Uploads, tmp_path: Path) -> None:
    ada = caller("ada")
    ticket = uploads.receive(ada, [("concept.json", BytesIO(ONE))], How(), PATIENCE).ticket
    assert uploads.apply(ada, ticket, None, PATIENCE).stage == Stage.IMPORTED
    (folder,) = next(tmp_path.iterdir()).iterdir()
    assert sorted(each.name for each in folder.iterdir()) == ["lock", "state.json"]
    with pytest.raises(Conflict):
        uploads.look(ada, ticket, How())
    uploads.sweep()
    uploads.find(ada, ticket)
    long_ago = time.time() - KEPT_SECONDS - 1
    os.utime(folder, (long_ago, long_ago))
    uploads.sweep()
    with pytest.raises(NotFound):
        uploads.find(ada, ticket)


def test_a_folder_that_others_may_look_into_is_not_used(uploads: Uploads, tmp_path: Path) -> None:
    folder = tmp_path / f"lexarium-uploads-{os.getuid()}"
    folder.mkdir(mode=0o755)
    with pytest.raises(StoreError):
        uploads.receive(caller("ada"), [("concept.json", BytesIO(ONE))], How())


@pytest.mark.parametrize("committed", [False, True])
def test_whether_files_were_imported_is_claimed_only_where_it_is_known(
    uploads: Uploads, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    ada = caller("ada")
    ticket = uploads.receive(ada, [("concept.json", BytesIO(ONE))], How(), PATIENCE).ticket

    def unanswered(*given: Any, **told: Any) -> Report:
        if committed:
            import_files(*given, **told)
        raise Unavailable("the commit was not answered")

    with monkeypatch.context() as patched:
        patched.setattr("lexarium.service.uploads.import_files", unanswered)
        found = uploads.apply(ada, ticket, None, PATIENCE)
    assert found.stage == Stage.UNCERTAIN
    assert "is not known" in found.wrong
    told = uploads.look(ada, ticket, How(), PATIENCE).report
    assert told["unchanged" if committed else "created"] == {"concept": 1}


@pytest.fixture(params=["looking", "importing"])
def killed(request: pytest.FixtureRequest, new_url: NewUrl) -> Iterator[tuple[Server, Person]]:
    """A server whose predecessor was killed while it looked at someone's files or imported them, and that someone."""
    url = new_url("sqlite")
    with Server(url) as first:
        person = Person(first)
        person.sign_in("curator")
        head = '--x\r\nContent-Disposition: form-data; name="files"; filename="concept.json"\r\n\r\n'
        cookie = "; ".join(f"{name}={value}" for name, value in person.cookies.items())
        headers = {"Content-Type": "multipart/form-data; boundary=x", "Accept": "text/html", "Cookie": cookie}
        body = head.encode() + ONE + b"\r\n--x--\r\n"
        if request.param == "importing":
            person.path = first.request("POST", "/import", headers, body).headers["location"]
            while "data-progress" in person.open(person.path):
                pass
        writer = Database(url)
        with writer.write():  # which everyone else who writes waits for
            if request.param == "importing":
                person.press("Import")
            else:
                person.path = first.request("POST", "/import", headers, body).headers["location"]
            os.kill(first.pid, signal.SIGKILL)
        writer.close()
    with Server(url) as second:
        person.server = second
        yield second, person


def test_an_import_whose_server_was_killed_is_told_as_broken_and_begun_again(
    killed: tuple[Server, Person], request: pytest.FixtureRequest
) -> None:
    server, person = killed
    body = person.open(person.path)
    assert "The server was stopped in the midst of it." in body
    known = request.node.callspec.params["killed"] == "looking"
    assert ("Nothing was imported" in body, "Perhaps imported" in body) == (known, not known)
    assert server.get("/api/v1/concept").json["total"] == 0
    assert "The server was stopped" not in person.press("Look again")
