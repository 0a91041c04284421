"""CURIEs and IRIs by the bundled table of prefixes and those of a vocabulary."""

import re
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lexarium.domain.identity import prefixes
from lexarium.domain.identity.prefixes import (
    PrefixMap,
    contract,
    expand,
    find_prefix_problems,
    link_of,
    load_bundled,
    read_table,
)
from lexarium.domain.vocabulary import Vocabulary

ROWS = read_table()
BUNDLED = load_bundled()
OBO = "http://purl.obolibrary.org/obo/"

# Prefixes of a vocabulary that hide, rename and continue those of the table.
VOCABULARY = BUNDLED.extend(
    {
        "uat": "http://astrothesaurus.org/uat/",
        "doid": "https://example.org/doid#",
        "ex": "https://example.org/",
        "EX2": "https://example.org/2",
        "rare": f"{OBO}DOID_00",
        "dct": "http://purl.org/dc/terms/",
        "t": "tag:example.org,2026:",
    }
)

namespaces = st.sampled_from([namespace for _, namespace in VOCABULARY.items()] + [row.namespace for row in ROWS])
locals_ = st.one_of(
    st.text(max_size=8),
    st.integers(0, 10**8).map(str),
    st.from_regex(r"[A-Za-z0-9_/#:.-]{0,12}", fullmatch=True),
)
obo_names = st.from_regex(r"[A-Za-z_]{1,6}_[0-9]{1,7}", fullmatch=True)
known_obo_names = st.builds(
    lambda row, fold, local: (row.prefix.lower() if fold else row.prefix) + f"_{local}",
    st.sampled_from(ROWS),
    st.booleans(),
    st.integers(0, 99),
)
iris = st.one_of(
    st.builds("{}{}".format, namespaces, locals_),
    st.builds(lambda namespace, cut: namespace[:-cut] + "x", namespaces, st.integers(1, 5)),
    st.builds(lambda name: OBO + name, obo_names | known_obo_names | locals_),
    st.text(max_size=30),
)


@given(iri=iris)
@example(iri=f"{OBO}doid_162")
@example(iri=f"{OBO}FOO_0000001")
@example(iri=f"{OBO}tel_5")
@example(iri="https://doi.org///x")
@example(iri="http://www.w3.org/1999/02/22-rdf-syntax-ns#//x")
@example(iri="http://uri.neuinfo.org/nif/nifstd/nlx_anat_1")
def test_a_contracted_iri_expands_to_itself(iri: str) -> None:
    for prefix_map in (BUNDLED, VOCABULARY):
        curie = prefix_map.contract(iri)
        assert curie is None or prefix_map.expand(curie) == iri


@given(namespace=namespaces, local=st.from_regex(r"[A-Za-z0-9]{1,9}", fullmatch=True))
def test_the_longest_matching_namespace_is_used(namespace: str, local: str) -> None:
    iri = namespace + local
    for prefix_map in (BUNDLED, VOCABULARY):
        longest = max(
            (known for _, known in prefix_map.items() if iri.startswith(known) and len(known) < len(iri)),
            key=len,
            default=None,
        )
        curie = prefix_map.contract(iri)
        if longest == OBO:
            assert curie is not None
        elif longest is None:
            assert curie is None
        else:
            assert curie is not None
            assert prefix_map.find_namespace(curie.partition(":")[0]) == longest


@pytest.mark.parametrize(
    ("iri", "curie"),
    [
        (f"{OBO}DOID_162", "DOID:162"),
        (f"{OBO}NCIT_C2876", "NCIT:C2876"),
        (f"{OBO}APOLLO_SV_00000001", "APOLLO_SV:00000001"),
        (f"{OBO}NEW_ONTO_0000001", "NEW_ONTO:0000001"),
        (f"{OBO}FOO_C1", "obo:FOO_C1"),
        (f"{OBO}doid#DO_cancer_slim", "obo:doid#DO_cancer_slim"),
        (f"{OBO}doid_162", "obo:doid_162"),
        ("http://www.w3.org/2004/02/skos/core#prefLabel", "skos:prefLabel"),
        ("http://purl.org/dc/terms/title", "dcterms:title"),
        ("https://doi.org/10.1000/a/b", "DOI:10.1000/a/b"),
        ("http://www.wikidata.org/entity/Q42", "wikidata:Q42"),
        ("urn:isbn:9780000000002", "ISBN:9780000000002"),
        ("http://schema.org/name", "schema:name"),
        # The scheme is part of the identity.
        ("https://schema.org/name", None),
        ("http://doi.org/10.1000/x", None),
        ("http://www.w3.org/2004/02/skos/core#", None),
        ("https://example.org/1", None),
        ("DOID:162", None),
        ("", None),
    ],
)
def test_an_iri_is_contracted_to_the_preferred_prefix(iri: str, curie: str | None) -> None:
    assert contract(iri) == curie


