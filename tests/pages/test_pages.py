"""Pages over HTTP on both engines: content and headers."""

import asyncio
import gc
import gzip
import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette

from lexarium.services.transfer.field_import.importer import import_files
from lexarium.settings import Settings
from lexarium.store.database import Database
from lexarium.web.app import create_app
from tests.support.databases import DatabaseUrlFactory
from tests.support.server import HttpResponse, Server

# Every kind of page, with records of the sample.
PATHS = [
    "/",
    "/browse",
    "/browse/concept",
    "/browse/concept?class=ctp_memory&from=m",
    "/browse/disorder?flagged=1",
    "/browse/task?state=retired",
    "/browse/concept/tree",
    "/browse/concept/tree?expand=1",
    "/browse/concept/tree?q=memory",
    "/browse/battery",
    "/id/cit_4f4c964f3ba5b",
    "/id/ctp_memory",
    "/id/dso_17093703",
    "/id/trm_49ee3f4f0d02e",
    "/id/trm_606958d85e21c",
    "/id/trm_606958d85e21c/history",
    "/search",
    "/search?q=memory",
    "/search?q=memory&collection=concept&class=ctp_memory&gone=1",
    "/annotate",
    "/statistics",
    "/statistics?by=class",
    "/statistics?by=contributor",
    "/statistics/gaps/undefined",
    "/statistics/gaps/repeated",
    "/changes",
    "/guide",
    "/docs",
]
MAX_PAGE_BYTES, MAX_DESCRIPTION_CHARS = 100_000, 320
# Links of each server that were already checked.
CHECKED_LINKS: dict[str, set[str]] = {}
WORKING_MEMORY = "trm_606958d85e21c"


def get_page(server: Server, path: str, status: int = 200) -> str:
    """Return a page as a browser gets it."""
    response = fetch(server, path)
    assert response.status == status, response.body
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    return response.body.decode()


def fetch(server: Server, path: str) -> HttpResponse:
    return server.get(path, Accept="text/html,application/xhtml+xml,*/*;q=0.8")


@pytest.mark.parametrize("path", [*PATHS, "/nothing/here"])
def test_the_content_security_policy_allows_only_own_resources(sample: Server, path: str) -> None:
    policy = fetch(sample, path).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    body = fetch(sample, path).body.decode()
    assert not re.search(
        r"<style|<[^>]+ style=|<[^>]+ on[a-z]+=|<script(?! type=\"application/ld\+json\">)(?![^>]* src=\"/static/)",
        body,
    )


@pytest.mark.parametrize("path", PATHS)
def test_every_link_of_a_page_works(sample: Server, path: str) -> None:
    checked_links = CHECKED_LINKS.setdefault(sample.url, set())
    targets = set(re.findall(r'(?:href|src|action|data-level)="(/[^"#]*)', get_page(sample, path)))
    for target in targets - checked_links:
        # Links to the API are tested elsewhere. A retired record has a page with status 410.
        assert target.startswith("/api/") or fetch(sample, unescape(target)).status in (200, 410), target
    checked_links |= targets


@pytest.mark.parametrize("path", PATHS)
def test_a_page_is_small_and_has_a_title_and_a_description(sample: Server, path: str) -> None:
    response = sample.get(path, Accept="text/html", Accept_Encoding="gzip")
    assert len(response.body) <= MAX_PAGE_BYTES
    body = gzip.decompress(response.body).decode()
    title = re.search(r"<title>([^<]+)</title>", body)
    assert title
    assert title[1].strip()
    [description] = re.findall(r'<meta name="description" content="([^"]+)">', body)
    assert 10 < len(unescape(description)) <= MAX_DESCRIPTION_CHARS


def test_static_files_of_a_page_are_immutable(sample: Server) -> None:
    for target in re.findall(r'"(/static/[^"]+)"', get_page(sample, "/")):
        assert "immutable" in sample.get(target).headers["cache-control"]


def test_a_page_is_compressed_if_the_client_accepts_it(sample: Server) -> None:
    response = sample.get("/", Accept_Encoding="gzip")
    assert response.headers["content-encoding"] == "gzip"
    assert response.headers["vary"] == "Accept-Encoding"


