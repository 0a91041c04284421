"""Webhooks as an admin keeps them. `deliverer` sends to them."""

import base64
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lexarium.domain.changes import Action
from lexarium.domain.errors import NotFound, Problem
from lexarium.domain.identifiers import mint
from lexarium.domain.stamps import now, text_of
from lexarium.domain.text import unstorable
from lexarium.domain.webhooks import Delivery, Webhook
from lexarium.service.receivers import Unreachable, deadline, find_receiver
from lexarium.store import webhooks
from lexarium.store.backend import Snapshot
from lexarium.store.transaction import Transaction

KEPT = webhooks.KEPT
"""How many deliveries of a webhook are kept, the newest."""


@dataclass(frozen=True)
class Wish:
    """What someone wants told, and where."""

    url: str
    collections: tuple[str, ...]
    actions: tuple[Action, ...]


def unsendable(url: str, *, private: bool) -> list[Problem]:
    """What is wrong with an address to send to. Unless `private` allows them, those in private ranges are."""
    try:
        find_receiver(url, private=private, until=deadline())
    except Unreachable as error:
        return [Problem("url", f"cannot be sent to: {error}")]
    return []


def create(transaction: Transaction, wish: Wish) -> Webhook:
    """Make a webhook, which begins with the next change. Its address was looked at by `unsendable`."""
    new = Webhook(
        id=mint("whk"),
        url=wish.url,
        secrets=(_new_secret(),),
        collections=wish.collections,
        actions=wish.actions,
        seq=transaction.revision,
        created=now(),
    )
    webhooks.add(transaction, new)
    return new


def oldest_first(snapshot: Snapshot) -> list[Webhook]:
    """Every webhook."""
    return webhooks.all_webhooks(snapshot)


def find(snapshot: Snapshot, identifier: str) -> Webhook:
    """The webhook of this id. Raises `NotFound` where there is none."""
    found = None if unstorable(identifier) else webhooks.find(snapshot, identifier)
    if found is None:
        raise NotFound(f"There is no webhook with the id {identifier!r}.")
    return found


def deliveries(snapshot: Snapshot, identifier: str, limit: int) -> list[Delivery]:
    """The deliveries of a webhook, the newest first; of old ones no log is kept."""
    return webhooks.deliveries(snapshot, find(snapshot, identifier).id, limit)


def change(transaction: Transaction, identifier: str, wish: Wish) -> Webhook:
    """Tell something else from now on, or elsewhere. Its address was looked at by `unsendable`."""

    def wished(hook: Webhook) -> Webhook:
        return replace(hook.redirected(wish.url), collections=wish.collections, actions=wish.actions)

    return _saved(transaction, identifier, wished)


def enable(transaction: Transaction, identifier: str) -> Webhook:
    """Try again at once, with the change where it stopped; also where it was not disabled."""
    return _saved(transaction, identifier, Webhook.enabled)


def disable(transaction: Transaction, identifier: str) -> Webhook:
    """Send nothing until it is enabled; one that is disabled stays as it was."""
    return _saved(
        transaction, identifier, lambda hook: replace(hook, disabled=now() if hook.disabled is None else hook.disabled)
    )


def rotate(transaction: Transaction, identifier: str) -> Webhook:
    """Give it a new secret; until the next time, deliveries are signed with the last one too."""
    return _saved(transaction, identifier, lambda hook: hook.rotated(_new_secret()))


def webhook_view(webhook: Webhook) -> dict[str, Any]:
    """A webhook, without its secrets."""
    return {
        "id": webhook.id,
        "url": webhook.url,
        "collections": webhook.collections,
        "actions": webhook.actions,
        "seq": webhook.seq,
        "created": text_of(webhook.created),
        "attempts": webhook.attempts,
        "next_attempt": text_of(webhook.due) if webhook.attempts and webhook.disabled is None else None,
        "failing_since": None if webhook.failing is None else text_of(webhook.failing),
        "disabled": None if webhook.disabled is None else text_of(webhook.disabled),
    }


def delivery_view(delivery: Delivery) -> dict[str, Any]:
    """What came of a delivery."""
    return {
        "seq": delivery.seq,
        "at": text_of(delivery.at),
        "status": delivery.status,
        "error": delivery.error or None,
    }


def _saved(transaction: Transaction, identifier: str, become: Callable[[Webhook], Webhook]) -> Webhook:
    after = become(find(transaction.connection, identifier))
    webhooks.save(transaction, after)
    return after


def _new_secret() -> str:
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


def remove(transaction: Transaction, identifier: str) -> None:
    """Remove a webhook and the log of its deliveries. Raises `NotFound` where there is none."""
    webhooks.remove(transaction, find(transaction.connection, identifier).id)
