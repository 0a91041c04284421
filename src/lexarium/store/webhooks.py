"""Queries for webhooks and the log of their deliveries."""

from dataclasses import asdict
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, case, delete, func, insert, select, update

from lexarium.domain.change import Action
from lexarium.domain.webhook import MAX_BACKOFF_MS, Webhook, WebhookDelivery
from lexarium.store.schema import catalogue_table, delivery_table, webhook_table
from lexarium.store.transaction import Transaction

# Deliveries kept per webhook.
MAX_DELIVERIES = 1_000

_webhook, _delivery = webhook_table.c, delivery_table.c
_REVISION = select(catalogue_table.c.revision).scalar_subquery()
# Built once, because every server runs it several times a second.
# A due time beyond any backoff was set by a clock that has been set back since.
_DUE = (
    select(webhook_table)
    .where(
        _webhook.disabled.is_(None),
        (_webhook.due <= bindparam("at")) | (_webhook.due > bindparam("latest")),
        _webhook.seq < _REVISION,
    )
    .order_by(_webhook.seq)
)


def add(transaction: Transaction, webhook: Webhook) -> None:
    """Add a webhook. Its id must be free."""
    transaction.execute(insert(webhook_table).values(_to_row(webhook)))


def find(connection: Connection, webhook_id: str) -> Webhook | None:
    """Return the webhook with an id, or None."""
    row = connection.execute(select(webhook_table).where(_webhook.id == webhook_id)).one_or_none()
    return None if row is None else _to_webhook(row)


def list_all(connection: Connection) -> list[Webhook]:
    """Return all webhooks, the oldest first."""
    rows = connection.execute(select(webhook_table).order_by(_webhook.created, _webhook.id))
    return [_to_webhook(row) for row in rows]


def list_due(connection: Connection, *, at: int) -> list[Webhook]:
    """Return the webhooks that have changes to deliver now, the one furthest behind first."""
    rows = connection.execute(_DUE, {"at": at, "latest": at + 2 * MAX_BACKOFF_MS})
    return [_to_webhook(row) for row in rows]


class WebhookBacklog(NamedTuple):
    """Totals over all webhooks."""

    # Changes that enabled webhooks have yet to look at.
    pending_changes: int
    failing: int
    disabled: int


def count_backlog(connection: Connection) -> WebhookBacklog:
    """Count pending changes, and failing and disabled webhooks."""
    is_enabled = _webhook.disabled.is_(None)
    query = select(
        func.coalesce(func.sum(case((is_enabled, _REVISION - _webhook.seq), else_=0)), 0),
        func.count(case((is_enabled & _webhook.failing.is_not(None), 1))),
        func.count(_webhook.disabled),
    )
    return WebhookBacklog._make(int(count) for count in connection.execute(query.select_from(webhook_table)).one())


def save(transaction: Transaction, webhook: Webhook) -> None:
    """Update a webhook; do nothing if it does not exist."""
    transaction.execute(update(webhook_table).where(_webhook.id == webhook.id).values(_to_row(webhook)))


def delete_webhook(transaction: Transaction, webhook_id: str) -> bool:
    """Delete a webhook and the log of its deliveries; return whether it existed."""
    result = transaction.execute(delete(webhook_table).where(_webhook.id == webhook_id))
    return result.rowcount == 1


def add_delivery(transaction: Transaction, delivery: WebhookDelivery) -> None:
    """Log a delivery, and delete the oldest beyond MAX_DELIVERIES."""
    transaction.execute(insert(delivery_table).values(asdict(delivery)))
    is_own = _delivery.webhook == delivery.webhook
    excess = select(_delivery.id).where(is_own).order_by(_delivery.id.desc()).offset(MAX_DELIVERIES).limit(1)
    transaction.execute(delete(delivery_table).where(is_own, _delivery.id <= excess.scalar_subquery()))


def list_deliveries(connection: Connection, webhook_id: str, limit: int) -> list[WebhookDelivery]:
    """Return the latest deliveries of a webhook, the newest first."""
    query = select(_delivery.webhook, _delivery.seq, _delivery.at, _delivery.status, _delivery.error)
    query = query.where(_delivery.webhook == webhook_id).order_by(_delivery.id.desc()).limit(limit)
    return [WebhookDelivery(*row) for row in connection.execute(query)]


def _to_row(webhook: Webhook) -> dict[str, Any]:
    row = asdict(webhook)
    row["secret"] = " ".join(row.pop("secrets"))
    return row | {"collections": " ".join(webhook.collections), "actions": " ".join(webhook.actions)}


def _to_webhook(row: Any) -> Webhook:
    values = dict(row._mapping)
    values["secrets"] = tuple(values.pop("secret").split())
    values["collections"] = tuple(row.collections.split())
    values["actions"] = tuple(Action(action) for action in row.actions.split())
    return Webhook(**values)
