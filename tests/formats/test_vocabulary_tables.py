"""Tables of any vocabulary: columns are slots, languages or properties, and content without a column is kept."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexarium.domain.account import Role
from lexarium.domain.errors import ImportRejected, InvalidInput
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.statement import Reference, Statement, Text, normalize
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary, register_vocabularies
from lexarium.formats.parsed import WriteOptions
from lexarium.formats.registry import FORMATS
from lexarium.formats.resources import ResourceOptions
from lexarium.formats.tables import codec, resources
from lexarium.services.access.accounts import add_account
from lexarium.services.access.permissions import Caller
from lexarium.services.records.lookup import get_record
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.import_request import ImportMode, ImportRequest
from lexarium.services.transfer.resource_import.importer import import_resource_files
from lexarium.store.database import Database
from tests.support.imports import Curator, open_text
from tests.support.server import run_cli
from tests.support.vocabularies import update_vocabulary

ImportText = Callable[..., ImportReport]

THESAURUS = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix ex: <https://example.org/terms/> .
ex:scheme a skos:ConceptScheme ; <http://purl.org/dc/terms/title> "Colours"@en .
ex:red a skos:Concept ; skos:inScheme ex:scheme ; skos:prefLabel "red"@en, "rot"@de ; skos:altLabel "crimson"@en ;
    skos:broader ex:colour ; skos:scopeNote "Not pink; never."@en ; ex:wavelength 700 ; skos:notation "=R|1" ;
    skos:definition "The colour of blood; and of roses."@en .
ex:colour a skos:Concept ; skos:prefLabel "colour"@en, "hue"@en ; skos:narrower ex:missing .
"""
ONTOLOGY = """format-version: 1.4
ontology: test/colours

[Term]
id: COL:0001
name: red
alt_id: COL:0009
def: "The colour of blood." [PMID:1]
synonym: "crimson" NARROW poetic [COL:curators]
xref: WIKI:Red "the article"
is_a: COL:0002 {source="me"} ! colour
relationship: part_of COL:0002 ! colour

[Term]
id: COL:0002
name: colour

[Term]
id: COL:0003
is_obsolete: true
name: rouge
replaced_by: COL:0001
"""


@pytest.fixture
def import_text(database: Database, tmp_path: Path) -> ImportText:
    """Return a function that imports a text as a file of this name."""

    def run(name: str, text: str, vocabulary: str = "colours", **options: object) -> ImportReport:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return import_resource_files(database, ImportRequest([path], vocabulary or "", **options))  # type: ignore[arg-type]

    return run


def read(database: Database, local_id: str, vocabulary: str = "colours") -> Record:
    return database.run_read(get_record, f"{vocabulary}\x1f{local_id}").record


def export(database: Database, format: str = "csv") -> str:
    vocabulary = VOCABULARIES["colours"]
    return b"".join(export_records(database, vocabulary, FORMATS[format], vocabulary.collections)).decode()


def test_a_table_creates_a_vocabulary_with_slots_languages_and_relations(
    database: Database, import_text: ImportText
) -> None:
    table = (
        "id,iri,name,name@es,Definition,Synonyms,parents,scope_note,narrower\n"
        "c:1,https://c.example/1,colour,color,What is seen; by light.,,,One|Two,c:3\n"
        "c:2,,red,rojo,,crimson|Karmin @de,colour,,\n"
        "c:3,,blue,,,,,,\n"
    )
    report = import_text("colours.csv", table)
    assert (report.vocabulary, report.created) == ("colours", {"concept": 3})
    assert VOCABULARIES["colours"].languages == ("en", "es")
    colour, red = read(database, "c:1"), read(database, "c:2")
    assert (colour.iri, colour.definition) == ("https://c.example/1", "What is seen; by light.")
    assert (red.fields["name"], red.translated_names) == ("red", {"es": "rojo"})
    assert [(alias.text, alias.lang) for alias in red.aliases] == [("crimson", "en"), ("Karmin", "de")]
    assert red.relation_targets == {"broader": ["c:1"]}
    assert [item.value[0] for item in colour.statements if item.predicate == "skos:scopeNote"] == ["One", "Two"]
    assert read(database, "c:3").relation_targets == {"broader": ["c:1"]}
    assert not import_text("colours.csv", table).has_changes