def test_metadata_of_a_vocabulary_is_grouped_and_its_properties_are_short(sample: Server) -> None:
    page = get_page(sample, "/vocabularies/settings")
    assert page.count("<dt>title</dt>") == 1
    assert {"Untersuchungsrahmen", "Entornos de investigación"} <= set(re.findall(r">([^<>]+)</span>", page))
    assert "vann:preferredNamespacePrefix" in page
    assert ">http://purl.org/vocab/vann/" not in page


def test_recent_changes_show_an_import_as_one_line_that_leads_to_its_changes(sample: Server) -> None:
    page = get_page(sample, "/changes?vocabulary=settings")
    assert ">imported</span>" in page
    assert "laboratory" not in page.partition("<main")[2]
    target = re.search(r'href="(/changes\?since=[^"]+)"', page)
    assert target is not None
    assert "laboratory" in get_page(sample, unescape(target[1])).partition("<main")[2]


def test_an_error_is_a_page_for_browsers_and_json_for_api_clients(sample: Server) -> None:
    assert "There is nothing at this address." in get_page(sample, "/nothing/here", 404)
    assert sample.get("/nothing/here").json["detail"] == "There is nothing at this address."
    assert sample.request("POST", "/", {"Accept": "text/html"}).status == 405


def test_the_vocabulary_page_shows_counts_classes_and_recent_changes(sample: Server) -> None:
    body = get_page(sample, "/vocabularies/main")
    assert ">192</strong> concepts" in body
    assert 'aria-label="Emotion: ' in body
    assert 'href="/changes"' in body
    assert re.search(r'since=0&amp;until=\d+">[\d,]+ changes</a> <span class="faint">by one import', body)


def test_the_count_of_a_class_equals_the_length_of_the_linked_list(sample: Server) -> None:
    tiles = re.findall(r'<g class="tile.*?</g>', get_page(sample, "/vocabularies/main"), re.DOTALL)
    counts = [re.search(r'<a href="(/browse/[^"]+)".*?<span>([\d,]+)</span>', tile, re.DOTALL) for tile in tiles]
    assert len(tiles) > 10
    for path, count in filter(None, (match and match.groups() for match in counts)):
        assert re.search(rf'<p class="faint">{count} \w', get_page(sample, unescape(path)))


def test_an_empty_catalogue_has_a_home_page(server: Server) -> None:
    body = get_page(server, "/")
    assert "The catalogue is empty." in body
    assert "No changes yet." in body


def test_a_collection_is_listed_completely_with_pagination(sample: Server) -> None:
    path, names = "/browse/concept", list[str]()
    while path:
        body = get_page(sample, path)
        names += re.findall(r'<p class="name"><a [^>]*>(.*?)</a>', body)
        match = re.search(r'rel="next" href="([^"]+)"', body)
        path = unescape(match.group(1)) if match else ""
    assert len(names) == 192
    assert [unescape(name).casefold() for name in names] == sorted(unescape(name).casefold() for name in names)


def test_a_collection_is_listed_from_a_given_name_and_by_class(sample: Server) -> None:
    names = re.findall(
        r'<p class="name"><a [^>]*>(.*?)</a>', get_page(sample, "/browse/concept?from=work&class=ctp_memory")
    )
    assert names == ["working memory", "Zeigarnik effect"]
    assert "46 concepts" in get_page(sample, "/browse/concept?class=ctp_memory")
    assert "No concepts from here on." in get_page(sample, "/browse/concept?from=zz")


def test_an_unknown_class_or_collection_is_reported_with_links_to_existing_ones(sample: Server) -> None:
    for path in ("/browse/concept?class=bogus%3C", "/search?q=memory&class=bogus%3C"):
        body = get_page(sample, path)
        assert "No class <code>bogus&lt;</code>" in body
        assert 'href="/browse/concept_class"' in body
    body = get_page(sample, "/search?q=memory&collection=bogus%3C")
    assert "No collection <code>bogus&lt;</code>" in body
    assert 'href="/search?q=memory&amp;collection=disorder"' in body
    for path in (
        "/browse/concept?class=ctp_memory",
        "/search?q=memory&collection=task&class=language",
        "/search?q=memory&collection=task&class=ctp_memory",
        "/search?q=x",
    ):
        assert "There is no" not in get_page(sample, path)


