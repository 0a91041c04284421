"""OBO: what published files hold is read, what is written is read back as it was."""

import io
import tracemalloc
from collections.abc import Mapping
from contextlib import suppress

import fastobo  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given, settings

from lexarium.domain.aliases import Alias
from lexarium.domain.changes import State, Whole
from lexarium.domain.collections import CONCEPT, CONTRAST, DISORDER, TASK, Collection
from lexarium.domain.relations import Edge
from lexarium.exchange import obo, obo_syntax
from lexarium.exchange.formats import FORMATS
from lexarium.exchange.incoming import Incoming, Malformed, Reading
from lexarium.exchange.obo_terms import PROPERTIES
from tests.wholes import ABOUT, LONG_ONE, catalogues, relations_of

OBO = FORMATS["obo"]
HEAD = "format-version: 1.4\nontology: x\n\n"


def read(text: str, collection: Collection | None = DISORDER, map: Mapping[str, str] | None = None) -> list[Incoming]:
    reading = Reading(OBO, ABOUT, fallback=collection, map=map or {})
    return list(obo.read(io.BytesIO(text.encode()), reading))


def term(clauses: str, collection: Collection = DISORDER, map: Mapping[str, str] | None = None) -> Incoming:
    return read(f"{HEAD}[Term]\nid: DOID:1\nname: one\n{clauses}\n", collection, map)[0]


def warnings(text: str, collection: Collection = DISORDER) -> list[str]:
    return [each for incoming in read(text, collection) if incoming.line == 0 for each in incoming.warnings]


def written(wholes: list[Whole]) -> bytes:
    return b"".join(obo.write(OBO, ABOUT, wholes))


def mistakes(text: str) -> list[tuple[str, int, int]]:
    found = read(text)
    return [(problem, each.line, each.column) for each in found for problem in each.problems]


@settings(deadline=None)
@given(catalogues)
@example([LONG_ONE])
def test_what_is_written_is_read_as_it_was(wholes: list[Whole]) -> None:
    back = read(written(wholes).decode(), None)
    assert len(back) == len(wholes)
    for incoming, whole in zip(back, wholes, strict=True):
        told = {"id", "name", whole.collection.definition or "", *PROPERTIES} & set(whole.fields)
        told |= {
            name for name in ("id_user", "event_stamp") if whole.fields.get(name) in ("usr_1", "2017-12-07T15:30:26")
        }
        assert incoming.problems == []
        assert incoming.collection == whole.collection.name
        assert incoming.fields == {name: whole.fields[name] for name in told}
        assert incoming.aliases == whole.alias_list
        assert incoming.sources == whole.sources
        assert (incoming.state, incoming.replaced_by) == (whole.state, whole.replaced_by)
        assert sorted(incoming.edges) == sorted(whole.edges)
        assert {name for name, _ in incoming.told} == set(relations_of(whole.collection))


def test_another_program_reads_what_is_written() -> None:
    fields = {
        "id": "dso_1",
        "name": 'a {b} "c" \\ ! d',
        "definition": 'one\ntwo "three" \\n',
        "id_protocol": "DSM",
        "flag_for_curator": -1,
    }
    edges = {Edge("dso_1", "ISA", "dso_2"), Edge("dso_1", "closeMatch", "https://example.org/a,b?c=(d)#e")}
    aliases = (Alias(text='"x" [y]', lang="pt-BR", scope="hidden"), Alias(text="z", lang="en", scope="narrow"))
    whole = Whole(DISORDER, fields, frozenset(edges), State.MERGED, "dso_2", aliases, ("PMID:1", "A book, 2nd ed."))
    document = fastobo.loads(written([whole]).decode())
    frame = document[0]
    found = {clause.raw_tag(): clause for clause in frame}
    assert str(frame.id) == "dso_1"
    assert found["name"].name == fields["name"]
    assert found["def"].definition == fields["definition"]
    assert next(str(xref.id) for xref in found["def"].xrefs) == "PMID:1"
    assert len(found["def"].xrefs) == 2
    assert [clause.synonym.desc for clause in frame if clause.raw_tag() == "synonym"] == ['"x" [y]', "z"]
    assert {"is_a", "xref", "is_obsolete", "replaced_by"} <= set(found)
    assert len(document) == 1 + written([]).count(b"[Typedef]")


def test_the_document_says_whose_it_is_and_in_which_language() -> None:
    header = written([]).decode().partition("[Typedef]")[0]
    assert "ontology: a_title_of_things\n" in header
    for told in ("license", ABOUT.licence), ("publisher", ABOUT.publisher), ("language", ABOUT.language):
        assert f'property_value: http://purl.org/dc/terms/{told[0]} "{told[1]}" xsd:string\n' in header


def test_the_language_of_the_document_goes_before_the_catalogues() -> None:
    head = 'property_value: http://purl.org/dc/terms/language "fr" xsd:string\n'
    found = read(f'{head}[Term]\nid: A:1\nname: x\nsynonym: "y" EXACT []\nsynonym: "z" EXACT [] {{xml:lang="de"}}\n')[0]
    assert [alias.lang for alias in found.aliases or ()] == ["fr", "de"]


