"""Loading of LinkML schemas: their meaning, and every problem with its line."""

import re
from pathlib import Path

import pytest

from lexarium.domain.errors import InvalidSchema, LineProblem
from lexarium.domain.schema import definitions
from lexarium.domain.schema.linkml import MAX_SCHEMA_BYTES, load_schema, to_snake_case
from lexarium.domain.schema.model import PermissibleValue, Schema
from lexarium.domain.schema.predicates import STANDARD_ROLES, SlotRole

ANIMALS = (Path(__file__).parent / "animals.yaml").read_text()

# Seven lines: what follows begins on line 8.
HEAD = """\
id: https://example.org/animals
name: animals
default_prefix: ex
imports: [linkml:types]
prefixes:
  ex: https://example.org/animals/
  linkml: https://w3id.org/linkml/
"""
SLOTS = "slots: {id: {identifier: true}, name: {}, parent: {range: Animal}}"


@pytest.fixture(scope="module")
def animals() -> Schema:
    return load_schema(ANIMALS)


def find_problems(text: str) -> list[LineProblem]:
    with pytest.raises(InvalidSchema) as caught:
        load_schema(text)
    return list(caught.value.lines)


def test_concrete_classes_with_an_identifier_are_collections(animals: Schema) -> None:
    assert list(animals.collections) == ["animal", "pet", "dog", "person"]
    assert animals.classes["Collar"].identifier is None
    assert animals.containers == {"Zoo": {"animals": "Animal", "people": "Person"}}


def test_a_slot_is_inherited_mixed_in_and_changed_by_each_class(animals: Schema) -> None:
    animal, pet, dog = (animals.classes[name] for name in ("Animal", "Pet", "Dog"))
    assert dog.ancestors[:3] == ("Pet", "Kept", "Fed")
    assert [schema_class.slots["part_of"].range for schema_class in (animal, pet, dog)] == ["Animal", "Pet", "Pet"]
    assert (pet.slots["keeper"].required, dog.slots["keeper"].required) == (True, False)
    assert dog.slots["keeper"].label == "owner"
    assert dog.slots["diet"].enum_values == (PermissibleValue("plants", "Eats plants."), PermissibleValue("meat"))
    assert dog.slots["size"].range == "integer"
    assert animals.classes["Collar"].slots["colour"].required


def test_slots_are_ordered_by_annotation_then_by_declaration(animals: Schema) -> None:
    assert list(animals.classes["Animal"].slots)[:4] == ["part_of", "id", "name", "note"]


def test_a_predicate_is_written_with_fixed_prefixes_or_as_an_iri(animals: Schema) -> None:
    slots = animals.classes["Animal"].slots
    assert slots["name"].predicate == "skos:prefLabel"
    assert slots["part_of"].predicate == "https://example.org/animals/part_of"
    renamed = load_schema(ANIMALS.replace("skos:", "s:"))
    assert renamed.classes["Animal"].slots["name"].predicate == "skos:prefLabel"


def test_a_range_distinguishes_references_from_nested_nodes(animals: Schema) -> None:
    dog = animals.classes["Dog"]
    assert (dog.slots["parent"].is_reference, dog.slots["parent"].is_node) == (True, False)
    assert (dog.slots["collar"].is_reference, dog.slots["collar"].is_node) == (False, True)
    assert not dog.slots["id"].is_reference


def test_a_role_is_determined_by_annotation_predicate_or_standard_vocabulary(animals: Schema) -> None:
    slots = animals.classes["Animal"].slots
    assert slots["name"].role is SlotRole.NAME
    assert slots["part_of"].role is SlotRole.HIERARCHY
    assert slots["part_of"].hierarchical
    assert animals.role_of("https://example.org/animals/note") is SlotRole.NOTE
    assert animals.role_of("skos:note", "Pet") is SlotRole.NOTE
    assert animals.role_of("rdfs:label") is SlotRole.NAME
    assert animals.role_of("https://schema.org/name") is SlotRole.NAME
    assert animals.role_of("https://example.org/unknown") is None


def test_a_slot_is_found_by_class_and_predicate(animals: Schema) -> None:
    name = animals.classes["Pet"].slots["name"]
    assert animals.slot_of("Pet", "skos:prefLabel") == animals.slot_of("pet", "skos:prefLabel") == name
    assert animals.slot_of("Pet", "rdfs:label") is None
    assert animals.slot_of("Unicorn", "rdfs:label") is None


