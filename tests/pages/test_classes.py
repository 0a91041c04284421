"""Pages of all classes of the schema: records, forms, counts and statements that no slot declares."""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from lexarium.domain.schema.collections import MAIN_COLLECTIONS
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.store.database import Database
from tests.support.browserless_client import BrowserlessClient, parse_forms, strip_tags
from tests.support.curated_sample import WORKING_MEMORY
from tests.support.databases import DatabaseUrlFactory
from tests.support.server import Server

N_BACK = "trm_49ee3f4f0d02e"
CITATION = "cit_4f4c964f3ba5b"
HOSTILE = "<script>alert(1)</script>"


def get_page(server: Server, path: str) -> str:
    response = server.get(path, Accept="text/html")
    assert response.status == 200, response.body
    return response.body.decode()


def list_rows(body: str) -> dict[str, str]:
    """Return the text of each value on a record page by its label."""
    rows = re.findall(
        r"<dt[^>]*>(.*?)</dt>\s*<dd>(.*?)(?=</dd>|<dl)", body.replace("</li>", " ").replace("<br>", " "), re.DOTALL
    )
    return {strip_tags(label).strip(): " ".join(strip_tags(value).split()) for label, value in rows}


def load_lines(server: Server, folder: Path, *records: dict[str, Any]) -> None:
    """Import records with all their statements, as an export has them."""
    file = folder / "records.jsonl"
    change = {"version": 1, "write": 1, "at": 1_700_000_000_000, "actor": "usr_0000000000", "action": "create"}
    file.write_text("".join(json.dumps({**change, **record}) + "\n" for record in records))
    database = Database(server.url)
    import_files(database, [file])
    database.close()


@pytest.fixture
def curator(sample: Server) -> BrowserlessClient:
    person = BrowserlessClient(sample)
    person.sign_in("curator")
    return person


# Records


def test_every_class_of_the_sample_has_pages(sample: Server) -> None:
    counts = sample.get("/api/v1").json["counts"]
    for name in MAIN_COLLECTIONS:
        count = counts[name]
        assert count, f"the sample has no {name}"
        body = get_page(sample, f"/browse/{name}")
        record_path = re.search(r'<p class="name"><a href="(/id/[^"]+)"', body)
        assert record_path is not None
        assert f'href="/browse/{name}"' in get_page(sample, record_path[1])


def test_fields_have_the_labels_of_the_schema_in_its_order(sample: Server) -> None:
    body = get_page(sample, f"/id/{CITATION}")
    rows = list_rows(body)
    expected = [
        "authors",
        "published in",
        "date of publication",
        "type of citation",
        "DOI",
        "address of the publication",
    ]
    assert [label for label in rows if label in expected] == expected
    assert rows["published in"] == "Journal of Invented Examples"
    assert '<dt title="Journal or book that it appeared in.">published in</dt>' in body
    assert "No definition" not in body, "citations have none"
    assert "publication title" not in rows, "the record has none"
    assert rows["Added"] == "14 January 2025 by An example contributor"
    assert 'by <a href="/id/usr_8f27b6e04c1ad">' in body


def test_relations_are_shown_at_both_ends(sample: Server) -> None:
    cited_by = list_rows(get_page(sample, f"/id/{CITATION}"))["cited by"]
    for name in ("n-back task", "working memory", "The n-back task measures working memory"):
        assert name in cited_by
    rows = list_rows(get_page(sample, f"/id/{N_BACK}"))
    both = "0-back block has contrast 2-back vs 0-back 2-back block has contrast 2-back vs 0-back"
    assert rows["has condition"] == both, "details are shown with their own relations"
    assert rows["has contrast"].startswith("2-back vs 0-back measures updating, working memory 3-back vs 1-back")
    assert "claim" not in rows["has contrast"], "claims about a contrast are no part of it"
    assert rows["in battery"] == "short executive battery"
    assert rows["run by"] == "n-back in a browser"
    assert rows["predicate of"].startswith("The n-back task measures working memory")
    assert "n-back task" in list_rows(get_page(sample, "/id/tco_b05a9281d1aca"))["contains"]


