"""Parse the alias text of v-alpha."""

import pytest

from lexarium.domain.labels import split_alias_texts


@pytest.mark.parametrize(
    ("alias", "names"),
    [
        ("a, b", ["a", "b"]),
        ("a, b; c", ["a, b", "c"]),
        ("Slovic&#39;s risk task", ["Slovic's risk task"]),
        ("Fitts&#39; task, Fitts tapping task", ["Fitts' task", "Fitts tapping task"]),
        ("&quot;a&quot;; b &amp; c", ['"a"', "b & c"]),
        ("R&D; Q&A", ["R&D", "Q&A"]),
        ("salt &pepper; oil", ["salt &pepper", "oil"]),
        (" ;, ", [","]),
        ("", []),
    ],
)
def test_aliases_are_split_at_semicolons_or_commas_outside_of_references(alias: str, names: list[str]) -> None:
    assert split_alias_texts(alias) == names
