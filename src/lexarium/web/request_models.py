"""Request models shared by HTML forms and the v1 API. The services enforce the rules."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from lexarium.domain.account import Role
from lexarium.domain.change import Action
from lexarium.domain.editing.validation import to_field_problems
from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.schema.collections import COLLECTIONS, VOCABULARY
from lexarium.domain.text.characters import reject_control_chars
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.services.webhooks import subscriptions
from lexarium.services.webhooks.subscriptions import WebhookSettings

PlainText = Annotated[str, AfterValidator(reject_control_chars)]


# Of an edit.
MAX_SUMMARY_CHARS = 500
SUMMARY_TEXT = "What the change is for; shown in the history."
Summary = Annotated[PlainText, Field(max_length=MAX_SUMMARY_CHARS, description=SUMMARY_TEXT)]


def validate_collection(name: str) -> str:
    """Return the name of a collection; raise `ValueError` if no vocabulary has one of this name."""
    if not any(collection.local_name == name for collection in COLLECTIONS.values()):
        known = [item for item in COLLECTIONS.values() if not VOCABULARIES[item.vocabulary].is_private]
        raise ValueError(f"must be one of {', '.join(dict.fromkeys(item.local_name for item in known))}.")
    return name


CollectionName = Annotated[str, AfterValidator(validate_collection)]
# Vocabularies themselves change too.
ChangedCollection = Annotated[
    str, AfterValidator(lambda name: name if name == VOCABULARY.local_name else validate_collection(name))
]


class EditSummary(BaseModel):
    """Summary of an edit."""

    summary: Summary = ""


class Accept(BaseModel):
    """Reason for accepting a proposal."""

    reason: PlainText = Field("", max_length=5_000, description="Reason shown to the author.")


class NewComment(BaseModel):
    """A comment."""

    text: PlainText = Field(min_length=1, max_length=5_000, description="The comment.")


class ThreadChange(BaseModel):
    """A comment on closing or reopening a thread."""

    text: PlainText = Field("", max_length=5_000, description="A last comment, such as the reason (optional).")


class Reject(BaseModel):
    """Rejection of a proposal."""

    reason: PlainText = Field(min_length=1, max_length=5_000, description="Reason shown to the author.")


class NewUser(BaseModel):
    """An account."""

    name: str = Field(min_length=1, max_length=200, description="Name to sign in with; must be unique.")
    role: Role = Field(description="Role of the account.")


class UserChange(BaseModel):
    """Changes to an account. Admins may change any role and password, others only their own password."""

    role: Role | None = Field(None, description="New role of the account.")
    vocabulary: str | None = Field(
        None,
        max_length=50,
        description="Slug of the vocabulary the role applies to (default: all). The role `none` removes it.",
    )
    password: str | None = Field(None, min_length=10, max_length=1_000, description="New password.")
    old_password: str | None = Field(
        None, max_length=1_000, description="Your current password; required to change your own."
    )


class NewToken(BaseModel):
    """A token for oneself or, if created by an admin, for another account."""

    account: str | None = Field(None, description="Account name (default: your own).")
    label: PlainText = Field("", max_length=200, description="Label.")
    role: Role | None = Field(
        None, description="At most the role of the account and your own (default: the highest allowed)."
    )
    days: int | None = Field(None, ge=1, le=36_500, description="Days until it expires (default: the longest allowed).")
    old_password: str | None = Field(
        None, max_length=1_000, description="Your password; required if you call with a token from sign-in."
    )


class NewWebhook(BaseModel):
    """A URL to send changes to."""

    url: str = Field(max_length=2_000, description="URL that receives each change by POST.")
    vocabularies: list[str] = Field(
        [],
        max_length=100,
        description="Slugs of vocabularies whose changes are sent (default: all that are not removed).",
    )
    collections: list[ChangedCollection] = Field(
        [],
        max_length=100,
        description="Collections whose changes are sent; `vocabulary` means metadata and schemas (default: all).",
    )
    actions: list[Action] = Field([], max_length=100, description="Actions that are sent (default: all).")


ModelT = TypeVar("ModelT", bound=BaseModel)


def parse_model(model: type[ModelT], values: Mapping[str, Any], message: str, *, strict: bool = False) -> ModelT:
    """Validate values as a model; raise `InvalidInput` with the message and every problem.

    With `strict`, a value of another type is refused, not converted.
    """
    try:
        return model.model_validate(values, strict=strict, extra="forbid")
    except ValidationError as error:
        raise InvalidInput(message, to_field_problems(error)) from None


def parse_webhook(values: Mapping[str, Any], *, allow_private: bool, current_url: str | None = None) -> WebhookSettings:
    """Validate the settings of a webhook; raise `InvalidInput`. Its current URL is not checked again."""
    url = values.get("url")
    problems: list[FieldProblem] = []
    try:
        webhook_request = NewWebhook.model_validate(values, extra="forbid")
    except ValidationError as error:
        problems += to_field_problems(error)
    else:
        problems += subscriptions.find_filter_problems(webhook_request.vocabularies, webhook_request.collections)
    if isinstance(url, str) and url != current_url and not any(problem.field == "url" for problem in problems):
        problems += subscriptions.find_url_problems(url, allow_private=allow_private)
    if problems:
        raise InvalidInput("Invalid webhook.", problems)
    collections = subscriptions.build_filter(webhook_request.vocabularies, webhook_request.collections)
    return WebhookSettings(webhook_request.url, collections, tuple(dict.fromkeys(webhook_request.actions)))
