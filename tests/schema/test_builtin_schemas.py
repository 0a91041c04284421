"""Built-in schemas: Cognitive Atlas with v-alpha's shapes, SKOS and OBO."""

import json
from pathlib import Path

import pytest

from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection
from lexarium.domain.schema.linkml import BUILTIN_NAMES, load_builtin_schema
from lexarium.domain.schema.model import Schema, Slot
from lexarium.domain.schema.predicates import SlotRole

COGNITIVE_ATLAS = load_builtin_schema("cognitive-atlas")
SKOS = load_builtin_schema("skos")
OBO = load_builtin_schema("obo")

each_collection = pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)


@pytest.mark.parametrize("name", BUILTIN_NAMES)
def test_a_builtin_schema_has_no_warnings_and_complete_descriptions(name: str) -> None:
    schema = load_builtin_schema(name)
    assert schema.name == name
    assert schema.warnings == ()
    for schema_class in schema.classes.values():
        assert schema_class.description.endswith("."), schema_class.name
        if schema_class.tree_root:
            continue
        for slot in schema_class.slots.values():
            assert slot.description.endswith("."), f"{schema_class.name}.{slot.name}"


@pytest.mark.parametrize("name", BUILTIN_NAMES)
def test_every_relation_to_a_record_has_a_label_in_both_directions(name: str) -> None:
    schema = load_builtin_schema(name)
    single_references = {"id_concept_class", "id_task", "id_term", "on_property", "some_values_from"}
    for schema_class in schema.collections.values():
        for slot in schema_class.slots.values():
            if slot.range in schema.classes and slot.is_reference and slot.name not in single_references:
                assert slot.inverse_label, f"{schema_class.name}.{slot.name}"


def test_the_list_fields_are_those_of_the_contract() -> None:
    term = (
        "id name definition_text alias id_concept_class id_user event_stamp def_id def_id_user def_event_stamp "
        "creation_time last_updated"
    )
    disorder = "id name definition id_protocol id_user event_stamp flag_for_curator"
    assert {name: " ".join(item.valpha_field_names) for name, item in COLLECTIONS.items() if item.in_valpha} == {
        "concept": term,
        "task": term,
        "disorder": disorder,
    }


@each_collection
def test_single_valued_slots_are_fields_and_references_are_relations(collection: Collection) -> None:
    slots = collection.schema_class.slots
    assert {*collection.fields, *(relation_slots := slots.keys() - collection.fields.keys())} == slots.keys()
    assert all(slots[name].is_reference for name in relation_slots)
    assert collection.relation_predicates.keys() == {slots[name].relation or name for name in relation_slots}


@each_collection
def test_a_missing_field_is_empty_except_where_v_alpha_requires_a_value(collection: Collection) -> None:
    needed = {"id_user": "usr_0000000000", "def_id_user": "usr_0000000000"}
    numbers = {"flag_for_curator", "creation_time", "last_updated"}
    for name, default in collection.field_defaults.items():
        if name in collection.valpha_field_names:
            assert default == (0 if name in numbers else needed.get(name, "")), name
        else:
            assert default == ("" if collection.field_types[name] is str else None), name


def test_relation_types_know_their_source_and_target_collections() -> None:
    assert RELATION_TYPES["KINDOF"].targets == {name: (name,) for name in ("concept", "task", "battery", "theory")}
    assert RELATION_TYPES["MEASUREDBY"].sources == {"contrast": ("concept", "trait", "behavior")}
    assert RELATION_TYPES["disambiguates"].targets["disambiguation"] == tuple(COLLECTIONS)
    assert RELATION_TYPES["exactMatch"].is_mapping
    assert RELATION_TYPES["exactMatch"].targets["concept"] == ()


def test_a_relation_without_a_slot_is_labelled_by_its_predicate() -> None:
    assert "RO:0002202" not in RELATION_TYPES
    assert RELATION_TYPES["RO:0002202"].label == "develops from"
    assert RELATION_TYPES["ex:made-up"].label == "ex:made-up"


def test_a_relation_list_knows_the_paths_to_its_entries() -> None:
    relationships = COLLECTIONS["concept"].relation_lists["relationships"]
    assert list(relationships.paths) == [
        ("KINDOF", "source"),
        ("PARTOF", "source"),
        ("KINDOF", "target"),
        ("PARTOF", "target"),
    ]
    assert {path.collections for path in relationships.paths.values()} == {("concept",)}
    disorders = COLLECTIONS["task"].relation_lists["disorders"]
    assert disorders.is_derived
    assert disorders.paths["HASCONTRAST/HASDIFFERENCE", "source"].collections == ("disorder",)


@pytest.mark.parametrize(
    ("collection", "keys"),
    [
        ("concept", "relationships citations contrasts conceptclasses"),
        (
            "task",
            "concepts contrasts conditions indicators external_datasets implementations citation batteries disorders",
        ),
        ("disorder", "disorders citations"),
    ],
)
def test_a_record_by_id_has_the_relation_lists_of_the_public_site(collection: str, keys: str) -> None:
    lists = COGNITIVE_ATLAS.collections[collection].valpha_lists
    assert [valpha_list.key for valpha_list in lists] == keys.split()


def test_disorders_of_a_task_are_derived_from_its_contrasts() -> None:
    disorders = COGNITIVE_ATLAS.classes["Task"].valpha_lists[-1]
    assert [[step.slot for step in path] for path in disorders.paths] == [["has_contrast", "has_difference"]]


