"""Pages of terms: paths, tree, details, versions, and texts of other people."""

import gzip
import re
from html import unescape
from pathlib import Path

import pytest

from lexarium.domain.text.markup import decode_entities, split_emphasis
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.store.database import Database
from tests.support.server import HttpResponse, Server
from tests.support.v1_client import V1Client

UPDATING, WORKING_MEMORY, N_BACK = "trm_f12912f5f9d1c", "trm_606958d85e21c", "trm_49ee3f4f0d02e"
HTML = {"Accept": "text/html"}


def fetch(server: Server, path: str, **headers: str) -> HttpResponse:
    return server.request("GET", path, headers={**HTML, **headers})


def get_page(server: Server, path: str) -> str:
    return unescape(fetch(server, path).body.decode())


@pytest.fixture(scope="module")
def curator(shared_server: Server) -> V1Client:
    return V1Client(shared_server, "curator")


def test_a_term_shows_each_path_to_a_root_and_the_surrounding_tree(sample: Server) -> None:
    body = get_page(sample, f"/id/{UPDATING}")
    paths = re.findall(r'<ol class="path">(.*?)</ol>', body)
    assert [re.findall(r">([^<]+)</a>", path)[-1] for path in paths] == ["executive control", "working memory"]
    assert "1 more path" in body
    tree = body.partition('aria-label="Hierarchy"')[2].partition("</nav>")[0]
    assert '<strong aria-current="page">updating</strong>' in tree
    assert "inhibition" in tree, "siblings are shown"
    assert 'aria-label="Hierarchy"' not in get_page(sample, f"/id/{N_BACK}"), "it is in no hierarchy"


def test_paths_and_trees_of_records_in_a_cycle_are_finite(shared_server: Server, tmp_path: Path) -> None:
    file = tmp_path / "concept.csv"
    file.write_text("id,name,KINDOF\ntrm_1,ring one,trm_2\ntrm_2,ring two,trm_3\ntrm_3,ring three,trm_1\n")
    database = Database(shared_server.url)
    import_files(database, [file])
    database.close()
    body = get_page(shared_server, "/id/trm_1")
    [path] = re.findall(r'<ol class="path">(.*?)</ol>', body)
    assert re.findall(r">([^<]+)</a>", path) == ["ring three", "ring two"]


def test_long_groups_are_collapsed(curator: V1Client, shared_server: Server) -> None:
    parent = curator.create(name="many kinds")["id"]
    for number in range(14):
        curator.create(name=f"kind {number:02}", relations={"KINDOF": [parent]})
    body = get_page(shared_server, f"/id/{parent}")
    first, _, folded = body.partition("Show 2 more")
    assert "kind 11" in first
    assert "kind 13" in folded


def test_records_with_the_same_name_link_to_each_other(curator: V1Client, shared_server: Server) -> None:
    ids = [curator.create(collection, name="Twin  name")["id"] for collection in ("concept", "task")]
    body = get_page(shared_server, f"/id/{ids[0]}")
    line = body.partition("Also named so:")[2].partition("</p>")[0]
    assert f'href="/id/{ids[1]}"' in line
    assert "task" in line
    assert ids[0] not in line


def test_each_version_has_a_permanent_link(curator: V1Client, shared_server: Server) -> None:
    record = curator.create(name="first wording", definition_text="Once.")
    record_id = record["id"]
    curator.patch(record, name="second wording")
    current = get_page(shared_server, f"/id/{record_id}")
    assert f"/id/{record_id}?version=1" in current
    assert f"/id/{record_id}?version=2" in current, "that of the shown version is among the citations"
    past = get_page(shared_server, f"/id/{record_id}?version=1")
    assert ">first wording</h1>" in past
    assert re.search(rf'<link rel="canonical" href="http://[^"]+/id/{record_id}">', past)
    assert "View the current version" in past
    assert fetch(shared_server, f"/id/{record_id}?version=9").status == 404
    assert curator.send("DELETE", f"concept/{record_id}", If_Match="*").status == 200
    assert fetch(shared_server, f"/id/{record_id}").status == 410
    assert fetch(shared_server, f"/id/{record_id}?version=1").status == 200


