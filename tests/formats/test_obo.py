"""The main vocabulary as OBO, and terms of published files in it."""

import io
import tracemalloc
from contextlib import suppress
from typing import Any

import fastobo  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given, settings

from lexarium.domain.labels import Alias
from lexarium.domain.record import Record, RecordState, Relation
from lexarium.domain.schema.collections import COLLECTIONS, CONCEPT, CONTRAST, DISORDER, TASK, Collection
from lexarium.domain.statement import Statement, Text, normalize
from lexarium.formats.obo import syntax
from lexarium.formats.obo.resources import open_document
from lexarium.formats.parsed import ParseError
from lexarium.formats.resources import ResourceOptions
from tests.support.records import make_record
from tests.support.round_trip import read_file, write_records
from tests.support.strategies import LONG_RECORD, VOCABULARY, record_lists

HEADER = "format-version: 1.4\nontology: x\n\n"


def read_obo(text: str, collection: Collection | None = DISORDER) -> dict[str, Record]:
    found = read_file(text, "obo", VOCABULARY, collection)
    assert found.problems == []
    return found.records


def read_term(clauses: str, collection: Collection = DISORDER) -> Record:
    [record] = read_obo(f"{HEADER}[Term]\nid: DOID:1\nname: one\n{clauses}\n", collection).values()
    return record


def write_obo(records: list[Record]) -> bytes:
    return write_records(records, "obo", VOCABULARY)


def list_problems(text: str) -> list[str]:
    return read_file(text, "obo", VOCABULARY).problems


def to_content(record: Record) -> dict[str, Any]:
    """Return the content of a record, unordered. OBO does not distinguish the default language from none."""
    language = record.collection.language
    statements = {
        item._replace(value=item.value._replace(lang=""))
        if isinstance(item.value, Text) and item.value.lang == language
        else item
        for item in normalize(record.statements)
    }
    return {
        "collection": record.collection.name,
        "statements": statements,
        # A record merged into itself is retired.
        "state": RecordState.RETIRED if record.replaced_by == record.id else record.state,
        "replaced_by": record.replaced_by,
    }


@settings(deadline=None)
@given(record_lists)
@example([LONG_RECORD])
def test_any_records_are_unchanged_after_writing_and_reading(records: list[Record]) -> None:
    by_id = {record.id: record for record in records}
    reread = read_obo(write_obo(list(by_id.values())).decode(), None)
    expected = {record_id: to_content(record) for record_id, record in by_id.items()}
    assert {name: to_content(record) for name, record in reread.items()} == expected


def test_leading_and_trailing_spaces_of_a_name_are_kept() -> None:
    record = make_record(COLLECTIONS["citation"], {"id": "cit_1", "citation_desc": " a title "})
    [reread] = read_obo(write_obo([record]).decode(), None).values()
    assert reread.statements == record.statements


def test_an_alias_equal_to_part_of_the_alias_text_is_kept() -> None:
    aliases = (Alias(text="x", lang="en", scope="narrow"), Alias(text="x", lang="en", scope="exact"))
    record = make_record(CONCEPT, {"id": "trm_1", "alias": "x, x"}, aliases=aliases)
    [reread] = read_obo(write_obo([record]).decode(), None).values()
    assert to_content(reread) == to_content(record)


def test_an_id_that_is_an_iri_is_also_the_iri_of_the_record() -> None:
    [record] = read_obo(f"{HEADER}[Term]\nid: https://example.org/1\nname: x\n").values()
    assert (record.id, record.iri) == ("https://example.org/1", "https://example.org/1")


def test_fastobo_reads_the_written_document() -> None:
    fields = {
        "id": "dso_1",
        "name": 'a {b} "c" \\ ! d',
        "definition": 'one\ntwo "three" \\n',
        "id_protocol": "DSM",
        "flag_for_curator": -1,
    }
    relations = {Relation("dso_1", "ISA", "dso_2"), Relation("dso_1", "closeMatch", "https://example.org/a,b?c=(d)#e")}
    aliases = (Alias(text='"x" [y]', lang="pt-BR", scope="hidden"), Alias(text="z", lang="en", scope="narrow"))
    record = make_record(
        DISORDER, fields, frozenset(relations), RecordState.MERGED, "dso_2", aliases, ("PMID:1", "A book, 2nd ed.")
    )
    frame = fastobo.loads(write_obo([record]).decode())[0]
    clauses = {clause.raw_tag(): clause for clause in frame}
    assert str(frame.id) == "dso_1"
    assert clauses["name"].name == fields["name"]
    assert clauses["def"].definition == fields["definition"]
    assert {clause.synonym.desc for clause in frame if clause.raw_tag() == "synonym"} == {'"x" [y]', "z"}
    assert {"is_a", "is_obsolete", "replaced_by", "namespace", "property_value"} <= set(clauses)


