"""Webhooks and the log of their deliveries in the store."""

from dataclasses import asdict
from typing import Any, NamedTuple

from sqlalchemy import Connection, case, delete, func, insert, select, update

from lexarium.domain.change import Action
from lexarium.domain.webhook import MAX_BACKOFF_MS, Webhook, WebhookDelivery
from lexarium.store.schema import catalogue_table, delivery_table, webhook_table
from lexarium.store.transaction import Transaction

MAX_DELIVERIES = 1_000
"""How many deliveries of a webhook are kept, the newest."""


def add(transaction: Transaction, webhook: Webhook) -> None:
    """Add a webhook whose id no other has."""
    transaction.connection.execute(insert(webhook_table).values(_to_row(webhook)))


def find(connection: Connection, webhook_id: str) -> Webhook | None:
    """The webhook of this id, or None."""
    row = connection.execute(select(webhook_table).where(webhook_table.c.id == webhook_id)).one_or_none()
    return None if row is None else _to_webhook(row)


def list_all(connection: Connection) -> list[Webhook]:
    """Every webhook, the oldest first."""
    return [
        _to_webhook(row)
        for row in connection.execute(select(webhook_table).order_by(webhook_table.c.created, webhook_table.c.id))
    ]


def list_due(connection: Connection, *, at: int) -> list[Webhook]:
    """The webhooks that have changes to look at now, the one that waits longest first."""
    revision = select(catalogue_table.c.revision).scalar_subquery()
    # What is due later than any wait can last was put off by a clock that has been set back since.
    is_due = (webhook_table.c.due <= at) | (webhook_table.c.due > at + 2 * MAX_BACKOFF_MS)
    is_pending = webhook_table.c.disabled.is_(None) & is_due & (webhook_table.c.seq < revision)
    return [
        _to_webhook(row)
        for row in connection.execute(select(webhook_table).where(is_pending).order_by(webhook_table.c.seq))
    ]


class WebhookBacklog(NamedTuple):
    """How webhooks stand, all together."""

    pending_changes: int
    """How many changes those that are enabled have still to look at."""
    failing: int
    disabled: int


def count_backlog(connection: Connection) -> WebhookBacklog:
    """How webhooks stand now."""
    is_enabled = webhook_table.c.disabled.is_(None)
    lag = select(catalogue_table.c.revision).scalar_subquery() - webhook_table.c.seq
    query = select(
        func.coalesce(func.sum(case((is_enabled, lag), else_=0)), 0),
        func.count(case((is_enabled & webhook_table.c.failing.is_not(None), 1))),
        func.count(webhook_table.c.disabled),
    )
    return WebhookBacklog._make(int(count) for count in connection.execute(query.select_from(webhook_table)).one())


def save(transaction: Transaction, webhook: Webhook) -> None:
    """Write how a webhook stands now; nothing is done where it is gone."""
    transaction.connection.execute(
        update(webhook_table).where(webhook_table.c.id == webhook.id).values(_to_row(webhook))
    )


def delete_webhook(transaction: Transaction, webhook_id: str) -> bool:
    """Remove a webhook with the log of its deliveries. False where there is none of this id."""
    result = transaction.connection.execute(delete(webhook_table).where(webhook_table.c.id == webhook_id))
    return result.rowcount == 1


def add_delivery(transaction: Transaction, delivery: WebhookDelivery) -> None:
    """Log a delivery, and let go of the oldest."""
    transaction.connection.execute(insert(delivery_table).values(asdict(delivery)))
    is_own = delivery_table.c.webhook == delivery.webhook
    newest_to_go = (
        select(delivery_table.c.id).where(is_own).order_by(delivery_table.c.id.desc()).offset(MAX_DELIVERIES).limit(1)
    )
    transaction.connection.execute(
        delete(delivery_table).where(is_own, delivery_table.c.id <= newest_to_go.scalar_subquery())
    )


def list_deliveries(connection: Connection, webhook_id: str, limit: int) -> list[WebhookDelivery]:
    """The deliveries of a webhook, the newest first."""
    query = (
        select(delivery_table)
        .where(delivery_table.c.webhook == webhook_id)
        .order_by(delivery_table.c.id.desc())
        .limit(limit)
    )
    return [WebhookDelivery(row.webhook, row.seq, row.at, row.status, row.error) for row in connection.execute(query)]


def _to_row(webhook: Webhook) -> dict[str, Any]:
    row = asdict(webhook)
    return {
        **{name: value for name, value in row.items() if name != "secrets"},
        "secret": " ".join(webhook.secrets),
        "collections": " ".join(webhook.collections),
        "actions": " ".join(webhook.actions),
    }


def _to_webhook(row: Any) -> Webhook:
    values = dict(row._mapping)
    values["secrets"] = tuple(values.pop("secret").split())
    values["collections"] = tuple(row.collections.split())
    values["actions"] = tuple(Action(action) for action in row.actions.split())
    return Webhook(**values)
