"""LinkML instances of any vocabulary's schema, in and out."""

import io
import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lexarium.domain.errors import ImportRejected, InvalidInput
from lexarium.domain.identifiers import qualify_id
from lexarium.domain.record import Record, RecordState
from lexarium.domain.schema.json_schema import to_json_schema
from lexarium.domain.schema.linkml import load_schema
from lexarium.domain.statement import BOOLEAN, INTEGER, Node, Reference, Statement, Text, normalize
from lexarium.domain.vocabulary import VOCABULARIES, Vocabulary, register_vocabularies
from lexarium.formats.json.linkml_resources import open_document
from lexarium.formats.json.linkml_statements import sort_collections, write_statements
from lexarium.formats.registry import FORMATS
from lexarium.formats.resources import ParsedResource, ResourceOptions
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.records.lookup import get_record
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.services.transfer.resource_import.importer import import_resource_files
from lexarium.store.database import Database
from tests.schema.test_linkml_runtime import PYTHON
from tests.support.requirements import skip_or_fail
from tests.support.server import run_cli
from tests.support.strategies import storable_texts
from tests.support.vocabularies import create_vocabulary

SCHEMA = """
id: https://example.org/garden
name: garden
prefixes:
  g: https://example.org/garden/
  linkml: https://w3id.org/linkml/
  skos: http://www.w3.org/2004/02/skos/core#
default_prefix: g
imports: [linkml:types]
enums:
  Colour: {permissible_values: {green: {}, red: {}}}
classes:
  Thing:
    abstract: true
    slots: [id, name, note]
  Plant:
    is_a: Thing
    slots: [height, weight, evergreen, planted, colour, colours, grows_on, supports, beside, fruit, fruits, match, page,
      code]
  Tree:
    is_a: Plant
    slots: [rings]
  Person:
    is_a: Thing
    slots: [keeps]
  Fruit:
    slots: [name, seeds, eaten_by, part]
  Berry:
    is_a: Fruit
    slots: [sweet]
  Garden:
    tree_root: true
    attributes:
      plants: {range: Plant, multivalued: true, inlined_as_list: true}
      people: {range: Person, multivalued: true, inlined: true}
      title: {}
slots:
  id: {identifier: true, range: uriorcurie}
  name: {slot_uri: "skos:prefLabel", required: true}
  note: {slot_uri: "skos:note", multivalued: true}
  height: {range: integer}
  weight: {range: float}
  evergreen: {range: boolean}
  planted: {range: date}
  colour: {range: Colour}
  colours: {range: Colour, multivalued: true}
  grows_on: {range: Plant, inverse: supports}
  supports: {range: Plant, multivalued: true, inverse: grows_on}
  beside: {range: Plant, multivalued: true, symmetric: true}
  fruit: {range: Fruit, inlined: true}
  fruits: {range: Fruit, multivalued: true, inlined_as_list: true}
  match: {slot_uri: "skos:exactMatch", range: uriorcurie, multivalued: true}
  page: {range: uri}
  code: {pattern: "[A-Z]{2}"}
  rings: {range: integer}
  keeps: {range: Plant, multivalued: true, inlined: true}
  seeds: {range: integer}
  eaten_by: {range: Person}
  part: {range: Fruit, multivalued: true, inlined_as_list: true}
  sweet: {range: boolean}
"""
VALUES: dict[str, Any] = {
    "schema": SCHEMA,
    "languages": ["en", "de"],
    "prefixes": {"gd": "https://example.org/plants/"},
}
ROSE = {
    "id": "gd:rose",
    "name": "rose",
    "note": ["Has thorns.", "Smells."],
    "height": 120,
    "weight": 1.5,
    "evergreen": False,
    "planted": "2020-01-31",
    "colour": "red",
    "colours": ["red", "green"],
    "beside": ["gd:oak"],
    "fruits": [{"name": "hip", "seeds": 12}, {"@type": "Berry", "name": "berry", "sweet": True}],
    "match": ["WIKI:Rose", "https://other.example/rose"],
    "page": "https://example.org/rose.html",
    "code": "RO",
}
OAK = {"@type": "Tree", "id": "gd:oak", "name": "oak", "rings": 80}
ADA = {"id": "ada", "name": "Ada", "keeps": ["gd:rose"]}
GARDEN = {"@type": "Garden", "plants": [ROSE, OAK], "people": [ADA]}


@pytest.fixture
def garden(database: Database) -> Database:
    create_vocabulary(database, "garden", **VALUES)
    return database


