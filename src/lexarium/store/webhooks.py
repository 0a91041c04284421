"""Webhooks and the log of their deliveries in the store."""

from dataclasses import asdict
from typing import Any, NamedTuple

from sqlalchemy import Connection, case, delete, func, insert, select, update

from lexarium.domain.changes import Action
from lexarium.domain.webhooks import LONGEST_WAIT_MS, Delivery, Webhook
from lexarium.store.schema import catalogue, delivery, webhook
from lexarium.store.transaction import Transaction

KEPT = 1_000
"""How many deliveries of a webhook are kept, the newest."""


def add(transaction: Transaction, new: Webhook) -> None:
    """Add a webhook whose id no other has."""
    transaction.connection.execute(insert(webhook).values(_row(new)))


def find(connection: Connection, identifier: str) -> Webhook | None:
    """The webhook of this id, or None."""
    row = connection.execute(select(webhook).where(webhook.c.id == identifier)).one_or_none()
    return None if row is None else _webhook(row)


def all_webhooks(connection: Connection) -> list[Webhook]:
    """Every webhook, the oldest first."""
    return [_webhook(row) for row in connection.execute(select(webhook).order_by(webhook.c.created, webhook.c.id))]


def due(connection: Connection, *, at: int) -> list[Webhook]:
    """The webhooks that have changes to look at now, the one that waits longest first."""
    revision = select(catalogue.c.revision).scalar_subquery()
    # What is due later than any wait can last was put off by a clock that has been set back since.
    now = (webhook.c.due <= at) | (webhook.c.due > at + 2 * LONGEST_WAIT_MS)
    waiting = webhook.c.disabled.is_(None) & now & (webhook.c.seq < revision)
    return [_webhook(row) for row in connection.execute(select(webhook).where(waiting).order_by(webhook.c.seq))]


class Backlog(NamedTuple):
    """How webhooks stand, all together."""

    waiting: int
    """How many changes those that are enabled have still to look at."""
    failing: int
    disabled: int


def backlog(connection: Connection) -> Backlog:
    """How webhooks stand now."""
    enabled = webhook.c.disabled.is_(None)
    behind = select(catalogue.c.revision).scalar_subquery() - webhook.c.seq
    counted = select(
        func.coalesce(func.sum(case((enabled, behind), else_=0)), 0),
        func.count(case((enabled & webhook.c.failing.is_not(None), 1))),
        func.count(webhook.c.disabled),
    )
    return Backlog._make(int(each) for each in connection.execute(counted.select_from(webhook)).one())


def save(transaction: Transaction, changed: Webhook) -> None:
    """Write how a webhook stands now; nothing is done where it is gone."""
    transaction.connection.execute(update(webhook).where(webhook.c.id == changed.id).values(_row(changed)))


def remove(transaction: Transaction, identifier: str) -> bool:
    """Remove a webhook with the log of its deliveries. False where there is none of this id."""
    result = transaction.connection.execute(delete(webhook).where(webhook.c.id == identifier))
    return result.rowcount == 1


def note(transaction: Transaction, made: Delivery) -> None:
    """Log a delivery, and let go of the oldest."""
    transaction.connection.execute(insert(delivery).values(asdict(made)))
    own = delivery.c.webhook == made.webhook
    newest_to_go = select(delivery.c.id).where(own).order_by(delivery.c.id.desc()).offset(KEPT).limit(1)
    transaction.connection.execute(delete(delivery).where(own, delivery.c.id <= newest_to_go.scalar_subquery()))


def deliveries(connection: Connection, identifier: str, limit: int) -> list[Delivery]:
    """The deliveries of a webhook, the newest first."""
    query = select(delivery).where(delivery.c.webhook == identifier).order_by(delivery.c.id.desc()).limit(limit)
    return [Delivery(row.webhook, row.seq, row.at, row.status, row.error) for row in connection.execute(query)]


def _row(given: Webhook) -> dict[str, Any]:
    row = asdict(given)
    return {
        **{name: value for name, value in row.items() if name != "secrets"},
        "secret": " ".join(given.secrets),
        "collections": " ".join(given.collections),
        "actions": " ".join(given.actions),
    }


def _webhook(row: Any) -> Webhook:
    values = dict(row._mapping)
    values["secrets"] = tuple(values.pop("secret").split())
    values["collections"] = tuple(row.collections.split())
    values["actions"] = tuple(Action(action) for action in row.actions.split())
    return Webhook(**values)
