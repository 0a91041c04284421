"""What people ask for by forms and programs by bodies alike: its form, and every mistake in it.

The rules themselves are held by the service.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from lexarium.domain.account import Role
from lexarium.domain.change import Action
from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.characters import reject_control_chars
from lexarium.domain.validation import to_field_problems
from lexarium.services.webhooks import subscriptions
from lexarium.services.webhooks.subscriptions import WebhookSettings

PlainText = Annotated[str, AfterValidator(reject_control_chars)]


def validate_collection(collection: str) -> str:
    """The name itself; raises `ValueError` where no collection has it."""
    if collection not in COLLECTIONS:
        raise ValueError(f"should be one of {', '.join(COLLECTIONS)}.")
    return collection


CollectionName = Annotated[
    str, AfterValidator(validate_collection), Field(json_schema_extra={"enum": list(COLLECTIONS)})
]


class Reject(BaseModel):
    """Why not."""

    reason: PlainText = Field(min_length=1, max_length=5_000, description="What its author will read.")


class NewUser(BaseModel):
    """An account."""

    name: str = Field(min_length=1, max_length=200, description="What to sign in with; nobody else may have it.")
    role: Role = Field(description="What the account may do.")


class UserChange(BaseModel):
    """What is to change of an account: its role and anyone's password by an admin, one's own password by oneself."""

    role: Role | None = Field(None, description="What the account may do from now on.")
    password: str | None = Field(None, min_length=10, max_length=1_000, description="The new password.")
    old_password: str | None = Field(
        None, max_length=1_000, description="The password that you have now, to change your own."
    )


class NewToken(BaseModel):
    """A token for oneself, or, by an admin, for another."""

    account: str | None = Field(None, description="The name of the account; left out, one's own.")
    label: PlainText = Field("", max_length=200, description="What it is for.")
    role: Role | None = Field(None, description="No higher than the account's and one's own; left out, as high.")
    days: int | None = Field(None, ge=1, le=36_500, description="How long it is good for; left out, as long as may be.")
    old_password: str | None = Field(
        None, max_length=1_000, description="Your password; needed where the token that you call with is from sign-in."
    )


class NewWebhook(BaseModel):
    """An address that is to be told of changes."""

    url: str = Field(max_length=2_000, description="Where each change is sent by POST.")
    collections: list[CollectionName] = Field(
        [], max_length=100, description="Whose changes; left out or empty: of all."
    )
    actions: list[Action] = Field([], max_length=100, description="Which changes; left out or empty: all.")


ModelT = TypeVar("ModelT", bound=BaseModel)


def parse_model(model: type[ModelT], values: Mapping[str, Any], message: str) -> ModelT:
    """What was given, in its form. Raises `Invalid` with every problem, which `wrong` begins."""
    try:
        return model.model_validate(values, extra="forbid")
    except ValidationError as error:
        raise InvalidInput(message, to_field_problems(error)) from None


def parse_webhook(values: Mapping[str, Any], *, allow_private: bool, current_url: str | None = None) -> WebhookSettings:
    """What a webhook is asked for, or `Invalid` with every problem. An address that is known is not looked at again."""
    url = values.get("url")
    problems: list[FieldProblem] = []
    try:
        webhook_request = NewWebhook.model_validate(values, extra="forbid")
    except ValidationError as error:
        problems += to_field_problems(error)
    if isinstance(url, str) and url != current_url and not any(problem.field == "url" for problem in problems):
        problems += subscriptions.find_url_problems(url, allow_private=allow_private)
    if problems:
        raise InvalidInput("This is not a valid webhook.", problems)
    return WebhookSettings(
        webhook_request.url,
        tuple(dict.fromkeys(webhook_request.collections)),
        tuple(dict.fromkeys(webhook_request.actions)),
    )
