"""Webhooks as an admin keeps them. `deliverer` sends to them."""

import base64
import secrets
from collections.abc import Sequence

from lexarium.domain.changes import Action
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.errors import Invalid, NotFound, Problem
from lexarium.domain.identifiers import mint
from lexarium.domain.stamps import now
from lexarium.domain.text import unstorable
from lexarium.domain.webhooks import Delivery, Webhook
from lexarium.service.receivers import Unreachable, find_receiver
from lexarium.store import webhooks
from lexarium.store.backend import Snapshot
from lexarium.store.database import Database
from lexarium.store.transaction import Transaction

KEPT = webhooks.KEPT
"""How many deliveries of a webhook are kept, the newest."""


def create(
    database: Database, url: str, collections: Sequence[str], actions: Sequence[Action], *, private: bool
) -> Webhook:
    """Make a webhook, which begins with the next change. Raises `Invalid` that names every problem.

    Unless `private` allows them, addresses in private ranges are refused.
    """
    problems = [
        Problem("collections", f"holds {name!r}, which is not one of {', '.join(COLLECTIONS)}.")
        for name in collections
        if name not in COLLECTIONS
    ]
    try:
        find_receiver(url, private=private)
    except Unreachable as error:
        problems.append(Problem("url", f"cannot be sent to: {error}"))
    if problems:
        raise Invalid("This is not a valid webhook.", problems)

    def work(transaction: Transaction) -> Webhook:
        new = Webhook(
            id=mint("whk"),
            url=url,
            secret=f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}",
            collections=tuple(dict.fromkeys(collections)),
            actions=tuple(dict.fromkeys(actions)),
            seq=transaction.revision,
            created=now(),
        )
        webhooks.add(transaction, new)
        return new

    return database.run(work)


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


def enable(transaction: Transaction, identifier: str) -> Webhook:
    """Try again at once, with the change where it stopped; also where it was not disabled."""
    enabled = find(transaction.connection, identifier).enabled()
    webhooks.save(transaction, enabled)
    return enabled


def remove(transaction: Transaction, identifier: str) -> None:
    """Remove a webhook and the log of its deliveries. Raises `NotFound` where there is none."""
    webhooks.remove(transaction, find(transaction.connection, identifier).id)
