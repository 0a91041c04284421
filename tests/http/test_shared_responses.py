"""Responses to anonymous readers are cached, and never outdated or for the wrong reader."""

from random import Random
from urllib.parse import quote

import pytest

from tests.support.databases import DatabaseUrlFactory
from tests.support.metrics import read_metrics
from tests.support.server import Server
from tests.support.v1_client import V1Client
from torture import cached_responses
from torture.cached_responses import HTML, get


def count_misses(server: Server) -> float:
    return read_metrics(server)["lexarium_cache_misses_total"]


def is_cached(server: Server, path: str, accept: str = HTML) -> bool:
    """Return whether a response is sent from the cache, and cache it."""
    before = count_misses(server)
    assert get(server, path, accept).status == 200
    return count_misses(server) == before


@pytest.fixture
def curator(shared_server: Server) -> V1Client:
    return V1Client(shared_server, "curator")


@pytest.fixture
def admin(shared_server: Server) -> V1Client:
    return V1Client(shared_server, "admin")


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/id/{id}", HTML),
        ("/id/{id}", "application/json"),
        ("/id/{id}", "text/turtle"),
        ("/id/{id}/history", HTML),
        ("/api/v1/concept/{id}", "*/*"),
        ("/api/v1/records/{id}", "*/*"),
        ("/api/v1/concept/{id}/relations", "*/*"),
    ],
)
def test_a_record_stays_cached_until_its_content_or_shown_relations_change(
    curator: V1Client, path: str, accept: str
) -> None:
    server, kind = curator.server, curator.create(name="kind")
    record = curator.create(name="shown", relations={"KINDOF": [kind["id"]]})
    path = path.format(id=record["id"])
    is_cached(server, path, accept)
    curator.create(name="unrelated")
    assert is_cached(server, path, accept)
    curator.patch(record, definition_text="Changed.")
    assert not is_cached(server, path, accept)
    assert is_cached(server, path, accept)


def test_the_cached_page_of_a_record_is_updated_with_its_related_records(curator: V1Client) -> None:
    server, record = curator.server, curator.create(name="whole")
    path = f"/id/{record['id']}"
    assert b"its part" not in get(server, path).body
    part = curator.create(name="its part", relations={"PARTOF": [record["id"]]})
    assert b"its part" in get(server, path).body
    part = curator.patch(part, name="another name")
    assert b"another name" in get(server, path).body
    curator.patch(part, relations={"PARTOF": []})
    assert b"another name" not in get(server, path).body


def test_pages_and_lists_are_compressed_once_and_revalidated(curator: V1Client) -> None:
    server, record = curator.server, curator.create(name="revalidated")
    for path in (f"/id/{record['id']}", "/", "/browse/concept", "/api/v1/concept", "/guide"):
        seen = {}
        for encoding in ("identity", "gzip", "zstd"):
            first = get(server, path, **{"Accept-Encoding": encoding})
            again = get(server, path, **{"Accept-Encoding": encoding})
            assert (again.status, again.body, again.headers["etag"]) == (200, first.body, first.headers["etag"])
            assert again.headers.keys() == first.headers.keys()
            seen[encoding] = again.headers["etag"]
            revalidated = get(server, path, **{"Accept-Encoding": encoding, "If-None-Match": seen[encoding]})
            assert (revalidated.status, revalidated.body) == (304, b"")
            assert "content-encoding" not in revalidated.headers
        assert len(set(seen.values())) == len(seen) or "content-encoding" not in again.headers


def test_head_has_the_headers_of_get(curator: V1Client) -> None:
    server, record = curator.server, curator.create(name="head")
    for path in (f"/id/{record['id']}", f"/api/v1/concept/{record['id']}"):
        got = get(server, path)
        head = server.request("HEAD", path, {"Accept": HTML, "Host": "catalogue.example"})
        assert (head.status, head.body) == (200, b"")
        assert {**head.headers, "date": ""} == {**got.headers, "date": ""}


def test_head_of_a_release_file_has_its_length_before_the_first_download(curator: V1Client) -> None:
    curator.create(name="in a release")
    assert curator.send("POST", "releases", {"name": "first"}).status == 201
    path = "/api/v1/vocabularies/main/releases/first/files/csv"
    length = curator.server.get(path, Authorization=f"Bearer {curator.token}").headers["content-length"]
    head = curator.server.request("HEAD", path)
    assert (head.status, head.headers["content-length"]) == (200, length)