@pytest.fixture
def registered() -> Iterator[Vocabulary]:
    before = list(VOCABULARIES.values())
    vocabulary = Vocabulary("garden", schema_source=SCHEMA, prefixes=VALUES["prefixes"])
    register_vocabularies([vocabulary])
    yield vocabulary
    register_vocabularies(before)


def import_document(
    database: Database, folder: Path, document: Any, slug: str = "garden", name: str = "x.json"
) -> ImportReport:
    path = folder / name
    path.write_bytes(document if isinstance(document, bytes) else orjson.dumps(document))
    return import_resource_files(database, ImportRequest([path], slug))


def export(database: Database, slug: str = "garden", *names: str) -> bytes:
    vocabulary = VOCABULARIES[slug]
    collections = [vocabulary.get_collection(name) for name in names] or vocabulary.collections
    return b"".join(export_records(database, vocabulary, FORMATS["linkml"], collections))


def read(database: Database, local_id: str, slug: str = "garden") -> Record:
    return database.run_read(get_record, qualify_id(slug, local_id)).record


def read_text(text: bytes, vocabulary: Vocabulary) -> list[ParsedResource]:
    with closing(open_document(io.BufferedReader(io.BytesIO(text)), ResourceOptions())) as document:
        return list(document.iter_resources(vocabulary))


def list_warnings(report: ImportReport) -> list[tuple[str, int, str]]:
    """Return the kinds of warnings, with their counts and what the first is about."""
    kinds = sorted(report.warnings.kinds, key=lambda kind: report.warnings.items.index(kind.examples[0]))
    return [(kind.message, kind.count, kind.examples[0].detail.removesuffix(f": {kind.message}")) for kind in kinds]


def list_problems(database: Database, folder: Path, document: Any, **options: Any) -> list[tuple[str, str]]:
    with pytest.raises(ImportRejected) as refusal:
        import_document(database, folder, document, **options)
    return [(problem.field.rpartition("/")[2], problem.detail) for problem in refusal.value.problems]


def test_a_container_is_imported_by_the_schema_of_its_vocabulary(garden: Database, tmp_path: Path) -> None:
    report = import_document(garden, tmp_path, GARDEN)
    assert (report.created, list_warnings(report)) == ({"plant": 1, "tree": 1, "person": 1}, [])
    statements = set(read(garden, "gd:rose").statements)
    g = "https://example.org/garden/"
    berry = Node((
        Statement("rdf:type", Reference(f"{g}Berry")),
        Statement("skos:prefLabel", Text("berry")),
        Statement(f"{g}sweet", Text("true", "", BOOLEAN)),
    ))  # fmt: skip
    assert {
        Statement("skos:prefLabel", Text("rose")),
        Statement(f"{g}height", Text("120", "", INTEGER)),
        Statement(f"{g}weight", Text("1.5", "", "xsd:float")),
        Statement(f"{g}evergreen", Text("false", "", BOOLEAN)),
        Statement(f"{g}planted", Text("2020-01-31", "", "xsd:date")),
        Statement(f"{g}beside", Reference("gd:oak")),
        Statement("skos:exactMatch", Reference("WIKI:Rose")),
        *normalize([Statement(f"{g}fruits", berry)]),
    } <= statements
    assert read(garden, "gd:rose").relation_targets["beside"] == ["gd:oak"]
    assert check_database(garden).problems == []


def test_an_export_equals_the_imported_container(garden: Database, tmp_path: Path) -> None:
    import_document(garden, tmp_path, GARDEN)
    text = export(garden)
    assert json.loads(text) == GARDEN
    assert b"\\u001f" not in text
    assert not import_document(garden, tmp_path, text).has_changes
    plants = json.loads(export(garden, "garden", "plant"))
    assert plants == {"@type": "Garden", "plants": [ROSE]}


def test_an_export_is_valid_by_the_json_schema_of_the_vocabulary(garden: Database, tmp_path: Path) -> None:
    import_document(garden, tmp_path, GARDEN)
    validator = jsonschema_rs.Draft202012Validator(to_json_schema(load_schema(SCHEMA)), validate_formats=True)
    assert [error.message for error in validator.iter_errors(json.loads(export(garden)))] == []


