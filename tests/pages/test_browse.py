"""Browse pages of any vocabulary: trees, groups, languages and initials."""

import re
from collections.abc import Iterator
from html import unescape

import pytest

from tests.support.databases import DatabaseUrlFactory
from tests.support.server import Server, run_cli

COLOURS = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix ex: <http://colours.example/> .
ex:s a skos:ConceptScheme ; skos:prefLabel "Colours"@en .
ex:warm a skos:Collection ; skos:prefLabel "Warm colours"@en ; skos:member ex:red, ex:scarlet .
ex:red a skos:Concept ; skos:prefLabel "red"@en, "rot"@de ; skos:definition "As blood."@en ; skos:topConceptOf ex:s .
ex:scarlet a skos:Concept ; skos:prefLabel "scarlet"@en ; skos:inScheme ex:s ; skos:broader ex:red .
ex:ruby a skos:Concept ; skos:prefLabel "ruby"@en ; skos:inScheme ex:s ; skos:broader ex:scarlet .
ex:blue a skos:Concept ; skos:prefLabel "blue"@en, "blau"@de ; skos:inScheme ex:s .
ex:navy a skos:Concept ; skos:prefLabel "navy"@en ; skos:altLabel "rubber boots"@en ; skos:broader ex:blue .
ex:orange a skos:Concept ; skos:prefLabel "ορφνός"@en .
"""
DISEASES = """format-version: 1.2
ontology: diseases
data-version: diseases/releases/2026-07-31/diseases.obo

[Term]
id: D:1
name: cancer
subset: rare

[Term]
id: D:2
name: lymphoma
subset: rare
subset: common
is_a: D:1
"""
FLOWERS = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix ex: <http://flowers.example/> .
ex:s a skos:ConceptScheme ; skos:prefLabel "Flowers"@en ; skos:hasTopConcept ex:rose, ex:tulip .
ex:rose a skos:Concept ; skos:prefLabel "rose"@en ; skos:narrower ex:dog-rose .
ex:dog-rose a skos:Concept ; skos:prefLabel "dog rose"@en ; skos:topConceptOf ex:s .
ex:tulip a skos:Concept ; skos:prefLabel "tulip"@en .
ex:daisy a skos:Concept ; skos:prefLabel "daisy"@en ; skos:narrower ex:oxeye .
ex:oxeye a skos:Concept ; skos:prefLabel "oxeye"@en .
ex:orchid a skos:Concept ; skos:prefLabel "orchid"@en ; skos:inScheme ex:s .
ex:meadow ex:altitude "low" .
"""