def test_requests_with_a_token_or_session_are_not_served_from_the_cache(curator: V1Client) -> None:
    server, record = curator.server, curator.create(name="own")
    path, token = f"/id/{record['id']}", f"Bearer {curator.token}"
    get(server, path)
    signed_in = get(server, path, Cookie=f"lexarium_session={curator.token}")
    assert b"/edit/" in signed_in.body
    assert signed_in.headers["cache-control"] == "private, no-store"
    assert b"/edit/" not in get(server, path).body
    v1_path = f"/api/v1/concept/{record['id']}"
    get(server, v1_path)
    assert server.get(v1_path, Authorization="Bearer wrong").status == 401
    assert "access-control-allow-origin" not in server.get(v1_path, Authorization=token).headers
    assert "access-control-allow-origin" in server.get(v1_path).headers


def test_responses_are_cached_separately_by_language_format_and_host(curator: V1Client) -> None:
    server = curator.server
    record = curator.create(name="colour", names=[{"text": "colour", "lang": "en"}, {"text": "Farbe", "lang": "de"}])
    path = f"/id/{record['id']}"
    for _ in range(2):
        assert b"<h1>Farbe" in get(server, path, **{"Accept-Language": "de"}).body.replace(b'<h1 lang="de">', b"<h1>")
        assert get(server, path, "application/json").headers["content-type"] == "application/json"
        assert get(server, path).headers["content-type"].startswith(HTML)
        for host in ("one.example", "two.example"):
            assert host.encode() in get(server, path, Host=host).body


def test_a_vocabulary_that_becomes_private_is_no_longer_shown(admin: V1Client) -> None:
    server = admin.server
    created = admin.send("POST", "vocabularies", {"slug": "shy", "title": "Shy", "schema": "skos"})
    assert created.status == 201, created.body
    record = admin.send("POST", "vocabularies/shy/collections/concept", {"name": "secret"})
    assert record.status == 201, record.body
    paths = [f"/id/{quote(record.json['id'])}?vocabulary=shy", "/vocabularies", "/?vocabulary=shy", "/changes"]
    assert all(b"hy" in get(server, path).body for path in paths)
    for is_private in (True, False):
        etag = admin.send("GET", "vocabularies/shy").headers["etag"]
        changed = admin.send("PATCH", "vocabularies/shy", {"private": is_private}, If_Match=etag)
        assert changed.status == 200, changed.body
        statuses = [get(server, path).status for path in paths]
        assert statuses == ([404, 200, 404, 200] if is_private else [200] * 4)
        assert (b"Shy" in get(server, "/vocabularies").body) is not is_private
        assert (b"secret" in get(server, "/changes").body) is not is_private


def test_a_release_or_an_erased_account_is_visible_to_the_next_request(admin: V1Client) -> None:
    server, record = admin.server, admin.create(name="released")
    path = "/?vocabulary=main"
    assert b"2026-r1" not in get(server, path).body
    assert admin.send("POST", "releases", {"name": "2026-r1"}).status == 201
    assert b"2026-r1" in get(server, path).body
    editor = V1Client(server, "curator")
    account = editor.send("GET", "me").json
    editor.patch(record, definition_text="By an editor.")
    history = f"/id/{record['id']}/history"
    assert account["name"].encode() in get(server, history).body
    assert admin.send("DELETE", f"users/{account['id']}").status == 204
    assert account["name"].encode() not in get(server, history).body


def test_content_of_a_private_catalogue_is_never_sent_to_anonymous_readers(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite"), LEXARIUM_READ="token") as server:
        curator = V1Client(server, "curator")
        record = curator.create(name="closed")
        for path in (f"/api/v1/concept/{record['id']}", f"/id/{record['id']}"):
            for _ in range(2):
                assert server.get(path, Authorization=f"Bearer {curator.token}").status == 200
            assert server.get(path, Accept="application/json").status == 401


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.full)])
def test_cached_responses_equal_uncached_ones_after_random_changes(url: str, workers: int) -> None:
    assert cached_responses.run(url, workers, Random(workers), steps=12) == []