VALIDATE = """
import json, sys
import jsonschema
from linkml_runtime.utils.formatutils import underscore
from linkml_runtime.utils.schemaview import SchemaView

given = json.load(sys.stdin)
view, data = SchemaView(given["linkml"]), given["data"]
jsonschema.Draft202012Validator(given["schema"]).validate(data)

def check(class_name, item):
    slots = {underscore(slot.name): slot for slot in view.class_induced_slots(item.get("@type", class_name))}
    for key, value in item.items():
        if key[0] != "@":
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, dict):
                    check(slots[key].range, part)
                else:
                    assert slots[key].range not in view.all_classes() or isinstance(part, str), key

check("Garden", data)
"""


@pytest.mark.full
def test_an_export_is_valid_by_the_schema_in_linkml(garden: Database, tmp_path: Path) -> None:
    if not PYTHON.exists():
        skip_or_fail("no linkml-runtime (make .venv-linkml/ready)")
    import_document(garden, tmp_path, GARDEN)
    given = {"linkml": SCHEMA, "schema": to_json_schema(load_schema(SCHEMA)), "data": json.loads(export(garden))}
    command = [str(PYTHON), "-c", VALIDATE]
    result = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "document",
    [
        {"plants": [ROSE, OAK], "people": {"ada": {"name": "Ada", "keeps": ["gd:rose"]}}},
        {"people": {"ada": {"name": "Ada", "keeps": {"gd:rose": ROSE}}}, "plants": [OAK]},
        {"entries": [{"@type": "Plant", **ROSE}, OAK, {"@type": "g:Person", **ADA}]},
        [{"@type": "Plant", **ROSE}, OAK, {"@type": "Person", **ADA, "keeps": [ROSE]}],
        {**GARDEN, "plants": [{**ROSE, "id": "https://example.org/plants/rose", "@iri": None}, OAK]},
    ],
)  # fmt: skip
def test_records_may_be_listed_or_inlined_in_every_form_of_linkml(
    garden: Database, tmp_path: Path, document: Any
) -> None:
    import_document(garden, tmp_path, document)
    assert json.loads(export(garden)) == GARDEN


def test_yaml_and_json_are_read_alike(garden: Database, tmp_path: Path) -> None:
    text = b"""
plants:
- id: gd:rose
  name: no
  height: 12
  weight: 1.50
  evergreen: true
  fruit: {name: hip, seeds: 3}
  '@statements': {'skos:prefLabel': [{text: rot, lang: de}], 'x:count': [5]}
people:
  ada:
  bob: {name: Bob}
"""
    report = import_document(garden, tmp_path, text, name="x.yaml")
    assert report.created == {"plant": 1, "person": 2}
    assert list_warnings(report) == [("has no name", 1, "ada")]
    rose = read(garden, "gd:rose")
    assert (rose.fields["name"], rose.translated_names) == ("no", {"de": "rot"})
    assert Statement("x:count", Text("5", "", INTEGER)) in rose.statements
    [entry] = json.loads(export(garden, "garden", "plant"))["plants"]
    assert (entry["weight"], entry["@details"]["weight"], entry["evergreen"]) == (1.5, {"text": "1.50"}, True)
    assert not import_document(garden, tmp_path, export(garden), name="y.yaml").has_changes


def test_details_that_a_plain_value_cannot_express_are_stored_beside_it(garden: Database, tmp_path: Path) -> None:
    source = {"dcterms:source": ["a book"]}
    entry = {
        "id": "gd:fig",
        "@iri": "https://elsewhere.example/fig",
        "name": "fig",
        "note": ["Sweet.", "Old."],
        "beside": ["gd:oak"],
        "@details": {
            "name": {"lang": "en"},
            "note": [None, {"lang": "en", "qualifiers": source}],
            "beside": [{"qualifiers": source}],
        },
        "@statements": {"skos:prefLabel": [{"text": "Feige", "lang": "de"}], "x:y": [1, {"ref": "a:b"}]},
    }
    import_document(garden, tmp_path, {"plants": [entry]})
    fig = read(garden, "gd:fig")
    assert fig.iri == "https://elsewhere.example/fig"
    assert (fig.fields["name"], fig.translated_names) == ("fig", {"de": "Feige"})
    assert fig.relation_targets["beside"] == ["gd:oak"]
    assert json.loads(export(garden)) == {"@type": "Garden", "plants": [entry]}