def test_of_two_inverse_slots_the_first_declared_is_stored(animals: Schema) -> None:
    base = "https://example.org/animals/"
    assert animals.inverses == {base + "parent": base + "offspring", base + "keeps": base + "keeper"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Concept", "concept"), ("ConceptClass", "concept_class"), ("SKOSConcept", "skos_concept"), ("my pet", "my_pet")],
)
def test_a_collection_is_named_in_snake_case(name: str, expected: str) -> None:
    assert to_snake_case(name) == expected


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("classes: {Animal: {slots: [id, wings]}}\n" + SLOTS, 8, "the slot `wings`, which `slots` does not declare"),
        ("classes: {Animal: {is_a: Thing, slots: [id]}}\n" + SLOTS, 8, "`Thing` as its parent, but there is no class"),
        ("classes: {Animal: {mixins: [Fed], slots: [id]}}\n" + SLOTS, 8, "`Fed` as its mixin, but there is no class"),
        (
            "classes:\n  Animal: {slots: [id]}\n  A: {is_a: B}\n  B: {is_a: C}\n  C: {is_a: A}\n" + SLOTS,
            10,
            "The class `A` is its own ancestor: `A` → `B` → `C` → `A`.",
        ),
        ("classes: {Animal: {is_a: Animal, slots: [id]}}\n" + SLOTS, 8, "`Animal` is its own ancestor"),
        ("classes: {Animal: {slots: [id]}}\nslots: {id: {identifier: true}, a: {is_a: a}}", 9, "The slot `a` is its"),
        (
            "classes: {Animal: {slots: [id], attributes: {size: {range: Huge}}}}\n" + SLOTS,
            8,
            "`range` of the slot `size` of the class `Animal` is `Huge`, which is not a type, class or enumeration.",
        ),
        ("default_range: text\nclasses: {Animal: {slots: [id]}}\n" + SLOTS, 8, "`default_range` is `text`, which"),
        (
            "classes:\n  Animal:\n    attributes:\n      id: {identifier: true}\n      a: {slot_uri: ex:x}\n"
            "      b: {slot_uri: ex:x}\n  Dog: {is_a: Animal}",
            13,
            "The slots `a` and `b` of the class `Animal` have the same predicate, `https://example.org/animals/x`.",
        ),
        (
            "classes: {Animal: {slots: [id], attributes: {child: {range: Animal, inverse: kid}}}}\n" + SLOTS,
            8,
            "`inverse` of the slot `child` is `kid`, which the class `Animal` does not have.",
        ),
        (
            "classes: {Animal: {slots: [id], attributes: {child: {inverse: kid}}}}\n" + SLOTS,
            8,
            "`inverse` of the slot `child` is `kid`, which no class has.",
        ),
        ("classes: {Animal: {slots: [id], attributes: {a: {pattern: '('}}}}\n" + SLOTS, 8, "not a valid regular"),
        (
            "classes: {Animal: {slots: [id], class_uri: zoo:Animal}}\n" + SLOTS,
            8,
            "`class_uri` of the class `Animal` has the prefix `zoo`, which `prefixes` does not have.",
        ),
        ("classes: {Animal: {slots: [id]}}\nslots: {id: {identifier: true, slot_uri: zoo}}", 9, "neither a CURIE nor"),
        ("classes: {}\nclasses: {Animal: {slots: [id]}}\n" + SLOTS, 9, "The key `classes` of the schema is already on"),
        (
            "classes: {Animal: {slots: [id], attributes: {code: {identifier: true}}}}\n" + SLOTS,
            8,
            "The class `Animal` has two identifiers, `id` and `code`.",
        ),
        ("classes: {Animal: {slots: [id]}}\nslots: {id: {identifier: true, multivalued: true}}", 8, "be multivalued"),
        (
            "classes:\n  ZooAnimal: {slots: [id]}\n  zoo_animal: {slots: [id]}\n" + SLOTS,
            10,
            "The classes `ZooAnimal` and `zoo_animal` are both `zoo_animal` in snake_case.",
        ),
        (
            "classes: {Animal: {slots: [id], attributes: {partOf: {}, part_of: {}}}}\n" + SLOTS,
            8,
            "The slots `partOf` and `part_of` of the class `Animal` have the same name in snake_case.",
        ),
        ("classes: {Animal: {slots: [id], attributes: {part of: {}, part_of: {}}}}\n" + SLOTS, 8, "`part_of` in data"),
        ("classes: {Animal: {slots: [name]}}\n" + SLOTS, 1, "The schema has no class for records"),
        ("classes: {Animal: {slots: {id: x}}}\n" + SLOTS, 8, "`slots` of the class `Animal` must be a list of"),
        ("classes: {Animal: {abstract: maybe, slots: [id]}}\n" + SLOTS, 8, "of the class `Animal` must be true or"),
        ("classes: [Animal]\n" + SLOTS, 8, "`classes` of the schema must be names with definitions."),
        ("classes: {Animal: big}\n" + SLOTS, 8, "The class `Animal` must have keys, such as `description:`."),
        ("classes: {1st: {slots: [id]}}\n" + SLOTS, 8, "`1st` cannot be the name of a class"),
        (
            "classes: {Animal: {slots: [id], slot_usage: {wings: {required: true}}}}\n" + SLOTS,
            8,
            "`slot_usage` of the class `Animal` changes `wings`, which `slots` does not declare.",
        ),
        (
            "classes: {Animal: {slots: [id], attributes: {a: {annotations: {lexarium_role: title}}}}}\n" + SLOTS,
            8,
            "is `title`, not one of name, alias, definition, note, notation, hierarchy, mapping, reference or none.",
        ),
        (
            "classes: {Animal: {slots: [id], attributes: {a: {annotations: {lexarium_oder: 1}}}}}\n" + SLOTS,
            8,
            "Unknown annotation `lexarium_oder` for the slot `a` of the class `Animal`. Did you mean "
            "`lexarium_order`?",
        ),
        (
            "classes: {Animal: {slots: [id], attributes: {a: {annotations: {lexarium_order: first}}}}}\n" + SLOTS,
            8,
            "must be a whole number of at most nine digits.",
        ),
        (
            "classes: {Animal: {slots: [id], annotations: {lexarium_valpha_fields: 'id, wings'}}}\n" + SLOTS,
            8,
            "`lexarium_valpha_fields` of the class `Animal` has `wings`, which the class does not have.",
        ),
        (
            "classes: {Animal: {slots: [id], annotations: {lexarium_valpha_lists: 'kids=^wings; a=id/b'}}}\n" + SLOTS,
            8,
            "has `wings`, which no class has.",
        ),
        ("classes: {Animal: {slots: [id], annotations: {lexarium_valpha_lists: a}}}\n" + SLOTS, 8, "must be lists"),
    ],
)  # fmt: skip
def test_a_problem_is_one_sentence_with_its_line(body: str, line: int, message: str) -> None:
    problems = find_problems(HEAD + body)
    assert any(message in problem.message and problem.line == line for problem in problems), problems
    for problem in problems:
        assert re.fullmatch(r"[A-Z`].*[.?]", problem.message), problem.message


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "The file is empty."),
        ("# nothing\n", 1, "The file is empty."),
        ("Once upon a time.", 1, "Not a LinkML schema: it must start with keys such as `id:`."),
        ("- a\n- b", 1, "Not a LinkML schema"),
        ("a: [1\nb: 2", 2, "Invalid YAML"),
        ("a: 1\n\tb: 2", 2, "Invalid YAML"),
        ("a: 1\nb: \x07", 2, "the character U+0007 is not allowed"),
        ("a: 1\nb: \ud800", 2, "half of a surrogate pair"),
        ("a: 1\n---\nb: 2", 2, "A second document starts here"),
        ("a: 1\nb: *c", 2, "The alias *c has no anchor &c before it."),
        ("a: &b\n  c: *b", 2, "The alias *b refers to a value that contains it."),
        ("? [a, b]\n: c", 1, "A key must be text."),
        ("a: " + "[" * 300_000, 1, "Values are nested more than 50 deep."),
        ("- " * 300_000, 1, "Values are nested more than 50 deep."),
        ("a: " + "x" * MAX_SCHEMA_BYTES, 1, "The schema has more than 1,048,576 bytes."),
        ("title: Animals", 1, "The schema has no `id`, such as `id: https://example.org/animals`."),
        ("title: Animals", 1, "The schema has no `name`, such as `name: animals`."),
        ("id: a:b\nname: a\ndefault_prefix: ex", 3, "`default_prefix` is `ex`, which `prefixes` does not have."),
        ("id: a:b\nname: a\nprefixes: {ex: 1}", 3, "The prefix `ex` must be an IRI"),
        (
            "id: a:b\nname: a\nimports: [linkml:types, core]",
            3,
            "Cannot import `core`: only `linkml:types` can be impor",
        ),
    ],
)
def test_text_that_is_not_a_schema_is_rejected_with_its_line(text: str, line: int, message: str) -> None:
    assert any(message in problem.message and problem.line == line for problem in find_problems(text))