def test_a_published_term_is_read_whole() -> None:
    found = term(
        "namespace: disease_ontology\n"
        'def: "What it is\\, \\"quoted\\"." [PMID:1 "A paper", url:http\\://x.org/a] {a="b"}\n'
        'synonym: "uno" EXACT [PMID:2]\nsynonym: "due" NARROW ABBREV [] ! c\n'
        'xref: MESH:D1 "words"\nis_a: DOID:4 {x="y"} ! disease\n'
        "alt_id: DOID:9\nis_obsolete: true\nreplaced_by: DOID:5\n"
    )
    assert (found.line, found.collection, found.foreign) == (4, "disorder", "DOID:1")
    assert found.fields == {"name": "one", "definition": 'What it is, "quoted".'}
    assert found.sources == ('PMID:1 "A paper"', "url:http://x.org/a")
    assert [(alias.text, alias.scope) for alias in found.aliases or ()] == [("uno", "exact"), ("due", "narrow")]
    assert set(found.edges) == {
        Edge("DOID:1", "ISA", "DOID:4"),
        Edge("DOID:1", "exactMatch", "DOID:9"),
        Edge("DOID:1", "closeMatch", "MESH:D1"),
    }
    assert found.told == [("ISA", "source"), ("closeMatch", "source")]
    assert (found.state, found.replaced_by) == (State.RETIRED, "DOID:5")


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
    assert read(f"{HEAD}[Term]\nid: A:1\n{clause}\n")[0].fields["name"] == name


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
    found = term(clause)
    assert (found.fields["definition"], found.sources) == (text, sources)


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
    found = read(f"{head}[Term]\nid: A:1\nname: x\n{clause}\n")[0]
    assert found.aliases == (Alias(text="s", lang="en", scope=scope),)  # type: ignore[arg-type]


def test_when_a_term_was_made_is_kept() -> None:
    found = term("created_by: me\ncreation_date: 2009-07-29T04:49:13+02:00")
    assert found.fields["event_stamp"] == "2009-07-29T02:49:13"
    assert "id_user" not in found.fields
    assert "event_stamp" not in term("creation_date: yesterday").fields


def test_a_synonym_that_is_told_for_each_of_its_sources_is_one() -> None:
    found = term('synonym: "s" EXACT [A:1]\nsynonym: "s" EXACT [A:2]')
    assert [alias.text for alias in found.aliases or ()] == ["s"]


def test_part_of_and_consider_are_relations_between_concepts() -> None:
    clauses = "relationship: part_of DOID:2 ! two\nrelationship: BFO:0000050 DOID:3\nconsider: DOID:4\nis_a: DOID:5"
    found = {(edge.relation, edge.target) for edge in term(clauses, CONCEPT).edges}
    assert found == {("PARTOF", "DOID:2"), ("PARTOF", "DOID:3"), ("RELATED", "DOID:4"), ("KINDOF", "DOID:5")}


def test_what_a_collection_cannot_say_is_told_and_left_out() -> None:
    text = f'{HEAD}[Term]\nid: A:1\nname: x\nis_a: A:2\nrelationship: part_of A:3\nconsider: A:4\ndef: "d" []\n'
    assert [edge.relation for edge in read(text, CONTRAST)[0].edges] == ["relatedMatch"]
    assert warnings(text, CONTRAST) == [
        "`is_a` means nothing for a contrast (on line 7)",
        "`relationship` means nothing for a contrast (on line 8)",
        "`consider` of a contrast is kept as relatedMatch (on line 9)",
        "a contrast has no definition; it is not kept (on line 10)",
    ]


def test_clauses_that_are_not_known_are_named_once_with_how_often() -> None:
    more = "subset: s\nrelationship: regulates A:2\nintersection_of: A:3\nintersection_of: part_of A:4\nnew_tag: 1\n"
    text = f"import: http://x.org/y.owl\n{HEAD}[Term]\nid: A:1\nname: x\n{more}\n[Term]\nid: A:2\nname: y\n{more}"
    text += "[Instance]\nid: i:1\n\n[Typedef]\nid: regulates\nname: r\nfoo: bar\n"
    assert warnings(text) == [
        "http://x.org/y.owl was not fetched, though the file imports it (on line 1)",
        "the clause `subset` is not kept (2 times, first on line 8)",
        "the relationship `regulates` is not kept (2 times, first on line 9)",
        "the clause `intersection_of` is not kept (4 times, first on line 10)",
        "the clause `new_tag` is not kept (2 times, first on line 12)",
        "the stanza [Instance] is not kept (on line 22)",
    ]


