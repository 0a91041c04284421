"""LinkML instances in and out, and records with several classes."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

from lexarium.domain.errors import ImportRejected
from lexarium.domain.record import TYPE, Record, Relation, parse_labels
from lexarium.domain.schema.collections import COLLECTIONS, COLLECTIONS_BY_TYPE, Collection
from lexarium.domain.statement import INTEGER, Reference, Statement, Text
from lexarium.domain.vocabulary import Vocabulary
from lexarium.formats.detection import detect_format
from lexarium.formats.json import linkml
from lexarium.formats.parsed import ParsedRecord, ParseError, ReadOptions
from lexarium.formats.registry import FORMATS
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.field_import.importer import import_files
from lexarium.services.transfer.import_report import ImportReport
from lexarium.store import revisions
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from tests.support.databases import DatabaseUrlFactory
from tests.support.imports import Curator, get_valpha_record, list_records, load_record, open_text, write_json
from tests.support.server import run_cli

LINKML = FORMATS["linkml"]
CONCEPT, TASK, DISORDER = COLLECTIONS["concept"], COLLECTIONS["task"], COLLECTIONS["disorder"]
DISAMBIGUATION = COLLECTIONS["disambiguation"]
JOY = {
    "id": "trm_joy",
    "name": "joy",
    "creation_time": "1577934245000",
    "last_updated": "1577934245001",
    "definition_text": "A pleasant feeling.",
    "kind_of": ["trm_feeling"],
    "has_citation": ["cit_1"],
}
AMBIGUOUS_JOY = {
    "id": "trm_joy",
    "name": "joy (two senses)",
    "creation_time": "1577934245002",
    "disambiguates": ["trm_bliss", "trm_fun"],
}


def write_container(folder: Path, type_name: str, *entries: dict[str, Any], name: str | None = None) -> Path:
    return write_json(folder / (name or f"{type_name}.json"), {"entries": entries, "@type": type_name})


def import_container(
    database: Database, folder: Path, type_name: str, *entries: dict[str, Any], **options: Any
) -> ImportReport:
    return import_files(database, [write_container(folder, type_name, *entries)], **options)


def read(document: Any, **options: Any) -> list[ParsedRecord]:
    """Return the records of a document, without the counted warnings at its end."""
    text = document if isinstance(document, bytes) else orjson.dumps(document)
    return list(linkml.read(open_text(text), ReadOptions(LINKML, **options)))[:-1]


def list_warnings(report: ImportReport) -> list[str]:
    return [warning.detail for warning in report.warnings.items]


def export(database: Database, *names: str) -> dict[str, Any]:
    collections = [COLLECTIONS[name] for name in names or COLLECTIONS]
    document: dict[str, Any] = json.loads(b"".join(export_records(database, Vocabulary(), LINKML, collections)))
    return document


def list_texts(record: Record, predicate: str) -> list[str]:
    return [str(statement.value[0]) for statement in record.statements if statement.predicate == predicate]


@pytest.mark.parametrize(
    ("name", "head", "format"),
    [
        ("x.json", b'{"@type": "ConceptCollection", "entries": [', "linkml"),
        ("x.json", b'{ "@type":"ExternalLinkCollection"}', "linkml"),
        ("x", b'\n{\n "entries": [', "linkml"),
        ("ConceptCollection.json", b'{"about": 1, ', "linkml"),
        ("ConceptCollection.2020.json", b'{"about": 1, ', "linkml"),
        ("ConceptCollection.json", b"[", "v-alpha"),
        ("ConceptCollection.json", b'{"@context": {}', "jsonld"),
        ("x.json", b'{"@type": "Person", "entries": [', "jsonld"),
        ("x.json", b'{"id": "trm_1", "entries": [', "v-alpha"),
        ("x.yaml", b"", "linkml"),
        ("x.yml", b"", "linkml"),
    ],
)
def test_a_container_is_recognized_by_content_or_name(name: str, head: bytes, format: str) -> None:
    assert detect_format(name, head).name == format


def test_entries_are_read_by_the_slots_of_their_class() -> None:
    document = {
        "@type": "AssertionCollection",
        "entries": [
            {
                "id": "ass_1",
                "name": "joy is measured",
                "creation_time": "1577934245000",
                "confidence_level": "80",
                "subject": ["trm_joy"],
                "predicate": ["tsk_smile", "tsk_laugh"],
            }
        ],
    }
    [record] = read(document)
    assert record.collection == "assertion"
    assert record.fields == {
        "id": "ass_1",
        "name": "joy is measured",
        "creation_time": 1577934245000,
        "confidence_level": "80",
    }
    assert record.relations == [
        Relation("ass_1", "subject", "trm_joy"),
        Relation("ass_1", "predicate", "tsk_smile"),
        Relation("ass_1", "predicate", "tsk_laugh"),
    ]
    assert record.targets_are_ids
    slots = COLLECTIONS["assertion"].relation_predicates
    assert record.complete_relations == [(name, "source") for name in slots]


@pytest.mark.parametrize(
    ("document", "options", "collection"),
    [
        ({"@type": "TaskCollection", "entries": [{"id": "x"}]}, {}, "task"),
        ({"entries": [{"id": "x"}], "@type": "TaskCollection"}, {}, "task"),
        ({"entries": [{"id": "x"}], "@type": "Task"}, {"default_collection": CONCEPT}, "task"),
        ({"entries": [{"id": "x", "@type": "Task"}]}, {"default_collection": CONCEPT}, "task"),
        ({"entries": [{"id": "x", "@type": "Task"}], "@type": "ConceptCollection"}, {}, "task"),
        ({"entries": [{"id": "x"}]}, {"default_collection": TASK}, "task"),
        ({"entries": [{"id": "x"}], "@type": "TaskCollection"}, {"collection": CONCEPT}, "concept"),
    ],
)
def test_the_class_is_determined_by_option_then_entry_then_file_then_file_name(
    document: Any, options: Any, collection: str
) -> None:
    [record] = read(document, **options)
    assert record.collection == collection


def test_the_file_name_determines_the_class(database: Database, tmp_path: Path) -> None:
    path = write_json(tmp_path / "TaskCollection.json", {"entries": [{"id": "tsk_1", "name": "smiling"}]})
    assert import_files(database, [path]).created == {"task": 1}


def test_every_entry_has_its_line_and_large_files_are_read_in_chunks() -> None:
    entries = [{"id": f"trm_{number}", "name": "x" * 1_000, "kind_of": ["trm_1", "trm_2"]} for number in range(3_000)]
    text = json.dumps({"entries": entries, "@type": "ConceptCollection"}, indent=1)
    lines = text.splitlines()
    for record in read(text.encode()):
        assert lines[record.line - 1] == "  {"
        assert lines[record.line] == f'   "id": "{record.fields["id"]}",'
    assert len(read(text.encode())) == len(entries)


def test_a_number_at_a_chunk_boundary_is_read_completely() -> None:
    for padding in range((1 << 20) - 40, (1 << 20) - 8):
        text = b'{"entries": [], "about": "%s", "size": 123456, "@type": "Concept"}' % (b"x" * (padding - 50))
        assert read(text) == []


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (b"", 1, "empty"),
        (b"[]", 1, "not a JSON object"),
        (b'{"about": 1}', 1, "no entries"),
        (b'{"entries": {}}', 1, "not an array"),
        (b'{"entries": [1]}', 1, "an object"),
        (b'{\n"entries": [{"id": "x"}\n', 3, "a comma or the end of the array"),
        (b'{"entries": [], }', 1, "key in double quotes"),
        (b'{"entries" []}', 1, "colon"),
        (b'{"entries": []} x', 1, "nothing was expected"),
        (b'{"entries": [],\n"@type": "Animal"}', 2, "'Animal', which is not one of Concept, Task"),
        (b'{"entries": [{"id": "x", "@type": 1}]}', 1, "@type is 1"),
        (b'{"entries": [{"id": "x"}]}', 1, "--collection"),
        (b"- a", 1, "not a YAML mapping"),
        (b"entries: a", 1, "not a list of mappings"),
        (b"entries:\n- a", 2, "not a list of mappings"),
        (b"entries: [\n", 2, "invalid YAML"),
        (b"a: 1\n---\nb: 1", 2, "second document"),
    ],
)
def test_malformed_data_is_rejected_with_its_line(text: bytes, line: int, reason: str) -> None:
    with pytest.raises(ParseError, match=reason) as error:
        read(text)
    assert error.value.line == line


def test_yaml_is_imported(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "data.yaml"
    path.write_text(
        "# Three records\n"
        "'@type': ConceptCollection\n"
        "entries:\n"
        "- id: trm_1\n"
        "  name: no\n"
        "  creation_time: 1577934245000\n"
        "  event_stamp: 2020-01-02T03:04:05\n"
        "  kind_of: [trm_2]\n"
        "  alias:\n"
        "- {id: trm_2, name: 1.50, alias: ''}\n"
        "- id: 3\n"
        "  '@type': Indicator\n"
        "  type: ~\n"
    )
    report = import_files(database, [path])
    assert report.created == {"concept": 2, "indicator": 1}
    record = load_record(database, "trm_1")
    assert record.fields["name"] == "no"
    assert (record.fields["creation_time"], record.fields["event_stamp"]) == (1577934245000, "2020-01-02T03:04:05")
    assert record.relations == {Relation("trm_1", "KINDOF", "trm_2")}
    assert load_record(database, "trm_2").fields["name"] == "1.50"
    assert "an empty text was skipped (alias of trm_2)" in list_warnings(report)
    assert [item.line for item in read(path.read_bytes())] == [4, 10, 11]


def test_a_container_without_entries_is_valid(database: Database, tmp_path: Path) -> None:
    path = write_json(tmp_path / "x.json", {"@type": "ExternalLinkCollection"})
    report = import_files(database, [path])
    assert not report.has_changes
    assert list_warnings(report) == ["has no records, read as linkml"]


def test_an_integer_is_parsed_and_other_text_is_kept(database: Database, tmp_path: Path) -> None:
    times = ("5", "-3", "007", "soon", "1e3", "9" * 19, 8)
    entries: list[dict[str, Any]] = [
        {"id": f"trm_{number}", "name": "x", "creation_time": time} for number, time in enumerate(times)
    ]
    report = import_container(database, tmp_path, "ConceptCollection", *entries)
    statements = [
        next(item.value for item in load_record(database, entry["id"]).statements if "creation_time" in item.predicate)
        for entry in entries
    ]
    kept = [Text(text) for text in ("007", "soon", "1e3", "9" * 19)]
    assert statements == [Text("5", "", INTEGER), Text("-3", "", INTEGER), *kept, Text("8", "", INTEGER)]
    message = "creation_time is not a whole number; it was kept as text (4 times, first that of trm_2)"
    assert message in list_warnings(report)
    assert get_valpha_record(database, "trm_3")["creation_time"] == 0
    assert [entry["creation_time"] for entry in export(database, "concept")["entries"]] == [
        5, -3, "007", "soon", "1e3", "9" * 19, 8
    ]  # fmt: skip
    assert import_files(database, [tmp_path / "ConceptCollection.json"]).unchanged == {"concept": 7}


def test_text_for_an_integer_is_kept_in_a_record_with_every_field_too(database: Database, tmp_path: Path) -> None:
    fields = dict.fromkeys(CONCEPT.valpha_field_names, "x") | {"id": "trm_1", "last_updated": "later"}
    import_container(database, tmp_path, "ConceptCollection", fields)
    assert get_valpha_record(database, "trm_1")["last_updated"] == 0
    [entry] = export(database, "concept")["entries"]
    assert entry == fields


def test_unusual_values_are_kept_and_counted_by_kind(database: Database, tmp_path: Path) -> None:
    citations = [
        {"id": "cit_1", "citation_desc": "On &quot;joy&quot;", "citation_url": "", "doi": "None", "colour": "red"},
        {"id": "cit_2", "name": "On fun", "event_stamp": "yesterday", "id_user": "me", "colour": "blue"},
        {"id": "17", "name": "", "citation_desc": ""},
    ]
    concept = {"id": "trm_1", "name": "None", "has_citation": ["cit_1", "", "cit_1"], "alias": ""}
    paths = [
        write_container(tmp_path, "CitationCollection", *citations),
        write_container(tmp_path, "ConceptCollection", concept),
    ]
    report = import_files(database, paths)
    assert {warning.detail: warning.field for warning in report.warnings.items} == {
        "a record has no name; its citation_desc is used as its name (cit_1)": str(paths[0]),
        "a name contains an HTML entity; it was kept (cit_1)": str(paths[0]),
        "an empty text was skipped (5 times, first citation_url of cit_1)": f"{paths[0]} and 1 other file",
        "a text is the word None; it was kept (2 times, first doi of cit_1)": f"{paths[0]} and 1 other file",
        "colour is not a slot of Citation; it was skipped (2 times, first cit_1)": str(paths[0]),
        "event_stamp does not have the form YYYY-MM-DDThh:mm:ss (that of cit_2)": str(paths[0]),
        "id_user does not have the form usr_… (that of cit_2)": str(paths[0]),
        "an id does not have the form cit_… (17)": str(paths[0]),
        "a record has no name (17)": str(paths[0]),
        "a list has an id twice; it was kept once (has_citation of trm_1)": str(paths[1]),
    }
    assert load_record(database, "cit_1").fields["name"] == "On &quot;joy&quot;"
    assert load_record(database, "17").fields["name"] == ""
    assert load_record(database, "trm_1").relations == {Relation("trm_1", "HASCITATION", "cit_1")}
    assert load_record(database, "trm_1").fields["name"] == "None"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"name": "x"}, "it has no id"),
        ({"id": "", "name": "x"}, "it has no id"),
        ({"id": ["trm_1"]}, "it has no id"),
        ({"id": "trm_1", "name": ["x"]}, "name of trm_1 is not one text"),
        ({"id": "trm_1", "name": {}}, "name of trm_1 is not one text"),
        ({"id": "trm_1", "kind_of": [{"id": "trm_2"}]}, "kind_of of trm_1 has a value that is not an id"),
        ({"id": "trm_1", "kind_of": ["\0"]}, "kind_of of trm_1 has a value that is not an id"),
        ({"id": "trm_1", "name": "\0"}, "cannot be stored"),
    ],
)
def test_invalid_values_are_rejected(database: Database, tmp_path: Path, entry: Any, reason: str) -> None:
    with pytest.raises(ImportRejected) as error:
        import_container(database, tmp_path, "ConceptCollection", entry)
    assert reason in error.value.problems[0].detail


def test_a_single_reference_is_read_as_a_list_and_null_as_empty() -> None:
    [record] = read({"@type": "Concept", "entries": [{"id": "trm_1", "name": None, "kind_of": "x", "part_of": None}]})
    assert record.relations == [Relation("trm_1", "KINDOF", "x")]
    assert record.fields == {"id": "trm_1"}


def test_a_column_mapping_renames_other_keys() -> None:
    document = {"@type": "Concept", "entries": [{"id": "trm_1", "label": "joy"}]}
    [record] = read(document, column_mapping={"label": "name"})
    assert record.fields == {"id": "trm_1", "name": "joy"}


def test_references_to_an_unexpected_class_are_counted(database: Database, tmp_path: Path) -> None:
    concepts = [
        {"id": "trm_1", "name": "joy", "kind_of": ["tsk_1"], "id_concept_class": "tsk_1"},
        {"id": "trm_2", "name": "fun", "kind_of": ["tsk_1", "trm_1"], "measured_by": ["cnt_1"]},
    ]
    task = {"id": "tsk_1", "name": "smiling", "has_contrast": ["cnt_1"]}
    paths = [
        write_container(tmp_path, "ConceptCollection", *concepts),
        write_container(tmp_path, "TaskCollection", task),
        write_container(tmp_path, "ContrastCollection", {"id": "cnt_1", "name": "smile"}),
    ]
    warnings = [f"{item.field}: {item.detail}" for item in import_files(database, paths).warnings.items]
    assert warnings == [
        f"{paths[0]}: id_concept_class does not have the form ctp_… (that of trm_1)",
        f"{paths[0]}, line 1: the class tsk_1 is a task",
        "relations: KINDOF of a concept points to a task, which the schema does not declare (2 times, first of trm_1)",
    ]


def test_a_relation_that_is_no_longer_listed_is_removed(database: Database, tmp_path: Path) -> None:
    import_container(database, tmp_path, "ConceptCollection", JOY, {"id": "trm_feeling", "name": "feeling"})
    report = import_container(database, tmp_path, "ConceptCollection", {**JOY, "kind_of": []})
    assert report.removed_relations == [Relation("trm_joy", "KINDOF", "trm_feeling")]
    assert report.updated == {"concept": 1}


def import_both(database: Database, folder: Path, *, reverse: bool = False) -> ImportReport:
    paths = [
        write_container(folder, "ConceptCollection", JOY),
        write_container(folder, "DisambiguationCollection", AMBIGUOUS_JOY),
    ]
    return import_files(database, paths[::-1] if reverse else paths)


@pytest.mark.parametrize("reverse", [False, True])
def test_an_id_in_two_classes_is_one_record_of_both(database: Database, tmp_path: Path, reverse: bool) -> None:
    report = import_both(database, tmp_path, reverse=reverse)
    assert report.created == {"concept": 1}
    assert "1 record of several classes, concept and disambiguation (first trm_joy)" in list_warnings(report)
    record = load_record(database, "trm_joy")
    assert record.collection is CONCEPT
    assert record.further_collections == (DISAMBIGUATION,)
    type_statement = Statement(TYPE, Reference(DISAMBIGUATION.schema_class.uri))
    assert type_statement in record.statements
    assert Statement("skos:prefLabel", Text("joy (two senses)"), (type_statement,)) in record.statements
    assert (record.fields["name"], record.fields["creation_time"]) == ("joy", 1577934245000)
    assert record.relations == {
        Relation("trm_joy", "KINDOF", "trm_feeling"),
        Relation("trm_joy", "HASCITATION", "cit_1"),
        Relation("trm_joy", "disambiguates", "trm_bliss"),
        Relation("trm_joy", "disambiguates", "trm_fun"),
    }
    assert check_database(database).problems == []


@pytest.mark.parametrize("reverse", [False, True])
def test_reimporting_both_classes_changes_nothing(database: Database, tmp_path: Path, reverse: bool) -> None:
    import_both(database, tmp_path, reverse=reverse)
    for is_reversed in (False, True):
        report = import_both(database, tmp_path, reverse=is_reversed)
        assert not report.has_changes
        assert report.unchanged == {"concept": 1}
    for name in ("DisambiguationCollection", "ConceptCollection"):
        assert not import_files(database, [tmp_path / f"{name}.json"]).has_changes


@pytest.mark.parametrize("first", ["concept", "disambiguation"])
def test_classes_imported_one_after_the_other_become_one_record(database: Database, tmp_path: Path, first: str) -> None:
    entries = {"ConceptCollection": JOY, "DisambiguationCollection": AMBIGUOUS_JOY}
    order = list(entries) if first == "concept" else list(entries)[::-1]
    for name in order:
        import_container(database, tmp_path, name, entries[name])
    record = load_record(database, "trm_joy")
    assert record.collection.name == first
    assert len(record.further_collections) == 1
    assert len(record.relations) == 4
    # A relation that both classes declare belongs to the first of them.
    shared = {} if first == "concept" else {"has_citation": JOY["has_citation"]}
    for collection, entry in ((CONCEPT, JOY), (DISAMBIGUATION, AMBIGUOUS_JOY)):
        [exported] = export(database, collection.name)["entries"]
        assert {**exported, **shared} == {**normalize_entry(collection, entry), **shared}
    assert not import_both(database, tmp_path).has_changes
    assert check_database(database).problems == []


def test_a_newer_edition_of_one_class_does_not_change_the_other(database: Database, tmp_path: Path) -> None:
    targets = ["trm_feeling", "cit_1", "trm_bliss", "trm_fun"]
    known = [{"id": target, "name": target} for target in targets]
    import_container(database, tmp_path, "ConceptCollection", *known)
    import_both(database, tmp_path)
    newer = {"id": "trm_joy", "name": "joys", "disambiguates": ["trm_fun"]}
    report = import_container(database, tmp_path, "DisambiguationCollection", newer)
    assert report.updated == {"concept": 1}
    assert report.removed_relations == [Relation("trm_joy", "disambiguates", "trm_bliss")]
    [entry] = export(database, "disambiguation")["entries"]
    assert {name: entry[name] for name in newer} == newer
    import_container(database, tmp_path, "ConceptCollection", {**JOY, "name": "delight", "has_citation": []})
    record = load_record(database, "trm_joy")
    assert list_texts(record, "skos:prefLabel") == ["delight", "joys"]
    assert record.relations == {
        Relation("trm_joy", "KINDOF", "trm_feeling"),
        Relation("trm_joy", "disambiguates", "trm_fun"),
    }


def test_a_predicate_of_both_classes_is_one_relation(database: Database, tmp_path: Path) -> None:
    paths = [
        write_container(tmp_path, "DisorderCollection", {"id": "trm_joy", "name": "joy", "is_a": ["dso_1"]}),
        write_container(tmp_path, "ConceptCollection", JOY),
    ]
    import_files(database, paths)
    record = load_record(database, "trm_joy")
    assert {item.target for item in record.relations if item.relation == "KINDOF"} == {"trm_feeling", "dso_1"}
    assert check_database(database).problems == []
    assert not import_files(database, paths).has_changes


def test_v_alpha_files_with_a_shared_id_are_one_record_of_the_first_class(database: Database, tmp_path: Path) -> None:
    paths = [
        write_json(tmp_path / f"{name}.json", [{"id": "trm_1", "name": f"a {name}", "alias": name}])
        for name in ("task", "concept")
    ]
    assert import_files(database, paths).created == {"concept": 1}
    assert [record["name"] for record in list_records(database)] == ["a concept"]
    record = load_record(database, "trm_1")
    assert record.as_member(TASK).fields["name"] == "a task"
    assert parse_labels("concept", record.to_document()) == ["a concept", "concept"]


def test_users_edit_a_record_with_two_classes(database: Database, curator: Curator, tmp_path: Path) -> None:
    import_both(database, tmp_path)
    curator.edit("trm_joy", name="delight")
    record = load_record(database, "trm_joy")
    assert list_texts(record, "skos:prefLabel") == ["delight", "joy (two senses)"]
    assert Relation("trm_joy", "disambiguates", "trm_fun") in record.relations
    assert export(database, "disambiguation")["entries"][0]["name"] == "joy (two senses)"
    curator.edit("trm_joy", name="joy (two senses)")
    assert list_texts(load_record(database, "trm_joy"), "skos:prefLabel") == ["joy (two senses)"] * 2
    assert not import_files(database, [tmp_path / "DisambiguationCollection.json"]).has_changes


def test_defaults_are_those_of_the_collection_even_if_another_class_states_values(
    database: Database, tmp_path: Path
) -> None:
    paths = [
        write_container(tmp_path, "ConceptCollection", {"id": "trm_joy"}),
        write_container(tmp_path, "DisambiguationCollection", AMBIGUOUS_JOY),
    ]
    import_files(database, paths)
    record = load_record(database, "trm_joy")
    assert record.fields["name"] == ""
    assert record.fields["creation_time"] != 1577934245002
    assert "creation_time" in record.assigned
    assert parse_labels("concept", record.to_document()) == [""]


def test_one_collection_is_exported_as_its_container(database: Database, tmp_path: Path) -> None:
    entry = {"kind_of": ["trm_2", "trm_1"], "last_updated": "12", "name": "joy", "id": "trm_9", "alias": ""}
    import_container(database, tmp_path, "ConceptCollection", entry)
    import_container(database, tmp_path, "TaskCollection", {"id": "tsk_1", "name": "smiling"})
    text = b"".join(export_records(database, Vocabulary(), LINKML, [CONCEPT]))
    assert text == (
        b'{"@type":"ConceptCollection","entries":[\n'
        b'{"id":"trm_9","name":"joy","last_updated":12,"kind_of":["trm_1","trm_2"]}\n'
        b"]}\n"
    )
    assert export(database, "trait") == {"@type": "TraitCollection", "entries": []}


def test_several_collections_are_exported_with_the_class_of_each_entry(database: Database, tmp_path: Path) -> None:
    import_both(database, tmp_path)
    import_container(database, tmp_path, "ImplementationCollection", {"id": "imp_1", "id_task": "tsk_1"})
    exported = export(database)
    assert list(exported) == ["entries"]
    assert [(entry["@type"], entry["id"]) for entry in exported["entries"]] == [
        ("Concept", "trm_joy"),
        ("Disambiguation", "trm_joy"),
        ("Implementation", "imp_1"),
    ]
    assert exported["entries"][2] == {"@type": "Implementation", "id": "imp_1", "id_task": "tsk_1"}


def test_a_record_with_two_classes_is_exported_with_the_values_of_each(database: Database, tmp_path: Path) -> None:
    import_both(database, tmp_path)
    for collection, entry in ((CONCEPT, JOY), (DISAMBIGUATION, AMBIGUOUS_JOY)):
        [exported] = export(database, collection.name)["entries"]
        assert exported == normalize_entry(collection, entry)


def test_an_export_is_imported_unchanged(database: Database, new_url: DatabaseUrlFactory, tmp_path: Path) -> None:
    import_both(database, tmp_path)
    import_container(database, tmp_path, "IndicatorCollection", {"id": "17", "name": "time", "type": "None"})
    path = write_json(tmp_path / "all.json", export(database))
    assert not import_files(database, [path]).has_changes
    other = open_database(new_url("sqlite"))
    import_files(other, [path])
    for record_id in ("trm_joy", "17"):
        assert set(load_record(other, record_id).statements) == set(load_record(database, record_id).statements)
    other.close()


def test_retired_records_and_assigned_values_are_not_exported(
    database: Database, curator: Curator, tmp_path: Path
) -> None:
    entries = [{"id": "trm_1", "name": "joy"}, {"id": "trm_2", "name": "fun"}]
    import_container(database, tmp_path, "ConceptCollection", *entries)
    curator.run(lambda writer: writer.retire(writer.get_published(CONCEPT, "trm_2")))
    assert export(database, "concept")["entries"] == entries[:1]


def test_the_commands_import_and_export_linkml(tmp_path: Path) -> None:
    options = "--database", f"sqlite:///{tmp_path}/a.db"
    path = write_container(tmp_path, "ConceptCollection", JOY)
    other = write_container(tmp_path, "DisambiguationCollection", AMBIGUOUS_JOY)
    assert run_cli("import", path, other, *options).returncode == 0
    assert "concept, disambiguation" in run_cli("show", "trm_joy", *options).stdout
    exported = run_cli("export", "--format", "linkml", "--collection", "concept", *options)
    assert json.loads(exported.stdout)["@type"] == "ConceptCollection"
    run_cli("export", "-o", tmp_path / "all.yaml", *options)
    assert not json.loads(run_cli("import", tmp_path / "all.yaml", "--json", *options).stdout)["changed"]


def normalize_entry(collection: Collection, entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry without empty texts, with integers as numbers and lists in order."""
    slots = collection.schema_class.slots
    values = {key: value for key, value in entry.items() if value != ""}
    return {
        key: sorted(value) if isinstance(value, list) else int(value) if slots[key].range == "integer" else value
        for key, value in values.items()
    }


