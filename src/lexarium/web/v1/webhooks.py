"""Webhooks: programs that are told of changes."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from lexarium.domain.edit import apply_merge_patch
from lexarium.domain.webhook import Webhook
from lexarium.services.idempotency import WriteResponse, make_idempotent
from lexarium.services.webhooks import subscriptions
from lexarium.services.webhooks.delivery import send_test
from lexarium.services.webhooks.subscriptions import serialize_delivery, serialize_webhook
from lexarium.settings import Settings
from lexarium.store.transaction import Transaction
from lexarium.web.request_models import parse_webhook
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import AdminOf, AskOf, BodyOf, SettingsOf, StoreOf, refuse_key
from lexarium.web.v1.schemas import answered, body_of

router = APIRouter(prefix="/webhooks", tags=["webhooks"])


@router.get("", summary="Every webhook, the oldest first", responses=answered("Webhooks"))
def list_webhooks(database: StoreOf, caller: AdminOf) -> Response:
    with database.read() as snapshot:
        return answers.Json({"items": [serialize_webhook(each) for each in subscriptions.list_webhooks(snapshot)]})


@router.post(
    "",
    summary="Have an address told of every change from now on; its secret is told this once",
    status_code=201,
    responses=answered("WebhookWithSecret", status=201, headers=("Location",)),
    openapi_extra=body_of("NewWebhook"),
    dependencies=[Depends(refuse_key)],
)
def add_webhook(database: StoreOf, settings: SettingsOf, caller: AdminOf, body: BodyOf) -> Response:
    """Each change is a POST with what `GET /changes` tells of it, signed as Standard Webhooks, in order, at least once.

    Any answer but 2xx is tried again, later and later; after a day without one that is, the webhook is disabled.
    """
    wished = parse_webhook(body, allow_private=_private(settings))
    new = database.run_write(lambda transaction: subscriptions.create_webhook(transaction, wished))
    return answers.told(WriteResponse(201, _with_secret(new), f"{answers.PATH}/webhooks/{new.id}"))


@router.get("/{id}", summary="A webhook, and how it stands", responses=answered("Webhook", 404))
def read_webhook(database: StoreOf, caller: AdminOf, id: str) -> Response:
    with database.read() as snapshot:
        return answers.Json(serialize_webhook(subscriptions.get_webhook(snapshot, id)))


@router.patch(
    "/{id}",
    summary="Change its address, or what it is told of",
    responses=answered("Webhook", 404),
    openapi_extra=body_of("NewWebhook", patch=True),
)
def change_webhook(database: StoreOf, settings: SettingsOf, caller: AdminOf, id: str, body: BodyOf) -> Response:
    """What was not sent yet is sent as the webhook is then. One that is disabled stays so."""
    with database.read() as snapshot:
        found = subscriptions.get_webhook(snapshot, id)
    present = {"url": found.url, "collections": found.collections, "actions": found.actions}
    wished = parse_webhook(apply_merge_patch(present, body), allow_private=_private(settings), current_url=found.url)
    return answers.Json(
        serialize_webhook(database.run_write(lambda transaction: subscriptions.update_webhook(transaction, id, wished)))
    )


@router.delete("/{id}", summary="Take a webhook away", status_code=204, responses=answered(None, 404, status=204))
def remove_webhook(database: StoreOf, caller: AdminOf, id: str) -> Response:
    database.run_write(lambda transaction: subscriptions.delete_webhook(transaction, id))
    return Response(status_code=204)


@router.get(
    "/{id}/deliveries",
    summary="What was sent, the newest first; the last thousand are kept",
    responses=answered("Deliveries", 404),
)
def list_deliveries(
    database: StoreOf,
    caller: AdminOf,
    id: str,
    limit: Annotated[int, Query(ge=1, le=subscriptions.MAX_DELIVERIES)] = 100,
) -> Response:
    with database.read() as snapshot:
        return answers.Json(
            {"items": [serialize_delivery(each) for each in subscriptions.list_deliveries(snapshot, id, limit)]}
        )


@router.post(
    "/{id}/enable", summary="Try again at once, with the change where it stopped", responses=answered("Webhook", 404)
)
async def enable_webhook(database: StoreOf, caller: AdminOf, id: str, ask: AskOf) -> Response:
    def work(transaction: Transaction) -> WriteResponse:
        return WriteResponse(200, serialize_webhook(subscriptions.enable_webhook(transaction, id)))

    return await answers.written(database, make_idempotent(caller.account.id, ask, work))


@router.post("/{id}/disable", summary="Send nothing until it is enabled again", responses=answered("Webhook", 404))
async def disable_webhook(database: StoreOf, caller: AdminOf, id: str, ask: AskOf) -> Response:
    def work(transaction: Transaction) -> WriteResponse:
        return WriteResponse(200, serialize_webhook(subscriptions.disable_webhook(transaction, id)))

    return await answers.written(database, make_idempotent(caller.account.id, ask, work))


@router.post(
    "/{id}/rotate",
    summary="Give it a new secret, told this once",
    responses=answered("WebhookWithSecret", 404),
    dependencies=[Depends(refuse_key)],
)
async def rotate_secret(database: StoreOf, caller: AdminOf, id: str) -> Response:
    """Deliveries are signed with the last secret too, until the next time: a receiver changes over when it likes."""
    return await answers.written(
        database, lambda transaction: WriteResponse(200, _with_secret(subscriptions.rotate_secret(transaction, id)))
    )


@router.post(
    "/{id}/test",
    summary="Send something that is no change, and tell what was answered",
    responses=answered("Trial", 404),
)
def try_webhook(database: StoreOf, settings: SettingsOf, caller: AdminOf, id: str) -> Response:
    """The body sent is `{"action": "test", "at": …}`, signed as a change would be; also to one that is disabled."""
    with database.read() as snapshot:
        found = subscriptions.get_webhook(snapshot, id)
    trial = send_test(database, found, allow_private=_private(settings))
    return answers.Json({"status": trial.status, "error": trial.error or None})


def _private(settings: Settings) -> bool:
    return settings.webhooks_private == "yes"


def _with_secret(webhook: Webhook) -> dict[str, Any]:
    return {**serialize_webhook(webhook), "secret": webhook.secrets[0]}
