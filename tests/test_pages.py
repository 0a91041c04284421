"""The pages over HTTP, on both engines: what they say, and what they are sent with."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ENGINES, NewUrl
from tests.server import Answer, Server

STATIC = Path(__file__).parents[1] / "src" / "lexarium" / "web" / "static"
MOST_BYTES = 60_000
PATHS = ["/"]


@pytest.fixture(scope="module", params=ENGINES)
def sample(request: pytest.FixtureRequest, new_url: NewUrl) -> Iterator[Server]:
    with Server(new_url(request.param), "--sample") as server:
        yield server


def page(server: Server, path: str, status: int = 200) -> str:
    """A page as a browser gets it."""
    answer = fetched(server, path)
    assert answer.status == status, answer.body
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return answer.body.decode()


def fetched(server: Server, path: str) -> Answer:
    return server.get(path, Accept="text/html,application/xhtml+xml,*/*;q=0.8")


@pytest.mark.parametrize("path", [*PATHS, "/nothing/here"])
def test_a_page_allows_nothing_but_what_this_site_serves(sample: Server, path: str) -> None:
    policy = fetched(sample, path).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    body = fetched(sample, path).body.decode()
    assert not re.search(r"<style|<[^>]+ style=|<[^>]+ on[a-z]+=|<script(?![^>]* src=\"/static/)", body)


@pytest.mark.parametrize("path", PATHS)
def test_every_link_of_a_page_leads_somewhere(sample: Server, path: str) -> None:
    for target in set(re.findall(r'(?:href|src|action)="(/[^"#]*)', page(sample, path))):
        assert fetched(sample, target.replace("&amp;", "&")).status == 200, target


def test_styles_and_scripts_are_small_and_kept_for_good_under_their_content(sample: Server) -> None:
    assert sum(path.stat().st_size for path in STATIC.iterdir()) <= MOST_BYTES
    for target in re.findall(r'"(/static/[^"]+)"', page(sample, "/")):
        assert "immutable" in sample.get(target).headers["cache-control"]
        assert sample.get(target.partition("?")[0]).headers["cache-control"] == "no-cache"


def test_a_page_is_compressed_for_who_accepts_it(sample: Server) -> None:
    answer = sample.get("/", Accept_Encoding="gzip")
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["vary"] == "Accept-Encoding"


def test_a_mistake_is_a_page_for_people_and_json_for_programs(sample: Server) -> None:
    assert "There is nothing at this address." in page(sample, "/nothing/here", 404)
    assert sample.get("/nothing/here").json["detail"] == "There is nothing at this address."
    assert sample.request("POST", "/", {"Accept": "text/html"}).status == 405


def test_the_first_page_tells_counts_classes_and_what_has_changed(sample: Server) -> None:
    body = page(sample, "/")
    assert ">192</strong> concepts" in body
    assert 'aria-label="Emotion: ' in body
    assert 'href="/changes"' in body
    assert body.count('class="did create"') == 8


def test_an_empty_catalogue_has_a_first_page(server: Server) -> None:
    body = page(server, "/")
    assert "The catalogue is empty." in body
    assert "Nothing has been written yet." in body