@pytest.mark.parametrize(("name", "text"), [("colours.ttl", THESAURUS), ("colours.obo", ONTOLOGY)])
@pytest.mark.parametrize("format", ["csv", "tsv"])
def test_importing_an_export_changes_nothing(
    database: Database, import_text: ImportText, name: str, text: str, format: str
) -> None:
    import_text(name, text)
    table = export(database, format)
    report = import_text(f"colours.{format}", table)
    assert (report.has_changes, report.conflicts.count) == (False, 0)
    assert not import_text(name, text).has_changes
    assert export(database, format) == table


def test_an_export_has_a_row_per_record_and_a_column_per_language(database: Database, import_text: ImportText) -> None:
    import_text("colours.ttl", THESAURUS)
    titles, *rows = csv.reader(io.StringIO(export(database).removeprefix("\ufeff")))
    assert titles[:6] == ["collection", "id", "iri", "name@de", "name@en", "name@en"]
    assert "broader" in titles
    assert "https://example.org/terms/wavelength^^xsd:integer" in titles
    assert len(rows) == 3
    [red] = [dict(zip(titles, row, strict=True)) for row in rows if row[1] == "colours:red"]
    assert (red["name@de"], red["broader"], red["notation"]) == ("rot", "colours:colour", "'=R\\|1")


def test_an_exported_table_recreates_a_vocabulary(database: Database, import_text: ImportText) -> None:
    import_text("colours.ttl", THESAURUS)
    import_text("copy.csv", export(database), "copy")
    original, copy = read(database, "colours:red"), read(database, "colours:red", "copy")
    assert set(copy.statements) == set(original.statements)
    assert (copy.iri, copy.state) == (original.iri, original.state)


def test_a_table_exported_from_an_ontology_recreates_an_ontology(database: Database, import_text: ImportText) -> None:
    import_text("colours.obo", ONTOLOGY)
    import_text("copy.csv", export(database), "copy")
    assert VOCABULARIES["copy"].schema_source == "obo"
    red = read(database, "COL:0001", "copy")
    assert red.relation_targets["is_a"] == ["COL:0002"]
    assert read(database, "COL:0003", "copy").replaced_by == "copy\x1fCOL:0001"


def test_content_without_a_column_in_the_table_is_kept(database: Database, import_text: ImportText) -> None:
    import_text("colours.obo", ONTOLOGY)
    before = read(database, "COL:0001")
    report = import_text("names.tsv", "id\tname@fr\nCOL:0001\trouge\n")
    assert report.updated == {"term": 1}
    assert set(before.statements) < set(read(database, "COL:0001").statements)
    assert read(database, "COL:0003").state == RecordState.RETIRED


def test_an_empty_cell_removes_only_values_of_an_earlier_version_of_the_table(
    database: Database, import_text: ImportText
) -> None:
    import_text("colours.obo", ONTOLOGY)
    import_text("more.csv", "id,definition,aliases\nCOL:0001,,ruby|cherry\n")
    assert read(database, "COL:0001").definition == "The colour of blood."
    import_text("more.csv", "id,definition,aliases\nCOL:0001,,cherry\n")
    assert {alias.text for alias in read(database, "COL:0001").aliases} == {"crimson", "cherry"}
    import_text("more.csv", "id,definition\nCOL:0001,\n")
    assert {alias.text for alias in read(database, "COL:0001").aliases} == {"crimson", "cherry"}
    import_text("more.csv", "id,definition,aliases\nCOL:0001,,\n")
    assert {alias.text for alias in read(database, "COL:0001").aliases} == {"crimson"}


def test_an_edited_cell_replaces_an_imported_text_but_no_user_edit(
    database: Database, import_text: ImportText, curator: Curator
) -> None:
    import_text("colours.obo", ONTOLOGY)
    table = export(database)
    import_text("colours.csv", table.replace("The colour of blood.", "The colour of rubies."))
    assert read(database, "COL:0001").definition == "The colour of rubies."
    curator.edit("colours\x1fCOL:0002", name="color")
    report = import_text("colours.csv", export(database).replace("color,", "farbe,"))
    assert [(item.ours, item.theirs) for item in report.conflicts.items] == [("color", "farbe")]


def test_aliases_of_a_table_have_the_predicate_of_plain_labels(database: Database, import_text: ImportText) -> None:
    import_text("colours.csv", "id,name,aliases\nc:1,red,crimson|rd @/hidden\n")
    predicates = {item.value[0]: item.predicate for item in read(database, "c:1").statements}
    assert (predicates["crimson"], predicates["rd"]) == ("skos:altLabel", "skos:hiddenLabel")


