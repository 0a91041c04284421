"""Rules by which a vocabulary mints ids."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexarium.domain.errors import Conflict, InvalidInput
from lexarium.domain.identifiers import has_prefix
from lexarium.domain.identity.minting import MintingKind, MintingRule, find_id_problem, find_rule_problems, mint

rules = st.one_of(
    st.just("none"),
    st.builds(
        lambda before, width, after, range_: f"{before}{{n{width}}}{after}{range_}",
        st.from_regex(r"[A-Za-z0-9:/_#.-]{0,8}", fullmatch=True),
        st.sampled_from(["", ":01", ":07", ":018"]),
        st.from_regex(r"[a-z0-9]{0,3}", fullmatch=True),
        st.sampled_from(["", " from 0", " to 9", " from 5 to 9"]),
    ),
    st.from_regex(r"[a-z]{1,5}_", fullmatch=True).map("{}{{random}}".format),
)


@given(rules)
def test_parsing_the_text_of_a_rule_returns_the_same_rule(text: str) -> None:
    rule = MintingRule.parse(text)
    assert MintingRule.parse(str(rule)) == rule
    assert MintingRule.parse(f"  {rule}\n") == rule


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("DOID:{n:07}", "DOID:{n:07}"),
        ("DOID:{n:07} from 1000 to 9999", "DOID:{n:07} from 1000 to 9999"),
        ("DOID:{n:07}  from 1000", "DOID:{n:07} from 1000"),
        ("DOID:{n:07} to 9999", "DOID:{n:07} from 1 to 9999"),
        ("https://example.org/{n}#it", "https://example.org/{n}#it"),
        ("trm_{random}", "trm_{random}"),
        ("None", "none"),
    ],
)
def test_a_rule_is_stored_and_shown_as_text(text: str, written: str) -> None:
    assert str(MintingRule.parse(text)) == written


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["The pattern is empty"]),
        ("DOID", ["has no number"]),
        ("DOID:{n", ["has no number", "character '{'"]),
        ("{n}-{n}", ["not 2"]),
        ("{n}{random}", ["not 2"]),
        ("DOID:{n:7}", ["'{n:7}' is unknown"]),
        ("DOID:{x}", ["'{x}' is unknown"]),
        ("DOID:{n:00}", ["'{n:00}' is unknown"]),
        ("DOID:{n:019}", ["at most 18 digits, not 19"]),
        ("DO ID:{n}", ["character ' '"]),
        ("DO\x00ID:{n}", ["character '\\x00'"]),
        ("x" * 490 + "{n}", ["too long"]),
        ("DOID:{n}" + " " * 100_000 + "x", ["at most 600 characters"]),
        ("DOID:{n:07} from 9 to 8", ["from 9 to 8 is empty"]),
        ("DOID:{n:02} from 1 to 100", ["100 has more digits than {n:02}"]),
        ("DOID:{n:02} from 100", ["100 has more digits than {n:02}"]),
        ("DOID:{n} from -1 to x", ["not '-1'", "not 'x'"]),
        ("trm_{random} from 5", ["A range needs a pattern with a number"]),
        ("none to 5", ["A range needs a pattern with a number"]),
        ("DO ID:{x}{n} from y", ["not 'y'", "not 2", "'{x}' is unknown", "character ' '"]),
    ],
)
def test_all_problems_of_a_rule_are_reported(text: str, problems: list[str]) -> None:
    found = find_rule_problems(text)
    assert len(found) == len(problems)
    for sentence, part in zip(found, problems, strict=True):
        assert part in sentence
        assert sentence.endswith(".")
    with pytest.raises(InvalidInput) as caught:
        MintingRule.parse(text)
    assert len(caught.value.problems) == len(problems)


@given(st.text(max_size=30) | st.from_regex(r"[{}n:0-9a-z ]{0,20}( from [0-9]{1,3})?( to [0-9]{1,3})?", fullmatch=True))
def test_any_text_is_a_valid_rule_or_has_problems(text: str) -> None:
    if find_rule_problems(text):
        return
    rule = MintingRule.parse(text)
    if rule.kind is not MintingKind.NONE:
        assert find_id_problem(mint(rule)) is None


def test_numbers_are_consecutive_until_the_range_is_exhausted() -> None:
    rule = MintingRule.parse("DOID:{n:07} from 1000 to 1001")
    assert mint(rule) == mint(rule, 5) == "DOID:0001000"
    assert mint(rule, 1000) == "DOID:0001001"
    with pytest.raises(Conflict) as caught:
        mint(rule, 1001)
    assert str(caught.value) == (
        "The ID pattern DOID:{n:07} from 1000 to 1001 has no number left. Set a pattern with a new range, or "
        "choose an ID for the new record yourself."
    )


def test_a_fixed_width_limits_the_range() -> None:
    rule = MintingRule.parse("x{n:02}")
    assert mint(rule, 98) == "x99"
    with pytest.raises(Conflict):
        mint(rule, 99)
    assert mint(MintingRule.parse("x{n}"), 99) == "x100"
    with pytest.raises(Conflict):
        mint(MintingRule.parse("x{n}"), 10**18 - 1)


@given(rules, st.integers(0, 200) | st.none())
def test_the_number_of_a_minted_id_is_parsed(text: str, last_used: int | None) -> None:
    rule = MintingRule.parse(text)
    if rule.kind is not MintingKind.NUMBER:
        return
    try:
        minted = mint(rule, last_used)
    except Conflict:
        return
    number = rule.parse_number(minted)
    assert number is not None
    assert last_used is None or number > last_used


@pytest.mark.parametrize(
    ("record_id", "number"),
    [
        ("DOID:0001000", 1000),
        ("DOID:1000", 1000),
        ("DOID:00000000000000000000000001000", 1000),
        # Of another range.
        ("DOID:999", None),
        ("DOID:10000", None),
        (f"DOID:{'9' * 5000}", None),
        ("DOID:", None),
        ("DOID:x1000", None),
        ("DOID:１０００", None),
        ("doid:1000", None),
        ("DOID:+1000", None),
        ("", None),
    ],
)
def test_the_number_of_an_imported_id_is_parsed(record_id: str, number: int | None) -> None:
    assert MintingRule.parse("DOID:{n:07} from 1000 to 9999").parse_number(record_id) == number


def test_text_before_and_after_the_number_must_not_overlap() -> None:
    assert MintingRule.parse("aa{n}aa").parse_number("aaa") is None


def test_random_ids_have_the_format_of_v_alpha_ids() -> None:
    rule = MintingRule.parse("trm_{random}")
    ids = {mint(rule) for _ in range(50)}
    assert len(ids) == 50
    assert all(has_prefix(record_id, ("trm",)) and re.fullmatch(r"trm_[0-9a-f]{16}", record_id) for record_id in ids)
    assert rule.parse_number("trm_0000000000000001") is None


@pytest.mark.parametrize("local_id", ["", "a b", "a\x1fb", "a\nb", "<a>", "x" * 501, "é" * 251])
def test_invalid_ids_are_rejected(local_id: str) -> None:
    assert find_id_problem(local_id)