def test_all_problems_are_reported_at_once_in_order_of_lines() -> None:
    body = "classes:\n  A: {slots: [x]}\n  B: {is_a: Z, slots: [y]}\nslots: {a: {range: R}, b: {slot_uri: q:b}}"
    problems = find_problems(HEAD + body)
    assert [problem.line for problem in problems] == [9, 10, 10, 11, 11]
    with pytest.raises(InvalidSchema, match=r"^The schema has 5 problems\.$") as caught:
        load_schema(HEAD + body)
    assert caught.value.problems[0].field == "line 9"


def test_a_problem_of_a_class_is_not_repeated_for_its_descendants() -> None:
    body = "classes:\n  A: {attributes: {id: {identifier: true}, a: {slot_uri: ex:x}, b: {slot_uri: ex:x}}}\n"
    body += "".join(f"  C{number}: {{is_a: A}}\n" for number in range(9))
    assert len(find_problems(HEAD + body)) == 1


def test_unsupported_keys_are_warnings_with_their_lines() -> None:
    text = (
        HEAD + "subsets: {}\nclasses:\n  Animal:\n    slots: [id, legs]\n    unique_keys: {}\n    slot_usage:\n"
        "      name: {required: true}\nslots:\n  id: {identifier: true}\n  name: {}\n  legs: {mutlivalued: true}\n"
        "types: {Code: {typeof: integer}}\nenums: {Any: {reachable_from: {}}}"
    )
    assert load_schema(text).warnings == (
        LineProblem(8, "The key `subsets` of the schema is not supported and has no effect."),
        LineProblem(12, "The key `unique_keys` of the class `Animal` is not supported and has no effect."),
        LineProblem(14, "`slot_usage` of the class `Animal` changes `name`, which the class does not have."),
        LineProblem(
            18,
            "The key `mutlivalued` of the slot `legs` is not supported and has no effect. Did you mean `multivalued`?",
        ),
        LineProblem(19, "Custom types are not supported: `Code` is read as `integer`."),
        LineProblem(20, "The enumeration `Any` has no permissible values: any text is allowed."),
        LineProblem(20, "The key `reachable_from` of the enumeration `Any` is not supported and has no effect."),
    )


