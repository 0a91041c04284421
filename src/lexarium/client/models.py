"""What a served catalogue answers, as its client gives it: plain dictionaries with these keys."""

from typing import Any, Literal, NotRequired, TypedDict


class Alias(TypedDict):
    """Another name of a record."""

    text: str
    lang: str
    scope: str


class Record(TypedDict):
    """A record at a version. Which of the last fields it has depends on its collection."""

    id: str
    collection: str
    version: int
    state: Literal["published", "retired", "merged"]
    replaced_by: str | None
    name: str
    aliases: list[Alias]
    sources: list[str]
    relations: dict[str, list[str]]
    updated: str
    updated_by: str
    warnings: NotRequired[list[str]]
    definition_text: NotRequired[str]
    definition: NotRequired[str]
    description: NotRequired[str]
    alias: NotRequired[str]
    id_concept_class: NotRequired[str]
    id_protocol: NotRequired[str]


class Hit(TypedDict):
    """A record that a search found, and why."""

    id: str
    name: str
    collection: str
    state: str
    replaced_by: str | None
    score: float
    matched: dict[str, str]
    highlight: list[dict[str, int]]


class Suggestion(TypedDict):
    """A completion of what was typed."""

    id: str
    name: str
    collection: str
    text: str
    highlight: list[dict[str, int]]


class Annotation(TypedDict):
    """A place in a text that mentions a record."""

    start: int
    end: int
    text: str
    id: str
    name: str
    collection: str


class Related(TypedDict):
    """A record at the other end of a relation."""

    relation: str
    direction: Literal["out", "in"]
    id: str
    name: str


class Reached(TypedDict):
    """A record above or below another, so many steps away."""

    id: str
    name: str
    depth: int


class Version(TypedDict):
    """A version of a record, as its history lists it."""

    version: int
    seq: int
    at: str
    actor: str
    action: str
    state: str
    proposal: str | None
    proposed_by: str | None


class Change(TypedDict):
    """A change of the catalogue, with the record as it was from then on."""

    seq: int
    at: str
    actor: str
    action: str
    collection: str
    id: str
    version: int
    record: Record


class Proposal(TypedDict):
    """A change that waits for a curator, or that was decided."""

    id: str
    collection: str
    record: str | None
    base_version: int | None
    change: dict[str, Any]
    by: str
    at: str
    state: Literal["open", "accepted", "rejected", "withdrawn"]
    decided_by: str | None
    decided_at: str | None
    reason: str
