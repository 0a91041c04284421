"""Pages of releases: changes, files and citation."""

import hashlib
import re
from collections.abc import Iterator
from html import unescape

import pytest

from lexarium.services.records import release_diff
from lexarium.services.records.release_diff import DiffCounts, diff_releases
from lexarium.services.records.releases import get_release
from lexarium.store.database import Database
from tests.support.browser import Browser
from tests.support.databases import DatabaseUrlFactory
from tests.support.server import HttpResponse, Server
from tests.support.v1_client import V1Client
from tests.support.vocabularies import add_concept, create_vocabulary

RELEASES = "/vocabularies/main/releases"


def fetch(server: Server, path: str) -> HttpResponse:
    return server.get(path, Accept="text/html")


def get_page(server: Server, path: str) -> str:
    response = fetch(server, path)
    assert response.status == 200, path
    return unescape(response.body.decode())


def get_section(page: str, heading: str) -> str:
    """Return the content between a heading and the next one."""
    return page.partition(f'<h3 id="{heading}">')[2].partition("<h3")[0]


@pytest.fixture(scope="module")
def server(new_url: DatabaseUrlFactory) -> Iterator[Server]:
    """Serve a catalogue with two releases, between which terms were added, changed and retired."""
    with Server(new_url("sqlite")) as started:
        curator = V1Client(started, "curator")
        kept = curator.create(name="Kept term")
        edited = curator.create(name="Edited term", definition_text="A slow process.")
        reverted = curator.create(name="Reverted term")
        retired = curator.create(name="Retired term")
        assert curator.send("POST", "releases", {"name": "2026.1", "note": "The first."}).status == 201
        added = curator.create(name="Added term")
        edited = curator.patch(edited, definition_text="A fast process.", relations={"KINDOF": [kept["id"]]})
        curator.patch(curator.patch(reverted, name="Other name"), name="Reverted term")
        brief = curator.create(name="Brief term")
        for record in (retired, brief):
            assert curator.send("DELETE", f"concept/{record['id']}", If_Match="*").status == 200
        assert curator.send("POST", "releases", {"name": "2026.2", "note": "The <second>."}).status == 201
        curator.patch(added, name="Renamed later")
        yield started


def test_all_releases_are_listed_and_linked_from_home_and_vocabulary(server: Server) -> None:
    listed = get_page(server, RELEASES)
    assert re.findall(rf'href="{RELEASES}/([^"]+)"', listed) == ["2026.2", "2026.1"], "the newest first"
    assert "The <second>." in listed
    for path in ("/", "/vocabularies/main"):
        page = get_page(server, path)
        assert f'href="{RELEASES}/2026.2"' in page
        assert f'href="{RELEASES}"' in page


def test_a_release_shows_additions_changes_and_retirements_since_the_previous_one(server: Server) -> None:
    page = get_page(server, f"{RELEASES}/2026.2")
    assert f'href="{RELEASES}/2026.1"' in page
    assert "1 added, 2 changed, 1 retired." in page
    assert re.findall(r">([^<>]+)</a>", get_section(page, "added")) == ["Added term"]
    assert re.findall(r">([^<>]+)</a>", get_section(page, "retired")) == ["Retired term"]
    changed = get_section(page, "changed")
    assert re.findall(r">([^<>]+)</a></strong>", changed) == ["Edited term", "Reverted term"]
    assert "<del>slow</del>" in changed
    assert "<ins>fast</ins>" in changed
    assert re.search(r"<ins>[^<]*Kept term</ins>", changed), "relations show names"
    assert "Changed and changed back." in changed
    assert re.search(r"By field: [^<]*definition 1", changed, re.IGNORECASE)
    assert "Brief term" not in page, "it is in neither release"
    assert "Renamed later" not in page


def test_terms_are_linked_as_of_the_release(server: Server) -> None:
    page = get_page(server, f"{RELEASES}/2026.2")
    for name, heading in (("Added term", "added"), ("Edited term", "changed"), ("Retired term", "retired")):
        links = re.findall(rf'href="([^"]+)">{name}</a>', get_section(page, heading))
        assert len(links) == 1
        assert f">{name}</h1>" in get_page(server, links[0])


def test_the_first_release_has_contents_and_no_changes(server: Server) -> None:
    page = get_page(server, f"{RELEASES}/2026.1")
    assert "This is the first release." in page
    assert "4 concepts" in page