def test_identifiers_are_links_if_they_are_safe(server: Server, tmp_path: Path) -> None:
    statements = {
        "skos:prefLabel": "links",
        "cogat:doi": "10.5555/a",
        "cogat:citation_pmid": "123",
        "cogat:citation_url": "https://example.org/x?a=1&b=2",
        "cogat:citation_source": "javascript:alert(1)",
        "cogat:citation_authors": "see https://example.org/",
        "skos:exactMatch": [{"ref": "DOID:162"}, {"ref": "nowhere:1"}],
        "rdfs:seeAlso": [{"ref": "javascript:alert(2)"}, {"ref": "https://example.org/y"}],
        "dcterms:source": ["PMID:456", "a book: the first one"],
    }
    load_lines(server, tmp_path, {"collection": "citation", "id": "cit_1", "statements": statements})
    body = get_page(server, "/id/cit_1")
    links = {
        unescape(text): unescape(link) for link, text in re.findall(r'<a href="(http[^"]+)"[^>]*>([^<]*)</a>', body)
    }
    assert links["10.5555/a"] == "https://doi.org/10.5555/a"
    assert links["123"] == "https://pubmed.ncbi.nlm.nih.gov/123/"
    assert links["https://example.org/x?a=1&b=2"] == "https://example.org/x?a=1&b=2"
    assert links["DOID:162"] == "http://purl.obolibrary.org/obo/DOID_162"
    assert links["PMID:456"] == "https://pubmed.ncbi.nlm.nih.gov/456/"
    assert links["https://example.org/y"] == "https://example.org/y"
    assert links["rdfs:seeAlso"] == "http://www.w3.org/2000/01/rdf-schema#seeAlso"
    assert "javascript:alert(1)" in body
    assert not re.search(r'href="(?!/|#|http)', body)
    assert list_rows(body)["authors"] == "see https://example.org/"


def test_statements_that_no_slot_declares_are_shown_with_language_and_qualifiers(
    server: Server, tmp_path: Path
) -> None:
    statements = {
        "skos:prefLabel": "kept",
        "rdf:type": [{"ref": "cogat:Task"}, {"ref": "owl:Class"}, {"ref": "skos:Concept"}],
        "skos:editorialNote": [{"text": f"{HOSTILE} eins", "lang": "de"}, "two\nlines"],
        "https://example.org/terms/weight": [
            {
                "text": "12",
                "qualifiers": {"dcterms:source": f"{HOSTILE} a scale", "prov:wasAttributedTo": {"ref": "trm_2"}},
            }
        ],
        "skos:changeNote": {"node": {"rdf:value": "nested", "dcterms:date": "2020"}},
        "RO:0002211": [{"ref": "trm_2"}, {"ref": "GO:0008150"}],
    }
    load_lines(
        server,
        tmp_path,
        {"collection": "concept", "id": "trm_1", "statements": statements},
        {"collection": "concept", "id": "trm_2", "statements": {"skos:prefLabel": "the other"}},
    )
    body = get_page(server, "/id/trm_1")
    assert "<script>" not in body
    rows = list_rows(body.partition("Other statements")[2])
    assert "eins de" in rows["skos:editorialNote"]
    assert '<span class="lines" lang="de">' in body
    assert rows["https://example.org/terms/weight"].startswith("12")
    assert "a scale" in rows["dcterms:source"]
    assert rows["rdf:value"] == "nested"
    assert rows["regulates"] == "GO:0008150", "a record that is here is among the relations"
    relations = body.partition("<h2>Relations</h2>")[2].partition("</dl>")[0]
    assert 'href="http://purl.obolibrary.org/obo/RO_0002211" rel="external">regulates</a>' in relations
    assert ">the other</a>" in relations
    over = strip_tags(re.findall(r'<p class="over">.*?</p>', body, re.DOTALL)[0]).split()
    assert over == ["concept", "task", "owl:Class"], "its own class is not repeated"
    assert "regulated by" in list_rows(get_page(server, "/id/trm_2"))


def test_a_record_without_a_name_is_shown_with_its_id(server: Server, tmp_path: Path) -> None:
    load_lines(
        server,
        tmp_path,
        {"collection": "concept", "id": "trm_1", "statements": {"skos:broader": {"ref": "trm_2"}}},
        {"collection": "concept", "id": "trm_2", "statements": {"skos:prefLabel": "named"}},
        {"collection": "concept", "id": "trm_3", "statements": {}},
        {"collection": "citation", "id": "cit_1", "statements": {"cogat:citation_desc": "a title"}},
    )
    assert '<h1 lang="en">trm_1</h1>' in get_page(server, "/id/trm_1")
    for path in ("/id/trm_2", "/browse/concept", "/browse/concept/tree?at=trm_2", "/changes?since=0&until=9"):
        assert ">trm_1</a>" in get_page(server, path), path
    body = get_page(server, "/id/cit_1")
    assert '<h1 lang="en">a title</h1>' in body
    assert "publication title" not in list_rows(body), "it is the heading"
    assert 'gaps/repeated"><strong>0<' in get_page(server, "/statistics"), "no name is not the same name"


# Counts


def test_auxiliary_collections_are_listed_separately(sample: Server) -> None:
    for path in ("/vocabularies/main", "/browse?vocabulary=main", "/statistics?vocabulary=main"):
        also_here = re.search(r'<p class="small faint also">Also here: (.*?)</p>', get_page(sample, path), re.DOTALL)
        assert also_here is not None, path
        text = strip_tags(also_here[1])
        assert "3 citations" in text
        assert "1 external dataset," in text
        assert "10 concept classes" in text
        assert "task" not in text
    assert "1 battery" in strip_tags(get_page(sample, "/statistics")).replace("\n", " ")
    assert ">Theories</a>" in get_page(sample, "/browse")


