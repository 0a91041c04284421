"""Aliases of a record: one string in v-alpha, a list with language and scope in v1."""

import re
from collections.abc import Iterable
from functools import lru_cache
from html import unescape
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from lexarium.domain.text import languages
from lexarium.domain.text.characters import reject_control_chars

AliasScope = Literal["exact", "narrow", "broad", "related", "hidden"]

DEFAULT_LANGUAGE = "en"

_HTML_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# A character that no text contains.
_ESCAPED_SEMICOLON = "\0"

is_language_tag = languages.is_language_tag


def _check_language_tag(tag: str) -> str:
    if not is_language_tag(tag):
        raise ValueError("must be a language tag, such as en or pt-BR.")
    return tag


class Alias(BaseModel):
    """Another name of a record."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    text: Annotated[str, AfterValidator(reject_control_chars)] = Field(min_length=1, description="Name.")
    lang: Annotated[str, AfterValidator(_check_language_tag)] = Field(
        DEFAULT_LANGUAGE,
        description="Language, as a BCP 47 tag.",
        json_schema_extra={"pattern": f"^{languages.TAG_FORM.pattern}$"},
    )
    scope: AliasScope = Field(
        "exact",
        description="Relation to the name: exact, narrow, broad, related, or hidden (only for search).",
    )

    def dump(self) -> dict[str, str]:
        """Return the same as `model_dump`, but faster."""
        return {"text": self.text, "lang": self.lang, "scope": self.scope}


# A record is built several times while it is read or edited, and to build an alias takes longer than to find it.
@lru_cache(maxsize=4_096)
def build_alias(text: str, lang: str = DEFAULT_LANGUAGE, scope: AliasScope = "exact") -> Alias:
    """Return an alias without checking it."""
    return Alias.model_construct(text=text, lang=lang, scope=scope)


def split_alias_texts(alias: str) -> list[str]:
    """Split a v-alpha alias text at semicolons, or at commas if it has none.

    The semicolon of an HTML entity such as `&#39;` does not count.
    """
    escaped = _HTML_ENTITY.sub(_escape_entity, alias) if "&" in alias else alias
    parts = escaped.split(";" if ";" in escaped else ",")
    texts = (
        unescape(part.replace(_ESCAPED_SEMICOLON, ";")).strip() if _ESCAPED_SEMICOLON in part else part.strip()
        for part in parts
    )
    return [part for part in texts if part]


def _escape_entity(match: re.Match[str]) -> str:
    text = match.group()
    return text if unescape(text) == text else text[:-1] + _ESCAPED_SEMICOLON


def parse_aliases(alias: str) -> tuple[Alias, ...]:
    """Parse a v-alpha alias text."""
    return tuple(map(build_alias, split_alias_texts(alias))) if alias else ()


def format_aliases(aliases: Iterable[Alias]) -> str:
    """Return the v-alpha alias text: the aliases in the default language."""
    texts = [alias.text for alias in aliases if alias.lang == DEFAULT_LANGUAGE]
    return ("; " if any("," in text for text in texts) else ", ").join(texts)
