"""OBO: reading published files, and round trips."""

import io
import tracemalloc
from collections.abc import Mapping
from contextlib import suppress

import fastobo  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given, settings

from lexarium.domain.labels import Alias
from lexarium.domain.record import Record, RecordState, Relation
from lexarium.domain.schema.collections import CONCEPT, CONTRAST, DISORDER, TASK, Collection
from lexarium.formats.obo import codec, syntax
from lexarium.formats.obo.term_parser import PROPERTY_FIELDS
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions, WriteOptions
from lexarium.formats.registry import FORMATS
from tests.support.records import make_record
from tests.support.strategies import LONG_RECORD, VOCABULARY, record_lists

OBO = FORMATS["obo"]
HEADER = "format-version: 1.4\nontology: x\n\n"


def read_obo(
    text: str, collection: Collection | None = DISORDER, map: Mapping[str, str] | None = None
) -> list[ParsedRecord]:
    reading = ReadOptions(OBO, VOCABULARY, default_collection=collection, column_mapping=map or {})
    return list(codec.read(io.BytesIO(text.encode()), reading))


def read_term(clauses: str, collection: Collection = DISORDER, map: Mapping[str, str] | None = None) -> ParsedRecord:
    return read_obo(f"{HEADER}[Term]\nid: DOID:1\nname: one\n{clauses}\n", collection, map)[0]


def list_warnings(text: str, collection: Collection = DISORDER) -> list[str]:
    return [
        warning
        for parsed_record in read_obo(text, collection)
        if parsed_record.line == 0
        for warning in parsed_record.warnings
    ]


def write_obo(records: list[Record]) -> bytes:
    return b"".join(codec.write(records, WriteOptions(OBO, VOCABULARY)))


def list_problems(text: str) -> list[tuple[str, int, int]]:
    records = read_obo(text)
    return [(problem, record.line, record.column) for record in records for problem in record.problems]


@settings(deadline=None)
@given(record_lists)
@example([LONG_RECORD])
def test_what_is_written_is_read_as_it_was(records: list[Record]) -> None:
    parsed = read_obo(write_obo(records).decode(), None)
    assert len(parsed) == len(records)
    for parsed_record, record in zip(parsed, records, strict=True):
        own_fields = {"id", "name", record.collection.definition_field or "", *PROPERTY_FIELDS}
        own_fields &= set(record.collection.core_fields)
        own_fields |= {
            name for name in ("id_user", "event_stamp") if record.fields.get(name) in ("usr_1", "2017-12-07T15:30:26")
        }
        assert parsed_record.problems == []
        assert parsed_record.collection == record.collection.name
        assert parsed_record.fields == {name: record.fields[name] for name in own_fields}
        assert parsed_record.aliases == record.aliases
        assert parsed_record.sources == record.sources
        assert (parsed_record.state, parsed_record.replaced_by) == (record.state, record.replaced_by)
        assert sorted(parsed_record.relations) == sorted(record.relations)
        assert {name for name, _ in parsed_record.complete_relations} == set(record.collection.relation_types)


def test_another_program_reads_what_is_written() -> None:
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
    document = fastobo.loads(write_obo([record]).decode())
    frame = document[0]
    clauses = {clause.raw_tag(): clause for clause in frame}
    assert str(frame.id) == "dso_1"
    assert clauses["name"].name == fields["name"]
    assert clauses["def"].definition == fields["definition"]
    assert next(str(xref.id) for xref in clauses["def"].xrefs) == "PMID:1"
    assert len(clauses["def"].xrefs) == 2
    assert [clause.synonym.desc for clause in frame if clause.raw_tag() == "synonym"] == ['"x" [y]', "z"]
    assert {"is_a", "xref", "is_obsolete", "replaced_by"} <= set(clauses)
    assert len(document) == 1 + write_obo([]).count(b"[Typedef]")


def test_the_document_says_whose_it_is_and_in_which_language() -> None:
    header = write_obo([]).decode().partition("[Typedef]")[0]
    assert "ontology: a_title_of_things\n" in header
    for expected in (
        ("license", VOCABULARY.licence),
        ("publisher", VOCABULARY.publisher),
        ("language", VOCABULARY.language),
    ):
        assert f'property_value: http://purl.org/dc/terms/{expected[0]} "{expected[1]}" xsd:string\n' in header


