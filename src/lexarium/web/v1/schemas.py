"""The bodies that v1 takes, and what operations say of bodies and answers in the OpenAPI document.

The rules themselves are held by the service.
"""

from http import HTTPStatus
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field

from lexarium.domain.record import RecordState
from lexarium.domain.validation import build_draft_model
from lexarium.formats.registry import FORMATS, Format
from lexarium.services.records import releases
from lexarium.web.request_models import CollectionName, NewToken, NewUser, NewWebhook, PlainText, Reject, UserChange


class Revert(BaseModel):
    """Which version to go back to."""

    version: int = Field(ge=1, le=2**31 - 1, description="The version to go back to.")


class Merge(BaseModel):
    """What to merge a record into."""

    into: str = Field(description="The id of the survivor.")


class Relate(BaseModel):
    """A relation to add."""

    relation: str = Field(min_length=1, description="One that the collection has, or the name of a mapping.")
    target: str = Field(min_length=1, description="The id of a record; of a mapping, an IRI or a CURIE.")


class Propose(BaseModel):
    """What is proposed."""

    collection: CollectionName
    record: str | None = Field(None, description="The record to change; left out, a new one is proposed.")
    change: dict[str, Any] = Field(
        description='A whole draft; of a record a merge patch of its draft, or `{"state": "retired"}`.'
    )


class Accept(BaseModel):
    """What to change of what is accepted, if anything."""

    change: dict[str, Any] | None = Field(
        None, description="A merge patch on top of what is proposed; it settles the fields in conflict that it names."
    )


class NewRelease(BaseModel):
    """A name for the present state."""

    name: Annotated[str, AfterValidator(releases.validate_release_name)] = Field(
        description="What it is cited by.", json_schema_extra={"pattern": f"^{releases.NAME_PATTERN.pattern}$"}
    )
    note: PlainText = Field("", max_length=5_000, description="What there is to say of it.")


class SignIn(BaseModel):
    """Who, and the proof of it."""

    name: str = Field(min_length=1, max_length=200, description="The name of the account.")
    password: str = Field(min_length=1, max_length=1_000, description="Its password.")


class Text(BaseModel):
    """A text to find terms in."""

    text: str


class BatchLine(BaseModel):
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


class BatchResult(BaseModel):
    """What a line of a batch came to."""

    id: str
    version: int
    state: RecordState
    warnings: list[str] = Field([], description="What its writer should know.")


def document_name(format: Format) -> str:
    """The name of the schema of an export in this format."""
    return f"{format.name.title().replace('-', '')}Export"


LINES = {
    "PlainText": "A text to find terms in, in UTF-8.",
    "Batch": "One `BatchLine` a line; `limits` of `GET /api/v1` tells how many.",
    "BatchResults": "One `BatchResult` a line, in the order of the lines that were sent.",
    "Events": "Server-sent events: each with an `id` to resume after, `event: change`, and a `Change` as `data`.",
    **{
        document_name(each): f"{each.description}."
        for each in FORMATS.values()
        if each.can_write and each.name not in ("v-alpha", "jsonld")
    },
}
"""What is no JSON as a whole."""

BODIES: tuple[type[BaseModel], ...] = (
    Revert, Merge, Relate, Propose, Accept, Reject, NewRelease, NewUser, UserChange, NewToken, NewWebhook, SignIn,
    BatchLine, BatchResult, Text,
)  # fmt: skip
REFERENCE = "#/components/schemas/{model}"
_JSON = "application/json"
_MERGE_PATCH = "application/merge-patch+json"
_PROBLEM = "application/problem+json"

ERRORS = {
    308: "The record is merged into another",
    400: "The request cannot be read",
    401: "No token, or one that is not valid",
    403: "The role does not allow it",
    404: "Not there",
    406: "That format is not spoken",
    408: "The body took too long",
    409: "It does not go with what is there",
    410: "The record is retired",
    412: "Changed since it was read",
    413: "Too large",
    415: "Another content type is needed",
    422: "Not valid: every problem at once",
    428: "If-Match is missing",
    429: "Too many requests",
}
"""What each error means; the errors that any operation may answer with are the document's `default`."""