def test_a_term_is_shown_as_of_a_release(curator: V1Client, shared_server: Server) -> None:
    record = curator.create(name="released wording")
    assert curator.send("POST", "releases", {"name": "2026.1"}).status == 201
    curator.patch(record, name="later wording")
    body = get_page(shared_server, f"/id/{record['id']}?release=2026.1")
    assert ">released wording</h1>" in body
    assert "As in release" in body
    assert fetch(shared_server, f"/id/{record['id']}?release=none").status == 404
    later = curator.create(name="not released")
    assert fetch(shared_server, f"/id/{later['id']}?release=2026.1").status == 404


def test_entities_emphasis_and_placeholders_are_rendered_but_stored_unchanged(
    curator: V1Client, shared_server: Server
) -> None:
    record = curator.create(name="a &#34;quoted&#34; name", definition_text="It is *very* short: 2 * 3 * 4 &amp; more.")
    response = fetch(shared_server, f"/id/{record['id']}")
    body = response.body.decode()
    assert ">a &#34;quoted&#34; name</h1>" in body, "escaped once"
    assert "It is <em>very</em> short: 2 * 3 * 4 &amp; more." in body
    stored = shared_server.get(f"/api/v1/concept/{record['id']}").json
    assert stored["name"] == "a &#34;quoted&#34; name"
    placeholder = curator.create(name="to do", definition_text="WRITE DEFINITION HERE")
    assert "No definition yet." in get_page(shared_server, f"/id/{placeholder['id']}")


def test_authors_are_shown_by_name_instead_of_id(sample: Server) -> None:
    for record_id in (UPDATING, WORKING_MEMORY, N_BACK):
        text = re.sub(r"<[^>]*>", " ", get_page(sample, f"/id/{record_id}"))
        assert "usr_" not in text


def test_pages_and_scripts_are_small(sample: Server) -> None:
    response = fetch(sample, f"/id/{WORKING_MEMORY}")
    assert len(gzip.compress(response.body)) < 100_000
    scripts = set(re.findall(r'src="(/static/[^"]+\.js[^"]*)"', response.body.decode()))
    assert sum(len(sample.get(unescape(script)).body) for script in scripts) < 40_000


def test_a_merge_moves_sources_and_undoing_it_moves_them_back(curator: V1Client) -> None:
    survivor = curator.create(name="kept", sources=["PMID:1"])
    merged = curator.create(name="given up", sources=["PMID:1", "PMID:2"])
    assert curator.send("POST", f"concept/{merged['id']}/merge", {"into": survivor["id"]}, If_Match="*").status == 200
    assert curator.send("GET", f"concept/{survivor['id']}").json["sources"] == ["PMID:1", "PMID:2"]
    assert curator.send("POST", f"concept/{merged['id']}/revert", {"version": 1}, If_Match="*").status == 200
    assert curator.send("GET", f"concept/{survivor['id']}").json["sources"] == ["PMID:1"]


def test_annotation_with_json_is_allowed_cross_origin(sample: Server) -> None:
    headers = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    response = sample.request("OPTIONS", "/api/v1/annotate", headers=headers)
    assert "POST" in response.headers["access-control-allow-methods"]
    assert "Content-Type" in response.headers["access-control-allow-headers"]
    others = sample.request("OPTIONS", "/api/v1/concept", headers=headers).headers
    assert "POST" not in others["access-control-allow-methods"], "writes need a token, which scripts may not send"


def test_derived_iris_begin_with_the_host_of_the_request(sample: Server) -> None:
    headers = {"Host": "terms.example.org", "Accept": "application/json"}
    for path, key, expected in (
        (f"/api/v1/concept/{UPDATING}", "iri", f"http://terms.example.org/id/{UPDATING}"),
        (f"/id/{UPDATING}", "iri", f"http://terms.example.org/id/{UPDATING}"),
        ("/reconcile", "identifierSpace", "http://terms.example.org/id/"),
    ):
        assert sample.request("GET", path, headers=headers).json[key] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("&#34;x&#x27; &lt;b&gt;", "\"x' <b>"), ("a?b=1&copy=2 &copy; &", "a?b=1&copy=2 &copy; &"), ("plain", "plain")],
)
def test_only_common_entities_are_decoded(text: str, expected: str) -> None:
    assert decode_entities(text) == expected


@pytest.mark.parametrize(
    ("text", "emphasized"),
    [("*n* back, (*two words*)", ["n", "two words"]), ("2 * 3 * 4, p*q*r, **, * a*", []), ("a line*\nb*", [])],
)
def test_only_valid_emphasis_is_recognized(text: str, emphasized: list[str]) -> None:
    parts = list(split_emphasis(text))
    assert [part for part, is_emphasized in parts if is_emphasized] == emphasized
