"""RDF and OBO in the main vocabulary: identifiers, collections, newer editions, and rejected files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lexarium.domain.errors import InvalidInput
from lexarium.domain.record import RecordState, Relation
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.formats.registry import FORMATS
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.import_request import ImportMode, ImportRequest
from lexarium.store.database import Database
from tests.support.imports import Curator, build_term, import_json, load_record

ImportText = Callable[..., ImportReport]

ONTOLOGY = """format-version: 1.4
ontology: test/colours

[Term]
id: COL:1
name: red
xref: WIKI:Red
is_a: COL:2

[Term]
id: COL:2
name: colour
"""


@pytest.fixture
def import_text(database: Database, tmp_path: Path) -> ImportText:
    """Return a function that imports a text as a file of this name."""

    def run(name: str, text: str, **options: object) -> ImportReport:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return run_import(database, ImportRequest([path], **options))  # type: ignore[arg-type]

    return run


def export(database: Database, format: str) -> str:
    vocabulary = VOCABULARIES["main"]
    return b"".join(export_records(database, vocabulary, FORMATS[format], vocabulary.collections)).decode()


def test_foreign_terms_keep_their_identifiers_in_the_chosen_collection(
    database: Database, import_text: ImportText
) -> None:
    report = import_text("colours.obo", ONTOLOGY, collection="disorder")
    assert (report.vocabulary, report.created) == ("main", {"disorder": 2})
    red = load_record(database, "COL:1")
    assert red.relations == {Relation("COL:1", "ISA", "COL:2"), Relation("COL:1", "oboInOwl:hasDbXref", "WIKI:Red")}
    assert red.fields["event_stamp"], "what v-alpha needs is made up"
    assert not import_text("colours.obo", ONTOLOGY, collection="disorder").has_changes
    assert VOCABULARIES["main"].sources == (), "a file of others says nothing about the main vocabulary"
    assert check_database(database).problems == []


def test_a_mapping_never_identifies_a_record(database: Database, curator: Curator, tmp_path: Path) -> None:
    import_json(database, tmp_path, "disorder.json", [{"id": "dso_1", "name": "ours"}])
    curator.run(lambda writer: writer.add_relation(writer.get_record("dso_1"), "exactMatch", "COL:1"))
    path = tmp_path / "colours.obo"
    path.write_text(ONTOLOGY)
    assert run_import(database, ImportRequest([path], collection="disorder")).created == {"disorder": 2}
    assert load_record(database, "dso_1").fields["name"] == "ours"


@pytest.mark.parametrize("format", ["skos", "obo"])
def test_importing_an_edited_export_changes_only_locally_unchanged_records(
    database: Database, curator: Curator, import_text: ImportText, tmp_path: Path, format: str
) -> None:
    import_json(database, tmp_path, "concept.json", [build_term("one"), build_term("two")])
    document = export(database, format)
    curator.edit("trm_two", definition_text="By a person.")
    edited = document.replace("What one is.", "What it is.").replace("What two is.", "What it is.")
    report = import_text(f"edited{FORMATS[format].extensions[0]}", edited)
    assert (report.vocabulary, report.updated, report.conflicts.count) == ("main", {"concept": 1}, 1)
    assert load_record(database, "trm_one").definition == "What it is."
    assert load_record(database, "trm_two").definition == "By a person."


def test_records_merged_in_a_cycle_or_into_missing_ones_are_retired(
    database: Database, import_text: ImportText
) -> None:
    term = '[Term]\nid: {0}\nname: x\nproperty_value: lexarium:state "merged" xsd:string\nreplaced_by: {1}\n\n'
    pairs = [("A:1", "A:2"), ("A:2", "A:1"), ("A:3", "A:9"), ("A:4", "A:5")]
    text = "".join(term.format(*pair) for pair in pairs) + "[Term]\nid: A:5\nname: y\n"
    report = import_text("merged.obo", f"format-version: 1.4\n\n{text}", vocabulary="main")
    states = [load_record(database, f"A:{number}").state for number in range(1, 6)]
    assert states == [*[RecordState.RETIRED] * 3, RecordState.MERGED, RecordState.PUBLISHED]
    assert report.warnings.count == 3
    assert check_database(database).problems == []


ADDITION = """ontology: test/more