@pytest.mark.parametrize(
    ("class_name", "range_name"), [("Concept", "Concept"), ("Task", "Task"), ("Battery", "Battery")]
)
def test_part_of_relations_are_within_one_class(class_name: str, range_name: str) -> None:
    slot = COGNITIVE_ATLAS.classes[class_name].slots["part_of"]
    assert slot.range == range_name
    assert slot.hierarchical


def is_value_of(slot: Slot, value: object) -> bool:
    if slot.multivalued:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, str) and (slot.range != "integer" or value.isdigit())


def test_every_key_of_the_public_data_is_a_slot_of_its_class(real_catalogue: Path) -> None:
    paths = sorted((real_catalogue / "linkml").glob("*Collection.json"))
    if not paths:
        pytest.skip("no public data in LinkML")
    for path in paths:
        document = json.loads(path.read_text())
        [(attribute, class_name)] = COGNITIVE_ATLAS.containers[document["@type"]].items()
        slots = COGNITIVE_ATLAS.classes[class_name].slots
        for entry in document.get(attribute, []):
            assert set(entry) <= set(slots), entry["id"]
            for key, value in entry.items():
                assert is_value_of(slots[key], value), f"{entry['id']}: {key}"


def list_predicates(schema: Schema, class_name: str) -> set[str]:
    return set(schema.classes[class_name].slots_by_predicate)


def test_a_skos_concept_has_every_label_note_relation_and_mapping_of_skos() -> None:
    names = (
        "prefLabel altLabel hiddenLabel notation note changeNote definition editorialNote example historyNote "
        "scopeNote semanticRelation mappingRelation broader narrower related "
        "broaderTransitive narrowerTransitive inScheme topConceptOf "
        "exactMatch closeMatch broadMatch narrowMatch relatedMatch"
    )
    predicates = list_predicates(SKOS, "Concept")
    assert predicates >= {f"skos:{name}" for name in names.split()}
    assert predicates >= {"skosxl:prefLabel", "skosxl:altLabel", "skosxl:hiddenLabel"}
    assert list_predicates(SKOS, "ConceptScheme") >= {"skos:hasTopConcept", "dcterms:title"}
    assert list_predicates(SKOS, "OrderedCollection") >= {"skos:member", "skos:memberList"}


def test_only_skos_concepts_are_counted_and_searched_by_default() -> None:
    assert list(SKOS.main_collections) == ["concept"]
    assert list(SKOS.collections) == ["concept", "concept_scheme", "collection", "ordered_collection"]


def test_a_label_of_skos_xl_is_a_nested_node_with_the_role_of_its_label() -> None:
    slot = SKOS.classes["Concept"].slots["pref_label_xl"]
    assert (slot.is_node, slot.role) == (True, SlotRole.NAME)
    assert list_predicates(SKOS, "Label") >= {"skosxl:literalForm", "skosxl:labelRelation"}


def test_of_two_inverse_skos_relations_the_narrower_or_member_side_stores_the_statement() -> None:
    assert SKOS.inverses == {
        "skos:narrower": "skos:broader",
        "skos:narrowerTransitive": "skos:broaderTransitive",
        "skos:hasTopConcept": "skos:topConceptOf",
        "skos:member": "uneskos:memberOf",
        "skos:narrowMatch": "skos:broadMatch",
    }


OBO_TAGS = {
    "Term": {
        "name": "rdfs:label",
        "namespace": "oboInOwl:hasOBONamespace",
        "alt_id": "oboInOwl:hasAlternativeId",
        "def": "IAO:0000115",
        "comment": "rdfs:comment",
        "subset": "oboInOwl:inSubset",
        "exact_synonym": "oboInOwl:hasExactSynonym",
        "xref": "oboInOwl:hasDbXref",
        "is_a": "rdfs:subClassOf",
        "disjoint_from": "owl:disjointWith",
        "equivalent_to": "owl:equivalentClass",
        "is_obsolete": "owl:deprecated",
        "replaced_by": "IAO:0100001",
        "consider": "oboInOwl:consider",
        "created_by": "oboInOwl:created_by",
        "creation_date": "oboInOwl:creation_date",
    },
    "Typedef": {
        "is_a": "rdfs:subPropertyOf",
        "domain": "rdfs:domain",
        "range": "rdfs:range",
        "inverse_of": "owl:inverseOf",
        "holds_over_chain": "owl:propertyChainAxiom",
        "expand_expression_to": "IAO:0000424",
        "is_transitive": "oboInOwl:is_transitive",
    },
    "Instance": {"instance_of": "rdf:type"},
    "SynonymTypeDef": {"has_scope": "oboInOwl:hasScope"},
}


@pytest.mark.parametrize("class_name", OBO_TAGS)
def test_obo_tags_have_the_predicates_of_the_standard_mapping(class_name: str) -> None:
    slots = OBO.classes[class_name].slots
    assert {name: slots[name].predicate for name in OBO_TAGS[class_name]} == OBO_TAGS[class_name]


def test_roles_in_obo_are_derived_from_predicates() -> None:
    slots = OBO.classes["Term"].slots
    roles = {name: slot.role for name, slot in slots.items() if slot.role}
    assert roles == {
        "name": SlotRole.NAME,
        "def": SlotRole.DEFINITION,
        "comment": SlotRole.NOTE,
        "xref": SlotRole.MAPPING,
        "is_a": SlotRole.HIERARCHY,
        **dict.fromkeys(("exact_synonym", "broad_synonym", "narrow_synonym", "related_synonym"), SlotRole.ALIAS),
    }
    assert list(OBO.main_collections) == ["term", "instance"]
