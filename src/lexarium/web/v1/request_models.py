"""Models of the request bodies of v1. The rules of the domain are checked by the services."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from lexarium.services.records import releases
from lexarium.web.request_models import CollectionName, PlainText


class RequestModel(BaseModel):
    """Base of the models, which are built when they are first used."""

    model_config = ConfigDict(defer_build=True)


class RevertRequest(RequestModel):
    """Version to revert to."""

    version: int = Field(ge=1, le=2**31 - 1, description="The version to go back to.")


class MergeRequest(RequestModel):
    """Target of a merge."""

    into: str = Field(description="The id of the survivor.")


class RelateRequest(RequestModel):
    """A relation to add."""

    relation: str = Field(min_length=1, description="One that the collection has, or the name of a mapping.")
    target: str = Field(min_length=1, description="The id of a record; of a mapping, an IRI or a CURIE.")


class ProposeRequest(RequestModel):
    """A proposed change."""

    collection: CollectionName
    record: str | None = Field(None, description="The record to change; left out, a new one is proposed.")
    change: dict[str, Any] = Field(
        description='A whole draft; of a record a merge patch of its draft, or `{"state": "retired"}`.'
    )


class AcceptRequest(RequestModel):
    """Amendments to an accepted proposal."""

    change: dict[str, Any] | None = Field(
        None, description="A merge patch on top of what is proposed; it settles the fields in conflict that it names."
    )


class NewReleaseRequest(RequestModel):
    """A name for the present state."""

    name: Annotated[str, AfterValidator(releases.validate_release_name)] = Field(
        description="What it is cited by.", json_schema_extra={"pattern": f"^{releases.NAME_PATTERN.pattern}$"}
    )
    note: PlainText = Field("", max_length=5_000, description="What there is to say of it.")


class SignInRequest(RequestModel):
    """Name and password."""

    name: str = Field(min_length=1, max_length=200, description="The name of the account.")
    password: str = Field(min_length=1, max_length=1_000, description="Its password.")


class TextRequest(RequestModel):
    """A text to find terms in."""

    text: str


class BatchLine(RequestModel):
    """One line of a batch. Which fields it has depends on `op`."""

    op: Literal["create", "update", "retire", "relate", "unrelate"]
    collection: CollectionName | None = Field(None, description="create: where.")
    as_: str | None = Field(None, alias="as", description="create: what later lines call it, with a `$` before.")
    record: dict[str, Any] | None = Field(None, description="create: the draft.")
    id: str | None = Field(None, description="All but create: the record.")
    version: int | None = Field(None, description="The version that is to be changed; left out: whichever it has.")
    change: dict[str, Any] | None = Field(None, description="update: a merge patch of the draft.")
    replaced_by: str | None = Field(None, description="retire: the record to use instead.")
    relation: str | None = Field(None, description="relate, unrelate: the relation.")
    target: str | None = Field(None, description="relate, unrelate: what it points to.")