_ANSWERED = {200: "Done", 201: "Made", 202: "It waits for a curator", 204: "Done; there is nothing to tell"}
_HEADERS = {
    "Content-Disposition": "What to call the file.",
    "ETag": "By what it is known again; of a record, its version. To be sent as If-None-Match or If-Match.",
    "Link": "The next page, where there is one.",
    "Location": "Where it is now.",
    "Retry-After": "After how many seconds to try again.",
}
Answers = dict[int | str, dict[str, Any]]


def answered(
    schema: str | None, *errors: int, status: int = 200, headers: tuple[str, ...] = (), kind: str = _JSON
) -> Answers:
    """What an operation says of its answers: the schema of a success, and the errors that its route does not tell.

    Those that come with what it asks of a request are added by the document.
    """
    success: dict[str, Any] = {"description": _ANSWERED[status]}
    if schema is not None:
        success["content"] = {kind: {"schema": reference(schema)}}
    if headers:
        success["headers"] = {name: _header(name) for name in headers}
    return {status: success, **{error: {"description": ERRORS[error]} for error in errors}}


def numbered(responses: Answers) -> dict[str, Any]:
    """The same as the document has them: with statuses as text."""
    return {str(status): told for status, told in responses.items()}


def known_again() -> dict[str, Any]:
    """What the document says of the header by which an answer is known again."""
    return {"ETag": _header("ETag")}


def problems() -> dict[str, dict[str, Any]]:
    """What the document says of each error, by status; and of any other, as `default`."""
    found = {str(status): _problem(status, told) for status, told in ERRORS.items()}
    found["429"]["headers"] = {"Retry-After": _header("Retry-After")}
    return {**found, "default": _problem(503, "Anything else that went wrong")}


def _problem(status: int, told: str) -> dict[str, Any]:
    example: dict[str, Any] = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    example["detail"] = f"{told}."
    if status == HTTPStatus.UNPROCESSABLE_ENTITY:
        example["errors"] = [{"pointer": "/name", "detail": "name is required."}]
    return {"description": told, "content": {_PROBLEM: {"schema": reference("Problem"), "example": example}}}


def live(answers: Answers) -> Answers:
    """The same, where the success may also be asked for as a stream of events."""
    content = {**answers[200]["content"], "text/event-stream": {"schema": reference("Events")}}
    return {**answers, 200: {**answers[200], "content": content}}


def body_of(name: str, *, patch: bool = False, kind: str = _JSON, required: bool = True) -> dict[str, Any]:
    """What an operation says of the body it takes."""
    schema = reference(patch_name(name) if patch else name)
    kinds = [_MERGE_PATCH, _JSON] if patch else [kind]
    return {"requestBody": {"required": required, "content": {kind: {"schema": schema} for kind in kinds}}}


def title(collection: str) -> str:
    """What the schema of a collection's records is called."""
    return "".join(part.capitalize() for part in collection.split("_"))


def draft_name(collection: str) -> str:
    """The name of the schema of a collection's draft."""
    return build_draft_model(collection).__name__


def patch_name(body: str) -> str:
    """The name of the schema of a merge patch of what a body holds."""
    return f"{body.removeprefix('New').removesuffix('Draft')}Patch"


def reference(name: str) -> dict[str, Any]:
    """The schema of this name."""
    return {"$ref": REFERENCE.format(model=name)}


def _header(name: str) -> dict[str, Any]:
    return {"description": _HEADERS[name], "schema": {"type": "string"}}


PROPOSED = answered("Proposal", status=202, headers=("Location",))
UNCHANGED: Answers = {304: {"description": "The version you have still holds"}}
GONE = (404, 410, 308)
"""What who reads is answered where there is no record of an id, or not any more."""
CLOSED = (404, 409, 410)
"""What who writes is."""
