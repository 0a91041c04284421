"""Import of translation tables: each changes only its language, and every value of a row is kept."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lexarium.domain.errors import ImportRejected, InvalidInput
from lexarium.domain.record import Record, RecordState
from lexarium.domain.record_texts import list_language_texts
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.formats.registry import FORMATS
from lexarium.services.records.lookup import get_record
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.services.transfer.resource_import.importer import import_resource_files
from lexarium.store.database import Database
from tests.support.imports import Curator

ImportText = Callable[..., ImportReport]

ONTOLOGY = """format-version: 1.4
ontology: test/colours

[Term]
id: COL:0001
name: red
def: "The colour of blood." [PMID:1]
synonym: "crimson" EXACT []

[Term]
id: COL:0002
name: blue

[Term]
id: COL:0003
is_obsolete: true
name: rouge
"""
BABELON = (
    "source_language\tsource_value\tsubject_id\tpredicate_id\ttranslation_language\ttranslation_value\t"
    "translation_status\ttranslator\ttranslator_expertise\ttranslation_date\n"
    "en\tred\tCOL:0001\trdfs:label\tes\trojo\tOFFICIAL\torcid:0000-0001\tDOMAIN_EXPERT\t2026-01-31\n"
    'en\tThe colour of blood.\tCOL:0001\tIAO:0000115\tes\t"El color de la ""sangre""\n y más."\tCANDIDATE\t\t\t\n'
    "en\tscarlet\tCOL:0002\trdfs:label\tes\tazul\tOFFICIAL\torcid:0000-0001\t\t\n"
)


@pytest.fixture
def import_text(database: Database, tmp_path: Path) -> ImportText:
    """Return a function that imports a text as a file of this name into a vocabulary that has an ontology."""

    def run(name: str, text: str, vocabulary: str = "colours", **options: object) -> ImportReport:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return import_resource_files(database, ImportRequest([path], vocabulary or "", **options))  # type: ignore[arg-type]

    run("colours.obo", ONTOLOGY)
    return run


def read(database: Database, local_id: str) -> Record:
    return database.run_read(get_record, f"colours\x1f{local_id}").record


def list_texts(record: Record, predicate: str) -> list[tuple[str, str]]:
    return [item.value[:2] for item in record.statements if item.predicate == predicate]  # type: ignore[misc]


def test_each_row_becomes_a_text_in_its_language_with_its_translator(
    database: Database, import_text: ImportText
) -> None:
    report = import_text("hp-es.babelon.tsv", BABELON)
    assert report.updated == {"term": 2}
    red = read(database, "COL:0001")
    assert list_texts(red, "rdfs:label") == [("red", ""), ("rojo", "es")]
    assert list_texts(red, "IAO:0000115") == [
        ("The colour of blood.", ""),
        ('El color de la "sangre"\n y más.', "es"),
    ]
    assert [alias.text for alias in red.aliases] == ["crimson"]
    [name] = [item for item in red.statements if item.value[0] == "rojo"]
    assert {item.predicate: item.value[0] for item in name.qualifiers} == {
        "babelon:translation_status": "OFFICIAL",
        "babelon:translator": "orcid:0000-0001",
        "babelon:translator_expertise": "DOMAIN_EXPERT",
        "babelon:translation_date": "2026-01-31",
        "lexarium:source": "red",
    }


def list_outdated(record: Record) -> list[str]:
    return [text.text for text in list_language_texts(record) if text.is_outdated]


def test_a_translation_of_an_outdated_source_text_is_imported_as_outdated(
    database: Database, import_text: ImportText
) -> None:
    import_text("es.tsv", BABELON)
    assert list_outdated(read(database, "COL:0001")) == []
    assert list_outdated(read(database, "COL:0002")) == ["azul"]


def test_reimporting_translations_changes_nothing(import_text: ImportText) -> None:
    import_text("es.tsv", BABELON)
    assert not import_text("es.tsv", BABELON).has_changes
    assert not import_text("colours.obo", ONTOLOGY).has_changes


def test_missing_terms_are_counted_and_not_created(database: Database, import_text: ImportText) -> None:
    rows = "".join(f"COL:9{number:03}\tes\tcolor {number}\n" for number in range(20))
    report = import_text("es.tsv", "subject_id\ttranslation_lang\ttranslation_value\n" + rows)
    [kind] = report.warnings.kinds
    message = "is not in the vocabulary colours; it was skipped. Import the record first, or choose the vocabulary that"
    assert (kind.message, kind.count) == (f"{message} has it with --vocabulary", 20)
    assert [(item.field[-6:], item.detail.partition(":")[0]) for item in kind.examples[:1]] == [("line 2", "COL")]
    assert (report.skipped, report.has_changes) == (20, False)


def test_alternative_column_titles_are_recognized_and_unknown_columns_are_kept(
    database: Database, import_text: ImportText
) -> None:
    table = (
        "source_id\tpredicate\tsource_text\ttranslation_text\ttranslator\tsource_lang\ttranslation_lang\tstatus\t"
        "auto_review_score\tsynonym_type\n"
        "COL:0001\toboInOwl:hasExactSynonym\tcrimson\tcarmesí\tMe\ten\tes\tDONE\t0.745\tobo:OMO_0003012\n"
    )
    import_text("colours-es.tsv", table)
    [alias] = [item for item in read(database, "COL:0001").statements if item.value[0] == "carmesí"]
    assert alias.predicate == "oboInOwl:hasExactSynonym"
    values = {item.predicate.rpartition(":")[2]: item.value[0] for item in alias.qualifiers}
    assert values == {
        "translator": "Me",
        "translation_status": "DONE",
        "auto_review_score": "0.745",
        "hasSynonymType": "OMO:0003012",
        "source": "crimson",
    }


def test_two_synonyms_with_one_translation_become_one_alias_with_both_sources(
    database: Database, import_text: ImportText
) -> None:
    rows = "".join(f"COL:0001\tskos:altLabel\t{text}\tes\tcarmesí\n" for text in ("crimson", "carmine"))
    import_text("es.tsv", "source_id\tpredicate\tsource_text\ttranslation_lang\ttranslation_text\n" + rows)
    red = read(database, "COL:0001")
    assert [alias.text for alias in red.aliases] == ["crimson", "carmesí"]
    assert len(list_texts(red, "oboInOwl:hasExactSynonym")) == 3


def test_standard_field_names_are_mapped_to_predicates_of_the_vocabulary(
    database: Database, import_text: ImportText
) -> None:
    table = (
        "id,predicate,translation_text\nCOL:0001,skos:prefLabel,rot\nCOL:0001,definition,Die Farbe.\nCOL:0002,,blau\n"
    )
    import_text("de.csv", table, format=FORMATS["translation"], language="DE")
    assert read(database, "COL:0001").translated_names == {"de": "rot"}
    assert ("Die Farbe.", "de") in list_texts(read(database, "COL:0001"), "IAO:0000115")
    assert read(database, "COL:0002").translated_names == {"de": "blau"}


def test_a_table_without_a_language_requires_the_language_option(import_text: ImportText) -> None:
    table = "source_id\ttranslation_text\nCOL:0001\trot\n"
    with pytest.raises(ImportRejected) as raised:
        import_text("de.tsv", table)
    assert "--lang" in raised.value.problems[0].detail
    assert import_text("de.tsv", table, language="de").updated == {"term": 1}


def test_an_update_replaces_only_its_own_texts(database: Database, import_text: ImportText) -> None:
    import_text("es.tsv", BABELON)
    german = BABELON.replace("\tes\t", "\tde\t").replace("rojo", "rot")
    import_text("de.tsv", german)
    import_text("es.tsv", BABELON.replace("rojo", "encarnado"))
    assert read(database, "COL:0001").translated_names == {"es": "encarnado", "de": "rot"}


def test_translated_names_and_definitions_go_through_obo(database: Database, import_text: ImportText) -> None:
    import_text("es.tsv", BABELON)
    vocabulary = VOCABULARIES["colours"]
    text = b"".join(export_records(database, vocabulary, FORMATS["obo"], vocabulary.collections)).decode()
    assert 'synonym: "rojo" EXACT [] {' in text
    assert not import_text("colours.obo", text).has_changes
    import_text("copy.obo", text, "copy")
    copy = database.run_read(get_record, "copy\x1fCOL:0001").record
    assert set(copy.statements) == set(read(database, "COL:0001").statements)


def test_a_locally_changed_translation_is_a_conflict(
    database: Database, import_text: ImportText, curator: Curator
) -> None:
    import_text("es.tsv", BABELON)
    curator.edit("colours\x1fCOL:0001", names=[{"text": "colorado", "lang": "es"}])
    report = import_text("es.tsv", BABELON.replace("rojo", "encarnado"))
    assert [(item.ours, item.theirs) for item in report.conflicts.items] == [("colorado", "encarnado")]
    assert read(database, "COL:0001").translated_names == {"es": "colorado"}


def test_a_retired_term_stays_retired(database: Database, import_text: ImportText) -> None:
    import_text("es.tsv", "subject_id\ttranslation_lang\ttranslation_value\nCOL:0003\tes\trojillo\n")
    rouge = read(database, "COL:0003")
    assert (rouge.state, rouge.translated_names) == (RecordState.RETIRED, {"es": "rojillo"})


def test_all_problems_are_reported_with_line_column_and_identifier(import_text: ImportText) -> None:
    table = (
        "subject_id\tpredicate_id\ttranslation_language\ttranslation_value\n"
        "COL:0001\trdfs:label\tspa_ES\trojo\n"
        "COL:0002\tnonsense\tes\tazul\n"
        "\trdfs:label\tes\tverde\n"
        "COL:0001\trdfs:label\tes\trojo\textra\n"
    )
    with pytest.raises(ImportRejected) as raised:
        import_text("es.tsv", table)
    places = [problem.field.partition("es.tsv, ")[2] for problem in raised.value.problems]
    assert places == ["line 2, column 3", "line 3, column 2", "line 4, column 1", "line 5, column 5"]
    assert "COL:0001" in raised.value.problems[0].detail


def test_a_missing_vocabulary_is_not_created(import_text: ImportText) -> None:
    with pytest.raises(InvalidInput, match="Vocabulary other not found"):
        import_text("es.tsv", BABELON, "other")


def test_rows_without_a_translation_are_counted(import_text: ImportText) -> None:
    report = import_text("es.tsv", "subject_id\ttranslation_lang\ttranslation_value\nCOL:0001\tes\t\nCOL:0002\tes\t\n")
    assert ["a row has no translation" in item.detail and "2 times" in item.detail for item in report.warnings.items]


def test_an_ontology_and_its_translations_can_be_imported_together(database: Database, tmp_path: Path) -> None:
    (tmp_path / "es.tsv").write_text(BABELON, encoding="utf-8")
    (tmp_path / "colours.obo").write_text(ONTOLOGY, encoding="utf-8")
    import_resource_files(database, ImportRequest([tmp_path / "es.tsv", tmp_path / "colours.obo"], "colours"))
    assert read(database, "COL:0001").translated_names == {"es": "rojo"}


def test_a_table_is_imported_into_the_vocabulary_that_has_its_terms(
    database: Database, import_text: ImportText
) -> None:
    report = import_text("es.tsv", BABELON, "")
    assert (report.vocabulary, report.updated) == ("colours", {"term": 2})
    with pytest.raises(InvalidInput, match="choose one with --vocabulary"):
        import_text("es.tsv", BABELON.replace("COL:", "ZZZ:"), "")
