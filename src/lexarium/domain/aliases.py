"""Other names of a record: one string on v-alpha, a list with language and scope on v1."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from lexarium.domain.text import plain

Scope = Literal["exact", "narrow", "broad", "related"]

DEFAULT_LANGUAGE = "en"


class Alias(BaseModel):
    """Another name of a record."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    text: Annotated[str, AfterValidator(plain)] = Field(min_length=1, max_length=500, description="The name itself.")
    lang: str = Field(
        DEFAULT_LANGUAGE, pattern=r"^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$", description="Its language, as a BCP 47 tag."
    )
    scope: Scope = Field("exact", description="How it relates to the name: exact, narrow, broad or related.")


def texts(alias: str) -> list[str]:
    """The names in a v-alpha `alias`: between semicolons where it has any, else between commas."""
    parts = alias.split(";" if ";" in alias else ",")
    return [part.strip() for part in parts if part.strip()]


def split(alias: str) -> tuple[Alias, ...]:
    """The names in a v-alpha `alias` as a list."""
    return tuple(Alias.model_construct(text=text) for text in texts(alias))


def join(aliases: Iterable[Alias]) -> str:
    """The v-alpha `alias` of a list: the names in the default language."""
    texts = [alias.text for alias in aliases if alias.lang == DEFAULT_LANGUAGE]
    return ("; " if any("," in text for text in texts) else ", ").join(texts)
