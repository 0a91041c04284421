"""Built-in schemas: Cognitive Atlas with v-alpha's shapes, SKOS and OBO."""

import json
from pathlib import Path

import pytest

from lexarium.domain.schema.collections import COLLECTIONS, RELATION_TYPES, Collection
from lexarium.domain.schema.linkml import BUILTIN_NAMES, load_builtin_schema
from lexarium.domain.schema.model import Schema, SchemaClass, Slot, ValphaList
from lexarium.domain.schema.predicates import SlotRole
from lexarium.domain.schema.relation_types import RelationList, RelationType

COGNITIVE_ATLAS = load_builtin_schema("cognitive-atlas")
SKOS = load_builtin_schema("skos")
OBO = load_builtin_schema("obo")

each_collection = pytest.mark.parametrize("collection", COLLECTIONS.values(), ids=COLLECTIONS)


@pytest.mark.parametrize("name", BUILTIN_NAMES)
def test_a_builtin_schema_has_no_warnings_and_describes_everything(name: str) -> None:
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


@each_collection
def test_every_collection_of_today_is_a_class(collection: Collection) -> None:
    schema_class = COGNITIVE_ATLAS.collections[collection.name]
    assert schema_class.description == collection.description
    assert schema_class.id_prefixes == collection.id_prefixes
    assert schema_class.in_valpha == collection.in_valpha
    assert schema_class.auxiliary == (not collection.in_valpha)
    assert schema_class.sort_by_name == collection.sort_by_name
    assert schema_class.search_hit_prefix == collection.search_hit_prefix


@each_collection
def test_the_valpha_list_shape_is_derived_from_the_schema(collection: Collection) -> None:
    schema_class = COGNITIVE_ATLAS.collections[collection.name]
    assert tuple(slot.name for slot in schema_class.valpha_fields) == collection.field_names
    for slot in schema_class.valpha_fields:
        assert (slot.range == "integer") == (collection.field_types[slot.name] is int), slot.name
        editable = collection.editable_fields.get(slot.name)
        assert slot.editable == (editable is not None), slot.name
        reference = collection.id_fields.get(slot.name, IdReference(""))
        assert (slot.id_prefix or "") == reference.prefix
        assert slot.range == "ConceptClass" if reference.collection else slot.range not in COGNITIVE_ATLAS.classes
        assert (slot.range == "datetime") == (slot.name in collection.timestamp_fields)
        if editable and isinstance(editable.limit, int):
            assert slot.max_length == editable.limit
        elif editable and editable.limit:
            assert str(slot.role) == editable.limit


def to_relation_type(schema_class: SchemaClass, slot: Slot) -> RelationType:
    """Return a relation type of today as a slot declares it."""
    is_mapping = slot.role is SlotRole.MAPPING
    return RelationType(
        slot.relation or "",
        None if is_mapping else schema_class.collection,
        None if is_mapping else COGNITIVE_ATLAS.classes[slot.range].collection,
        slot.label,
        "" if is_mapping else slot.inverse_label,
        slot.hierarchical,
    )


@pytest.mark.parametrize("relation_type", RELATION_TYPES.values(), ids=RELATION_TYPES)
def test_every_relation_type_of_today_is_a_slot(relation_type: RelationType) -> None:
    schema_class = COGNITIVE_ATLAS.collections[relation_type.source_collection or "concept"]
    [slot] = [slot for slot in schema_class.slots.values() if slot.relation == relation_type.name]
    assert to_relation_type(schema_class, slot) == relation_type


def to_relation_list(schema_class: SchemaClass, valpha_list: ValphaList) -> RelationList:
    """Return a relation list of today as an annotation declares it."""
    types: dict[str, RelationType] = {}
    sides = {}
    for [step] in valpha_list.paths:
        sources = COGNITIVE_ATLAS.collections.values() if step.inverse else [schema_class]
        source = next(source for source in sources if step.slot in source.slots)
        relation_type = to_relation_type(source, source.slots[step.slot])
        types[relation_type.name] = relation_type
        sides["target" if step.inverse else "source"] = "child" if step.inverse else "parent"
    return RelationList(
        valpha_list.key,
        tuple(types.values()),
        tuple(sides),  # type: ignore[arg-type]
        valpha_list.entry_keys[0],
        "relationship" in valpha_list.entry_keys,
        sides if "direction" in valpha_list.entry_keys else {},  # type: ignore[arg-type]
    )


@each_collection
def test_the_relation_lists_of_the_id_shape_are_derived_from_the_schema(collection: Collection) -> None:
    schema_class = COGNITIVE_ATLAS.collections[collection.name]
    lists = schema_class.valpha_lists[: len(collection.relation_lists)]
    assert tuple(to_relation_list(schema_class, valpha_list) for valpha_list in lists) == collection.relation_lists


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
def test_the_id_shape_has_the_lists_of_the_public_site(collection: str, keys: str) -> None:
    lists = COGNITIVE_ATLAS.collections[collection].valpha_lists
    assert [valpha_list.key for valpha_list in lists] == keys.split()


def test_the_disorders_of_a_task_are_those_that_its_contrasts_differ_in() -> None:
    disorders = COGNITIVE_ATLAS.classes["Task"].valpha_lists[-1]
    assert [[step.slot for step in path] for path in disorders.paths] == [["has_contrast", "has_difference"]]


@pytest.mark.parametrize(
    ("class_name", "range_name"), [("Concept", "Concept"), ("Task", "Task"), ("Battery", "Battery")]
)
def test_a_part_is_part_of_a_record_of_its_own_class(class_name: str, range_name: str) -> None:
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


def test_of_the_inverse_relations_of_skos_the_narrower_end_and_the_member_hold_the_statement() -> None:
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
def test_tags_of_obo_are_the_predicates_of_the_standard_mapping(class_name: str) -> None:
    slots = OBO.classes[class_name].slots
    assert {name: slots[name].predicate for name in OBO_TAGS[class_name]} == OBO_TAGS[class_name]


def test_roles_in_obo_follow_from_the_predicates() -> None:
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
