"""Files of releases: rendered once, and identical from then on, on every node."""

import gzip
import hashlib
from pathlib import Path

import pytest
from sqlalchemy import delete, func, select, update

from lexarium.domain.errors import StoreError
from lexarium.domain.release import Release
from lexarium.domain.vocabulary import DEFAULT_BASE, VOCABULARIES
from lexarium.formats.obo import statements
from lexarium.formats.registry import FORMATS
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.records.releases import get_release
from lexarium.services.transfer import release_files
from lexarium.services.transfer.export import export_records
from lexarium.store import releases
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from lexarium.store.schema import release_chunk_table, release_file_table
from tests.support.server import Server, run_cli
from tests.support.v1_client import V1Client

WRITABLE_FORMATS = [name for name, file_format in FORMATS.items() if file_format.can_write]
PATH = "/api/v1/vocabularies/main/releases/2026.1"
# The files have the address that the server has by default.
HOST = DEFAULT_BASE.removeprefix("http://").rstrip("/")


def list_file_rows(url: str) -> list[tuple[str, str]]:
    database = open_database(url)
    with database.read() as snapshot:
        rows = [(file.release, file.format) for file in releases.list_files(snapshot)]
        assert {tuple(row) for row in snapshot.execute(select(*list(release_chunk_table.c)[:2]))} == set(rows)
    database.close()
    return rows


@pytest.fixture
def curator(server: Server) -> V1Client:
    curator = V1Client(server, "curator")
    curator.create(name="Löwe", definition_text="A cat, “large”.")
    assert curator.send("POST", "releases", {"name": "2026.1", "note": "First."}).status == 201
    return curator


def test_a_file_has_a_checksum_after_its_first_request(server: Server, curator: V1Client) -> None:
    listed = server.get(f"{PATH}").json["files"]
    assert [file["format"] for file in listed] == WRITABLE_FORMATS
    assert {(file["size"], file["sha256"], file["rendered"]) for file in listed} == {(None, None, None)}
    for file in listed:
        response = server.get(file["url"])
        assert response.status == 200
        assert response.headers["content-type"].partition(";")[0] == file["media_type"]
        assert response.headers["content-length"] == str(len(response.body))
        assert "2026.1." in response.headers["content-disposition"]
        [known] = [item for item in server.get(PATH).json["files"] if item["format"] == file["format"]]
        assert (known["size"], known["sha256"]) == (len(response.body), hashlib.sha256(response.body).hexdigest())
        assert known["rendered"]
        assert response.headers["etag"] == f'"{known["sha256"]}-identity"'
    assert server.get("/api/v1/releases").json["items"] == [server.get(PATH).json]


def test_a_file_equals_the_export_of_its_revision_after_later_changes(server: Server, curator: V1Client) -> None:
    revision = server.get(PATH).json["revision"]
    curator.create(name="Tiger")
    for name in WRITABLE_FORMATS:
        body = server.get(f"{PATH}/files/{name}").body
        for query in (f"as_of={revision}", "release=2026.1"):
            assert body == server.get(f"/api/v1/export?format={name}&{query}", Host=HOST).body
        assert b"Tiger" not in body
    assert b"Tiger" not in server.get("/api/v1/export?format=csv&release=2026.1&collection=concept").body