def test_the_language_of_the_document_goes_before_the_catalogues() -> None:
    head = 'property_value: http://purl.org/dc/terms/language "fr" xsd:string\n'
    parsed_record = read_obo(
        f'{head}[Term]\nid: A:1\nname: x\nsynonym: "y" EXACT []\nsynonym: "z" EXACT [] {{xml:lang="de"}}\n'
    )[0]
    assert [alias.lang for alias in parsed_record.aliases or ()] == ["fr", "de"]


def test_a_published_term_is_read_whole() -> None:
    parsed_record = read_term(
        "namespace: disease_ontology\n"
        'def: "What it is\\, \\"quoted\\"." [PMID:1 "A paper", url:http\\://x.org/a] {a="b"}\n'
        'synonym: "uno" EXACT [PMID:2]\nsynonym: "due" NARROW ABBREV [] ! c\n'
        'xref: MESH:D1 "words"\nis_a: DOID:4 {x="y"} ! disease\n'
        "alt_id: DOID:9\nis_obsolete: true\nreplaced_by: DOID:5\n"
    )
    assert (parsed_record.line, parsed_record.collection, parsed_record.foreign_id) == (4, "disorder", "DOID:1")
    assert parsed_record.fields == {"name": "one", "definition": 'What it is, "quoted".'}
    assert parsed_record.sources == ('PMID:1 "A paper"', "url:http://x.org/a")
    assert [(alias.text, alias.scope) for alias in parsed_record.aliases or ()] == [("uno", "exact"), ("due", "narrow")]
    assert set(parsed_record.relations) == {
        Relation("DOID:1", "ISA", "DOID:4"),
        Relation("DOID:1", "exactMatch", "DOID:9"),
        Relation("DOID:1", "closeMatch", "MESH:D1"),
    }
    assert set(parsed_record.complete_relations) == {("ISA", "source"), ("closeMatch", "source")}
    assert (parsed_record.state, parsed_record.replaced_by) == (RecordState.RETIRED, "DOID:5")


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
def test_names_are_read_as_published_files_have_them(clause: str, name: str) -> None:
    assert read_obo(f"{HEADER}[Term]\nid: A:1\n{clause}\n")[0].fields["name"] == name


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
def test_definitions_are_read_as_published_files_have_them(clause: str, text: str, sources: tuple[str, ...]) -> None:
    parsed_record = read_term(clause)
    assert (parsed_record.fields["definition"], parsed_record.sources) == (text, sources)


@pytest.mark.parametrize(
    ("clause", "scope"),
    [
        ('synonym: "s" []', "related"),
        ('synonym: "s"', "related"),
        ('exact_synonym: "s" []', "exact"),
        ('synonym: "s" BROAD []', "broad"),
        ('synonym: "s" RELATED hidden []', "hidden"),
        ('synonym: "s" systematic []', "exact"),
        ('synonym: "s" NARROW systematic [A:1]', "narrow"),
    ],
)
def test_synonyms_of_every_version_have_their_scope(clause: str, scope: str) -> None:
    head = 'format-version: 1.2\nsynonymtypedef: systematic "Systematic" EXACT\n'
    parsed_record = read_obo(f"{head}[Term]\nid: A:1\nname: x\n{clause}\n")[0]
    assert parsed_record.aliases == (Alias(text="s", lang="en", scope=scope),)  # type: ignore[arg-type]


def test_when_a_term_was_made_is_kept() -> None:
    parsed_record = read_term("created_by: me\ncreation_date: 2009-07-29T04:49:13+02:00")
    assert parsed_record.fields["event_stamp"] == "2009-07-29T02:49:13"
    assert "id_user" not in parsed_record.fields
    assert "event_stamp" not in read_term("creation_date: yesterday").fields


def test_a_synonym_that_is_told_for_each_of_its_sources_is_one() -> None:
    parsed_record = read_term('synonym: "s" EXACT [A:1]\nsynonym: "s" EXACT [A:2]')
    assert [alias.text for alias in parsed_record.aliases or ()] == ["s"]