def test_a_list_of_one_class_links_to_the_hierarchy_of_all_classes(sample: Server) -> None:
    assert ">Show hierarchy<" in get_page(sample, "/browse/concept")
    assert ">Show hierarchy (all classes)<" in get_page(sample, "/browse/concept?class=ctp_memory")


def test_the_tree_links_to_records_outside_of_the_hierarchy(sample: Server) -> None:
    match = re.search(
        r'href="([^"]+)">(\d+) concepts not in the hierarchy</a>', get_page(sample, "/browse/concept/tree")
    )
    assert match
    list_page = get_page(sample, unescape(match[1]))
    assert f"{match[2]} records" in list_page
    assert re.findall(r'</a> <span class="faint small">(\w+),', list_page) == ["concept"] * int(match[2])
    assert "not in the hierarchy" not in get_page(sample, "/browse/disorder/tree"), "of those all are in it"


def test_records_in_a_cycle_are_linked_from_the_tree(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "concept.csv"
    file.write_text("id,name,KINDOF,PARTOF\ntrm_1,one,trm_2,\ntrm_2,two,,trm_1\ntrm_3,three,trm_1,\ntrm_4,four,,\n")
    database = Database(server.url)
    import_files(database, [file])
    database.close()
    body = get_page(server, "/browse/concept/tree")
    assert "1 concept not in the hierarchy" in body
    circle = body.partition("Cycles")[2]
    assert [name in circle for name in (">one<", ">two<", ">three<", ">four<")] == [True, True, False, False]
    assert ">three<" in get_page(server, "/browse/concept/tree/trm_1")
    assert "Cycles" not in get_page(server, "/browse/disorder/tree")


def test_a_citation_uses_the_request_host_unless_a_base_url_is_configured(
    sample: Server, sample_url: DatabaseUrlFactory
) -> None:
    assert f"http://127.0.0.1:{sample.port}/id/{WORKING_MEMORY}" in extract_citation(
        get_page(sample, f"/id/{WORKING_MEMORY}")
    )
    headers = {"Accept": "text/html", "Host": "terms.example.org"}
    body = sample.request("GET", f"/id/{WORKING_MEMORY}", headers).body.decode()
    assert extract_citation(body).count(f"http://terms.example.org/id/{WORKING_MEMORY}") == 3
    turtle = sample.get(f"/id/{WORKING_MEMORY}?format=turtle", Host="terms.example.org").body.decode()
    assert f"<http://terms.example.org/id/{WORKING_MEMORY}>" in turtle
    with Server(sample_url("sqlite"), LEXARIUM_BASE="https://example.org/terms") as configured_server:
        body = get_page(configured_server, f"/id/{WORKING_MEMORY}")
        assert extract_citation(body).count(f"https://example.org/terms/id/{WORKING_MEMORY}") == 2


def extract_citation(body: str) -> str:
    """Return the citation on a record page."""
    return body.partition("Cite this")[2].partition("Download")[0]


def test_an_invalid_browse_request_is_reported(sample: Server) -> None:
    assert "Collection" in get_page(sample, "/browse/nothing", 404)
    assert "has no hierarchy" in get_page(sample, "/browse/contrast/tree", 404)
    assert "of the cursor not found" in get_page(sample, "/browse/task?after=nobody%00", 404)
    assert get_page(sample, "/browse/task?from=%00")


def test_a_level_of_the_tree_is_an_html_fragment(sample: Server) -> None:
    tree_page = get_page(sample, "/browse/concept/tree")
    level = re.search(r'data-level="([^"]+)">\s*<summary><span class="unseen">Children of memory<', tree_page)
    assert level
    fragment = get_page(sample, level.group(1))
    assert fragment.strip().startswith("<ul>")
    assert "working memory" in fragment
    below = get_page(sample, f"/browse/concept/tree?at={WORKING_MEMORY}")
    assert "Children of working memory" in below
    assert "central executive" in below


def test_a_record_page_shows_all_details(sample: Server) -> None:
    body = get_page(sample, f"/id/{WORKING_MEMORY}")
    for expected in (
        '<h1 lang="en">working memory</h1>',
        "WM",
        "Learning and memory",
        "has part",
        "central executive",
        "7 April 2026",
        "@misc{",
        f"/api/v1/concept/{WORKING_MEMORY}",
        "Version 1",
        "<svg",
    ):
        assert expected in body
    assert body.count('href="/id/trm_') > 10


def test_old_record_urls_redirect_to_the_page(sample: Server) -> None:
    for path in (f"/concept/id/{WORKING_MEMORY}", f"/concept/id/{WORKING_MEMORY}/"):
        response = fetch(sample, path)
        assert (response.status, response.headers["location"]) == (303, f"/id/{WORKING_MEMORY}")


def test_an_unknown_record_gets_a_404_page(sample: Server) -> None:
    for identifier in ("trm_nothing", "%00", "a%2Fb"):
        assert "not found" in get_page(sample, f"/id/{identifier}", 404)


def test_a_result_shows_the_matching_alias(sample: Server) -> None:
    body = get_page(sample, "/search?q=wm")
    assert "also called <em><mark>WM</mark></em>" in body


def test_a_misspelled_query_gets_a_suggestion(sample: Server) -> None:
    body = get_page(sample, "/search?q=wrking+memry")
    assert 'Did you mean <a href="/search?q=working+memory">working memory</a>?' in body


def test_facets_narrow_and_widen_a_search(sample: Server) -> None:
    body = get_page(sample, "/search?q=memory&collection=task")
    assert "among tasks" in body
    assert 'href="/search?q=memory&amp;collection=concept"' in body
    assert 'href="/search?q=memory">any</a>' in body


def test_search_results_are_paginated(sample: Server) -> None:
    assert 'rel="next" href="/search?offset=20&amp;q=e"' in get_page(sample, "/search?q=e")
    assert (
        "offset" not in (re.search(r'rel="prev" href="([^"]+)"', get_page(sample, "/search?q=e&offset=20")) or [""])[1]
    )
    assert get_page(sample, "/search?q=e&offset=99999")


def test_hostile_text_is_escaped(server: Server) -> None:
    token, hostile_text = server.create_token("curator"), "<script>alert('x')</script>\"&'"
    draft = {
        "name": hostile_text,
        "definition_text": f"{hostile_text} memory",
        "aliases": [{"text": f"{hostile_text} b"}],
        "sources": [hostile_text],
    }
    record = server.post_json("/api/v1/concept", draft, token).json
    for path in (
        "/",
        "/browse/concept",
        f"/id/{record['id']}",
        "/search?q=script",
        f"/search?q={hostile_text}".replace(" ", "+"),
        "/changes",
    ):
        assert "<script>alert" not in get_page(server, path.replace("<", "%3C").replace("'", "%27").replace('"', "%22"))
    assert "<script>alert" not in post_annotate(server, f"{hostile_text} {hostile_text} b").body.decode()


def post_annotate(server: Server, text: str, **fields: str) -> HttpResponse:
    form = urlencode({"text": text, **fields})
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
    return server.request("POST", "/annotate", headers, form)


TEXT = "Working memory, arousal\r\n\r\nand Working memory updating."


def test_terms_are_highlighted_in_a_text_and_counted(sample: Server) -> None:
    body = post_annotate(sample, TEXT).body.decode()
    assert "3 mentions, 4 terms" in body
    assert f'href="/id/{WORKING_MEMORY}" title="working memory, concept">Working memory</a>, ' in body
    assert ">Working memory updating</a>." in body
    assert "arousal<sup>2</sup></a>\n\nand " in body


def test_terms_of_a_text_can_be_downloaded_as_csv_or_json(sample: Server) -> None:
    csv = post_annotate(sample, TEXT, format="csv")
    assert csv.headers["content-disposition"] == 'attachment; filename="terms.csv"'
    assert csv.body.decode().splitlines()[1] == f"0,14,Working memory,{WORKING_MEMORY},working memory,concept"
    document = json.loads(post_annotate(sample, TEXT, format="json").body)
    assert [annotation["start"] for annotation in document["annotations"]] == [0, 16, 16, 29]


def test_a_cross_site_form_is_rejected(sample: Server) -> None:
    for headers in ({"Origin": "https://example.org"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        form = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        response = sample.request("POST", "/annotate", form, "text=memory")
        assert response.status == 403
        assert "Cross-site form rejected" in response.json["detail"]


def test_objects_loaded_at_start_are_excluded_from_garbage_collection(url: str) -> None:
    app: Any = create_app(Settings(database=url), Database(url))  # the app closes it
    while not isinstance(app, Starlette):
        app = app._app

    async def count_frozen() -> int:
        async with app.router.lifespan_context(app):
            return gc.get_freeze_count()

    try:
        assert asyncio.run(count_frozen()) > 10_000
    finally:
        gc.unfreeze()


def test_statistics_are_updated_with_every_change(server: Server) -> None:
    token = server.create_token("curator")
    top = server.post_json("/api/v1/concept", {"name": "top", "definition_text": "What is above."}, token).json
    assert count_gaps(server) == {"undefined": 0, "placeholder": 0, "repeated": 0, "apart": 1}
    below = {"name": "Top", "definition_text": "TBD", "relations": {"KINDOF": [top["id"]]}}
    record = server.post_json("/api/v1/concept", below, token).json
    assert count_gaps(server) == {"undefined": 0, "placeholder": 1, "repeated": 2, "apart": 0}
    assert record["id"] in get_page(server, "/statistics/gaps/placeholder")
    send_change(server, token, "PATCH", record["id"], {"definition_text": "", "name": "below"})
    assert count_gaps(server) == {"undefined": 1, "placeholder": 0, "repeated": 0, "apart": 0}
    assert re.search(
        r'>top</a>\s+<span class="faint small">1<span class="unseen"> child<', get_page(server, "/browse/concept/tree")
    )
    send_change(server, token, "DELETE", record["id"])
    assert count_gaps(server) == {"undefined": 0, "placeholder": 0, "repeated": 0, "apart": 1}
    assert "1 concept, " not in get_page(server, "/statistics")


def count_gaps(server: Server) -> dict[str, int]:
    rows = re.findall(r'gaps/(\w+)"><strong>(\d+)<', get_page(server, "/statistics"))
    return {name: int(count) for name, count in rows}


def send_change(
    server: Server, token: str, method: str, identifier: str, body: object = None, *, query: str = ""
) -> HttpResponse:
    headers = {"Authorization": f"Bearer {token}", "If-Match": "*", "Content-Type": "application/json"}
    target = f"/api/v1/concept/{identifier}{query}"
    response = server.request(method, target, headers, None if body is None else json.dumps(body))
    assert response.status == 200, response.body
    return response


def test_a_history_shows_word_diffs(server: Server) -> None:
    token = server.create_token("curator")
    record = server.post_json("/api/v1/concept", {"name": "a", "definition_text": "One small step."}, token).json
    send_change(server, token, "PATCH", record["id"], {"definition_text": "One giant step."})
    body = get_page(server, f"/id/{record['id']}")
    assert "One <del>small</del><ins>giant</ins> step." in body
    for number in range(60):
        send_change(server, token, "PATCH", record["id"], {"name": f"a{number}"})
    assert "All 62 versions" in get_page(server, f"/id/{record['id']}")
    history_page = get_page(server, f"/id/{record['id']}/history")
    assert "Version 13<" in history_page
    assert "Version 12<" not in history_page
    assert "Version 1<" in get_page(server, f"/id/{record['id']}/history?before=13")


def test_a_retired_record_links_to_its_replacement_and_a_merged_one_redirects_to_it(server: Server) -> None:
    token = server.create_token("curator")
    ids = [server.post_json("/api/v1/concept", {"name": name}, token).json["id"] for name in ("old", "new", "same")]
    send_change(server, token, "DELETE", ids[0], query=f"?replaced_by={ids[1]}")
    body = get_page(server, f"/id/{ids[0]}", 410)
    assert f'Replaced by: <a href="/id/{ids[1]}">new</a>' in body
    send_change(server, token, "POST", f"{ids[2]}/merge", {"into": ids[1]})
    response = fetch(server, f"/id/{ids[2]}")
    assert (response.status, response.headers["location"]) == (308, f"/id/{ids[1]}")
    assert f'<a href="/id/{ids[1]}">new</a>' in get_page(server, "/browse/concept?state=retired")
    results_page = get_page(server, "/search?q=old&gone=1")
    assert "Retired." in results_page
    assert f'Replaced by: <a href="/id/{ids[1]}">new</a>' in results_page
