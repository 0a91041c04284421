"""Plurals and articles of the labels of classes."""

import pytest

from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.nouns import add_article, pluralize


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        ("battery", "batteries"),
        ("theory", "theories"),
        ("essay", "essays"),
        ("concept class", "concept classes"),
        ("box", "boxes"),
        ("analysis", "analyses"),
        ("external dataset", "external datasets"),
        ("y", "ys"),
    ],
)
def test_a_plural_follows_the_rules(singular: str, plural: str) -> None:
    assert pluralize(singular) == plural


@pytest.mark.parametrize("noun", ["a task", "an indicator", "an external link", "a user", "a unit", "an umbrella"])
def test_an_article_depends_on_the_pronunciation(noun: str) -> None:
    assert add_article(noun.partition(" ")[2]) == noun


def test_collections_are_named_after_the_labels_of_their_classes() -> None:
    assert COLLECTIONS["concept_class"].label == "concept class"
    assert COLLECTIONS["disambiguation"].plural == "disambiguations"
