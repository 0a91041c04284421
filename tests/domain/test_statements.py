"""Statements in JSON, and their three-way merge."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from lexarium.domain.editing.statement_merge import diff_statements, merge_statements
from lexarium.domain.statement import (
    Node,
    Reference,
    Statement,
    Text,
    dump_statements,
    load_statements,
    measure_statements,
    normalize,
)

NAME = "skos:prefLabel"
ALIAS = "skos:altLabel"
DEFINITION = "skos:definition"
SOURCE = "dcterms:source"

_texts = st.text(max_size=8)
_predicates = st.sampled_from([NAME, ALIAS, DEFINITION, "https://example.org/p#x"])
_values = st.one_of(
    st.builds(Text, _texts, st.sampled_from(["", "en", "pt-BR"]), st.just("")),
    st.builds(Text, _texts, st.just(""), st.sampled_from(["xsd:date", "xsd:integer", "xsd:boolean"])),
    st.builds(lambda number: Text(str(number), "", "xsd:integer"), st.integers()),
    st.builds(Reference, _texts),
)


def _nest(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    inner = st.lists(st.builds(Statement, _predicates, values, st.just(())), max_size=3).map(tuple)
    return st.builds(Node, inner, _texts)


_any_value = st.recursive(_values, _nest, max_leaves=6)
_qualifiers = st.lists(st.builds(Statement, _predicates, _values, st.just(())), max_size=2).map(tuple)
statements = st.lists(st.builds(Statement, _predicates, _any_value, _qualifiers), max_size=8).map(normalize)


@given(statements)
def test_any_statements_are_unchanged_after_json_serialization(made: tuple[Statement, ...]) -> None:
    assert load_statements(orjson.loads(orjson.dumps(dump_statements(made)))) == made


@given(statements)
def test_normalizing_is_idempotent(made: tuple[Statement, ...]) -> None:
    assert normalize(reversed(made)) == normalize(normalize(reversed(made)))
    assert frozenset(normalize(reversed(made))) == frozenset(made)


def test_json_omits_redundant_keys() -> None:
    made = (
        Statement(NAME, Text("Memory")),
        Statement(NAME, Text("Gedächtnis", "de")),
        Statement("schema:position", Text("12", "", "xsd:integer")),
        Statement("schema:position", Text("012", "", "xsd:integer")),
        Statement("owl:deprecated", Text("true", "", "xsd:boolean")),
        Statement(ALIAS, Text("recall"), (Statement(SOURCE, Reference("PMID:1")),)),
        Statement("skos:note", Node((Statement("rdf:value", Text("n")),))),
    )
    assert dump_statements(made) == {
        NAME: ["Memory", {"text": "Gedächtnis", "lang": "de"}],
        "schema:position": [12, {"text": "012", "type": "xsd:integer"}],
        "owl:deprecated": [True],
        ALIAS: [{"text": "recall", "qualifiers": {SOURCE: [{"ref": "PMID:1"}]}}],
        "skos:note": [{"node": {"rdf:value": ["n"]}}],
    }


def test_nested_nodes_and_qualifiers_count_towards_size_and_depth() -> None:
    note = Statement("skos:note", Node((Statement("rdf:value", Text("n")),)), (Statement(SOURCE, Text("s")),))
    assert measure_statements([note]) == (3, 2)


def _single_name(statement: Statement) -> str | None:
    return NAME if statement.predicate == NAME else None


def _name(text: str) -> Statement:
    return Statement(NAME, Text(text))


def _alias(text: str) -> Statement:
    return Statement(ALIAS, Text(text))


def test_a_new_edition_changes_unedited_statements() -> None:
    base = (_name("old"), _alias("a"), _alias("b"))
    merged = merge_statements(base, base, (_name("new"), _alias("b"), _alias("c")), _single_name)
    assert merged == ((_name("new"), _alias("b"), _alias("c")), ())


def test_a_new_edition_keeps_local_additions_and_does_not_restore_local_removals() -> None:
    base = (_name("n"), _alias("a"), _alias("b"))
    ours = (_name("n"), _alias("b"), _alias("ours"))
    merged = merge_statements(base, ours, (_name("n"), _alias("a"), _alias("c")), _single_name)
    assert merged == ((_name("n"), _alias("ours"), _alias("c")), ())


def test_a_name_changed_on_both_sides_is_a_conflict_and_keeps_our_value() -> None:
    merged = merge_statements([_name("n")], [_name("ours")], [_name("theirs")], _single_name)
    assert merged.statements == (_name("ours"),)
    assert [(conflict.ours, conflict.theirs) for conflict in merged.conflicts] == [
        ((_name("ours"),), (_name("theirs"),))
    ]


def test_a_preferred_side_wins_without_a_conflict() -> None:
    sides = [_name("n")], [_name("ours")], [_name("theirs")]
    assert merge_statements(*sides, _single_name, "theirs") == ((_name("theirs"),), ())
    assert merge_statements(*sides, _single_name, "ours") == ((_name("ours"),), ())


def test_the_same_change_on_both_sides_is_no_conflict() -> None:
    merged = merge_statements([_name("n")], [_name("same")], [_name("same")], _single_name)
    assert merged == ((_name("same"),), ())


@given(statements, statements, statements)
def test_a_merge_contains_only_statements_of_either_side(
    base: tuple[Statement, ...], ours: tuple[Statement, ...], theirs: tuple[Statement, ...]
) -> None:
    merged = merge_statements(base, ours, theirs, _single_name)
    assert frozenset(merged.statements) <= frozenset(ours) | frozenset(theirs)
    # What only we state stays, unless their edition withdrew it.
    withdrawn = frozenset(base) - frozenset(theirs)
    assert frozenset(ours) - withdrawn <= frozenset(merged.statements)


@given(statements, statements)
def test_a_first_edition_only_adds(ours: tuple[Statement, ...], theirs: tuple[Statement, ...]) -> None:
    merged = merge_statements((), ours, theirs, lambda statement: None)
    assert frozenset(merged.statements) == frozenset(ours) | frozenset(theirs)


@given(statements, statements)
def test_applying_a_diff_to_the_first_set_results_in_the_second(
    before: tuple[Statement, ...], after: tuple[Statement, ...]
) -> None:
    removed, added = diff_statements(before, after)
    assert (frozenset(before) - frozenset(removed)) | frozenset(added) == frozenset(after)