def test_enumeration_values_that_look_like_yaml_booleans_stay_text() -> None:
    body = "enums: {Country: {permissible_values: {no: {}, se: {}}}}\n"
    body += "classes: {Animal: {slots: [id], attributes: {country: {range: Country}}}}\n" + SLOTS
    values = load_schema(HEAD + body).classes["Animal"].slots["country"].enum_values
    assert [value.text for value in values] == ["no", "se"]


def test_a_schema_keeps_its_source_text(animals: Schema) -> None:
    assert animals.source == ANIMALS


def make_large_schema(class_count: int, slot_count: int) -> str:
    per_class = slot_count // class_count
    lines = [HEAD, "classes:", "  Thing: {abstract: true, slots: [id]}"]
    for number in range(class_count):
        slots = ", ".join(f"slot_{number * per_class + index}" for index in range(per_class))
        lines += [f"  Class{number}:", "    is_a: Thing", f"    description: Class {number}.", f"    slots: [{slots}]"]
    lines += ["slots:", "  id: {identifier: true}"]
    for number in range(slot_count):
        lines += [
            f"  slot_{number}:",
            f"    description: Slot {number}.",
            f"    range: Class{number % class_count}" if number % 3 == 0 else "    range: string",
            "    multivalued: true",
            "    annotations:",
            f"      lexarium_order: {number}",
        ]
    return "\n".join(lines)


def test_a_schema_of_two_hundred_classes_and_two_thousand_slots_loads() -> None:
    schema = load_schema(make_large_schema(200, 2_000))
    assert sum(len(schema_class.slots) for schema_class in schema.classes.values()) == 2_201


def test_a_small_file_that_expands_to_very_many_slots_is_rejected() -> None:
    slots = ", ".join(f"s{number}: {{}}" for number in range(500))
    first = f"classes:\n  A: {{attributes: &slots {{id: {{identifier: true}}, {slots}}}}}\n"
    aliases = "".join(f"  C{number}: {{attributes: *slots}}\n" for number in range(500))
    [problem] = find_problems(HEAD + first + aliases)
    assert problem.message == "The document has more than 200,000 values."
    children = "".join(f"  C{number}: {{is_a: A}}\n" for number in range(500))
    assert find_problems(HEAD + first + children) == [
        LineProblem(1, "The classes have more than 100,000 slots altogether.")
    ]


