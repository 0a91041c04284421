"""Fields of drafts as the text of forms, and back."""

from typing import Any

import pytest

from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.web.pages.curation.draft_fields import parse_field, to_form_values

CONCEPT = COLLECTIONS["concept"]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("sources", ["A book", "Another | one"], "A book\nAnother | one"),
        ("notations", ["7.1"], "7.1"),
        ("relations", {"KINDOF": ["trm_1", "trm_2"], "PARTOF": ["trm_3"]}, "KINDOF trm_1\nKINDOF trm_2\nPARTOF trm_3"),
        ("names", [{"text": "a|b", "lang": "de"}], "a|b | de"),
        ("definitions", [{"text": "One.\nTwo.", "lang": "fr"}], "One. ⏎ Two. | fr"),
        (
            "notes",
            [{"type": "scope_note", "lang": "es", "text": "solo | la\nhumana"}],
            "scope_note | es | solo | la ⏎ humana",
        ),
        ("aliases", [{"text": "memoria", "lang": "es", "scope": "narrow"}], "memoria | es | narrow"),
        ("replaced_by", "trm_9", "trm_9"),
    ],
)
def test_the_text_of_a_field_has_all_of_its_value(name: str, value: Any, text: str) -> None:
    assert to_form_values({name: value}) == {name: text}
    assert parse_field(CONCEPT, {name: text}, name) == value


def test_numbers_and_blank_lines_are_parsed() -> None:
    number = next(name for name, kind in CONCEPT.field_types.items() if kind is int)
    assert parse_field(CONCEPT, {number: " 12 "}, number) == 12
    assert parse_field(CONCEPT, {number: "twelve"}, number) == "twelve"
    assert parse_field(CONCEPT, {"sources": "\n a \n\n"}, "sources") == ["a"]
    assert parse_field(CONCEPT, {"replaced_by": " "}, "replaced_by") is None