def test_a_record_named_only_in_another_language_has_a_plain_name(garden: Database, tmp_path: Path) -> None:
    statements = {"skos:prefLabel": [{"text": "Feige", "lang": "de"}, {"text": "figue", "lang": "fr"}]}
    import_document(garden, tmp_path, {"plants": [{"id": "gd:fig", "@statements": statements}]})
    [entry] = json.loads(export(garden))["plants"]
    assert (entry["name"], entry["@details"]) == ("Feige", {"name": {"lang": "de"}})
    assert entry["@statements"] == {"skos:prefLabel": [{"text": "figue", "lang": "fr"}]}


def test_retired_records_have_their_state_and_replacement(garden: Database, tmp_path: Path) -> None:
    entry = {"id": "gd:briar", "name": "briar", "@state": "retired", "@replaced_by": "gd:rose"}
    import_document(garden, tmp_path, {"plants": [entry, ROSE]})
    briar = read(garden, "gd:briar")
    assert (briar.state, briar.replaced_by) == (RecordState.RETIRED, "garden\x1fgd:rose")
    assert {item["id"]: item.get("@state") for item in json.loads(export(garden))["plants"]} == {
        "gd:briar": "retired",
        "gd:rose": None,
    }


def test_only_one_of_two_inverse_statements_is_kept(garden: Database, tmp_path: Path) -> None:
    oak, ivy = {**OAK, "supports": ["gd:ivy", "gd:moss"]}, {"id": "gd:ivy", "name": "ivy"}
    import_document(garden, tmp_path, {"plants": [oak, ivy]})
    assert read(garden, "gd:ivy").relation_targets["grows_on"] == ["gd:oak"]
    # The moss is not in the file.
    assert read(garden, "gd:oak").relation_targets["supports"] == ["gd:moss"]
    import_document(garden, tmp_path, {"plants": [oak, {**ivy, "grows_on": "gd:oak"}]})
    assert not import_document(garden, tmp_path, export(garden)).has_changes


def test_unknown_keys_are_kept_and_counted(garden: Database, tmp_path: Path) -> None:
    odd = {"smell": ["sweet", 3, True, None], "skos:altLabel": "queen", "soil": {"kind": "clay", "ph": 6.5}, "@odd": 1}
    report = import_document(garden, tmp_path, {"plants": [{**ROSE, **odd}, {**OAK, "smell": "none"}], "title": "Mine"})
    assert list_warnings(report) == [
        ("smell is not a slot of Plant; it was kept as a statement of https://example.org/garden/smell", 1, "gd:rose"),
        ("skos:altLabel is not a slot of Plant; it was kept as a statement of skos:altLabel", 1, "gd:rose"),
        ("soil is not a slot of Plant; it was kept as a statement of https://example.org/garden/soil", 1, "gd:rose"),
        ("@odd is not a slot of Plant, and cannot be kept; it was skipped", 1, "gd:rose"),
        ("smell is not a slot of Tree; it was kept as a statement of https://example.org/garden/smell", 1, "gd:oak"),
        ("title is not part of a container; it was skipped", 1, "line 1"),
    ]
    rose = read(garden, "gd:rose")
    assert [alias.text for alias in rose.aliases] == ["queen"]
    smells = [value for predicate, value, _ in rose.statements if predicate.endswith("smell")]
    assert smells == [Text("sweet"), Text("3", "", INTEGER), Text("true", "", BOOLEAN)]
    assert not import_document(garden, tmp_path, export(garden)).has_changes


def test_values_that_violate_the_schema_are_kept_and_counted(garden: Database, tmp_path: Path) -> None:
    entry = {"id": "gd:x", "height": "tall", "colour": "blue", "name": ["a", "b"], "fruit": "apple", "note": [""]}
    report = import_document(garden, tmp_path, {"plants": [entry, {**entry, "id": "gd:y", "name": "y"}]})
    assert list_warnings(report) == [
        ("height does not have the form of integer; it was kept as text", 2, "gd:x"),
        ("colour is not one of the values of Colour; it was kept", 2, "gd:x"),
        ("name has several values, and the schema allows one; all were kept", 1, "gd:x"),
        ("fruit is a text, and the schema has objects of Fruit; it was kept", 2, "gd:x"),
        ("an empty text was skipped", 2, "note of gd:x"),
    ]
    assert not import_document(garden, tmp_path, export(garden)).has_changes