def test_the_header_has_ontology_licence_and_language() -> None:
    header = write_obo([]).decode()
    assert "ontology: main\n" in header
    assert f"property_value: dcterms:license {VOCABULARY.licence}\n" in header
    assert f'property_value: dcterms:language "{VOCABULARY.language}" xsd:string\n' in header


def test_a_published_term_is_read_completely_under_its_own_identifier() -> None:
    record = read_term(
        "namespace: disease_ontology\n"
        'def: "What it is\\, \\"quoted\\"." [PMID:1 "A paper", url:http\\://x.org/a] {a="b"}\n'
        'synonym: "uno" EXACT [PMID:2]\nsynonym: "due" NARROW ABBREV [] ! c\n'
        'xref: MESH:D1 "words"\nis_a: DOID:4 {x="y"} ! disease\n'
        "alt_id: DOID:9\nis_obsolete: true\nreplaced_by: DOID:5\n"
    )
    assert (record.id, record.collection) == ("DOID:1", DISORDER)
    assert (record.fields["name"], record.definition) == ("one", 'What it is, "quoted".')
    assert [(alias.text, alias.scope) for alias in record.aliases] == [("uno", "exact"), ("due", "narrow")]
    assert record.relation_targets == {"ISA": ["DOID:4"], "oboInOwl:hasDbXref": ["MESH:D1"]}
    assert record.alternative_ids == ("http://purl.obolibrary.org/obo/DOID_1", "DOID:9")
    assert (record.state, record.replaced_by) == (RecordState.RETIRED, "DOID:5")
    assert Statement("oboInOwl:hasOBONamespace", Text("disease_ontology")) in record.statements


@pytest.mark.parametrize(
    ("clause", "name"),
    [
        ("name: ([A-F]{8}-([0-9]{4}-){3})", "([A-F]{8}-([0-9]{4}-){3})"),
        ("name: go! stop", "go! stop"),
        ("name: stop ! a comment", "stop"),
        ('name: kept {source="x"} ! a comment', "kept"),
        (r"name: tab\tand \W\{brace\} \S", "tab\tand  {brace} \\S"),
        ("name:tight", "tight"),
        ('name: two {a="x"b="y", c = "{z}" }', "two"),
        ('name: set {a="x"} of', 'set {a="x"} of'),
        ('name: one {="x"} {a="', 'one {="x"} {a="'),
        ("  name :   loose  ", "loose"),
    ],
)
def test_published_forms_of_names_are_read(clause: str, name: str) -> None:
    [record] = read_obo(f"{HEADER}[Term]\nid: A:1\n{clause}\n").values()
    assert record.fields["name"] == name


@pytest.mark.parametrize(
    ("clause", "text", "sources"),
    [
        ('def: "no list"', "no list", ()),
        ('def: "empty" []', "empty", ()),
        ('def: "a "quote" within" [A:1]', 'a "quote" within', ("A:1",)),
        ('def: "x" [EC 2.3, KEGG:ENZYME: 2.3, PMID: 5]', "x", ("EC 2.3", "KEGG:ENZYME: 2.3", "PMID: 5")),
        ('def: "x" [A\\,1, "only words", B:2 ""]', "x", ("A,1", "only words", "B:2")),
        ('def: "x"[A:1]', "x", ("A:1",)),
        ('def: "x" [A:1', "x", ()),
    ],
)
def test_published_forms_of_definitions_are_read(clause: str, text: str, sources: tuple[str, ...]) -> None:
    [definition] = [item for item in read_term(clause).statements if item.predicate == "skos:definition"]
    assert definition.value == Text(text)
    assert sorted(str(item.value[0]) for item in definition.qualifiers) == sorted(sources)


@pytest.mark.parametrize(
    ("clause", "scope"),
    [
        ('synonym: "s" []', "related"),
        ('synonym: "s"', "related"),
        ('exact_synonym: "s" []', "exact"),
        ('synonym: "s" BROAD []', "broad"),
        ('synonym: "s" NARROW systematic [A:1]', "narrow"),
    ],
)
def test_synonyms_of_every_format_version_have_their_scope(clause: str, scope: str) -> None:
    [record] = read_obo(f"format-version: 1.2\n[Term]\nid: A:1\nname: x\n{clause}\n").values()
    assert [(alias.text, alias.scope) for alias in record.aliases] == [("s", scope)]


