"""Record IRIs: content negotiation, retired and merged records, published IRIs."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexarium.web.http.negotiation import choose_media_type
from lexarium.web.record_endpoint import MEDIA_TYPES
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.server import HttpResponse, Server

BASE = "https://terms.example.org/"
TYPES = list(MEDIA_TYPES.values())


@dataclass
class SampleCatalogue:
    """Records on a server with a public base URL."""

    server: Server
    token: str
    ids: dict[str, str]

    def send(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", "If-Match": "*"}
        response = self.server.request(method, f"/api/v1{path}", headers, None if body is None else json.dumps(body))
        assert response.status < 300, response.body
        return response.json

    def create(self, collection: str, **fields: Any) -> str:
        return str(self.send("POST", f"/{collection}", fields)["id"])

    def get(self, name: str, query: str = "", **headers: str) -> HttpResponse:
        return self.server.get(f"/id/{self.ids[name]}{query}", **headers)


@pytest.fixture(scope="module", params=ENGINES)
def catalogue(request: pytest.FixtureRequest, new_url: DatabaseUrlFactory) -> Iterator[SampleCatalogue]:
    variables = {"LEXARIUM_BASE": BASE, "LEXARIUM_TITLE": "Ours & <theirs>", "LEXARIUM_LICENCE": "CC0-1.0"}
    with Server(new_url(request.param), **variables) as server:
        sample = SampleCatalogue(server, server.create_token("curator"), {})
        ids = sample.ids
        ids["class"] = sample.create("concept_class", name="Memory")
        ids["parent"] = sample.create("concept", name="memory")
        ids["record"] = sample.create(
            "concept",
            name="working <memory>",
            definition_text='Keeps "things"\nin mind.',
            id_concept_class=ids["class"],
            aliases=[{"text": "WM & co"}, {"text": "Arbeitsgedächtnis", "lang": "de"}],
            sources=["https://doi.org/10.1000/1"],
            relations={"KINDOF": [ids["parent"]], "exactMatch": ["DOID:1", "https://example.org/1"]},
        )
        ids["child"] = sample.create("concept", name="verbal working memory", relations={"KINDOF": [ids["record"]]})
        for name in ("retired", "replaced", "merged"):
            ids[name] = sample.create("concept", name=name)
        sample.send("DELETE", f"/concept/{ids['retired']}")
        sample.send("DELETE", f"/concept/{ids['replaced']}?replaced_by={ids['record']}")
        sample.send("POST", f"/concept/{ids['merged']}/merge", {"into": ids["parent"]})
        yield sample


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", "text/html"),
        ("*/*", "text/html"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
        ("application/json", "application/json"),
        ("application/*", "application/json"),
        ("text/*;q=0.5, application/ld+json;q=0.4", "text/html"),
        ("text/turtle, text/*;q=0.1", "text/turtle"),
        ("text/turtle;q=0.9, application/ld+json", "application/ld+json"),
        ('application/ld+json;profile="http://www.w3.org/ns/json-ld#compacted"', "application/ld+json"),
        ("TEXT/Turtle ; Q=1", "text/turtle"),
        ("text/html;q=0, */*", "application/json"),
        ("text/html;q=nonsense, text/turtle;q=0.1", "text/turtle"),
        ("image/png", None),
        ("*/*;q=0", None),
    ],
)
def test_the_media_type_preferred_by_the_client_is_chosen(accept: str, expected: str | None) -> None:
    assert choose_media_type(accept, TYPES) == expected


@given(st.text())
def test_any_accept_header_selects_an_offered_media_type_or_none(accept: str) -> None:
    assert choose_media_type(accept, TYPES) in (None, *TYPES)


def test_a_page_shows_the_record_and_links_to_related_records(catalogue: SampleCatalogue) -> None:
    ids = catalogue.ids
    response = catalogue.get("record", Accept="text/html")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    text = response.body.decode()
    for expected in (
        "working &lt;memory&gt;", "Keeps &#34;things&#34;<br>in mind.", "WM &amp; co", "Arbeitsgedächtnis", "has kind",
        f'href="/id/{ids["parent"]}"', f'href="/id/{ids["child"]}"', ids["class"], "DOID:1",
        '<a href="https://example.org/1"', '<a href="https://doi.org/10.1000/1"', f"{BASE}id/{ids['record']}",
        "CC0-1.0", "Ours &amp; &lt;theirs&gt;",
    ):  # fmt: skip
        assert expected in text
    assert "<memory>" not in text


def test_json_has_the_record_with_relations_in_both_directions(catalogue: SampleCatalogue) -> None:
    ids = catalogue.ids
    data = catalogue.get("record", "?format=json").json
    v1 = catalogue.server.get(f"/api/v1/concept/{ids['record']}").json
    assert {**data, "relations": v1["relations"]} == {**v1, "iri": f"{BASE}id/{ids['record']}"}
    all_relations = catalogue.server.get(f"/api/v1/concept/{ids['record']}/relations").json["items"]
    assert data["relations"] == all_relations
    assert {item["id"] for item in all_relations} == {ids["parent"], ids["child"], "DOID:1", "https://example.org/1"}


@pytest.mark.parametrize(
    ("media_type", "syntax"),
    [("application/ld+json", pyoxigraph.RdfFormat.JSON_LD), ("text/turtle", pyoxigraph.RdfFormat.TURTLE)],
)
def test_rdf_describes_the_record_by_its_iri(
    catalogue: SampleCatalogue, media_type: str, syntax: pyoxigraph.RdfFormat
) -> None:
    response = catalogue.get("record", Accept=media_type)
    assert response.headers["content-type"].partition(";")[0] == media_type
    triples = {
        (quad.subject.value, quad.predicate.value.rpartition("#")[2], quad.object.value)
        for quad in pyoxigraph.parse(response.body, syntax)
    }
    own_iri, parent, child = (f"{BASE}id/{catalogue.ids[name]}" for name in ("record", "parent", "child"))
    assert (own_iri, "prefLabel", "working <memory>") in triples
    assert {(own_iri, "broader", parent), (child, "broader", own_iri), (parent, "prefLabel", "memory")} <= triples


@pytest.mark.parametrize("name", MEDIA_TYPES)
def test_every_media_type_is_revalidated_and_can_be_requested_by_name(catalogue: SampleCatalogue, name: str) -> None:
    response = catalogue.get("record", f"?format={name}", Accept="image/png")
    assert response.status == 200
    is_translated = name in ("html", "json")
    assert response.headers["vary"] == f"Accept, {'Accept-Language, ' if is_translated else ''}Accept-Encoding"
    assert response.headers["access-control-allow-origin"] == "*"
    etag = response.headers["etag"]
    second_response = catalogue.get("record", f"?format={name}", If_None_Match=etag)
    assert (second_response.status, second_response.body, second_response.headers["etag"]) == (304, b"", etag)
    zipped = catalogue.get("record", f"?format={name}", Accept_Encoding="gzip")
    assert gzip.decompress(zipped.body) == response.body
    assert zipped.headers["etag"] != etag
    head = catalogue.server.request("HEAD", f"/id/{catalogue.ids['record']}?format={name}")
    assert (head.status, head.body, head.headers["etag"]) == (200, b"", etag)
    assert head.headers["content-type"] == response.headers["content-type"]
    other_etags = {catalogue.get("record", f"?format={other}").headers["etag"] for other in MEDIA_TYPES}
    assert len(other_etags) == len(MEDIA_TYPES)


def test_an_etag_stays_valid_until_the_shown_content_changes(catalogue: SampleCatalogue) -> None:
    etag = catalogue.get("parent", "?format=json").headers["etag"]
    catalogue.send("PATCH", f"/concept/{catalogue.ids['child']}", {"definition_text": "Of words."})
    assert catalogue.get("parent", "?format=json", If_None_Match=etag).status == 304
    catalogue.send("PATCH", f"/concept/{catalogue.ids['record']}", {"sources": ["https://doi.org/10.1000/1"]})
    catalogue.send("PATCH", f"/concept/{catalogue.ids['parent']}", {"definition_text": "Of what was."})
    assert catalogue.get("parent", "?format=json", If_None_Match=etag).status == 200


def test_an_unsupported_media_type_gets_a_406_that_lists_the_supported_ones(catalogue: SampleCatalogue) -> None:
    for response in (catalogue.get("record", Accept="image/png"), catalogue.get("record", "?format=pdf")):
        assert response.status == 406
        assert response.headers["vary"] == "Accept, Accept-Encoding"
        assert all(f"{name} ({kind})" in response.json["detail"] for name, kind in MEDIA_TYPES.items())


def test_a_retired_record_gets_a_410_with_its_replacement(catalogue: SampleCatalogue) -> None:
    for name, stand_in in (("retired", None), ("replaced", catalogue.ids["record"])):
        response = catalogue.get(name, Accept="application/ld+json")
        assert (response.status, response.json["replaced_by"]) == (410, stand_in)
        page = catalogue.get(name)
        assert (page.status, page.headers["content-type"]) == (410, "text/html; charset=utf-8")
        assert (f'<a href="/id/{catalogue.ids["record"]}">' in page.body.decode()) == (stand_in is not None)


def test_a_merged_record_redirects_to_its_survivor(catalogue: SampleCatalogue) -> None:
    response = catalogue.get("merged", "?format=turtle")
    assert response.status == 308
    assert response.headers["location"] == f"/id/{catalogue.ids['parent']}?format=turtle"


def test_an_unknown_record_gets_a_404(catalogue: SampleCatalogue) -> None:
    for record_id in ("trm_none", "a%00b", "a/b", "%3Cscript%3E"):
        page = catalogue.server.get(f"/id/{record_id}")
        assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert b"<script>" not in page.body
        response = catalogue.server.get(f"/id/{record_id}", Accept="application/json")
        assert (response.status, response.headers["content-type"]) == (404, "application/problem+json")
    assert catalogue.server.request("POST", "/id/trm_none").status == 405


@pytest.mark.parametrize("kind", ["concept", "task", "disorder"])
def test_record_urls_of_the_public_site_redirect_to_the_record_iri(catalogue: SampleCatalogue, kind: str) -> None:
    for name in ("record", "retired", "merged"):
        record_id = catalogue.ids[name]
        for end in ("", "/"):
            response = catalogue.server.get(f"/{kind}/id/{record_id}{end}?format=json")
            assert (response.status, response.headers["location"]) == (303, f"/id/{record_id}?format=json")
    assert catalogue.server.get(f"/{kind}/id/trm_none").status == 404


def test_the_reconciliation_manifest_has_the_iri_space_and_links_to_record_pages(catalogue: SampleCatalogue) -> None:
    data = catalogue.server.get("/reconcile").json
    assert data["identifierSpace"] == f"{BASE}id/"
    record_url = data["view"]["url"].replace("{{id}}", catalogue.ids["record"])
    assert catalogue.server.get(record_url.partition(f":{catalogue.server.port}")[2]).status == 200


def test_the_concept_scheme_of_a_collection_redirects_to_its_page(catalogue: SampleCatalogue) -> None:
    response = catalogue.server.get("/disorder")
    assert (response.status, response.headers["location"]) == (303, "/browse/disorder")
    assert catalogue.server.get("/browse/disorder", Accept="text/html").status == 200
