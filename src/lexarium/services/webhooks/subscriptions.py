"""Webhooks as an admin keeps them. `deliverer` sends to them."""

import base64
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lexarium.domain.change import Action
from lexarium.domain.errors import FieldProblem, NotFound
from lexarium.domain.identifiers import mint_id
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.domain.timestamps import format_timestamp, now_ms
from lexarium.domain.webhook import Webhook, WebhookDelivery
from lexarium.services.webhooks.sender import DeliveryFailed, resolve_target, start_deadline
from lexarium.store import webhooks
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

MAX_DELIVERIES = webhooks.MAX_DELIVERIES
"""How many deliveries of a webhook are kept, the newest."""


@dataclass(frozen=True)
class WebhookSettings:
    """What someone wants told, and where."""

    url: str
    collections: tuple[str, ...]
    actions: tuple[Action, ...]


def find_url_problems(url: str, *, allow_private: bool) -> list[FieldProblem]:
    """What is wrong with an address to send to. Unless `private` allows them, those in private ranges are."""
    try:
        resolve_target(url, allow_private=allow_private, deadline=start_deadline())
    except DeliveryFailed as error:
        return [FieldProblem("url", f"cannot be sent to: {error}")]
    return []


def create_webhook(transaction: Transaction, settings: WebhookSettings) -> Webhook:
    """Make a webhook, which begins with the next change. Its address was looked at by `unsendable`."""
    webhook = Webhook(
        id=mint_id("whk"),
        url=settings.url,
        secrets=(_new_secret(),),
        collections=settings.collections,
        actions=settings.actions,
        seq=transaction.revision,
        created=now_ms(),
    )
    webhooks.add(transaction, webhook)
    return webhook


def list_webhooks(snapshot: Snapshot) -> list[Webhook]:
    """Every webhook."""
    return webhooks.list_all(snapshot)


def get_webhook(snapshot: Snapshot, webhook_id: str) -> Webhook:
    """The webhook of this id. Raises `NotFound` where there is none."""
    webhook = None if find_unstorable_char(webhook_id) else webhooks.find(snapshot, webhook_id)
    if webhook is None:
        raise NotFound(f"There is no webhook with the id {webhook_id!r}.")
    return webhook


def list_deliveries(snapshot: Snapshot, webhook_id: str, limit: int) -> list[WebhookDelivery]:
    """The deliveries of a webhook, the newest first; of old ones no log is kept."""
    return webhooks.list_deliveries(snapshot, get_webhook(snapshot, webhook_id).id, limit)


def update_webhook(transaction: Transaction, webhook_id: str, settings: WebhookSettings) -> Webhook:
    """Tell something else from now on, or elsewhere. Its address was looked at by `unsendable`."""

    def apply_settings(webhook: Webhook) -> Webhook:
        return replace(webhook.with_url(settings.url), collections=settings.collections, actions=settings.actions)

    return _update(transaction, webhook_id, apply_settings)


def enable_webhook(transaction: Transaction, webhook_id: str) -> Webhook:
    """Try again at once, with the change where it stopped; also where it was not disabled."""
    return _update(transaction, webhook_id, Webhook.with_enabled)


def disable_webhook(transaction: Transaction, webhook_id: str) -> Webhook:
    """Send nothing until it is enabled; one that is disabled stays as it was."""
    return _update(
        transaction,
        webhook_id,
        lambda webhook: replace(webhook, disabled=now_ms() if webhook.disabled is None else webhook.disabled),
    )


def rotate_secret(transaction: Transaction, webhook_id: str) -> Webhook:
    """Give it a new secret; until the next time, deliveries are signed with the last one too."""
    return _update(transaction, webhook_id, lambda webhook: webhook.with_secret(_new_secret()))


def serialize_webhook(webhook: Webhook) -> dict[str, Any]:
    """A webhook, without its secrets."""
    return {
        "id": webhook.id,
        "url": webhook.url,
        "collections": webhook.collections,
        "actions": webhook.actions,
        "seq": webhook.seq,
        "created": format_timestamp(webhook.created),
        "attempts": webhook.attempts,
        "next_attempt": format_timestamp(webhook.due) if webhook.attempts and webhook.disabled is None else None,
        "failing_since": None if webhook.failing is None else format_timestamp(webhook.failing),
        "disabled": None if webhook.disabled is None else format_timestamp(webhook.disabled),
    }


def serialize_delivery(delivery: WebhookDelivery) -> dict[str, Any]:
    """What came of a delivery."""
    return {
        "seq": delivery.seq,
        "at": format_timestamp(delivery.at),
        "status": delivery.status,
        "error": delivery.error or None,
    }


def _update(transaction: Transaction, webhook_id: str, transform: Callable[[Webhook], Webhook]) -> Webhook:
    updated = transform(get_webhook(transaction.connection, webhook_id))
    webhooks.save(transaction, updated)
    return updated


def _new_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


def delete_webhook(transaction: Transaction, webhook_id: str) -> None:
    """Remove a webhook and the log of its deliveries. Raises `NotFound` where there is none."""
    webhooks.delete_webhook(transaction, get_webhook(transaction.connection, webhook_id).id)