def test_files_have_stable_urls_with_size_and_checksum_once_rendered(server: Server) -> None:
    path = f"{RELEASES}/2026.2/files/obo"
    assert '<code class="small">' not in get_page(server, f"{RELEASES}/2026.2"), "none is rendered yet"
    file = server.get(path)
    assert file.status == 200
    assert "attachment" in file.headers["content-disposition"]
    assert file.body == server.get(f"/api/v1{path}").body
    page = get_page(server, f"{RELEASES}/2026.2")
    listed = [item["format"] for item in server.get(f"/api/v1{RELEASES}/2026.2").json["files"]]
    assert re.findall(rf'href="{RELEASES}/2026.2/files/([^"]+)" download', page) == listed
    assert hashlib.sha256(file.body).hexdigest() in page
    assert f"{len(file.body):,}" in page
    assert file.headers["etag"] == f'"{hashlib.sha256(file.body).hexdigest()}-identity"'
    assert fetch(server, f"{RELEASES}/2026.2/files/xyz").status == 404
    assert fetch(server, f"{RELEASES}/none/files/obo").status == 404


def test_a_release_page_shows_a_citation(server: Server) -> None:
    url = f"http://127.0.0.1:{server.port}{RELEASES}/2026.2"
    page = get_page(server, f"{RELEASES}/2026.2")
    assert re.search(rf", release 2026\.2, [^<]+ {re.escape(url)}</pre>", page)
    assert f"  url = {{{url}}}\n}}</pre>" in page
    assert "@misc{main-2026.2,\n" in page


def test_an_unknown_release_or_vocabulary_has_no_page(server: Server) -> None:
    for path in (f"{RELEASES}/none", "/vocabularies/none/releases", "/vocabularies/none/releases/2026.1"):
        assert fetch(server, path).status == 404


def test_releases_are_listed_by_vocabulary(new_url: DatabaseUrlFactory) -> None:
    url = new_url("sqlite")
    database = Database(url)
    create_vocabulary(database, "thes", title="Thesaurus")
    add_concept(database, "thes", "a/b c", {"en": "slash"})
    database.close()
    with Server(url) as server:
        curator = V1Client(server, "curator")
        releases = "vocabularies/thes/releases"
        assert "No releases yet." in get_page(server, f"/{releases}")
        assert curator.send("POST", releases, {"name": "1"}).status == 201
        assert ">1</a>" in get_page(server, f"/{releases}")
        database = Database(url)
        add_concept(database, "thes", "d", {"en": "dot"})
        database.close()
        curator.create(name="Term of the main vocabulary")
        assert curator.send("POST", releases, {"name": "2"}).status == 201
        page = get_page(server, f"/{releases}/2")
        assert "1 added, 0 changed, 0 retired." in page
        assert 'href="/id/d?vocabulary=thes&release=2"' in page
        assert "2 concepts" in page
        assert fetch(server, f"{RELEASES}/2").status == 404


def test_a_long_diff_is_paginated_and_counted_up_to_a_limit(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_diff, "PAGE_SIZE", 2)
    database = Database(server.url)
    with database.read() as snapshot:
        earlier, later = (get_release(snapshot, name) for name in ("2026.1", "2026.2"))
        pages = [diff_releases(snapshot, earlier, later)]
        while pages[-1].next is not None:
            pages.append(diff_releases(snapshot, earlier, later, pages[-1].next))
        monkeypatch.setattr(release_diff, "MAX_COUNTED", 4)
        uncounted = diff_releases(snapshot, earlier, later)
    database.close()
    assert len(pages) == 3
    assert sorted(record.fields["name"] for page in pages for record in page.added) == ["Added term"]
    changed = sorted(item.record.fields["name"] for page in pages for item in page.changed)
    assert changed == ["Edited term", "Reverted term"]
    assert [record.fields["name"] for page in pages for record in page.retired] == ["Retired term"]
    assert {page.counts for page in pages} == {DiffCounts(added=1, changed=2, retired=1)}
    assert uncounted.counts is None


@pytest.mark.full
def test_pages_of_releases_are_accessible_and_fit_narrow_screens(shared_browser: Browser, server: Server) -> None:
    shared_browser.base_url = f"http://127.0.0.1:{server.port}"
    shared_browser.reset()
    for name, path in (("releases", RELEASES), ("release", f"{RELEASES}/2026.2"), ("vocabulary", "/vocabularies/main")):
        shared_browser.open(path)
        shared_browser.check_appearance(f"releases-{name}")
    assert shared_browser.console_errors() == []