def test_a_class_has_at_most_a_hundred_ancestors() -> None:
    chain = "".join(f"  C{number}: {{is_a: C{number - 1}}}\n" for number in range(1, 3_000))
    text = HEAD + "classes:\n  C0: {slots: [id]}\n" + chain + SLOTS.replace("Animal", "C0")
    assert find_problems(text) == [LineProblem(110, "The class `C101` has more than 100 ancestors.")]


def read_page() -> str:
    return (Path(__file__).parents[2] / "docs" / "guides" / "schemas.md").read_text()


def test_the_example_in_the_documentation_loads_without_a_warning() -> None:
    example = re.findall(r"```yaml\n(.*?)```", read_page(), re.DOTALL)[0]
    schema = load_schema(example)
    assert list(schema.collections) == ["animal", "herd"]
    assert schema.warnings == ()


def test_the_documentation_lists_every_key_annotation_and_role() -> None:
    page = read_page()
    rows = re.findall(r"^\| (the schema|a \w+) \| (.*) \|$", page, re.MULTILINE)
    keys = {name: set(re.findall(r"`(\w+)`", row)) for name, row in rows}
    assert keys["a class"] | {"name"} == {*definitions.CLASS_VALUES, *definitions.CLASS_PARTS}
    assert keys["a slot"] | {"name"} == {*definitions.SLOT_VALUES, "annotations"}
    assert keys["the schema"] | {"types"} == {*definitions.SCHEMA_VALUES, *definitions.SCHEMA_PARTS}
    annotations = re.findall(r"^\| `lexarium_(\w+)` \|", page, re.MULTILINE)
    assert sorted(annotations) == sorted([*definitions.SLOT_ANNOTATIONS, *definitions.CLASS_ANNOTATIONS])
    rows = re.findall(r"^\| `([a-z]+)` \| (`.*`) \|$", page, re.MULTILINE)
    documented = {curie: role for role, row in rows for curie in re.findall(r"`([\w:]+)`", row)}
    assert documented | {"https://schema.org/name": SlotRole.NAME} == STANDARD_ROLES


def test_long_forms_of_prefixes_annotations_and_slots_mean_the_same_as_short_ones() -> None:
    schema = load_schema(
        HEAD.replace("ex: https://example.org/animals/", "ex: {prefix_reference: 'https://example.org/animals/'}")
        + "slots: {id: {identifier: true}, name: {description: null}, count: {is_a: name, mixins: [number],\n"
        + "  annotations: {lexarium_order: {tag: lexarium_order, value: 7}}}, number: {mixin: true, range: integer},\n"
        + "  plain: {slot_uri: 'ex:plainly', annotations: {lexarium_role: none}}}\n"
        + "classes: {Animal: {slots: [id, name, count, plain]}}\n"
    )
    slots = schema.classes["Animal"].slots
    assert slots["name"].predicate == "https://example.org/animals/name"
    assert (slots["count"].order, slots["count"].range) == (7, "integer")
    assert slots["plain"].role is None


def test_slots_are_grouped_by_role_and_hierarchies_are_known_by_predicate(animals: Schema) -> None:
    animal = animals.classes["Animal"]
    assert [slot.name for slot in animal.slots_by_role[SlotRole.NAME]] == ["name"]
    assert "skos:broader" in animals.hierarchical_predicates
    assert animal.slots["part_of"].predicate in animals.hierarchical_predicates
    assert "skos:related" not in animals.hierarchical_predicates


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("slots: {1st: {}}", 8, "`1st` cannot be the name of a slot"),
        ("classes: {Animal: {annotations: {lexarium_valpha_lists: 'members=^'}}}", 8, "`lexarium_valpha_lists`"),
    ],
)
def test_an_invalid_name_or_list_is_reported_with_its_line(body: str, line: int, message: str) -> None:
    assert any(problem.line == line and message in problem.message for problem in find_problems(HEAD + body))


def test_a_default_prefix_must_be_one_of_the_prefixes() -> None:
    [problem] = find_problems(HEAD.replace("default_prefix: ex", "default_prefix: other"))
    assert (problem.line, problem.message) == (3, "`default_prefix` is `other`, which `prefixes` does not have.")
