"""Manage webhooks."""

from functools import partial
from typing import Any

from pydantic import Field
from starlette.responses import Response

from lexarium.client import models
from lexarium.domain.editing.edit import apply_merge_patch
from lexarium.domain.webhook import Webhook
from lexarium.services.access.permissions import Permission
from lexarium.services.idempotency import WriteResponse
from lexarium.services.webhooks import subscriptions
from lexarium.services.webhooks.delivery import send_test
from lexarium.services.webhooks.subscriptions import serialize_delivery, serialize_webhook
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.request_models import NewWebhook, parse_webhook
from lexarium.web.v1.operation import NO_CONTENT, ById, Operation, RequestContext, json_body, returns
from lexarium.web.v1.responses import V1_PATH, OrjsonResponse


class _DeliveryParameters(ById):
    limit: int = Field(100, ge=1, le=subscriptions.MAX_DELIVERIES, description="Maximum number of results.")


def list_webhooks(context: RequestContext, snapshot: Snapshot) -> Response:
    """List webhooks"""
    return OrjsonResponse({"items": [serialize_webhook(webhook) for webhook in subscriptions.list_webhooks(snapshot)]})


def add_webhook(context: RequestContext, data: dict[str, Any]) -> WriteResponse:
    """Create a webhook (secret shown once)

    Sends new changes of all vocabularies that are not removed, including private ones, since admins may read them.

    Each change is a POST with its entry of `GET /changes`, signed (Standard Webhooks), in order, at least once.

    Deliveries without a 2xx response are retried with increasing delays; after a day of failures the webhook is
    disabled.
    """
    settings = parse_webhook(data, allow_private=context.site.settings.allows_private_webhooks)
    webhook = context.site.database.run_write(lambda transaction: subscriptions.create_webhook(transaction, settings))
    return WriteResponse(201, _with_secret(webhook), f"{V1_PATH}/webhooks/{webhook.id}")


def read_webhook(context: RequestContext, path: ById, snapshot: Snapshot) -> Response:
    """Get a webhook"""
    return OrjsonResponse(serialize_webhook(subscriptions.get_webhook(snapshot, path.id)))


def change_webhook(context: RequestContext, path: ById, patch: dict[str, Any]) -> Response:
    """Update a webhook

    Pending changes are sent with the new settings. A disabled webhook stays disabled.
    """
    database = context.site.database
    webhook = database.run_read(subscriptions.get_webhook, path.id)
    serialized = serialize_webhook(webhook)
    current = {name: serialized[name] for name in ("url", "vocabularies", "collections", "actions")}
    allow_private, patched = context.site.settings.allows_private_webhooks, apply_merge_patch(current, patch)
    settings = parse_webhook(patched, allow_private=allow_private, current_url=webhook.url)
    updated = database.run_write(lambda transaction: subscriptions.update_webhook(transaction, path.id, settings))
    return OrjsonResponse(serialize_webhook(updated))


def remove_webhook(context: RequestContext, path: ById) -> None:
    """Delete a webhook"""
    context.site.database.run_write(lambda transaction: subscriptions.delete_webhook(transaction, path.id))


def list_deliveries(context: RequestContext, query: _DeliveryParameters, snapshot: Snapshot) -> Response:
    """List deliveries (last 1,000)"""
    deliveries = subscriptions.list_deliveries(snapshot, query.id, query.limit)
    return OrjsonResponse({"items": [serialize_delivery(delivery) for delivery in deliveries]})


def enable_webhook(context: RequestContext, path: ById, transaction: Transaction) -> WriteResponse:
    """Enable a webhook"""
    return WriteResponse(200, serialize_webhook(subscriptions.enable_webhook(transaction, path.id)))


def disable_webhook(context: RequestContext, path: ById, transaction: Transaction) -> WriteResponse:
    """Disable a webhook"""
    return WriteResponse(200, serialize_webhook(subscriptions.disable_webhook(transaction, path.id)))


def rotate_secret(context: RequestContext, path: ById, transaction: Transaction) -> WriteResponse:
    """Rotate the secret (shown once)

    Deliveries are also signed with the previous secret until the next rotation, so receivers can switch at any time.
    """
    return WriteResponse(200, _with_secret(subscriptions.rotate_secret(transaction, path.id)))


def send_test_delivery(context: RequestContext, path: ById) -> Response:
    """Send a test delivery

    Sends `{"action": "test", "at": …}`, signed like a change, also if the webhook is disabled. Returns the response.
    """
    database = context.site.database
    webhook = database.run_read(subscriptions.get_webhook, path.id)
    delivery = send_test(database, webhook, allow_private=context.site.settings.allows_private_webhooks)
    return OrjsonResponse({"status": delivery.status, "error": delivery.error or None})


def _with_secret(webhook: Webhook) -> dict[str, Any]:
    return {**serialize_webhook(webhook), "secret": webhook.secrets[0]}


_operation = partial(Operation, permission=Permission.ADMINISTER)
_PATCH = json_body("WebhookPatch", patch=True)
_CREATED = returns(models.WebhookWithSecret, "Location", status=201)
OPERATIONS = (
    _operation("GET", "/webhooks", list_webhooks, returns(models.Webhooks)),
    _operation("POST", "/webhooks", add_webhook, _CREATED, body=json_body(NewWebhook), returns_secret=True),
    _operation("GET", "/webhooks/{id}", read_webhook, returns(models.Webhook)),
    _operation("PATCH", "/webhooks/{id}", change_webhook, returns(models.Webhook), body=_PATCH),
    _operation("DELETE", "/webhooks/{id}", remove_webhook, NO_CONTENT),
    _operation("GET", "/webhooks/{id}/deliveries", list_deliveries, returns(models.Deliveries)),
    _operation("POST", "/webhooks/{id}/enable", enable_webhook, returns(models.Webhook)),
    _operation("POST", "/webhooks/{id}/disable", disable_webhook, returns(models.Webhook)),
    _operation("POST", "/webhooks/{id}/rotate", rotate_secret, returns(models.WebhookWithSecret), returns_secret=True),
    _operation("POST", "/webhooks/{id}/test", send_test_delivery, returns(models.WebhookTest), name="try_webhook"),
)
