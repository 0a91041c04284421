"""Metadata for search engines and link previews."""

import json
import re
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

from lexarium.services.records import sitemap
from lexarium.services.vocabularies.access import ReadScope
from lexarium.store.database import Database
from tests.support.databases import DatabaseUrlFactory
from tests.support.imports import build_log_entry, save_entries
from tests.support.server import Server
from tests.support.v1_client import V1Client
from tests.support.vocabularies import add_concept, create_vocabulary

LOCATION = "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"


@pytest.fixture(scope="module")
def server(new_url: DatabaseUrlFactory) -> Iterator[Server]:
    with Server(new_url("sqlite")) as started:
        yield started


def list_locations(server: Server, path: str = "/sitemap.xml") -> list[str]:
    response = server.get(path)
    assert (response.status, response.headers["content-type"]) == (200, "application/xml")
    return [element.text or "" for element in ElementTree.fromstring(response.body).iter(LOCATION)]


def test_a_term_page_describes_its_term(server: Server) -> None:
    fields = {"name": "</script> memory", "definition_text": "Keeping & <recalling>.", "aliases": [{"text": "recall"}]}
    record = V1Client(server, "curator").create("concept", **fields)
    page = server.get(f"/id/{record['id']}", Accept="text/html").body.decode()
    base = f"http://127.0.0.1:{server.port}"
    match = re.search(r'<script type="application/ld\+json">(.*?)</script>', page)
    assert match
    term = json.loads(match[1])
    assert (term["@type"], term["name"], term["termCode"]) == ("DefinedTerm", fields["name"], record["id"])
    assert (term["description"], term["alternateName"]) == (fields["definition_text"], ["recall"])
    assert f'<link rel="canonical" href="{base}/id/{record["id"]}">' in page
    assert '<meta property="og:title" content="&lt;/script&gt; memory">' in page
    assert '<meta name="description" content="Keeping &amp; &lt;recalling&gt;.">' in page


def test_the_sitemap_lists_published_terms_of_public_vocabularies(new_url: DatabaseUrlFactory) -> None:
    url = new_url("sqlite")
    database = Database(url)
    with database.write() as transaction:
        save_entries(transaction, build_log_entry("memory"))
    create_vocabulary(database, "thes", languages=["en", "de"])
    add_concept(database, "thes", "a/b c", {"en": "slash", "de": "Strich"})
    create_vocabulary(database, "secret", private=True)
    add_concept(database, "secret", "s1", {"en": "hidden"})
    database.close()
    with Server(url) as server:
        base = f"http://127.0.0.1:{server.port}"
        locations = list_locations(server)
        assert f"{base}/id/a%2Fb%20c?vocabulary=thes" in locations
        assert len(locations) == 2
        page = server.get("/id/a%2Fb%20c?vocabulary=thes", Accept="text/html").body.decode()
        assert f'hreflang="de" href="{base}/id/a%2Fb%20c?vocabulary=thes&amp;lang=de"' in page
        assert f"Sitemap: {base}/sitemap.xml" in server.get("/robots.txt").body.decode()


def test_many_terms_are_listed_in_several_sitemaps(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "MAX_PAGES", 2)
    with database.write() as transaction:
        save_entries(transaction, *(build_log_entry(name) for name in ("a", "b", "c", "d", "e")))
    scope = ReadScope(("main",))
    with database.read() as snapshot:
        starts = sitemap.list_part_starts(snapshot, scope)
        parts = [sitemap.list_record_ids(snapshot, scope, start) for start in starts]
    assert [len(part) for part in parts] == [2, 2, 1]
    assert len({record_id for part in parts for record_id in part}) == 5


def test_a_private_server_offers_no_robots_txt_or_sitemap(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite"), LEXARIUM_READ="token") as server:
        assert [server.get(path).status for path in ("/robots.txt", "/sitemap.xml")] == [401, 401]
