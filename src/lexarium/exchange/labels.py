"""The labels of a resource as the name and the other names of a record."""

from collections.abc import Iterable, Sequence

from lexarium.domain.aliases import Alias, Scope, is_language
from lexarium.exchange.rdf import Text

NO_LANGUAGE = "zxx"
"""The tag of what is in no language: a notation is kept as a hidden name with it."""


def best(texts: Sequence[Text], language: str) -> Text | None:
    """The first in the language, else in none, in a variety of it, or in any."""
    return min(texts, key=lambda text: _distance(text.language.lower(), language.lower()), default=None)


def is_in(text: Text, language: str) -> bool:
    """Whether it is in the language, a variety of it, or in none that is told."""
    return _distance(text.language.lower(), language.lower()) < _ANOTHER


def alias(text: Text, scope: Scope, language: str) -> Alias:
    """Another name; in `language` where it tells none, or none that could be."""
    tag = cased(text.language)
    return Alias.model_construct(text=text.text, lang=tag if is_language(tag) else language, scope=scope)


def cased(tag: str) -> str:
    """A tag with upper and lower case as BCP 47 has it: RDF takes no notice of them."""
    first, *others = tag.lower().split("-")
    parts = [first]
    for other in others:
        plain = all(len(part) > 1 for part in parts)
        parts.append(
            other.upper() if plain and len(other) == 2 else other.title() if plain and len(other) == 4 else other
        )
    return "-".join(parts)


def scoped(labels: Iterable[tuple[str, Text]], alternative: str) -> list[tuple[str, Text]]:
    """Labels with their scopes. `alternative` means exact, and counts only where the label has no other scope."""
    listed = list(labels)
    told = {text for scope, text in listed if scope not in (alternative, "hidden")}
    return [
        ("exact" if scope == alternative else scope, text)
        for scope, text in listed
        if scope != alternative or text not in told
    ]


_ANOTHER = 3


def _distance(tag: str, language: str) -> int:
    if tag == language:
        return 0
    if not tag:
        return 1
    return 2 if tag.startswith(f"{language}-") else _ANOTHER