@pytest.fixture(scope="module")
def real_files(real_catalogue: Path) -> list[Path]:
    paths = sorted((real_catalogue / "linkml").glob("*Collection.json"))
    if not paths:
        pytest.skip("no public data in LinkML")
    return paths


@pytest.fixture(scope="module")
def real_database(new_url: DatabaseUrlFactory, real_files: list[Path]) -> Iterable[Database]:
    database = open_database(new_url("sqlite"))
    import_files(database, real_files)
    yield database
    database.close()


def load_entries(path: Path) -> tuple[Collection, list[dict[str, Any]]]:
    document = json.loads(path.read_bytes())
    return COLLECTIONS_BY_TYPE[document["@type"]], document.get("entries", [])


def list_current_records(database: Database) -> dict[str, Record]:
    records: dict[str, Record] = {}
    while changes := database.run_read(revisions.list_current, next(reversed(records), ""), 1_000):
        records |= {change.record_id: change.to_record() for change in changes}
    return records


def test_the_public_data_is_imported_completely(real_files: list[Path], real_database: Database) -> None:
    entries = [entry for path in real_files for entry in load_entries(path)[1]]
    assert (len(real_files), len(entries)) == (17, 8_569)
    records = list_current_records(real_database)
    assert records.keys() == {entry["id"] for entry in entries}
    assert len(records) == 8_567
    references = [len(value) for entry in entries for value in entry.values() if isinstance(value, list)]
    tasks = [entry for entry in entries if entry.get("id_task") or entry.get("id_term")]
    assert (sum(references), len(tasks)) == (14_624, 95)
    assert sum(len(record.relations) for record in records.values()) == 14_624 + 95
    assert sum(len(record.further_collections) for record in records.values()) == 2
    assert check_database(real_database).problems == []


