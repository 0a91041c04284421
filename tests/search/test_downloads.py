"""Facets by language and state, and files of all hits, in v1 and on the search page."""

import csv
import io
import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest

from lexarium.services.serializers import HIT_COLUMNS
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.polling import wait_until
from tests.support.server import HttpResponse, Server
from tests.support.v1_client import V1Client, build_path, get_etag, send_batch

_PAGE = {"Accept": "text/html"}


@pytest.fixture(scope="module", params=ENGINES)
def server(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> Iterator[Server]:
    with Server(new_url(request.param)) as server:
        curator = V1Client(server, "curator")
        curator.create(name="river", names=[{"text": "river", "lang": "en"}, {"text": "Fluss", "lang": "de"}])
        curator.create(name="river bed", aliases=[{"text": "lit de rivière", "lang": "fr"}])
        curator.create("task", name="=river(1)")
        retired = curator.create(name="river of old")
        curator.send("DELETE", build_path(retired), If_Match=get_etag(retired))
        sea_names = {"en": "sea", "de": "Meer", "es": "mar", "fr": "mer", "it": "mare"}
        curator.create(name="sea", names=[{"text": text, "lang": tag} for tag, text in sea_names.items()])
        curator.create(name="sea bed", names=[{"text": "sea bed", "lang": "en"}, {"text": "Meeresgrund", "lang": "de"}])
        lines = [
            {"op": "create", "collection": "concept", "record": {"name": f"brook number {number}"}}
            for number in range(2_500)
        ]
        assert send_batch(curator, *lines).status == 200
        wait_until(lambda: server.get("/api/v1/search?q=brook").json["total"] == len(lines))
        yield server


def _search(server: Server, text: str, **options: object) -> Any:
    response = server.get(f"/api/v1/search?{urlencode({'q': text, **options})}")
    assert response.status == 200, response.body
    return response.json


def _read_table(response: HttpResponse) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(response.body.decode(), newline="")))


def test_hits_are_counted_by_the_languages_of_their_names_and_aliases(server: Server) -> None:
    facets = _search(server, "river")["facets"]
    assert facets["language"] == {"en": 3, "de": 1, "fr": 1}
    assert facets["collection"] == {"concept": 2, "task": 1}
    assert _search(server, "river", state="published,retired")["facets"]["state"] == {"published": 3, "retired": 1}


def test_hits_are_counted_by_language_where_a_record_has_many(server: Server) -> None:
    assert _search(server, "sea")["facets"]["language"] == {"en": 2, "de": 2, "es": 1, "fr": 1, "it": 1}
    assert _search(server, "seaa bed")["facets"]["language"] == {"en": 1, "de": 1}


def test_a_language_filter_selects_records_with_names_in_it(server: Server) -> None:
    assert [hit["name"] for hit in _search(server, "river", language="de")["hits"]] == ["river"]
    assert {hit["name"] for hit in _search(server, "river", language="FR,de")["hits"]} == {"river", "river bed"}
    assert _search(server, "river", language="nl")["total"] == 0


def test_each_facet_on_the_page_links_to_a_narrower_and_a_wider_search(server: Server) -> None:
    def open_page(path: str) -> tuple[dict[str, str], str]:
        body = server.request("GET", path, _PAGE, None).body.decode()
        aside = body.partition("<aside")[2].partition("</aside>")[0]
        links = re.findall(r'<a href="([^"]*)"[^>]*>(.*?)</a>', aside)
        return {re.sub("<[^>]*>", "", text): unescape(path) for path, text in links}, body

    links, body = open_page("/search?q=river")
    assert "3 records found" in re.sub("<[^>]*>", "", body)
    for value, count in (("de", "1 record"), ("fr", "1 record"), ("tasks", "1 record"), ("retired", "1 record")):
        narrowed, body = open_page(links[value])
        assert f"{count} found" in re.sub("<[^>]*>", "", body), value
        assert re.search(rf'aria-current="true">(<span[^>]*>)?{value}', body)
        wider, body = open_page(narrowed["any"])
        assert re.search("[34] records found", re.sub("<[^>]*>", "", body)), value
        assert "csv" in wider["CSV"]


def test_all_hits_are_downloaded_as_a_table_with_escaped_formulas(server: Server) -> None:
    response = server.get("/api/v1/search?q=river&format=csv")
    assert response.headers["content-type"].startswith("text/csv")
    assert response.headers["content-disposition"] == 'attachment; filename="search-results.csv"'
    rows = _read_table(response)
    assert list(rows[0]) == list(HIT_COLUMNS)
    assert [row["name"] for row in rows] == ["river", "'=river(1)", "river bed"]
    assert (rows[0]["matched_field"], rows[0]["matched_language"], rows[0]["vocabulary"]) == ("name", "en", "main")
    by_header = server.get("/api/v1/search?q=river", Accept="text/csv")
    assert by_header.body == response.body
    assert "accept" in by_header.headers["vary"].lower()
    assert server.get("/api/v1/search?q=river", Accept="image/png").status == 406


def test_a_download_has_more_hits_than_pages_in_the_same_order(server: Server) -> None:
    rows = _read_table(server.get("/api/v1/search?q=brook&format=csv"))
    assert len({row["id"] for row in rows}) == len(rows) == 2_500
    whole = _search(server, "brook", format="json")
    assert [hit["id"] for hit in whole["hits"]] == [row["id"] for row in rows]
    page = _search(server, "brook", limit=100, offset=1_900)
    assert [hit["id"] for hit in page["hits"]] == [row["id"] for row in rows[1_900:2_000]]
    assert len(_read_table(server.get("/api/v1/search?q=brook&format=csv&limit=5&offset=3"))) == 5
    assert server.get("/api/v1/search?q=brook&format=xml").status == 422


def test_the_page_links_to_downloads_of_the_same_search(server: Server) -> None:
    body = server.request("GET", "/search?q=river&language=fr&state=all", _PAGE, None).body.decode()
    for path in map(unescape, re.findall(r'href="(/api/v1/search[^"]*)"', body)):
        response = server.get(path)
        assert response.status == 200, response.body
        assert b"river bed" in response.body
        assert b"Fluss" not in response.body
    assert "/api/v1/search" not in server.request("GET", "/search?q=nothingofthekind", _PAGE, None).body.decode()
