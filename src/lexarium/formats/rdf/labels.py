"""The labels of a resource as the name and the other names of a record."""

from collections.abc import Iterable, Sequence

from lexarium.domain.labels import Alias, AliasScope, is_language_tag
from lexarium.formats.rdf.parser import RdfLiteral

NO_LANGUAGE = "zxx"
"""The tag of what is in no language: a notation is kept as a hidden name with it."""


def select_label(literals: Sequence[RdfLiteral], language: str) -> RdfLiteral | None:
    """The first in the language, else in none, in a variety of it, or in any."""
    return min(literals, key=lambda literal: _language_rank(literal.language.lower(), language.lower()), default=None)


def matches_language(literal: RdfLiteral, language: str) -> bool:
    """Whether it is in the language, a variety of it, or in none that is told."""
    return _language_rank(literal.language.lower(), language.lower()) < _OTHER_LANGUAGE


def build_alias(literal: RdfLiteral, scope: AliasScope, language: str) -> Alias:
    """Another name; in `language` where it tells none, or none that could be."""
    tag = normalize_language_tag(literal.language)
    return Alias.model_construct(text=literal.text, lang=tag if is_language_tag(tag) else language, scope=scope)


def normalize_language_tag(tag: str) -> str:
    """A tag with upper and lower case as BCP 47 has it: RDF takes no notice of them."""
    first, *subtags = tag.lower().split("-")
    parts = [first]
    for subtag in subtags:
        before_singleton = all(len(part) > 1 for part in parts)
        parts.append(
            subtag.upper()
            if before_singleton and len(subtag) == 2
            else subtag.title()
            if before_singleton and len(subtag) == 4
            else subtag
        )
    return "-".join(parts)


def resolve_scopes(labels: Iterable[tuple[str, RdfLiteral]], unscoped: str) -> list[tuple[str, RdfLiteral]]:
    """Labels with their scopes. `alternative` means exact, and counts only where the label has no other scope."""
    label_list = list(labels)
    scoped_literals = {literal for scope, literal in label_list if scope not in (unscoped, "hidden")}
    return [
        ("exact" if scope == unscoped else scope, literal)
        for scope, literal in label_list
        if scope != unscoped or literal not in scoped_literals
    ]


_OTHER_LANGUAGE = 3


def _language_rank(tag: str, language: str) -> int:
    if tag == language:
        return 0
    if not tag:
        return 1
    return 2 if tag.startswith(f"{language}-") else _OTHER_LANGUAGE
