"""The bodies that v1 takes, for its OpenAPI document. The rules themselves are held by the service."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field
from pydantic.json_schema import models_json_schema

from lexarium.domain.accounts import Role
from lexarium.domain.changes import Action
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.drafts import draft_model
from lexarium.domain.text import plain

Plain = Annotated[str, AfterValidator(plain)]


def _there_is(collection: str) -> str:
    if collection not in COLLECTIONS:
        raise ValueError(f"should be one of {', '.join(COLLECTIONS)}.")
    return collection


CollectionName = Annotated[str, AfterValidator(_there_is), Field(json_schema_extra={"enum": list(COLLECTIONS)})]


class Revert(BaseModel):
    """Which version to go back to."""

    version: int = Field(ge=1, examples=[1])


class Merge(BaseModel):
    """What to merge a record into."""

    into: str = Field(description="The id of the survivor.", examples=["trm_4a3fd79d096be"])


class Relate(BaseModel):
    """A relation to add."""

    relation: str = Field(examples=["KINDOF"])
    target: str = Field(
        description="The id of a record; of a mapping, an IRI or a CURIE.", examples=["trm_4a3fd79d096be"]
    )


class Propose(BaseModel):
    """What is proposed."""

    collection: str = Field(examples=["concept"])
    record: str | None = Field(None, description="The record to change; left out, a new one is proposed.")
    change: dict[str, Any] = Field(
        description="A whole draft, or of a record's draft a merge patch.", examples=[{"name": "A name"}]
    )


class Accept(BaseModel):
    """What to accept instead, if anything."""

    change: dict[str, Any] | None = Field(
        None, description="Of a record's draft a merge patch; of a new one the draft."
    )


class Reject(BaseModel):
    """Why not."""

    reason: str = Field(min_length=1, max_length=5_000, examples=["It is there under another name."])


class NewRelease(BaseModel):
    """A name for the present state."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", examples=["2026.1"])
    note: Plain = Field("", max_length=5_000)


class NewUser(BaseModel):
    """An account."""

    name: str = Field(min_length=1, max_length=200, examples=["Ada"])
    role: Role


class UserChange(BaseModel):
    """What is to change of an account: its role and anyone's password by an admin, one's own password by oneself."""

    role: Role | None = None
    password: str | None = Field(None, min_length=10, max_length=1_000, description="The new password.")
    old_password: str | None = Field(
        None, max_length=1_000, description="The password that you have now, to change your own."
    )


class SignIn(BaseModel):
    """Who, and the proof of it."""

    name: str = Field(min_length=1, max_length=200)
    password: str = Field(min_length=1, max_length=1_000)


class NewToken(BaseModel):
    """A token for oneself, or, by an admin, for another."""

    account: str | None = Field(None, description="The name of the account; left out, one's own.")
    label: Plain = Field("", max_length=200)
    role: Role | None = None
    days: int | None = Field(None, ge=1, le=36_500)


class NewWebhook(BaseModel):
    """An address that is to be told of changes."""

    url: str = Field(max_length=2_000, examples=["https://example.org/hook"])
    collections: list[CollectionName] = Field(
        [], max_length=100, description="Whose changes; left out or empty: of all."
    )
    actions: list[Action] = Field([], max_length=100, description="Which changes; left out or empty: all.")


class ProblemAnswer(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] = Field([], description="Each wrong field: a JSON pointer and a sentence.")


_BODIES: tuple[type[BaseModel], ...] = (
    Revert, Merge, Relate, Propose, Accept, Reject, NewRelease, NewUser, UserChange, NewToken, NewWebhook, SignIn,
    ProblemAnswer,
)  # fmt: skip
_REFERENCE = "#/components/schemas/{model}"


def draft_name(collection: str) -> str:
    """The name of the schema of a collection's draft."""
    return draft_model(collection).__name__


def components() -> dict[str, Any]:
    """Every schema, by name."""
    models: list[type[BaseModel]] = [*_BODIES, *(draft_model(name) for name in COLLECTIONS)]
    _, schema = models_json_schema([(model, "validation") for model in models], ref_template=_REFERENCE)
    definitions: dict[str, Any] = schema["$defs"]
    return definitions


def body_of(name: str, *, patch: bool = False) -> dict[str, Any]:
    """What an operation says of the body it takes."""
    schema = (
        {"type": "object", "description": f"A JSON merge patch of {name}."}
        if patch
        else {"$ref": _REFERENCE.format(model=name)}
    )
    kinds = ["application/merge-patch+json", "application/json"] if patch else ["application/json"]
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


PROPOSED: dict[int | str, dict[str, Any]] = {
    202: {"description": "By a contributor: it waits for a curator", "content": {"application/json": {}}}
}
UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "The version you have still holds"}}


def problems() -> dict[int | str, dict[str, Any]]:
    """The errors that any operation may answer with."""
    content = {"application/problem+json": {"schema": {"$ref": _REFERENCE.format(model=ProblemAnswer.__name__)}}}
    told = {
        308: "The record is merged into another",
        400: "The request cannot be read",
        401: "No token, or one that is not valid",
        403: "The role does not allow it",
        404: "Not there",
        408: "The body took too long",
        409: "It does not go with what is there",
        410: "The record is retired",
        412: "Changed since it was read",
        413: "Too large",
        415: "Another content type is needed",
        422: "Not valid: every problem at once",
        428: "If-Match is missing",
        429: "Too many requests",
        503: "Not now",
    }
    return {status: {"description": text, "content": content} for status, text in told.items()}
