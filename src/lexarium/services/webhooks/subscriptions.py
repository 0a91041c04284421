"""Manage webhook subscriptions."""

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lexarium.domain.change import Action
from lexarium.domain.errors import FieldProblem
from lexarium.domain.identifiers import mint_id
from lexarium.domain.schema.collections import COLLECTIONS, VOCABULARY
from lexarium.domain.schema.relation_types import qualify_name
from lexarium.domain.text.timestamps import format_timestamp, now_ms
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.domain.webhook import ALL, Webhook, WebhookDelivery
from lexarium.services.not_found import find_or_raise
from lexarium.services.vocabularies.access import get_unqualified_vocabulary
from lexarium.services.webhooks.sender import DeliveryFailed, resolve_target, start_deadline
from lexarium.store import webhooks
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

MAX_DELIVERIES = webhooks.MAX_DELIVERIES
list_webhooks = webhooks.list_all
count_backlog = webhooks.count_backlog


@dataclass(frozen=True)
class WebhookSettings:
    """URL of a webhook, and the changes it receives."""

    url: str
    collections: tuple[str, ...]
    actions: tuple[Action, ...]


def find_url_problems(url: str, *, allow_private: bool) -> list[FieldProblem]:
    """Return the reason why a URL cannot receive deliveries, if there is one."""
    try:
        resolve_target(url, allow_private=allow_private, deadline=start_deadline())
    except DeliveryFailed as error:
        return [FieldProblem("url", f"is not allowed: {error}")]
    return []


def find_filter_problems(vocabularies: Sequence[str], collections: Sequence[str]) -> list[FieldProblem]:
    """Return what is not there of vocabularies and collections that a webhook shall be limited to."""
    known = [item.slug for item in VOCABULARIES.values() if not item.is_removed]
    problems = [
        FieldProblem(f"vocabularies/{index}", f"must be one of {', '.join(known)}.")
        for index, slug in enumerate(vocabularies)
        if slug not in known
    ]
    slugs = vocabularies or [get_unqualified_vocabulary().slug]
    names = {COLLECTIONS[name].local_name: None for slug in slugs for name in COLLECTIONS.list_names(slug)}
    names[VOCABULARY.local_name] = None
    return problems + [
        FieldProblem(f"collections/{index}", f"must be one of {', '.join(names)}.")
        for index, name in enumerate(collections)
        if name not in names and not problems
    ]


def build_filter(vocabularies: Sequence[str], collections: Sequence[str]) -> tuple[str, ...]:
    """Return what a webhook stores of vocabularies and collections.

    Without vocabularies, collections are those of the default one.
    """
    if not vocabularies and not collections:
        return ()
    if not vocabularies:
        slug = get_unqualified_vocabulary().slug
        return tuple(dict.fromkeys(qualify_name(slug, name) for name in collections))
    return tuple(dict.fromkeys(f"{slug}/{name}" for slug in vocabularies for name in collections or (ALL,)))


def create_webhook(transaction: Transaction, settings: WebhookSettings) -> Webhook:
    """Create a webhook that starts at the next change. Its URL must have passed `find_url_problems`."""
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


def get_webhook(snapshot: Snapshot, webhook_id: str) -> Webhook:
    """Return the webhook with an id; raise NotFound."""
    message = f"Webhook {webhook_id!r} not found."
    return find_or_raise(lambda: webhooks.find(snapshot, webhook_id), webhook_id, message)


def list_deliveries(snapshot: Snapshot, webhook_id: str, limit: int) -> list[WebhookDelivery]:
    """Return the logged deliveries of a webhook, newest first; raise NotFound."""
    return webhooks.list_deliveries(snapshot, get_webhook(snapshot, webhook_id).id, limit)


def update_webhook(transaction: Transaction, webhook_id: str, settings: WebhookSettings) -> Webhook:
    """Replace the settings of a webhook. Its URL must have passed `find_url_problems`."""
    webhook = get_webhook(transaction.flush(), webhook_id).with_url(settings.url)
    return _save(transaction, replace(webhook, collections=settings.collections, actions=settings.actions))


def enable_webhook(transaction: Transaction, webhook_id: str) -> Webhook:
    """Retry at once, from the change at which deliveries stopped. The webhook need not be disabled."""
    return _save(transaction, get_webhook(transaction.flush(), webhook_id).with_enabled())


def disable_webhook(transaction: Transaction, webhook_id: str) -> Webhook:
    """Stop deliveries until the webhook is enabled. One that is disabled keeps its date."""
    webhook = get_webhook(transaction.flush(), webhook_id)
    return _save(transaction, webhook if webhook.disabled is not None else replace(webhook, disabled=now_ms()))


def rotate_secret(transaction: Transaction, webhook_id: str) -> Webhook:
    """Give a webhook a new secret. Deliveries are also signed with the previous one until the next rotation."""
    return _save(transaction, get_webhook(transaction.flush(), webhook_id).with_secret(_new_secret()))


def delete_webhook(transaction: Transaction, webhook_id: str) -> None:
    """Delete a webhook and its delivery log; raise NotFound."""
    webhooks.delete_webhook(transaction, get_webhook(transaction.flush(), webhook_id).id)


def serialize_webhook(webhook: Webhook) -> dict[str, Any]:
    """Return the JSON of a webhook, without its secrets."""
    return {
        "id": webhook.id,
        "url": webhook.url,
        "vocabularies": webhook.vocabularies,
        "collections": webhook.collection_names,
        "actions": webhook.actions,
        "seq": webhook.seq,
        "created": format_timestamp(webhook.created),
        "attempts": webhook.attempts,
        "next_attempt": format_timestamp(webhook.due) if webhook.attempts and webhook.disabled is None else None,
        "failing_since": None if webhook.failing is None else format_timestamp(webhook.failing),
        "disabled": None if webhook.disabled is None else format_timestamp(webhook.disabled),
    }


def serialize_delivery(delivery: WebhookDelivery) -> dict[str, Any]:
    """Return the JSON of a delivery."""
    return {
        "seq": delivery.seq,
        "at": format_timestamp(delivery.at),
        "status": delivery.status,
        "error": delivery.error or None,
    }


def _save(transaction: Transaction, webhook: Webhook) -> Webhook:
    webhooks.save(transaction, webhook)
    return webhook


def _new_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