@pytest.mark.parametrize(
    ("entry", "location", "problem"),
    [
        ({"name": "x"}, "x.json, line 3", "/plants/1 has no id"),
        ("x", "x.json, line 3", "/plants/1 is not an object, one record"),
        ({"id": "x", "@type": "Animal"}, "x.json, line 3", "its @type is 'Animal', which must be one of Plant, Tree"),
        ({"id": "x", "name": {"a": 1}}, "x.json, line 3", "x at /name is an object, where a value of string belongs"),
        ({"id": "x", "note": [["a"]]}, "x.json, line 3", "x at /note/0 is a list, where"),
        ({"id": "x", "name": "a\0"}, "x.json, line 3", "x at /name contains the character U+0000"),
        ({"id": "x", "fruits": [{"name": "a\0"}]}, "x.json, line 3", "at /fruits/0/name contains the character U+0000"),
        ({"id": "x", "beside": ["y" * 501]}, "x.json, line 3", "has a reference by https://example.org/garden/beside"),
        ({"id": "x", "@state": "lost"}, "x.json, line 3", "x has the @state 'lost'"),
        ({"id": "x", "@statements": {"a": [[]]}}, "x.json, line 3", "x at /@statements has a value of 'a'"),
        ({"id": "x", "name": "a", "@details": {"name": {"lang": "?"}}}, "x.json, line 3", "x at @details/name"),
        ({"id": "y" * 501}, "x.json, line 3", "is longer than 500 bytes"),
        ({"id": "x", "beside": [{"name": "y"}]}, "x.json, line 3", "x/beside/0 has no id"),
    ],
)  # fmt: skip
def test_invalid_entries_are_rejected_with_line_pointer_and_id(
    garden: Database, tmp_path: Path, entry: Any, location: str, problem: str
) -> None:
    text = b'{"plants": [\n{"id": "ok", "name": "ok"},\n%s\n]}' % json.dumps(entry).encode()
    [(where, reason), *others] = list_problems(garden, tmp_path, text)
    assert where == location
    assert problem in reason
    assert others == []


def test_too_deep_nesting_is_rejected(garden: Database, tmp_path: Path) -> None:
    node: Any = {"name": "seed"}
    for _ in range(200):
        node = {"name": "part", "part": [node]}
    deep = [{"id": "a", "fruit": node}, {"id": "b", "odd": json.loads("[" * 200 + "]" * 200)}]
    plant: Any = {"id": "p"}
    for number in range(200):
        plant = {"id": f"p{number}", "beside": [plant]}
    for entry in (*deep, plant):
        problems = list_problems(garden, tmp_path, json.dumps({"plants": [entry]}).encode())
        assert "nested more than 16 levels deep" in problems[0][1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "empty"),
        (b"7", "neither a YAML mapping nor a list"),
        (b'{"plants": [{"id": "x"}', "a comma or the end of the array"),
        (b'{"about": 1}', "it has none of entries, plants, people"),
        (b'{"@type": "Animal", "entries": []}', "'Animal', which is not one of Garden, Plant, Tree, Person"),
        (b"plants: [\n", "invalid YAML"),
    ],
)
def test_unsupported_documents_are_rejected(garden: Database, tmp_path: Path, text: bytes, reason: str) -> None:
    [(_, problem)] = list_problems(garden, tmp_path, text, name="x.yaml")
    assert reason in problem


def test_the_vocabulary_must_exist_with_its_schema(database: Database, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="lexarium vocabulary add garden --schema NAME"):
        import_document(database, tmp_path, {"people": [ADA]})


def test_cognitive_atlas_data_creates_a_vocabulary(database: Database, tmp_path: Path) -> None:
    entry = {"id": "trm_1", "name": "joy", "creation_time": 5, "kind_of": ["trm_2"]}
    report = import_document(database, tmp_path, {"entries": [entry], "@type": "ConceptCollection"}, "atlas")
    assert (report.vocabulary, report.is_new_vocabulary) == ("atlas", True)
    assert json.loads(export(database, "atlas", "concept")) == {"@type": "ConceptCollection", "entries": [entry]}


def test_the_commands_import_and_export_instances_of_a_schema(tmp_path: Path) -> None:
    options = "--database", f"sqlite:///{tmp_path}/a.db"
    (tmp_path / "garden.yaml").write_text(SCHEMA)
    (tmp_path / "data.json").write_bytes(orjson.dumps(GARDEN))
    run_cli("vocabulary", "add", "garden", "--schema", tmp_path / "garden.yaml", "--title", "Garden", *options)
    imported = run_cli("import", tmp_path / "data.json", "--vocabulary", "garden", *options)
    assert imported.returncode == 0, imported.stderr
    exported = run_cli("export", "--vocabulary", "garden", "--format", "linkml", *options)
    assert json.loads(exported.stdout) == GARDEN