def test_empty_collections_are_hidden_except_those_of_v_alpha(server: Server) -> None:
    collections = set(re.findall(r'href="/browse/(\w+)"', get_page(server, "/browse")))
    assert collections == {"concept", "task", "disorder"}
    assert "No batteries yet." in get_page(server, "/browse/battery")


def test_auxiliary_collections_can_be_chosen_in_a_search(sample: Server) -> None:
    body = get_page(sample, "/search?q=n-back")
    assert 'href="/search?q=n-back&amp;collection=citation">citations</a>' in body
    body = get_page(sample, "/search?q=n-back&collection=citation")
    assert "1 record found for <strong>n-back</strong> among citations" in body
    assert 'collection=citation" aria-current="true">citations</a>' in body


def test_a_tree_is_linked_only_for_collections_with_a_hierarchy(sample: Server) -> None:
    body = get_page(sample, "/browse")
    assert 'href="/browse/concept/tree"' in body
    assert 'href="/browse/task/tree"' not in body
    assert "Show hierarchy" not in get_page(sample, "/browse/task")


# Forms


def test_a_form_is_generated_from_the_slots_of_its_class(curator: BrowserlessClient) -> None:
    body = curator.open("/propose/citation")
    assert "<h1>Add a citation</h1>" in body
    assert "<h1>Add an external dataset</h1>" in curator.open("/propose/external_dataset")
    main, _, more = body.partition("<summary>More fields")
    for label in ("Name", "Publication title", "Authors", "DOI"):
        assert re.search(rf'<label for="\w+">{label}</label>', main), label
    for label in ("Comment", "Description", "Aliases"):
        assert re.search(rf'<label for="\w+">{label}</label>', more), label
    assert "Journal or book that it appeared in." in main
    assert re.search(r'<input id="name"[^>]* maxlength="500" required', main)
    assert re.search(r'<textarea id="citation_comment"[^>]* maxlength="50000"', more)
    assert re.search(
        r'<input id="flag_for_curator" name="flag_for_curator" type="number"', curator.open("/propose/disorder")
    )


def test_a_record_of_any_class_is_created_edited_and_reviewed_with_its_labels(curator: BrowserlessClient) -> None:
    curator.open("/propose/citation")
    curator.press("Publish", {"name": "a paper", "citation_pmid": "17", "citation_comment": "One.\r\n\r\nTwo."})
    path = curator.path.partition("?")[0]
    assert list_rows(curator.body)["PubMed id"] == "17"
    curator.open(f"/edit/{path.removeprefix('/id/')}")
    assert 'More fields <span class="faint">1 of' in curator.body
    curator.press("Publish", {"citation_pmid": "18"})
    assert re.search(r"<dt>PubMed id</dt>\s*<dd><del>17</del><ins>18</ins>", curator.body)
    contributor = BrowserlessClient(curator.server)
    contributor.sign_in("contributor")
    contributor.open(f"/edit/{path.removeprefix('/id/')}")
    body = contributor.press("Propose", {"citation_pubname": "A journal"})
    assert "<dt>Published in</dt>" in body
    proposal = contributor.path.partition("did=")[2]
    review_page = curator.open(f"/review/{proposal}")
    assert "<h2>Published in</h2>" in review_page
    assert '<label for="citation_pubname">Published in</label>' in review_page
    assert "published in" in curator.open("/review")
    curator.open(f"/review/{proposal}")
    curator.press("Accept", {"citation_pubname": "Another journal"})
    assert list_rows(curator.open(path))["published in"] == "Another journal"


def test_an_error_in_a_collapsed_field_expands_it(curator: BrowserlessClient) -> None:
    curator.open("/propose/disorder")
    body = curator.press("Publish", {"name": "x", "description": "\x07", "flag_for_curator": "soon"}, 422)
    assert '<details class="otherwise" open><summary>More fields' in body
    form = next(form for form in parse_forms(body) if "key" in form.fields)
    curator.press("Publish", {"flag_for_curator": "-2", "description": ""})
    record_id = curator.path.partition("?")[0].removeprefix("/id/")
    assert form.fields["flag_for_curator"] == "soon"
    assert curator.server.get(f"/api/v1/records/{record_id}").json["flag_for_curator"] == -2


def test_all_classes_are_offered_with_their_articles(curator: BrowserlessClient) -> None:
    text = strip_tags(curator.open("/propose"))
    for expected in ("Add a concept", "Add a battery", "Add an indicator", "Add an external link", "Add a user"):
        assert expected in text
    assert len(re.findall(r'href="/propose/\w+"', curator.body)) == len(MAIN_COLLECTIONS)


def test_invented_content_of_the_sample_is_marked(new_url: DatabaseUrlFactory, sample_paths: list[Path]) -> None:
    lines = next(path for path in sample_paths if path.suffix == ".jsonl").read_text().splitlines()
    for record in map(json.loads, lines):
        if record["collection"] == "citation":
            assert "invented" in record["statements"]["skos:prefLabel"]
            assert record["statements"].get("cogat:doi", "10.5555/").startswith("10.5555/"), "the prefix for examples"
    assert any(WORKING_MEMORY in line for line in lines)