@pytest.mark.parametrize("mode", ImportMode)
def test_aliases_missing_from_a_newer_table_are_removed_unless_other_sources_state_them(
    database: Database, import_text: ImportText, curator: Curator, mode: ImportMode
) -> None:
    import_text("colours.csv", "id,name,aliases\nc:1,red,crimson|ruby|scarlet\n")
    import_text("other.csv", "id,aliases\nc:1,scarlet|cherry\n", source="other")
    texts = ["crimson", "ruby", "scarlet", "cherry", "rosso"]
    curator.edit("colours\x1fc:1", aliases=[{"text": text} for text in texts])
    import_text("colours.csv", "id,name,aliases\nc:1,red,crimson\n", mode=mode)
    removed = set() if mode == ImportMode.ADD else {"ruby"}
    assert {alias.text for alias in read(database, "c:1").aliases} == set(texts) - removed


def test_replacing_a_table_retires_records_that_only_it_contained(
    database: Database, import_text: ImportText, curator: Curator
) -> None:
    table = "collection,id,name,aliases\nconcept,c:1,red,\nconcept,c:2,blue,azure\nconcept,c:3,green,\n"
    import_text("colours.csv", table + "concept_scheme,c:s,Colours,\n")
    import_text("other.csv", "id,name,aliases\nc:3,Green,lime\nc:4,pink,\n", source="other")
    curator.run(lambda writer: writer.create(COLLECTIONS["colours/concept"], {"id": "c:5", "name": "grey"}))
    import_text("colours.csv", "id,name\nc:5,grey\n")
    report = import_text("colours.csv", "id,name,aliases\nc:1,red,\n", mode=ImportMode.REPLACE)
    assert [item.id for item in report.affected["retired"]] == ["c:2"]
    blue, green, grey = (read(database, item) for item in ("c:2", "c:3", "c:5"))
    assert (blue.state, blue.fields["name"], len(blue.aliases)) == (RecordState.RETIRED, "blue", 1)
    assert [(item.state, item.fields["name"]) for item in (green, grey)] == [
        (RecordState.PUBLISHED, "Green"),
        (RecordState.PUBLISHED, "grey"),
    ]


def test_a_removed_name_is_replaced_by_one_of_another_source(database: Database, import_text: ImportText) -> None:
    import_text("colours.csv", "id,name\nc:1,red\n")
    import_text("other.csv", "id,name,definition\nc:1,Red,A colour.\n", source="other")
    import_text("other.csv", "id,name,definition\nc:1,,A colour.\n", source="other")
    assert read(database, "c:1").fields["name"] == "red"


def test_a_table_keeps_the_state_of_a_record_imported_by_field(
    database: Database, import_text: ImportText, tmp_path: Path
) -> None:
    import_text("colours.csv", "id,name,state\nc:1,red,retired\n")
    path = tmp_path / "colours.jsonl"
    path.write_text(export(database, "jsonl").replace("colours", "copy"), encoding="utf-8")
    run_import(database, ImportRequest([path]))
    import_text("copy.csv", "id,name,aliases\nc:1,red,crimson\n", "copy")
    assert read(database, "c:1", "copy").state == RecordState.RETIRED


def test_an_unknown_column_is_rejected_with_both_remedies(import_text: ImportText) -> None:
    with pytest.raises(ImportRejected) as raised:
        import_text("colours.csv", "id,name,Hex code,weight\nc:1,red,#f00,2\n")
    first, second = raised.value.problems
    assert first.field.endswith("colours.csv, line 1, column 3")
    assert "--map 'Hex code=property'" in first.detail
    assert "--map 'Hex code='" in first.detail
    assert "weight" in second.detail


def test_an_unknown_column_can_be_kept_as_property_predicate_or_slot_or_left_out(
    database: Database, import_text: ImportText
) -> None:
    table = "id,name,Hex code,weight,remark,junk\nc:1,red,#f00,2,fine,x\n"
    mapping = {"Hex code": "property", "weight": "schema:weight", "remark": "note@fr", "junk": ""}
    import_text("colours.csv", table, column_mapping=mapping)
    statements = {item.predicate: item.value for item in read(database, "c:1").statements}
    assert statements == {
        "skos:prefLabel": Text("red"),
        "urn:lexarium:vocabulary:colours:Hex_code": Text("#f00"),
        "schema:weight": Text("2"),
        "skos:note": Text("fine", "fr"),
    }