@pytest.mark.parametrize(
    ("curie", "iri"),
    [
        ("DOID:162", f"{OBO}DOID_162"),
        ("doid:162", f"{OBO}DOID_162"),
        ("NEWONTO:0000001", f"{OBO}NEWONTO_0000001"),
        ("dct:title", "http://purl.org/dc/terms/title"),
        ("NCI:C2876", f"{OBO}NCIT_C2876"),
        ("MIM:114480", "https://omim.org/entry/114480"),
        ("SNOMEDCT_US_2025_09_01:254935002", "http://snomed.info/id/254935002"),
        ("unknown:term", None),
        ("unknown_2025_09_01:5", None),
        ("trm_0123456789abcdef", None),
        ("https://example.org/1", None),
        ("javascript:1", None),
        ("_:b0", None),
        ("DOID:", None),
        ("DOI://x", None),
        ("", None),
    ],
)
def test_a_curie_is_expanded_in_any_case(curie: str, iri: str | None) -> None:
    assert expand(curie) == iri


def test_prefixes_of_a_vocabulary_take_precedence() -> None:
    assert VOCABULARY.contract("http://astrothesaurus.org/uat/1") == "uat:1"
    assert VOCABULARY.contract("http://purl.org/dc/terms/title") == "dct:title"
    assert VOCABULARY.expand("dcterms:title") == "http://purl.org/dc/terms/title"
    assert VOCABULARY.expand("DOID:162") == "https://example.org/doid#162"
    assert VOCABULARY.contract(f"{OBO}DOID_162") == "obo:DOID_162"
    assert VOCABULARY.contract(f"{OBO}DOID_0012") == "rare:12"
    assert VOCABULARY.contract("https://example.org/2x") == "EX2:x"
    assert VOCABULARY.contract("tag:example.org,2026:x") == "t:x"
    assert link_of("uat:1", VOCABULARY) == "http://astrothesaurus.org/uat/1"
    # The bundled table stays as it is.
    assert expand("DOID:162") == f"{OBO}DOID_162"
    assert BUNDLED.extend({}) is BUNDLED


def test_the_first_prefix_of_a_namespace_is_written() -> None:
    prefix_map = PrefixMap((), {"a": "https://example.org/", "b": "https://example.org/"})
    assert prefix_map.contract("https://example.org/1") == "a:1"
    assert prefix_map.expand("b:1") == "https://example.org/1"


def test_invalid_prefixes_of_a_vocabulary_are_reported_and_skipped() -> None:
    invalid = {
        "": "https://example.org/a/",
        "http": "https://example.org/b/",
        "a b": "https://example.org/c/",
        "host": "https://example.org",
        "script": "javascript:alert(",
        "spaced": "https://example.org/ x",
        "empty": "",
    }
    problems = find_prefix_problems({**invalid, "ok": "https://example.org/", "OK": "https://example.org/2/"})
    assert len(problems) == len(invalid) + 1
    assert all(problem.endswith(".") for problem in problems)
    assert problems[-1] == "The prefixes ok and OK differ only in case; remove one of them."
    assert dict(PrefixMap((), invalid).items()) == {}


@pytest.mark.parametrize(
    ("identifier", "link"),
    [
        ("PMID:123", "https://pubmed.ncbi.nlm.nih.gov/123/"),
        ("pmid:123", "https://pubmed.ncbi.nlm.nih.gov/123/"),
        ("PMID: 123", "https://pubmed.ncbi.nlm.nih.gov/123/"),
        ("https://pubmed.ncbi.nlm.nih.gov/123/", "https://pubmed.ncbi.nlm.nih.gov/123/"),
        ("doi:10.1/x", "https://doi.org/10.1/x"),
        ("10.1000/x", "https://doi.org/10.1000/x"),
        ("doi:10.1002/(SICI)1<1::AID>3.0.CO;2-2", "https://doi.org/10.1002/(SICI)1%3C1::AID%3E3.0.CO;2-2"),
        ("MESH:D008569", "https://meshb.nlm.nih.gov/record/ui?ui=D008569"),
        ("http://id.nlm.nih.gov/mesh/D008569", "https://meshb.nlm.nih.gov/record/ui?ui=D008569"),
        ("UMLS_CUI:C0006826", "https://uts.nlm.nih.gov/uts/umls/concept/C0006826"),
        ("UBERON:0000955", f"{OBO}UBERON_0000955"),
        ("urn:isbn:9780000000002", "https://www.worldcat.org/isbn/9780000000002"),
        ("url:https://example.org/a?b=c", "https://example.org/a?b=c"),
        ("https://example.org/ä", "https://example.org/ä"),
        ("HTTPS://EXAMPLE.ORG/", "HTTPS://EXAMPLE.ORG/"),
        # A guess would lead nowhere.
        ("NEWONTO:0000001", None),
        ("unknown:x", None),
        ("trm_0123456789abcdef", None),
        ("123", None),
        ("mailto:a@example.org", None),
        ("urn:uuid:1", None),
        ("javascript:alert(1)", None),
        ("JavaScript:alert(1)", None),
        ("url:javascript:alert(1)", None),
        ("data:text/html,x", None),
        ("http:javascript", None),
        ("https://", None),
        ("https://example.org/\n", "https://example.org/"),
        ("https://example.org/\x01", None),
        ("https://example.org/\ud800", None),
        (f"https://example.org/{'x' * 3000}", None),
        ("", None),
    ],
)
def test_an_identifier_links_to_a_human_readable_page(identifier: str, link: str | None) -> None:
    assert link_of(identifier) == link


