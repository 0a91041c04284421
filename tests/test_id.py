"""Records at their own addresses: the form that suits the client, what is gone, and the addresses that papers name."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexarium.web.iris import MEDIA_TYPES
from lexarium.web.negotiation import preferred
from tests.databases import ENGINES, NewUrl
from tests.server import Answer, Server

BASE = "https://terms.example.org/"
TYPES = list(MEDIA_TYPES.values())


@dataclass
class Catalogue:
    """Some records on a server that is known to the world by another address."""

    server: Server
    token: str
    ids: dict[str, str]

    def send(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", "If-Match": "*"}
        answer = self.server.request(method, f"/api/v1{path}", headers, None if body is None else json.dumps(body))
        assert answer.status < 300, answer.body
        return answer.json

    def make(self, collection: str, **fields: Any) -> str:
        return str(self.send("POST", f"/{collection}", fields)["id"])

    def get(self, name: str, query: str = "", **headers: str) -> Answer:
        return self.server.get(f"/id/{self.ids[name]}{query}", **headers)


@pytest.fixture(scope="module", params=ENGINES)
def catalogue(request: pytest.FixtureRequest, new_url: NewUrl) -> Iterator[Catalogue]:
    variables = {"LEXARIUM_BASE": BASE, "LEXARIUM_TITLE": "Ours & <theirs>", "LEXARIUM_LICENCE": "CC0-1.0"}
    with Server(new_url(request.param), **variables) as server:
        made = Catalogue(server, server.token("curator"), {})
        ids = made.ids
        ids["class"] = made.make("concept_class", name="Memory")
        ids["parent"] = made.make("concept", name="memory")
        ids["record"] = made.make(
            "concept",
            name="working <memory>",
            definition_text='Keeps "things"\nin mind.',
            id_concept_class=ids["class"],
            aliases=[{"text": "WM & co"}, {"text": "Arbeitsgedächtnis", "lang": "de"}],
            sources=["https://doi.org/10.1000/1"],
            relations={"KINDOF": [ids["parent"]], "exactMatch": ["DOID:1", "https://example.org/1"]},
        )
        ids["child"] = made.make("concept", name="verbal working memory", relations={"KINDOF": [ids["record"]]})
        for name in ("retired", "replaced", "merged"):
            ids[name] = made.make("concept", name=name)
        made.send("DELETE", f"/concept/{ids['retired']}")
        made.send("DELETE", f"/concept/{ids['replaced']}?replaced_by={ids['record']}")
        made.send("POST", f"/concept/{ids['merged']}/merge", {"into": ids["parent"]})
        yield made


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
def test_the_form_is_the_one_that_the_client_likes_best(accept: str, expected: str | None) -> None:
    assert preferred(accept, TYPES) == expected


@given(st.text())
def test_any_accept_gets_a_form_or_none(accept: str) -> None:
    assert preferred(accept, TYPES) in (None, *TYPES)


def test_a_page_shows_the_record_and_links_what_it_is_related_to(catalogue: Catalogue) -> None:
    ids = catalogue.ids
    answer = catalogue.get("record", Accept="text/html")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    text = answer.body.decode()
    for shown in (
        "working &lt;memory&gt;", "Keeps &#34;things&#34;<br>in mind.", "WM &amp; co", "Arbeitsgedächtnis", "has kind",
        f'href="/id/{ids["parent"]}"', f'href="/id/{ids["child"]}"', ids["class"], "DOID:1",
        '<a href="https://example.org/1"', '<a href="https://doi.org/10.1000/1"', f"{BASE}id/{ids['record']}",
        "CC0-1.0", "Ours &amp; &lt;theirs&gt;",
    ):  # fmt: skip
        assert shown in text
    assert "<memory>" not in text


def test_json_is_the_record_with_its_relations_both_ways(catalogue: Catalogue) -> None:
    ids = catalogue.ids
    told = catalogue.get("record", "?format=json").json
    v1 = catalogue.server.get(f"/api/v1/concept/{ids['record']}").json
    assert {**told, "relations": v1["relations"]} == {**v1, "iri": f"{BASE}id/{ids['record']}"}
    both = catalogue.server.get(f"/api/v1/concept/{ids['record']}/relations").json["items"]
    assert told["relations"] == both
    assert {item["id"] for item in both} == {ids["parent"], ids["child"], "DOID:1", "https://example.org/1"}


@pytest.mark.parametrize(
    ("media_type", "syntax"),
    [("application/ld+json", pyoxigraph.RdfFormat.JSON_LD), ("text/turtle", pyoxigraph.RdfFormat.TURTLE)],
)
def test_rdf_tells_the_record_under_its_iri(
    catalogue: Catalogue, media_type: str, syntax: pyoxigraph.RdfFormat
) -> None:
    answer = catalogue.get("record", Accept=media_type)
    assert answer.headers["content-type"].partition(";")[0] == media_type
    found = {
        (quad.subject.value, quad.predicate.value.rpartition("#")[2], quad.object.value)
        for quad in pyoxigraph.parse(answer.body, syntax)
    }
    own, parent, child = (f"{BASE}id/{catalogue.ids[name]}" for name in ("record", "parent", "child"))
    assert (own, "prefLabel", "working <memory>") in found
    assert {(own, "broader", parent), (child, "broader", own), (parent, "prefLabel", "memory")} <= found


@pytest.mark.parametrize("name", MEDIA_TYPES)
def test_every_form_is_known_again_and_can_be_asked_for_by_name(catalogue: Catalogue, name: str) -> None:
    answer = catalogue.get("record", f"?format={name}", Accept="image/png")
    assert answer.status == 200
    assert answer.headers["vary"] == "Accept, Accept-Encoding"
    assert answer.headers["access-control-allow-origin"] == "*"
    etag = answer.headers["etag"]
    again = catalogue.get("record", f"?format={name}", If_None_Match=etag)
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
    zipped = catalogue.get("record", f"?format={name}", Accept_Encoding="gzip")
    assert gzip.decompress(zipped.body) == answer.body
    assert zipped.headers["etag"] != etag
    head = catalogue.server.request("HEAD", f"/id/{catalogue.ids['record']}?format={name}")
    assert (head.status, head.body, head.headers["etag"]) == (200, b"", etag)
    assert head.headers["content-type"] == answer.headers["content-type"]
    others = {catalogue.get("record", f"?format={other}").headers["etag"] for other in MEDIA_TYPES}
    assert len(others) == len(MEDIA_TYPES)


def test_an_etag_holds_until_what_is_shown_changes(catalogue: Catalogue) -> None:
    etag = catalogue.get("parent", "?format=json").headers["etag"]
    catalogue.send("PATCH", f"/concept/{catalogue.ids['child']}", {"definition_text": "Of words."})
    assert catalogue.get("parent", "?format=json", If_None_Match=etag).status == 304
    catalogue.send("PATCH", f"/concept/{catalogue.ids['record']}", {"sources": ["https://doi.org/10.1000/1"]})
    catalogue.send("PATCH", f"/concept/{catalogue.ids['parent']}", {"definition_text": "Of what was."})
    assert catalogue.get("parent", "?format=json", If_None_Match=etag).status == 200


def test_what_is_not_spoken_is_answered_with_what_is(catalogue: Catalogue) -> None:
    for answer in (catalogue.get("record", Accept="image/png"), catalogue.get("record", "?format=pdf")):
        assert answer.status == 406
        assert answer.headers["vary"] == "Accept, Accept-Encoding"
        assert all(f"{name} ({kind})" in answer.json["detail"] for name, kind in MEDIA_TYPES.items())


def test_a_retired_record_is_gone_and_tells_what_to_use_instead(catalogue: Catalogue) -> None:
    for name, stand_in in (("retired", None), ("replaced", catalogue.ids["record"])):
        told = catalogue.get(name, Accept="application/ld+json")
        assert (told.status, told.json["replaced_by"]) == (410, stand_in)
        page = catalogue.get(name)
        assert (page.status, page.headers["content-type"]) == (410, "text/html; charset=utf-8")
        assert (f'<a href="/id/{catalogue.ids["record"]}">' in page.body.decode()) == (stand_in is not None)


def test_a_merged_record_leads_to_its_survivor(catalogue: Catalogue) -> None:
    answer = catalogue.get("merged", "?format=turtle")
    assert answer.status == 308
    assert answer.headers["location"] == f"/id/{catalogue.ids['parent']}?format=turtle"


def test_what_was_never_there_is_not_found(catalogue: Catalogue) -> None:
    for identifier in ("trm_none", "a%00b", "a/b", "%3Cscript%3E"):
        page = catalogue.server.get(f"/id/{identifier}")
        assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert b"<script>" not in page.body
        told = catalogue.server.get(f"/id/{identifier}", Accept="application/json")
        assert (told.status, told.headers["content-type"]) == (404, "application/problem+json")
    assert catalogue.server.request("POST", "/id/trm_none").status == 405


@pytest.mark.parametrize("kind", ["concept", "task", "disorder"])
def test_the_addresses_that_papers_name_lead_to_the_records_own(catalogue: Catalogue, kind: str) -> None:
    for name in ("record", "retired", "merged"):
        identifier = catalogue.ids[name]
        for end in ("", "/"):
            answer = catalogue.server.get(f"/{kind}/id/{identifier}{end}?format=json")
            assert (answer.status, answer.headers["location"]) == (303, f"/id/{identifier}?format=json")
    assert catalogue.server.get(f"/{kind}/id/trm_none").status == 404


def test_openrefine_is_told_the_iris_and_shown_the_pages(catalogue: Catalogue) -> None:
    told = catalogue.server.get("/reconcile").json
    assert told["identifierSpace"] == f"{BASE}id/"
    address = told["view"]["url"].replace("{{id}}", catalogue.ids["record"])
    assert catalogue.server.get(address.partition(f":{catalogue.server.port}")[2]).status == 200


def test_the_scheme_of_a_collection_leads_to_its_page(catalogue: Catalogue) -> None:
    answer = catalogue.server.get("/disorder")
    assert (answer.status, answer.headers["location"]) == (303, "/browse/disorder")
    assert catalogue.server.get("/browse/disorder", Accept="text/html").status == 200


def test_the_terms_of_our_own_vocabulary_are_told_where_their_iris_lead(catalogue: Catalogue) -> None:
    used = set()
    record = catalogue.get("record", "?format=turtle").body
    for quad in pyoxigraph.parse(record, pyoxigraph.RdfFormat.TURTLE):
        used |= {node.value for node in (quad.predicate, quad.object) if isinstance(node, pyoxigraph.NamedNode)}
    own = {name for name in used if name.startswith(f"{BASE}vocabulary#")}
    assert {f"{BASE}vocabulary#Collection", f"{BASE}vocabulary#class"} <= own
    for accept, syntax in (
        ("text/turtle", pyoxigraph.RdfFormat.TURTLE),
        ("application/ld+json", pyoxigraph.RdfFormat.JSON_LD),
    ):
        answer = catalogue.server.get("/vocabulary", Accept=accept)
        assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, accept)
        assert own <= {
            quad.subject.value
            for quad in pyoxigraph.parse(answer.body, syntax)
            if isinstance(quad.subject, pyoxigraph.NamedNode)
        }
        assert catalogue.server.get("/vocabulary", Accept=accept, If_None_Match=answer.headers["etag"]).status == 304
    page = catalogue.server.get("/vocabulary", Accept="text/html")
    assert page.status == 200
    assert b'id="hasContrast"' in page.body
    assert catalogue.server.get("/vocabulary?format=csv").status == 406