def test_all_problems_of_rows_are_reported_with_line_column_and_id(import_text: ImportText) -> None:
    table = (
        "collection,id,name,parents,state\nnonsense,c:1,a,,\n,c:2,b,,gone\n,,c,,\n,c:4,d,e,\n,c:5,e,,\n,c:6,e,,,more\n"
    )
    with pytest.raises(ImportRejected) as raised:
        import_text("colours.csv", table + ",c:7,e,,\n")
    places = [problem.field.partition("colours.csv, ")[2] for problem in raised.value.problems]
    expected = ["line 2, column 1", "line 3, column 5", "line 4, column 2", "line 5, column 4", "line 7, column 6"]
    assert places == expected
    assert "c:2" in raised.value.problems[1].detail


def test_two_columns_for_one_field_are_rejected(import_text: ImportText) -> None:
    with pytest.raises(ImportRejected, match="1 problem") as raised:
        import_text("colours.csv", "id,name,Preferred Term\nc:1,red,rot\n")
    assert "have the same meaning" in raised.value.problems[0].detail


def test_a_state_column_retires_and_restores_records(database: Database, import_text: ImportText) -> None:
    import_text("colours.csv", "id,name,obsolete,replaced by\nc:1,red,yes,c:2\nc:2,rot,no,\n")
    red = read(database, "c:1")
    assert (red.state, red.replaced_by) == (RecordState.RETIRED, "colours\x1fc:2")
    import_text("colours.csv", "id,state\nc:1,published\n")
    assert read(database, "c:1").state == RecordState.PUBLISHED


def test_the_commands_import_and_export_tables(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalogue.db"
    table, out = tmp_path / "colours.csv", tmp_path / "out.tsv"
    table.write_text("id,name,hex\nc:1,red,#f00\n", encoding="utf-8")
    refused = run_cli("import", table, "--vocabulary", "colours", "--database", url)
    assert refused.returncode == 1
    run_cli("import", table, "--vocabulary", "colours", "--map", "hex=property", "--database", url)
    run_cli("export", "--vocabulary", "colours", "--database", url, "-o", out)
    update = run_cli("import", table, "--map", "hex=property", "--database", url)
    assert "Vocabulary: colours" in update.stdout, "the table says which vocabulary the columns are of"
    again = run_cli("import", out, "--vocabulary", "colours", "--database", url)
    assert "Nothing changed." in again.stdout


TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00") | st.sampled_from("|;\\\t\r\n\"'=+-@ ,<>^")
).filter(str.strip)
LANGUAGES = st.sampled_from(["", "en", "es", "zh-Hant", "pt-BR"])
REFERENCES = st.builds(Reference, st.sampled_from(["COL:2", "https://example.org/a|b", "x y", "COL:1"]))
STATEMENTS = st.builds(
    Statement,
    st.sampled_from(
        (
            *("skos:prefLabel", "skos:altLabel", "skos:definition", "skos:scopeNote", "skos:notation", "skos:narrower"),
            *("skos:broader", "skos:exactMatch", "dcterms:created", "dcterms:isReplacedBy", "owl:deprecated"),
            *("rdfs:label", "https://example.org/own", "part_of", "COL:9", "name", "https://example.org/a@b", "a^^b"),
        )
    ),
    st.builds(Text, TEXTS, LANGUAGES, st.just(""))
    | REFERENCES
    | st.builds(
        Text, TEXTS | st.sampled_from(["1", "true"]), st.just(""), st.sampled_from(["xsd:integer", "xsd:boolean"])
    ),
    st.just(()),
)


@pytest.mark.parametrize("format", ["csv", "tsv"])
@given(statements=st.lists(STATEMENTS, max_size=8))
def test_any_statements_are_unchanged_after_export_and_import(format: str, statements: list[Statement]) -> None:
    vocabulary = Vocabulary("colours", schema_source="skos")
    register_vocabularies([vocabulary])
    try:
        record = Record(COLLECTIONS["colours/concept"], "colours\x1fCOL:1", normalize(statements))
        document = b"".join(codec.write([record], WriteOptions(FORMATS[format], vocabulary)))
        table = resources.open_document(open_text(document), ResourceOptions())
        [resource] = table.iter_resources(vocabulary)
    finally:
        register_vocabularies([])
    assert resource.problems == []
    assert set(resource.statements) == set(record.statements)