def test_part_of_and_consider_are_relations_between_concepts() -> None:
    clauses = "relationship: part_of DOID:2 ! two\nrelationship: BFO:0000050 DOID:3\nconsider: DOID:4\nis_a: DOID:5"
    relations = {(relation.relation, relation.target) for relation in read_term(clauses, CONCEPT).relations}
    assert relations == {("PARTOF", "DOID:2"), ("PARTOF", "DOID:3"), ("RELATED", "DOID:4"), ("KINDOF", "DOID:5")}


def test_what_a_collection_cannot_say_is_told_and_left_out() -> None:
    text = f'{HEADER}[Term]\nid: A:1\nname: x\nis_a: A:2\nrelationship: part_of A:3\nconsider: A:4\ndef: "d" []\n'
    assert [relation.relation for relation in read_obo(text, CONTRAST)[0].relations] == ["relatedMatch"]
    assert list_warnings(text, CONTRAST) == [
        "`is_a` means nothing for a contrast (on line 7)",
        "`relationship` means nothing for a contrast (on line 8)",
        "`consider` of a contrast is kept as relatedMatch (on line 9)",
        "a contrast has no definition; it is not kept (on line 10)",
    ]


def test_clauses_that_are_not_known_are_named_once_with_how_often() -> None:
    more_clauses = (
        "subset: s\nrelationship: regulates A:2\nintersection_of: A:3\nintersection_of: part_of A:4\nnew_tag: 1\n"
    )
    text = (
        f"import: http://x.org/y.owl\n{HEADER}[Term]\nid: A:1\nname: x\n{more_clauses}\n[Term]\nid:"
        f" A:2\nname: y\n{more_clauses}"
    )
    text += "[Instance]\nid: i:1\n\n[Typedef]\nid: regulates\nname: r\nfoo: bar\n"
    assert list_warnings(text) == [
        "http://x.org/y.owl was not fetched, though the file imports it (on line 1)",
        "the clause `subset` is not kept (2 times, first on line 8)",
        "the relationship `regulates` is not kept (2 times, first on line 9)",
        "the clause `intersection_of` is not kept (4 times, first on line 10)",
        "the clause `new_tag` is not kept (2 times, first on line 12)",
        "the stanza [Instance] is not kept (on line 22)",
    ]


def test_a_map_says_what_relations_properties_and_clauses_mean() -> None:
    clauses = 'relationship: regulates A:2\nproperty_value: note "N" xsd:string\nxref: B:1\ncomment: why'
    parsed_record = read_term(
        clauses, CONCEPT, {"regulates": "RELATED", "note": "id_concept_class", "xref": "exactMatch"}
    )
    assert {(relation.relation, relation.target) for relation in parsed_record.relations} == {
        ("RELATED", "A:2"),
        ("exactMatch", "B:1"),
    }
    assert parsed_record.fields["id_concept_class"] == "N"
    assert {name for name, _ in parsed_record.complete_relations} == {"KINDOF", "RELATED", "exactMatch"}
    assert read_term("comment: why", CONCEPT, {"comment": "definition"}).fields["definition_text"] == "why"
    assert read_term("comment: why", CONCEPT, {"comment": "aliases"}).aliases == (
        Alias(text="why", lang="en", scope="exact"),
    )
    assert read_term("comment: why", CONCEPT, {"comment": "sources"}).sources == ("why",)


def test_an_xref_that_is_also_a_mapping_is_not_told_twice() -> None:
    parsed_record = read_term("xref: B:1\nxref: C:1\nproperty_value: skos:exactMatch B:1")
    assert {(relation.relation, relation.target) for relation in parsed_record.relations} == {
        ("exactMatch", "B:1"),
        ("closeMatch", "C:1"),
    }


def test_an_alt_id_that_is_a_term_of_the_file_stays_its_own() -> None:
    text = f"{HEADER}[Term]\nid: A:1\nname: x\nalt_id: A:2\n\n[Term]\nid: A:2\nname: y\n"
    assert read_obo(text)[0].relations == []
    assert list_warnings(text) == ["the alt_id A:2 is a term of its own (on line 7)"]