def test_a_map_says_what_relations_properties_and_clauses_mean() -> None:
    clauses = 'relationship: regulates A:2\nproperty_value: note "N" xsd:string\nxref: B:1\ncomment: why'
    found = term(clauses, CONCEPT, {"regulates": "RELATED", "note": "id_concept_class", "xref": "exactMatch"})
    assert {(edge.relation, edge.target) for edge in found.edges} == {("RELATED", "A:2"), ("exactMatch", "B:1")}
    assert found.fields["id_concept_class"] == "N"
    assert {name for name, _ in found.told} == {"KINDOF", "RELATED", "exactMatch"}
    assert term("comment: why", CONCEPT, {"comment": "definition"}).fields["definition_text"] == "why"
    assert term("comment: why", CONCEPT, {"comment": "aliases"}).aliases == (
        Alias(text="why", lang="en", scope="exact"),
    )
    assert term("comment: why", CONCEPT, {"comment": "sources"}).sources == ("why",)


def test_an_xref_that_is_also_a_mapping_is_not_told_twice() -> None:
    found = term("xref: B:1\nxref: C:1\nproperty_value: skos:exactMatch B:1")
    assert {(edge.relation, edge.target) for edge in found.edges} == {("exactMatch", "B:1"), ("closeMatch", "C:1")}


def test_an_alt_id_that_is_a_term_of_the_file_stays_its_own() -> None:
    text = f"{HEAD}[Term]\nid: A:1\nname: x\nalt_id: A:2\n\n[Term]\nid: A:2\nname: y\n"
    assert read(text)[0].edges == []
    assert warnings(text) == ["the alt_id A:2 is a term of its own (on line 7)"]


def test_a_name_without_a_prefix_is_the_ontologys() -> None:
    found = read(f"{HEAD}[Term]\nid: two words\nname: x\nis_a: other\n")[0]
    assert found.foreign == "http://purl.obolibrary.org/obo/x#two"
    assert found.edges == [Edge(found.foreign, "ISA", "http://purl.obolibrary.org/obo/x#other")]


def test_an_id_of_ours_is_known_bare_and_as_an_iri() -> None:
    for name in "dso_1", "https://example.org/id/dso_1":
        found = read(f"{HEAD}[Term]\nid: {name}\nname: x\n")[0]
        assert (found.fields["id"], found.foreign) == ("dso_1", "")


def test_the_namespace_is_the_collection_where_it_names_one() -> None:
    text = f"default-namespace: task\n{HEAD}[Term]\nid: A:1\nname: x\n\n[Term]\nid: A:2\nname: y\nnamespace: concept\n"
    assert [each.collection for each in read(text)] == [TASK.name, CONCEPT.name]
    reading = Reading(OBO, collection=CONTRAST)
    assert {each.collection for each in obo.read(io.BytesIO(text.encode()), reading)} == {CONTRAST.name}


def test_a_term_of_which_nothing_tells_the_collection_is_refused() -> None:
    with pytest.raises(Malformed, match="line 4, column 1: nothing tells which collection"):
        read(f"{HEAD}[Term]\nid: A:1\nname: x\n", None)


def test_a_file_that_is_no_obo_is_refused_with_its_place() -> None:
    for text in ("", "! nothing\n", "name: value\n"):
        with pytest.raises(Malformed, match="an OBO document was expected"):
            read(text)
    [(_, *place)] = mistakes(f"{HEAD}[Term\nid: A:1\n")
    assert place == [4, 1]
    assert mistakes(f"{HEAD}[Term]\nid: A:1\ndef “x”\n") == [("a clause, like `name: memory`, was expected", 6, 1)]
    assert mistakes(f'{HEAD}[Term]\nid: A:1\n def: "x [A:1]\n') == [
        ("a quote that closes the text was expected after `def:`", 6, 7)
    ]
    assert mistakes(f"{HEAD}[Term]\nid: A:1\nis_a: ! nothing\n") == [("an identifier was expected after `is_a:`", 6, 7)]


def test_every_line_that_is_wrong_is_told() -> None:
    broken = "[Term]\nid: A:2\nno clause\nis_a: ! none\ndef: open\n"
    text = f"synonymtypedef:\n[Term]\nid: ! none\n\n{broken}\n[Term\nid: A:3\n\n[Term]\nname: x\n"
    assert [line for _, line, _ in mistakes(text)] == [1, 3, 7, 8, 9, 11, 14]


def test_a_term_without_an_id_or_with_a_number_that_is_none_is_refused() -> None:
    assert read(f"{HEAD}[Term]\nname: x\n")[0].problems == ["the term has no id"]
    found = term('property_value: flag_for_curator "many" xsd:string')
    assert found.problems == ["flag_for_curator of DOID:1 is not a whole number: many"]


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
    # Any more than that, and the time that a test may take would be over long before.
    with suppress(Malformed):
        read(f"{HEAD}[Term]\nid: A:1\nname: x\n{line}\n")


def test_a_line_that_does_not_end_is_never_in_memory_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obo_syntax, "LONGEST_LINE", 1 << 20)
    document = io.BytesIO(b"!" * (64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(Malformed, match="the line does not end"):
            list(obo.read(document, Reading(OBO, ABOUT, fallback=DISORDER)))
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