@given(st.one_of(iris, st.builds("{}:{}".format, st.sampled_from([row.prefix for row in ROWS]), st.text(max_size=20))))
def test_a_link_is_always_a_safe_http_url(identifier: str) -> None:
    link = link_of(identifier)
    assert link is None or re.fullmatch(r'https?://[^\s<>"]+', link, re.IGNORECASE)
    assert isinstance(VOCABULARY.normalize(identifier), str)


@pytest.mark.parametrize(
    ("identifier", "normalized"),
    [
        ("doi:10.1/x", "DOI:10.1/x"),
        ("http://dx.doi.org/10.1/x", "DOI:10.1/x"),
        ("https://doi.org/10.1/x", "DOI:10.1/x"),
        ("https://schema.org/name", "schema:name"),
        ("https://pubmed.ncbi.nlm.nih.gov/123/", "PMID:123"),
        (f"{OBO}FMA_5", "FMA:5"),
        ("NEWONTO:1", "NEWONTO:1"),
        (f"{OBO}NEWONTO_1", "NEWONTO:1"),
        ("UMLS_CUI:C1", "UMLS:C1"),
        ("trm_1", "trm_1"),
        ("http://example.org/1", "http://example.org/1"),
    ],
)
def test_all_spellings_of_an_identifier_have_one_normal_form(identifier: str, normalized: str) -> None:
    assert BUNDLED.normalize(identifier) == normalized


def test_the_table_lists_every_prefix_and_namespace_once() -> None:
    names = Counter(name.lower() for row in ROWS for name in {row.prefix.lower(), *map(str.lower, row.synonyms)})
    assert [name for name, count in names.items() if count > 1] == []
    spaces = Counter(namespace for row in ROWS for namespace in (row.namespace, *row.variants))
    assert [namespace for namespace, count in spaces.items() if count > 1] == []


def test_the_table_is_valid() -> None:
    assert len(ROWS) > 300
    for row in ROWS:
        assert find_prefix_problems({row.prefix: row.namespace}) == []
        assert not row.link or re.fullmatch(r"https?://[^/]+/[^$]*\$1[^$]*", row.link), row
        for variant in row.variants:
            assert find_prefix_problems({row.prefix: variant}) == []


def test_obo_identifiers_keep_their_prefix() -> None:
    for row in ROWS:
        if row.namespace.startswith(OBO) and row.namespace != OBO:
            assert row.namespace == f"{OBO}{row.prefix}_"


# Stored predicates depend on these.
@pytest.mark.parametrize(
    ("prefix", "namespace"),
    [
        ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
        ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
        ("owl", "http://www.w3.org/2002/07/owl#"),
        ("skos", "http://www.w3.org/2004/02/skos/core#"),
        ("skosxl", "http://www.w3.org/2008/05/skos-xl#"),
        ("isothes", "http://purl.org/iso25964/skos-thes#"),
        ("dcterms", "http://purl.org/dc/terms/"),
        ("dc", "http://purl.org/dc/elements/1.1/"),
        ("schema", "http://schema.org/"),
        ("oboInOwl", "http://www.geneontology.org/formats/oboInOwl#"),
        ("IAO", f"{OBO}IAO_"),
        ("RO", f"{OBO}RO_"),
        ("BFO", f"{OBO}BFO_"),
        ("sssom", "https://w3id.org/sssom/"),
        ("linkml", "https://w3id.org/linkml/"),
    ],
)
def test_predicates_are_stored_with_fixed_prefixes(prefix: str, namespace: str) -> None:
    assert contract(f"{namespace}0000115") == f"{prefix}:0000115"
    assert contract(f"{namespace}xY") == f"{prefix}:xY"


def test_the_table_is_read_on_first_use_only() -> None:
    program = f"import {prefixes.__name__} as p; print(p.read_table.cache_info().currsize)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "0"


def test_an_iri_that_names_another_vocabulary_or_only_resembles_one_made_of_an_id_is_none() -> None:
    iri = "https://s.example/id/c%3F1?vocabulary="
    assert Vocabulary("uat").parse_record_iri(f"{iri}uat") == "c?1"
    assert Vocabulary("uat").parse_record_iri(f"{iri}other") is None
    assert Vocabulary("based", base="https://s.example/").parse_record_iri(f"{iri}other") is None
    assert Vocabulary("uat").parse_record_iri("https://example.org/covid/foo?vocabulary=uat") is None