def test_a_name_without_a_prefix_is_the_ontologys() -> None:
    parsed_record = read_obo(f"{HEADER}[Term]\nid: two words\nname: x\nis_a: other\n")[0]
    assert parsed_record.foreign_id == "http://purl.obolibrary.org/obo/x#two"
    assert parsed_record.relations == [
        Relation(parsed_record.foreign_id, "ISA", "http://purl.obolibrary.org/obo/x#other")
    ]


def test_an_id_of_ours_is_known_bare_and_as_an_iri() -> None:
    for name in "dso_1", "https://example.org/id/dso_1":
        parsed_record = read_obo(f"{HEADER}[Term]\nid: {name}\nname: x\n")[0]
        assert (parsed_record.fields["id"], parsed_record.foreign_id) == ("dso_1", "")


def test_the_namespace_is_the_collection_where_it_names_one() -> None:
    text = (
        f"default-namespace: task\n{HEADER}[Term]\nid: A:1\nname: x\n\n[Term]\nid: A:2\nname: y\nnamespace: concept\n"
    )
    assert [parsed_record.collection for parsed_record in read_obo(text)] == [TASK.name, CONCEPT.name]
    reading = ReadOptions(OBO, collection=CONTRAST)
    assert {parsed_record.collection for parsed_record in codec.read(io.BytesIO(text.encode()), reading)} == {
        CONTRAST.name
    }


def test_a_term_of_which_nothing_tells_the_collection_is_refused() -> None:
    with pytest.raises(ParseError, match="line 4, column 1: nothing tells which collection"):
        read_obo(f"{HEADER}[Term]\nid: A:1\nname: x\n", None)


def test_a_file_that_is_no_obo_is_refused_with_its_place() -> None:
    for text in ("", "! nothing\n", "name: value\n"):
        with pytest.raises(ParseError, match="an OBO document was expected"):
            read_obo(text)
    [(_, *position)] = list_problems(f"{HEADER}[Term\nid: A:1\n")
    assert position == [4, 1]
    assert list_problems(f"{HEADER}[Term]\nid: A:1\ndef “x”\n") == [
        ("a clause, like `name: memory`, was expected", 6, 1)
    ]
    assert list_problems(f'{HEADER}[Term]\nid: A:1\n def: "x [A:1]\n') == [
        ("a quote that closes the text was expected after `def:`", 6, 7)
    ]
    assert list_problems(f"{HEADER}[Term]\nid: A:1\nis_a: ! nothing\n") == [
        ("an identifier was expected after `is_a:`", 6, 7)
    ]


def test_every_line_that_is_wrong_is_told() -> None:
    broken = "[Term]\nid: A:2\nno clause\nis_a: ! none\ndef: open\n"
    text = f"synonymtypedef:\n[Term]\nid: ! none\n\n{broken}\n[Term\nid: A:3\n\n[Term]\nname: x\n"
    assert [line for _, line, _ in list_problems(text)] == [1, 3, 7, 8, 9, 11, 14]


def test_a_term_without_an_id_or_with_a_number_that_is_none_is_refused() -> None:
    assert read_obo(f"{HEADER}[Term]\nname: x\n")[0].problems == ["the term has no id"]
    parsed_record = read_term('property_value: flag_for_curator "many" xsd:string')
    assert parsed_record.problems == ["flag_for_curator of DOID:1 is not a whole number: many"]


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
def test_a_line_that_is_made_to_harm_takes_steps_as_it_is_long(line: str) -> None:
    # A larger one would exceed the timeout of a test.
    with suppress(ParseError):
        read_obo(f"{HEADER}[Term]\nid: A:1\nname: x\n{line}\n")


def test_a_line_that_does_not_end_is_never_in_memory_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "MAX_LINE_CHARS", 1 << 20)
    document = io.BytesIO(b"!" * (64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(ParseError, match="the line does not end"):
            list(codec.read(document, ReadOptions(OBO, VOCABULARY, default_collection=DISORDER)))
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
