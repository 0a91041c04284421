"""Uploaded files before import: expiry, ownership, and imports interrupted by a crash."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from lexarium.domain.account import Account, Role
from lexarium.domain.errors import Conflict, DatabaseUnavailable, NotFound, PermissionDenied, StoreError
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.services.access.permissions import Caller
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.services.transfer.uploads import RETENTION_SECONDS, ImportOptions, UploadManager, UploadStatus
from lexarium.store.database import Database
from tests.support.browserless_client import BrowserlessClient
from tests.support.databases import DatabaseUrlFactory
from tests.support.polling import wait_until
from tests.support.server import Server

ONE_RECORD = b'[{"id": "trm_one", "name": "one"}]'
WAIT_SECONDS = 60.0


def build_caller(name: str, role: Role = Role.CURATOR) -> Caller:
    return Caller(Account(f"usr_{name}", name, role), role, "tok_1")


@pytest.fixture
def uploads(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UploadManager:
    monkeypatch.setattr("lexarium.services.transfer.uploads.gettempdir", lambda: str(tmp_path))
    return UploadManager(database)


def test_an_upload_is_accessible_only_to_its_sender_by_id(uploads: UploadManager) -> None:
    upload = uploads.receive(
        build_caller("ada"), [("concept.json", BytesIO(ONE_RECORD))], ImportOptions(), WAIT_SECONDS
    )
    assert upload.status == UploadStatus.PREVIEWED
    assert uploads.get(build_caller("ada"), upload.id).report["created"] == {"concept": 1}
    for who, upload_id in (
        (build_caller("bob"), upload.id),
        (build_caller("ada"), "another"),
        (build_caller("ada"), "../.."),
    ):
        with pytest.raises(NotFound, match="only on one server"):
            uploads.get(who, upload_id)
    with pytest.raises(PermissionDenied):
        uploads.receive(build_caller("eve", Role.CONTRIBUTOR), [], ImportOptions())


def test_a_file_name_of_spaces_and_dots_is_replaced(uploads: UploadManager) -> None:
    files = [(" ..", BytesIO(ONE_RECORD))]
    upload = uploads.receive(build_caller("ada"), files, ImportOptions(), WAIT_SECONDS)
    assert upload.names == ("file",)


def test_an_upload_of_another_version_is_not_found(uploads: UploadManager, tmp_path: Path) -> None:
    ada = build_caller("ada")
    upload = uploads.receive(ada, [("concept.json", BytesIO(ONE_RECORD))], ImportOptions(), WAIT_SECONDS)
    for state in tmp_path.rglob("state.json"):
        state.write_text('{"ticket": "x"}')
    with pytest.raises(NotFound, match="Upload the files again"):
        uploads.get(ada, upload.id)


def test_uploaded_files_are_deleted_after_the_import_and_its_report_after_an_hour(
    uploads: UploadManager, tmp_path: Path
) -> None:
    ada = build_caller("ada")
    upload_id = uploads.receive(ada, [("concept.json", BytesIO(ONE_RECORD))], ImportOptions(), WAIT_SECONDS).id
    assert uploads.apply(ada, upload_id, None, WAIT_SECONDS).status == UploadStatus.IMPORTED
    (folder,) = next(tmp_path.iterdir()).iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["lock", "state.json"]
    with pytest.raises(Conflict):
        uploads.preview(ada, upload_id, ImportOptions())
    uploads.delete_expired()
    uploads.get(ada, upload_id)
    long_ago = time.time() - RETENTION_SECONDS - 1
    os.utime(folder, (long_ago, long_ago))
    uploads.delete_expired()
    with pytest.raises(NotFound):
        uploads.get(ada, upload_id)


def test_a_folder_readable_by_others_is_not_used(uploads: UploadManager, tmp_path: Path) -> None:
    folder = tmp_path / f"lexarium-uploads-{os.getuid()}"
    folder.mkdir(mode=0o755)
    with pytest.raises(StoreError):
        uploads.receive(build_caller("ada"), [("concept.json", BytesIO(ONE_RECORD))], ImportOptions())


@pytest.mark.parametrize("committed", [False, True])
def test_an_import_with_an_unknown_outcome_is_not_reported_as_done(
    uploads: UploadManager, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    ada = build_caller("ada")
    upload_id = uploads.receive(ada, [("concept.json", BytesIO(ONE_RECORD))], ImportOptions(), WAIT_SECONDS).id

    def fail_unanswered(*arguments: Any, **options: Any) -> ImportReport:
        if committed:
            run_import(*arguments, **options)
        raise DatabaseUnavailable("the commit was not answered")

    with monkeypatch.context() as patched:
        patched.setattr("lexarium.services.transfer.file_import.run_import", fail_unanswered)
        upload = uploads.apply(ada, upload_id, None, WAIT_SECONDS)
    assert upload.status == UploadStatus.UNCERTAIN
    assert "status unknown" in upload.error
    report = uploads.preview(ada, upload_id, ImportOptions(), WAIT_SECONDS).report
    assert report["unchanged" if committed else "created"] == {"concept": 1}


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_vocabulary_is_not_visible_to_other_threads_while_it_is_imported(
    database: Database, tmp_path: Path, dry_run: bool
) -> None:
    path = tmp_path / "birds.obo"
    path.write_text("format-version: 1.2\nontology: birds\n\n[Term]\nid: birds:1\nname: owl\n")
    seen: list[bool] = []

    def look(*_: object) -> None:
        assert "birds" in VOCABULARIES
        with ThreadPoolExecutor(1) as threads:
            # A request that reads the vocabularies again must not take them from the import either.
            threads.submit(database.run_read, database.follow_vocabularies).result()
            seen.append(threads.submit(lambda: "birds" in VOCABULARIES).result())

    with database.isolate_vocabularies():
        report = run_import(database, ImportRequest([path], dry_run=dry_run), look)
    assert (report.vocabulary, set(seen)) == ("birds", {False})
    assert "birds" not in VOCABULARIES
    database.run_read(database.follow_vocabularies)
    assert ("birds" in VOCABULARIES) is not dry_run


@pytest.fixture(params=["previewing", "importing"])
def restarted_server(
    request: pytest.FixtureRequest, new_url: DatabaseUrlFactory
) -> Iterator[tuple[Server, BrowserlessClient]]:
    """Server whose predecessor was killed during a preview or an import, and the client that uploaded the files."""
    url = new_url("sqlite")
    with Server(url, LEXARIUM_TEST_LOCK_SECONDS="200") as first_server:
        person = BrowserlessClient(first_server)
        person.sign_in("curator")
        head = '--x\r\nContent-Disposition: form-data; name="files"; filename="concept.json"\r\n\r\n'
        cookie = "; ".join(f"{name}={value}" for name, value in person.cookies.items())
        headers = {"Content-Type": "multipart/form-data; boundary=x", "Accept": "text/html", "Cookie": cookie}
        body = head.encode() + ONE_RECORD + b"\r\n--x--\r\n"
        if request.param == "importing":
            person.path = first_server.request("POST", "/import", headers, body).headers["location"]
            wait_until(lambda: "data-progress" not in person.open(person.path))
        writer = Database(url)
        with writer.write():  # every other writer waits for this
            if request.param == "importing":
                person.press("Import")
            else:
                person.path = first_server.request("POST", "/import", headers, body).headers["location"]
            os.kill(first_server.pid, signal.SIGKILL)
        writer.close()
    with Server(url) as second_server:
        person.server = second_server
        yield second_server, person


def test_an_import_interrupted_by_a_kill_is_reported_and_can_be_restarted(
    restarted_server: tuple[Server, BrowserlessClient], request: pytest.FixtureRequest
) -> None:
    server, person = restarted_server
    body = person.open(person.path)
    assert "The server stopped during the import." in body
    was_previewing = request.node.callspec.params["restarted_server"] == "previewing"
    assert ("Nothing was imported" in body, "Import status unknown" in body) == (was_previewing, not was_previewing)
    assert server.get("/api/v1/concept").json["total"] == 0
    assert "The server stopped" not in person.press("Preview again")