@pytest.fixture
def write_table(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


WriteTable = Callable[[str, str], Path]


def test_a_table_is_imported_into_the_vocabulary_with_most_of_its_records(
    database: Database, import_text: ImportText, write_table: WriteTable
) -> None:
    import_text("colours.obo", ONTOLOGY, "colours")
    import_text("thesaurus.ttl", THESAURUS, "things")
    table = write_table("more.csv", "id,name\nCOL:0001,scarlet\nCOL:0002,colour\nCOL:0005,blue\n")
    report = run_import(database, ImportRequest([table]))
    assert (report.vocabulary, report.created, report.updated) == ("colours", {"term": 1}, {"term": 1})
    iris = write_table("more.tsv", "iri\tname\nhttps://example.org/terms/red\tscarlet\n")
    assert run_import(database, ImportRequest([iris])).vocabulary == "things"
    unknown = write_table("unknown.csv", "id,name,hex code\nCOL:0001,red,#f00\n")
    with pytest.raises(ImportRejected) as refusal:
        run_import(database, ImportRequest([unknown]))
    assert "the column hex code is not known" in refusal.value.problems[0].detail
    assert "keep it with --map 'hex code=property'" in refusal.value.problems[0].detail


def test_a_table_keeps_its_ids_whatever_the_vocabulary_mints(
    database: Database, import_text: ImportText, write_table: WriteTable
) -> None:
    import_text("colours.obo", ONTOLOGY, "colours")
    update_vocabulary(database, "colours", minting="COL:{n:04} from 9000")
    table = write_table("more.csv", "id,name\nCOL:0001,scarlet\nCOL:0005,blue\nlocal-7,green\n")
    report = run_import(database, ImportRequest([table], "colours"))
    message = "keeps the id of the file, which is unlike those that the vocabulary mints (COL:{n:04} from 9000)"
    assert [(kind.message, kind.count) for kind in report.warnings.kinds] == [(message, 1)]
    assert read(database, "local-7").fields["name"] == "green"
    assert run_import(database, ImportRequest([table], "colours")).warnings.count == 0
    for text in ("name\npink\n", "id,name\n,pink\n"):
        with pytest.raises(ImportRejected) as refusal:
            run_import(database, ImportRequest([write_table("new.csv", text)], "colours"))
        assert "an import mints no ids" in refusal.value.problems[0].detail


def test_a_table_of_unknown_records_requires_the_vocabulary_option(
    database: Database, import_text: ImportText, write_table: WriteTable
) -> None:
    import_text("colours.obo", ONTOLOGY, "colours")
    for text in ("id,name\nCOL:0001,red\nCOL:7,blue\n", "id,name\nX:1,one\n", "name\nmemory\n"):
        with pytest.raises(InvalidInput, match=r"things.csv does not name its vocabulary.* --vocabulary"):
            run_import(database, ImportRequest([write_table("things.csv", text)]))
    for name, text in (
        ("concept.csv", "name\nmemory\n"),
        ("export.csv", "collection,id,name\nconcept,trm_1,one\n"),
        ("dump.csv", "collection,id,name,definition_text\nconcept,trm_x.y,two,A number.\n"),
    ):
        assert run_import(database, ImportRequest([write_table(name, text)])).vocabulary == "main"


def test_a_table_with_records_of_two_vocabularies_is_imported_into_the_one_that_defines_their_prefix(
    database: Database, import_text: ImportText, write_table: WriteTable
) -> None:
    for slug in ("first", "second"):
        import_text("colours.obo", ONTOLOGY, slug)
    table = write_table("more.csv", "id,name\nCOL:0001,red\n")
    with pytest.raises(InvalidInput, match="several vocabularies, first, second; choose one with --vocabulary"):
        run_import(database, ImportRequest([table]))
    update_vocabulary(database, "second", defines=["COL"])
    assert run_import(database, ImportRequest([table])).vocabulary == "second"


def test_a_table_does_not_reveal_a_private_vocabulary(
    database: Database, import_text: ImportText, write_table: WriteTable
) -> None:
    import_text("colours.obo", ONTOLOGY, "hidden")
    update_vocabulary(database, "hidden", private=True)
    curator = Caller(
        add_account(database, "Ada", Role.NONE), Role.NONE, "tok_test", vocabulary_roles={"main": Role.CURATOR}
    )
    table = write_table("more.csv", "id,name\nCOL:0001,red\n")
    with pytest.raises(InvalidInput) as refusal:
        run_import(database, ImportRequest([table], caller=curator))
    missing = write_table("missing.csv", "id,name\nCOL:9999,red\n")
    with pytest.raises(InvalidInput) as other:
        run_import(database, ImportRequest([missing], caller=curator))
    assert str(refusal.value).replace("more", "missing") == str(other.value)
    assert "hidden" not in str(refusal.value)
