"""Request models shared by HTML forms and the v1 API. The services enforce the rules."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from lexarium.domain.account import Role
from lexarium.domain.change import Action
from lexarium.domain.editing.validation import to_field_problems
from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.text.characters import reject_control_chars
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.services.webhooks import subscriptions
from lexarium.services.webhooks.subscriptions import WebhookSettings

PlainText = Annotated[str, AfterValidator(reject_control_chars)]


def validate_collection(name: str) -> str:
    """Return the name of a collection; raise `ValueError` if no vocabulary has one of this name."""
    if not any(collection.local_name == name for collection in COLLECTIONS.values()):
        known = [item for item in COLLECTIONS.values() if not VOCABULARIES[item.vocabulary].is_private]
        raise ValueError(f"should be one of {', '.join(dict.fromkeys(item.local_name for item in known))}.")
    return name


CollectionName = Annotated[str, AfterValidator(validate_collection)]


class Reject(BaseModel):
    """Why not."""

    reason: PlainText = Field(min_length=1, max_length=5_000, description="What its author will read.")


class NewUser(BaseModel):
    """An account."""

    name: str = Field(min_length=1, max_length=200, description="What to sign in with; nobody else may have it.")
    role: Role = Field(description="What the account may do.")


class UserChange(BaseModel):
    """Changes of an account: an admin may change the role and password of anyone, a user their own password."""

    role: Role | None = Field(None, description="What the account may do from now on.")
    vocabulary: str | None = Field(
        None, max_length=50, description="Where it has that role; left out: in all vocabularies. `none` takes it away."
    )
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
    """A URL that shall receive changes."""

    url: str = Field(max_length=2_000, description="Where each change is sent by POST.")
    vocabularies: list[str] = Field(
        [], max_length=100, description="Slugs of those whose changes; left out or empty: of all that are not removed."
    )
    collections: list[CollectionName] = Field(
        [], max_length=100, description="Whose changes; left out or empty: of all."
    )
    actions: list[Action] = Field([], max_length=100, description="Which changes; left out or empty: all.")


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
        raise InvalidInput("This is not a valid webhook.", problems)
    collections = subscriptions.build_filter(webhook_request.vocabularies, webhook_request.collections)
    return WebhookSettings(webhook_request.url, collections, tuple(dict.fromkeys(webhook_request.actions)))