def test_each_class_of_the_public_data_is_exported_as_it_was_imported(
    real_files: list[Path], real_database: Database
) -> None:
    for path in real_files:
        collection, entries = load_entries(path)
        exported = export(real_database, collection.name)
        assert exported["@type"] == path.stem
        expected = {entry["id"]: normalize_entry(collection, entry) for entry in entries}
        assert {entry["id"]: normalize_entry(collection, entry) for entry in exported["entries"]} == expected
        # Also the types and the order of the slots.
        for entry in exported["entries"]:
            assert list(entry) == [name for name in collection.schema_class.slots if name in entry]
            assert all(isinstance(entry[name], int) for name in ("creation_time", "last_updated") if name in entry)


def test_reimporting_the_public_data_changes_nothing(
    real_files: list[Path], real_database: Database, new_url: DatabaseUrlFactory, tmp_path: Path
) -> None:
    report = import_files(real_database, real_files[::-1])
    assert not report.has_changes
    assert sum(report.unchanged.values()) == 8_567
    path = write_json(tmp_path / "all.json", export(real_database))
    other = open_database(new_url("sqlite"))
    assert sum(import_files(other, [path]).created.values()) == 8_567
    assert {record_id: record.statements for record_id, record in list_current_records(other).items()} == {
        record_id: record.statements for record_id, record in list_current_records(real_database).items()
    }
    other.close()
