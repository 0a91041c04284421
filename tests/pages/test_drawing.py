"""Charts, treemaps, text diffs and placeholders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexarium.domain.text.diff import diff_words
from lexarium.domain.text.placeholders import is_placeholder
from lexarium.web.pages.charts.area_chart import build_chart
from lexarium.web.pages.charts.treemap import layout_treemap


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=60))
def test_a_treemap_is_filled_by_boxes_of_proportional_area(sizes: list[int]) -> None:
    sizes = sorted(sizes, reverse=True)
    boxes = layout_treemap(sizes, 960, 300)
    scale = 960 * 300 / sum(sizes)
    for size, box in zip(sizes, boxes, strict=True):
        assert box.width * box.height == pytest.approx(size * scale)
        assert box.x >= -1e-6
        assert box.y >= -1e-6
        assert box.x + box.width <= 960 + 1e-6
        assert box.y + box.height <= 300 + 1e-6


@given(st.text(), st.text())
def test_a_diff_contains_both_texts(before: str, after: str) -> None:
    segments = diff_words(before, after)
    assert "".join(segment.text for segment in segments if segment.change != "added") == before
    assert "".join(segment.text for segment in segments if segment.change != "removed") == after


def test_texts_too_long_for_a_word_diff_are_compared_as_a_whole() -> None:
    assert [segment.change for segment in diff_words("a " * 3_000, "b " * 3_000)] == ["removed", "added"]


@pytest.mark.parametrize(
    "text", ["None", "TBD", " tbd. ", "-", "…", "ADD DEFINITION HERE", "No definition submitted yet."]
)
def test_a_placeholder_is_recognized(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize("text", ["", " ", "lack of interest", "None of the above, taken as an answer", "Recall."])
def test_a_short_definition_is_not_a_placeholder(text: str) -> None:
    assert not is_placeholder(text)


def test_a_chart_accumulates_by_month_and_groups_other_series() -> None:
    chart = build_chart({"a": {"2023-12": 1, "2024-02": 2}, "b": {"2024-01": 5}, "c": {"2024-01": 1}}, ["b"], "others")
    assert chart is not None
    assert [(series.key, series.total) for series in chart.series] == [("b", 5), ("others", 4)]
    assert (chart.first, chart.last) == ("2023-12", "2024-02")
    assert [label for _, label in chart.gridlines] == ["0", "2", "4", "6", "8", "10"]


def test_a_chart_of_one_month_begins_the_month_before() -> None:
    chart = build_chart({"a": {"2024-01": 30_000, "odd": 3}}, ["a"], "others")
    assert chart is not None
    assert chart.first == "2023-12"
    assert chart.gridlines[-1][1] == "30k"


def test_no_chart_is_drawn_without_data() -> None:
    assert build_chart({}, [], "others") is None
    assert build_chart({"a": {"no month": 1}}, ["a"], "others") is None
