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
    limit: int = Field(100, ge=1, le=subscriptions.MAX_DELIVERIES, description="How many at most.")


def list_webhooks(context: RequestContext, snapshot: Snapshot) -> Response:
    """Every webhook, the oldest first"""
    return OrjsonResponse({"items": [serialize_webhook(webhook) for webhook in subscriptions.list_webhooks(snapshot)]})


def add_webhook(context: RequestContext, data: dict[str, Any]) -> WriteResponse:
    """Have an address told of every change from now on; its secret is told this once

    A webhook is told of all vocabularies that are not removed, also of private ones, since an admin may read them.

    Each change is a POST with what `GET /changes` tells of it, signed as Standard Webhooks, in order, at least once.

    Any answer but 2xx is tried again, later and later; after a day without one that is, the webhook is disabled.
    """
    settings = parse_webhook(data, allow_private=context.site.settings.allows_private_webhooks)
    webhook = context.site.database.run_write(lambda transaction: subscriptions.create_webhook(transaction, settings))
    return WriteResponse(201, _with_secret(webhook), f"{V1_PATH}/webhooks/{webhook.id}")


def read_webhook(context: RequestContext, path: ById, snapshot: Snapshot) -> Response:
    """A webhook, and how it stands"""
    return OrjsonResponse(serialize_webhook(subscriptions.get_webhook(snapshot, path.id)))


def change_webhook(context: RequestContext, path: ById, patch: dict[str, Any]) -> Response:
    """Change its address, or what it is told of

    What was not sent yet is sent as the webhook is then. One that is disabled stays so.
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
    """Take a webhook away"""
    context.site.database.run_write(lambda transaction: subscriptions.delete_webhook(transaction, path.id))


def list_deliveries(context: RequestContext, query: _DeliveryParameters, snapshot: Snapshot) -> Response:
    """What was sent, the newest first; the last thousand are kept"""
    deliveries = subscriptions.list_deliveries(snapshot, query.id, query.limit)
    return OrjsonResponse({"items": [serialize_delivery(delivery) for delivery in deliveries]})


def enable_webhook(context: RequestContext, path: ById, transaction: Transaction) -> WriteResponse:
    """Try again at once, with the change where it stopped"""
    return WriteResponse(200, serialize_webhook(subscriptions.enable_webhook(transaction, path.id)))


def disable_webhook(context: RequestContext, path: ById, transaction: Transaction) -> WriteResponse:
    """Send nothing until it is enabled again"""
    return WriteResponse(200, serialize_webhook(subscriptions.disable_webhook(transaction, path.id)))


def rotate_secret(context: RequestContext, path: ById, transaction: Transaction) -> WriteResponse:
    """Give it a new secret, told this once

    Deliveries are signed with the last secret too, until the next time: a receiver changes over when it likes.
    """
    return WriteResponse(200, _with_secret(subscriptions.rotate_secret(transaction, path.id)))


def send_test_delivery(context: RequestContext, path: ById) -> Response:
    """Send something that is no change, and tell what was answered

    The body sent is `{"action": "test", "at": …}`, signed as a change would be; also to one that is disabled.
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