# Any statements

_ids = st.sampled_from(["gd:rose", "gd:oak", "a b", "https://example.org/plants/x", "é:1"])
_values = st.one_of(
    st.builds(Text, storable_texts, st.sampled_from(["", "en", "de", "pt-BR"]), st.just("")),
    st.builds(Text, storable_texts, st.just(""), st.sampled_from(["xsd:date", "xsd:integer", "xsd:boolean"])),
    st.builds(
        Text,
        st.sampled_from(["1", "01", "+5", "9" * 25, "1.50", "2.5", "1e3", "1E400", "true", "2020-01-31", "red"]),
        st.just(""),
        st.sampled_from(["", "xsd:integer", "xsd:float", "xsd:boolean", "xsd:date"]),
    ),
    st.builds(Reference, _ids),
)  # fmt: skip


def _build_predicates() -> st.SearchStrategy[str]:
    schema = load_schema(SCHEMA)
    slots = [slot for item in schema.classes.values() for slot in item.slots.values() if not slot.identifier]
    # What is inverse moves to the other record.
    declared = {slot.predicate for slot in slots} - schema.inverses.keys()
    return st.sampled_from([*sorted(declared), "x:y", "https://example.org/p#x", "rdf:type"])


_predicates = _build_predicates()
_qualifiers = st.lists(st.builds(Statement, _predicates, _values, st.just(())), max_size=2).map(tuple)


def _nest(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Node]:
    inner = st.lists(st.builds(Statement, _predicates, values, _qualifiers), max_size=3).map(tuple)
    return st.builds(Node, inner, st.sampled_from(["", "https://example.org/n"]))


_any_value = st.recursive(_values, _nest, max_leaves=6)
any_statements = st.lists(st.builds(Statement, _predicates, _any_value, _qualifiers), max_size=10).map(normalize)


_any_records = st.dictionaries(
    _ids, st.tuples(st.sampled_from(["plant", "tree", "person"]), any_statements, st.sampled_from([None, "u:n"]))
)


@pytest.mark.parametrize("runs", [pytest.param(30, marks=pytest.mark.short), pytest.param(60, marks=pytest.mark.full)])
def test_any_statements_are_unchanged_after_export_and_import(registered: Vocabulary, runs: int) -> None:
    @settings(max_examples=runs)
    @given(_any_records, st.sampled_from([[], ["plant"], ["plant", "tree"]]))
    def check(made: dict[str, tuple[str, tuple[Statement, ...], str | None]], names: list[str]) -> None:
        collections = [item for item in registered.collections if not names or item.local_name in names]
        collections = sort_collections(registered.schema, collections)
        records = [
            Record(collection, qualify_id("garden", record_id), statements, iri=iri)
            for collection in collections
            for record_id, (name, statements, iri) in made.items()
            if name == collection.local_name
        ]
        text = b"".join(write_statements(records, registered, collections))
        resources = read_text(text, registered)
        assert [resource.problems for resource in resources] == [[]] * len(records)
        for record, resource in zip(records, resources, strict=True):
            # An id that is an IRI is read in its short form.
            assert resource.id in (record.local_id, "gd:x")
            assert (resource.class_uri, resource.iri) == (record.collection.schema_class.uri, record.iri)
            assert set(normalize(resource.statements)) == set(record.statements)

    check()


_keys = st.sampled_from(
    [
        "name",
        "note",
        "height",
        "colour",
        "beside",
        "fruit",
        "fruits",
        "keeps",
        "@type",
        "@iri",
        "@details",
        "@statements",
    ]
)
_any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["Plant", "Berry"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.dictionaries(_keys | st.text(max_size=3), _any_json, max_size=5))
def test_any_json_is_imported_or_rejected(registered: Vocabulary, entry: dict[str, Any]) -> None:
    text = json.dumps({"plants": [{"id": "gd:x", **entry}]}).encode()
    resources = [item for item in read_text(text, registered) if not item.problems]
    if not resources or len({item.id for item in resources}) < len(resources):
        return
    records = [
        Record(
            next(found for found in registered.collections if found.schema_class.uri == item.class_uri),
            qualify_id("garden", item.id),
            normalize(item.statements),
            iri=item.iri,
        )
        for item in resources
    ]
    again = read_text(b"".join(write_statements(records[:1], registered, registered.collections)), registered)
    assert [item.problems for item in again] == [[]]
    assert set(normalize(again[0].statements)) == set(records[0].statements)