@pytest.fixture(scope="module")
def server(new_url: DatabaseUrlFactory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Server with two SKOS vocabularies and one in OBO."""
    url, folder = new_url("sqlite"), tmp_path_factory.mktemp("files")
    for name, text in (("colours.ttl", COLOURS), ("diseases.obo", DISEASES), ("flowers.ttl", FLOWERS)):
        (folder / name).write_text(text)
        completed = run_cli("import", folder / name, "--vocabulary", name.partition(".")[0], "--database", url)
        assert completed.returncode == 0, completed.stderr
    with Server(url) as running_server:
        running_server.wait_until_ready()
        yield running_server


def get_page(server: Server, path: str) -> str:
    response = server.get(path, Accept="text/html", Accept_Language="en")
    assert response.status == 200, (path, response.status)
    return unescape(response.body.decode())


def list_names(body: str) -> list[str]:
    return re.findall(r'<p class="name"><a [^>]*>(.*?)</a>', body)


def list_tree_names(body: str) -> list[str]:
    return re.findall(r"<a [^>]*data-summary[^>]*>(.*?)</a>", body)


def test_records_are_browsed_by_scheme_collection_and_subset(server: Server) -> None:
    body = get_page(server, "/browse?vocabulary=colours")
    assert re.search(r">Colours</a> <span class=\"faint\">4<", body), "topConceptOf counts as inScheme"
    link = re.search(r'href="([^"]+group=[^"]+)">Warm colours</a> <span class="faint">2<', body)
    assert link
    assert list_names(get_page(server, link[1])) == ["red", "scarlet"]
    body = get_page(server, "/browse?vocabulary=diseases")
    assert "Terms by subset" in body
    link = re.search(r'href="([^"]+group=[^"]+)">rare</a> <span class="faint">2<', body)
    assert link, "a subset without a definition is one too"
    assert list_names(get_page(server, link[1])) == ["cancer", "lymphoma"]


def test_records_are_browsed_by_language_coverage(server: Server) -> None:
    body = get_page(server, "/browse?vocabulary=colours")
    paths = re.findall(r'href="([^"]+(?:language|without)=de[^"]*)">(\d)', body)
    assert [count for _, count in paths] == ["2", "4"]
    with_german, without_german = (list_names(get_page(server, path)) for path, _ in paths)
    assert with_german == ["blue", "red"]
    assert without_german == ["navy", "ruby", "scarlet", "ορφνός"]
    assert list_names(get_page(server, f"{paths[1][0]}&from=s")) == ["scarlet", "ορφνός"]


def test_the_letter_index_has_the_initial_letters_of_names(server: Server) -> None:
    body = get_page(server, "/browse/concept?vocabulary=colours")
    letters = body.partition('class="letters"')[2].partition("</nav>")[0]
    assert re.findall(r">(\w)</a>", letters) == ["B", "N", "R", "S", "Ο"]
    link = re.search(r'href="([^"]+)">Ο</a>', letters)
    assert link
    assert list_names(get_page(server, link[1])) == ["ορφνός"]


def test_a_tree_can_be_expanded_completely(server: Server) -> None:
    path = "/browse/concept/tree?vocabulary=colours"
    assert list_tree_names(get_page(server, path)) == ["blue", "red"]
    body = get_page(server, f"{path}&expand=1")
    assert list_tree_names(body) == ["blue", "navy", "red", "scarlet", "ruby"]
    assert "Collapse all" in body


def test_top_level_terms_are_those_the_file_names_and_those_with_only_children(server: Server) -> None:
    body = get_page(server, "/browse/concept/tree?vocabulary=flowers")
    assert list_tree_names(body) == ["daisy", "rose", "tulip"]
    assert "3 top-level concepts" in body
    assert "1 concept not in the hierarchy" in body
    assert ">orchid<" in get_page(server, "/statistics/gaps/apart?collection=concept&vocabulary=flowers")
    home = get_page(server, "/vocabularies/flowers").partition("Top-level terms")[2].partition("Contents")[0]
    assert list(dict.fromkeys(re.findall(r'<a href="/id/[^"]+" aria-label="(\w+):', home))) == [
        "daisy",
        "rose",
        "tulip",
    ]
    assert '/browse/concept/tree?vocabulary=flowers">Full hierarchy<' in home


def test_the_home_of_a_vocabulary_shows_no_internal_statements(server: Server) -> None:
    home = get_page(server, "/vocabularies/flowers")
    assert "altitude" in home
    assert "lexarium:" not in home


def test_a_tree_is_filtered_by_name_and_shows_ancestors(server: Server) -> None:
    path = "/browse/concept/tree?vocabulary=colours"
    body = get_page(server, f"{path}&q=rub")
    assert list_tree_names(body) == ["blue", "navy", "red", "scarlet", "ruby"], "an alias counts too"
    assert re.findall(r'class="match">(\w+)<', body) == ["navy", "ruby"]
    assert "No concepts match" in get_page(server, f"{path}&q=blood"), "a definition does not"


def test_the_pane_beside_a_tree_describes_the_selected_record(server: Server) -> None:
    tree = get_page(server, "/browse/concept/tree?vocabulary=colours&expand=1")
    link = re.search(r'data-summary="([^"]+)"[^>]*>scarlet<', tree)
    assert link
    summary = get_page(server, link[1])
    assert summary.strip().startswith("<p")
    assert ">scarlet</h2>" in summary
    assert ">red</a>" in summary


def test_each_import_is_one_entry_with_its_vocabulary(server: Server) -> None:
    body = get_page(server, "/")
    changes = re.findall(r'class="did">imported</span>\s*<span><a href="([^"]+)">(\d+) changes</a>', body)
    assert [int(count) for _, count in changes] == [9, 4, 10]
    page = get_page(server, changes[1][0])
    assert "4 changes" in page
    assert ">lymphoma</a>" in page


def test_vocabularies_are_listed_with_counts_and_versions(server: Server) -> None:
    body = get_page(server, "/")
    assert "Version 2026-07-31" in body
    assert ">6 concepts</a>" in body
    home = get_page(server, "/vocabularies/diseases")
    assert 'aria-label="cancer: 1 child"' in home
    assert ">lymphoma</a>" in home