def test_a_synonym_repeated_for_each_of_its_sources_is_one_alias() -> None:
    record = read_term('synonym: "s" EXACT [A:1]\nsynonym: "s" EXACT [A:2]')
    assert [alias.text for alias in record.aliases] == ["s"]


def test_slot_names_are_read_as_relations_of_the_class() -> None:
    clauses = "relationship: part_of DOID:2 ! two\nrelationship: BFO:0000050 DOID:3\nis_a: DOID:5"
    assert read_term(clauses, CONCEPT).relation_targets == {"KINDOF": ["DOID:5"], "PARTOF": ["DOID:2", "DOID:3"]}
    assert read_term(clauses, CONTRAST).relation_targets == {
        "BFO:0000050": ["DOID:3"],
        "part_of": ["DOID:2"],
        "rdfs:subClassOf": ["DOID:5"],
    }


def test_the_namespace_determines_the_collection_if_it_names_one() -> None:
    text = f"{HEADER}[Term]\nid: A:1\nname: x\n\n[Term]\nid: A:2\nname: y\nnamespace: task\n"
    assert {name: record.collection for name, record in read_obo(text, None).items()} == {"A:1": CONCEPT, "A:2": TASK}
    assert read_obo(text, CONTRAST)["A:1"].collection is CONTRAST


def test_content_that_the_main_vocabulary_cannot_hold_is_counted() -> None:
    text = f"import: http://x.org/y.owl\n{HEADER}[Term]\nid: A:1\nname: x\n\n[Typedef]\nid: regulates\nname: r\n"
    found = read_file(text, "obo", VOCABULARY)
    assert list(found.records) == ["A:1"]
    assert found.warnings == [
        "oboInOwl:import: what the file says about itself, and about what is no term, was left out",
        "regulates: is an owl:ObjectProperty, which the schema of main does not have; it was left out",
    ]


def test_an_invalid_file_is_rejected_with_the_location() -> None:
    for text in ("", "! nothing\n", "name: value\n"):
        with pytest.raises(ParseError, match="there is neither `format-version:` nor a stanza"):
            read_obo(text)
    assert list_problems(f"{HEADER}[Term]\nid: A:1\ndef “x”\n") == ["a clause, like `name: memory`, was expected"]
    assert list_problems(f'{HEADER}[Term]\nid: A:1\n def: "x [A:1]\n') == [
        "a quote that closes the text was expected after `def:`"
    ]
    assert list_problems(f"{HEADER}[Term]\nid: A:1\nis_a: ! nothing\n") == ["an identifier was expected after `is_a:`"]
    assert list_problems(f"{HEADER}[Term]\nname: x\n") == ["a stanza [Term] has no id"]


def test_every_invalid_stanza_is_reported_with_its_location() -> None:
    broken = "[Term]\nid: A:2\nis_a: ! none\ndef: open\n"
    text = f"{HEADER}[Term]\nid: ! none\n\n{broken}\n[Term\nid: A:3\n\n[Term]\nname: x\n"
    found = read_file(text, "obo", VOCABULARY)
    assert [location.removeprefix("file, ") for location in found.locations] == [
        *("line 5, column 5", "line 9, column 7", "line 12, column 1", "line 15, column 1"),
    ]


SPACE = " " * 300_000


@pytest.mark.parametrize(
    "line",
    [
        f"[{SPACE}x",
        f"[Term]{SPACE}x",
        f"name: a{SPACE}}}",
        f"name: {'{a=' * 100_000}}}",
        "name: " + '{a="' * 100_000 + "}",
        f"name: a{SPACE}!",
        f'def: "a" [] {{{SPACE.replace(" ", "a")}}}',
        'def: "a" [] {' + "a " * 100_000 + "}",
        'def: "a" [] {' + 'a="' * 100_000 + "}",
        'def: "a" [' + "a," * 100_000,
        'def: "a" [' + '"' * 100_001,
        "def: " + '"a ' * 100_000,
        f'synonym: "a"{SPACE}EXACT{SPACE}x',
        f"xref: a{SPACE}{{",
        f"is_a: {SPACE}a{SPACE}!",
    ],
)
def test_parsing_a_malicious_line_takes_linear_time(line: str) -> None:
    # A larger one would exceed the timeout of a test.
    with suppress(ParseError):
        read_file(f"{HEADER}[Term]\nid: A:1\nname: x\n{line}\n", "obo", VOCABULARY)


def test_an_endless_line_is_rejected_without_reading_it_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "MAX_LINE_CHARS", 1 << 20)
    document: io.BufferedReader = io.BufferedReader(io.BytesIO(b"!" * (64 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(ParseError, match="the line does not end"):
            open_document(document, ResourceOptions())
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