[Term]
id: trm_1
name: colour
def: "What is seen." []
synonym: "chroma" EXACT [PMID:1]
is_a: trm_2
"""


def list_aliases(database: Database) -> list[str]:
    return [alias.text for alias in load_record(database, "trm_1").aliases]


def test_an_ontology_adds_aliases_to_the_text_of_a_record(database: Database, import_text: ImportText) -> None:
    import_text("concept.csv", "id,name,aliases\ntrm_1,colour,hue|tint\n")
    import_text("more.obo", ADDITION, vocabulary="main")
    assert list_aliases(database) == ["hue", "tint", "chroma"]
    assert load_record(database, "trm_1").fields["alias"] == "hue, tint"


def test_a_table_removes_no_statements_of_an_ontology(database: Database, import_text: ImportText) -> None:
    table = "id,name,definition,aliases,parents\ntrm_1,colour,,hue|tint,\ntrm_2,quality,,,\n"
    import_text("concept.csv", table)
    import_text("more.obo", ADDITION, vocabulary="main")
    assert not import_text("concept.csv", table).has_changes
    import_text("concept.csv", table.replace("|tint", ""))
    colour = load_record(database, "trm_1")
    assert set(list_aliases(database)) == {"hue", "chroma"}
    assert (colour.definition, colour.relation_targets) == ("What is seen.", {"KINDOF": ["trm_2"]})
    qualified = [item.value[0] for item in colour.statements if item.qualifiers]
    assert qualified == ["chroma"], "references of a synonym stay"


def test_a_dry_run_of_a_table_shows_the_values_of_each_field(import_text: ImportText) -> None:
    import_text("concept.csv", "id,name,aliases\ntrm_1,colour,hue\n")
    report = import_text("concept.csv", "id,name,aliases\ntrm_1,color,hue\n", dry_run=True)
    [[change]] = [item.changes for item in report.affected["updated"]]
    assert (change.field, change.removed, change.added) == ("name", ["colour"], ["color"])


def test_a_table_imported_in_add_mode_replaces_nothing_and_is_kept(database: Database, import_text: ImportText) -> None:
    table = "id,name,definition,aliases,parents\ntrm_1,colour,,hue|tint,\n"
    addition = (
        "id,name,definition,aliases,parents,state\ntrm_1,color,What is seen.,shade,trm_2,retired\ntrm_2,quality,,,,\n"
    )
    import_text("concept.csv", table)
    report = import_text("concept.csv", addition, mode=ImportMode.ADD)
    assert [(item.ours, item.theirs) for item in report.conflicts.items] == [("colour", "color")]
    for mode in ImportMode.ADD, ImportMode.UPDATE:
        import_text("concept.csv", table.replace("colour,,", "colour,What is seen.,"), mode=mode)
        colour = load_record(database, "trm_1")
        assert (colour.fields["name"], colour.definition, colour.state) == ("colour", "What is seen.", "published")
        assert set(list_aliases(database)) == {"hue", "tint", "shade"}
        assert colour.relation_targets == {"KINDOF": ["trm_2"]}
    with pytest.raises(InvalidInput, match="update or add"):
        import_text("concept.csv", table, mode=ImportMode.REPLACE)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("old.ttl", "@prefix lexarium: <https://example.org/vocabulary#> .\n"),
        ("old.nt", "<https://example.org/concept> a <https://example.org/vocabulary#Collection> .\n"),
        ("old.obo", 'format-version: 1.4\nsynonymtypedef: hidden "Only for finding the term" RELATED\n'),
    ],
)
def test_an_export_of_an_earlier_version_is_rejected(import_text: ImportText, name: str, text: str) -> None:
    with pytest.raises(InvalidInput, match="exported by an earlier version"):
        import_text(name, text)


def test_predicates_cannot_be_mapped_like_columns(import_text: ImportText) -> None:
    with pytest.raises(InvalidInput, match="has no columns"):
        import_text("colours.obo", ONTOLOGY, vocabulary="main", column_mapping={"xref": "exactMatch"})
