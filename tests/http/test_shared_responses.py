"""Responses to anonymous readers are cached, and never outdated or for the wrong reader."""

from collections.abc import Sequence
from contextlib import ExitStack
from random import Random
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.databases import DatabaseUrlFactory
from tests.support.metrics import read_metrics
from tests.support.polling import wait_until
from tests.support.server import HttpResponse, Server, SpawnedServer
from tests.support.v1_client import V1Client, build_path

_HTML = "text/html"
_ACCEPTED = (_HTML, "application/json", "text/turtle")
# Depend on the index or on statistics, which follow the log in the background.
_FOLLOWING_PATHS = (
    "/",
    "/statistics",
    "/browse/concept",
    "/browse/concept/tree",
    "/search?q=a",
    "/api/v1/suggest?prefix=a",
)


def get(server: Server, path: str, accept: str = _HTML, **headers: str) -> HttpResponse:
    # The host is part of pages.
    return server.get(path, **{"Accept": accept, "Host": "catalogue.example", **headers})


def count_misses(server: Server) -> float:
    return read_metrics(server)["lexarium_cache_misses_total"]


def is_cached(server: Server, path: str, accept: str = _HTML) -> bool:
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
        ("/id/{id}", _HTML),
        ("/id/{id}", "application/json"),
        ("/id/{id}", "text/turtle"),
        ("/id/{id}/history", _HTML),
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
        head = server.request("HEAD", path, {"Accept": _HTML, "Host": "catalogue.example"})
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
        assert get(server, path).headers["content-type"].startswith(_HTML)
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


class RandomEditor:
    """Make random valid changes to a catalogue."""

    def __init__(self, admin: V1Client, random: Random) -> None:
        self._admin = admin
        self._random = random
        self._records: dict[str, dict[str, Any]] = {}
        for name in ("a", "ab", "b"):
            self._create(name)

    @property
    def paths(self) -> list[str]:
        """Paths of responses that the changes may affect."""
        ids = list(self._records)
        own_paths = [
            path
            for record_id in ids
            for path in (
                f"/id/{record_id}",
                f"/id/{record_id}/history",
                f"/api/v1/concept/{record_id}",
                f"/api/v1/records/{record_id}/relations",
                f"/api/v1/records/{record_id}/history",
                f"/api/v1/records/{record_id}/ancestors",
                f"/api/v-alpha/concept?id={record_id}",
            )
        ]
        return [
            *own_paths,
            "/changes",
            "/api/v1/releases",
            "/api/v1/concept",
            "/api/v1",
            "/api/v-alpha/concept",
            "/vocabularies",
        ]

    def change(self) -> None:
        changes = (self._create, self._rename, self._rename, self._relate, self._relate, self._unrelate, self._retire)
        self._random.choice((*changes, self._merge, self._revert, self._set_title, self._release))()

    def _pick(self) -> dict[str, Any]:
        return self._records[self._random.choice(list(self._records))]

    def _create(self, name: str | None = None) -> None:
        record = self._admin.create(name=name or self._random.choice(("a", "b", "ab c")))
        self._records[record["id"]] = record

    def _send(self, method: str, record: dict[str, Any], *segments: str, **fields: Any) -> None:
        # A change may be rejected, such as one of a retired record.
        current = self._admin.send("GET", build_path(record))
        headers = {"If_Match": current.headers.get("etag", "*").partition("-")[0].rstrip('"') + '"'}
        self._admin.send(method, build_path(record, *segments), fields or None, **headers)

    def _rename(self) -> None:
        self._send("PATCH", self._pick(), name=self._random.choice(("a", "A", "b", "c")), definition_text="Text.")

    def _relate(self) -> None:
        relation = self._random.choice(("KINDOF", "PARTOF", "exactMatch"))
        target = "https://example.org/1" if relation == "exactMatch" else self._pick()["id"]
        self._send("PUT", self._pick(), "relations", relation=relation, target=target)

    def _unrelate(self) -> None:
        record = self._pick()
        relations = self._admin.send("GET", build_path(record)).json.get("relations", {})
        if relations:
            self._send("PATCH", record, relations={self._random.choice(list(relations)): []})

    def _retire(self) -> None:
        self._send("DELETE", self._pick())

    def _merge(self) -> None:
        self._send("POST", self._pick(), "merge", into=self._pick()["id"])

    def _revert(self) -> None:
        record = self._pick()
        versions = self._admin.send("GET", build_path(record, "history")).json["items"]
        self._admin.send("POST", build_path(record, "revert"), {"version": 1}, If_Match=f'"{versions[0]["version"]}"')

    def _set_title(self) -> None:
        etag = self._admin.send("GET", "vocabularies/main").headers["etag"]
        title = f"Title {self._random.random()}"
        self._admin.send("PATCH", "vocabularies/main", {"title": title}, If_Match=etag)

    def _release(self) -> None:
        self._admin.send("POST", "releases", {"name": f"r{self._random.randrange(10**9)}"})


def compare(cached: Server, fresh: Server, paths: Sequence[str], accept: str, connections: int) -> None:
    for path in paths:
        expected = get(fresh, path, accept)
        for _ in range(connections):
            found = get(cached, path, accept)
            assert (found.status, found.body) == (expected.status, expected.body), path
            assert found.headers.get("vary") == expected.headers.get("vary")


def is_same(cached: Server, fresh: Server, path: str) -> bool:
    return get(cached, path).body == get(fresh, path).body


def run_random_changes(url: str, steps: int, workers: int, seed: int) -> None:
    options = ("--workers", str(workers)) if workers > 1 else ()
    with ExitStack() as stack:
        cached = stack.enter_context((SpawnedServer if options else Server)(url, *options))
        fresh = stack.enter_context(Server(url, LEXARIUM_CACHE_MB="0"))
        random = Random(seed)
        editors = V1Client(cached, "admin"), V1Client(fresh, "admin")
        editor = RandomEditor(editors[0], random)
        for step in range(steps):
            editor._admin = editors[step % 2]
            editor.change()
            # On PostgreSQL, another node learns of a change within milliseconds.
            wait_until(lambda: all(is_same(cached, fresh, path) for path in ("/api/v1", "/api/v1/releases")))
            accept = random.choice(_ACCEPTED)
            paths = random.sample(editor.paths, min(len(editor.paths), 15))
            compare(cached, fresh, paths, accept, connections=2 * workers)
            following = random.choice(_FOLLOWING_PATHS)
            wait_until(lambda path=following: is_same(cached, fresh, path))


def test_cached_responses_equal_uncached_ones_after_random_changes(url: str) -> None:
    run_random_changes(url, steps=12, workers=1, seed=1)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_cached_responses_of_workers_equal_uncached_ones_after_many_random_changes(url: str, seed: int) -> None:
    run_random_changes(url, steps=12, workers=2, seed=seed)