def test_a_file_is_revalidated_and_compressed(server: Server, curator: V1Client) -> None:
    path = f"{PATH}/files/obo"
    head = server.request("HEAD", path)
    response = server.get(path)
    assert (head.status, head.body, head.headers["etag"]) == (200, b"", response.headers["etag"])
    again = server.get(path, If_None_Match=response.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    compressed = server.get(path, Accept_Encoding="gzip")
    assert gzip.decompress(compressed.body) == response.body
    assert compressed.headers["etag"] != response.headers["etag"]


def test_there_is_no_file_of_another_format_or_release(server: Server, curator: V1Client) -> None:
    for path in (f"{PATH}/files/translation", f"{PATH}/files/pdf", "/api/v1/releases/none/files/obo"):
        assert server.get(path).status == 404
    assert list_file_rows(server.url) == []


def test_a_file_stays_identical_when_the_code_that_renders_it_changes(
    server: Server, curator: V1Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = server.get(f"{PATH}/files/obo").body
    database = open_database(server.url)
    release = database.run_read(get_release, "2026.1")
    monkeypatch.setattr(statements, "write", lambda items, options: iter([b"rendered otherwise"]))
    as_of_now = export_records(database, VOCABULARIES["main"], FORMATS["obo"], as_of=release.revision)
    assert b"".join(as_of_now) == b"rendered otherwise"
    assert b"".join(release_files.export_release(database, release, FORMATS["obo"])) == before
    database.close()


def test_the_stored_file_is_served(server: Server, curator: V1Client) -> None:
    server.get(f"{PATH}/files/csv")
    content, checksum = b"as it was rendered once", hashlib.sha256(b"as it was rendered once").hexdigest()
    database = open_database(server.url)
    with database.write() as transaction:
        transaction.execute(update(release_chunk_table).values(content=releases.compress_chunk(content)))
        transaction.execute(update(release_file_table).values(size=len(content), sha256=checksum))
    assert check_database(database).problems == []
    response = server.get(f"{PATH}/files/csv")
    assert (response.body, response.headers["etag"]) == (content, f'"{checksum}-identity"')
    with Server(server.url) as other_node:
        assert other_node.get("/api/v1/export?format=csv&release=2026.1").body == content
    exported = run_cli("export", "--format", "csv", "--release", "2026.1", "--database", server.url)
    assert exported.stdout.encode() == content
    with database.write() as transaction:
        transaction.execute(update(release_file_table).values(sha256="0" * 64))
    [problem] = check_database(database).problems
    assert problem == "the csv file of the release 2026.1 differs from what was rendered"
    database.close()


def test_the_command_stores_the_file_it_renders(server: Server, curator: V1Client, tmp_path: Path) -> None:
    file = tmp_path / "release.nt"
    assert run_cli("export", "--release", "2026.1", "-o", file, "--database", server.url).returncode == 0
    assert list_file_rows(server.url) == [("2026.1", "ntriples")]
    assert server.get(f"{PATH}/files/ntriples").body == file.read_bytes()


def test_the_first_rendering_is_kept_when_two_nodes_render_concurrently(server: Server, curator: V1Client) -> None:
    database, other = open_database(server.url), open_database(server.url)
    release = database.run_read(get_release, "2026.1")
    first, second = (release_files.iter_rendering(node, release, FORMATS["jsonl"]) for node in (database, other))
    assert (next(first), next(second)) == (None, None)
    (stored,), (kept,) = list(first), list(second)
    assert stored == kept
    assert list_file_rows(server.url) == [("2026.1", "jsonl")]
    database.close()
    other.close()


def test_a_large_file_is_stored_and_sent_in_chunks(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [hashlib.sha256(str(number).encode()).digest() * 5_000 for number in range(10)]
    monkeypatch.setattr(statements, "write", lambda items, options: iter(parts))
    monkeypatch.setattr(releases, "_CHUNK_BATCH", 3)
    with database.write() as transaction:
        releases.add(transaction, release := Release("2026.1", 0, "", "usr_1", 1))
    chunks = list(release_files.export_release(database, release, FORMATS["obo"]))
    assert b"".join(chunks) == b"".join(parts)
    assert {len(chunk) for chunk in chunks[:-1]} == {releases.CHUNK_BYTES}
    with database.read() as snapshot:
        count, largest = snapshot.execute(
            select(func.count(), func.max(func.length(release_chunk_table.c.content)))
        ).one()
        assert (count, largest < releases.CHUNK_BYTES) == (len(chunks), True)


def test_a_file_deleted_during_a_download_is_not_sent_as_complete(database: Database) -> None:
    with database.write() as transaction:
        releases.add(transaction, release := Release("2026.1", 0, "", "usr_1", 1))
    content = release_files.export_release(database, release, FORMATS["csv"])
    next(content)
    with database.write() as transaction:
        transaction.execute(delete(release_chunk_table))
    list(content)  # which was read already
    file = database.run_read(releases.find_file, "2026.1", "csv")
    assert file is not None
    with pytest.raises(StoreError, match="deleted"):
        list(release_files.iter_content(database, file))


def test_files_are_deleted_when_their_vocabulary_is_purged(server: Server) -> None:
    admin = V1Client(server, "admin")
    for slug in ("birds", "fish"):
        assert admin.send("POST", "vocabularies", {"slug": slug, "schema": "skos", "private": True}).status == 201
        assert admin.send("POST", f"vocabularies/{slug}/collections/concept", {"name": slug}).status == 201
        assert admin.send("POST", f"vocabularies/{slug}/releases", {"name": "1"}).status == 201
        path = f"vocabularies/{slug}/releases/1/files/skos"
        assert server.get(f"/api/v1/{path}").status == 404
        assert list_file_rows(server.url) == ([] if slug == "birds" else [("birds\x1f1", "skos")])
        assert admin.send("GET", path).status == 200
    exported = run_cli("export", "--vocabulary", "fish", "--release", "1", "--format", "skos", "--database", server.url)
    assert exported.stdout.encode() == admin.send("GET", path).body
    assert run_cli("vocabulary", "remove", "birds", "--yes", "--database", server.url).returncode == 0
    assert admin.send("GET", "vocabularies/birds/releases/1/files/skos").status == 404
    assert run_cli("vocabulary", "purge", "birds", "--yes", "--database", server.url).returncode == 0
    assert list_file_rows(server.url) == [("fish\x1f1", "skos")]
