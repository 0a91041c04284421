"""Webhooks: programs that are told of changes."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from lexarium.domain.editing import merge_patch
from lexarium.domain.webhooks import Webhook
from lexarium.service import webhooks
from lexarium.service.deliverer import try_out
from lexarium.service.once import Outcome, once
from lexarium.service.webhooks import delivery_view, webhook_view
from lexarium.settings import Settings
from lexarium.store.transaction import Transaction
from lexarium.web.asked import wish
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import AdminOf, AskOf, BodyOf, SettingsOf, StoreOf, refuse_key
from lexarium.web.v1.schemas import answered, body_of

router = APIRouter(prefix="/webhooks", tags=["webhooks"])


@router.get("", summary="Every webhook, the oldest first", responses=answered("Webhooks"))
def list_webhooks(database: StoreOf, caller: AdminOf) -> Response:
    with database.read() as snapshot:
        return answers.Json({"items": [webhook_view(each) for each in webhooks.oldest_first(snapshot)]})


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
    wished = wish(body, private=_private(settings))
    new = database.run(lambda transaction: webhooks.create(transaction, wished))
    return answers.told(Outcome(201, _with_secret(new), f"{answers.PATH}/webhooks/{new.id}"))


@router.get("/{id}", summary="A webhook, and how it stands", responses=answered("Webhook", 404))
def read_webhook(database: StoreOf, caller: AdminOf, id: str) -> Response:
    with database.read() as snapshot:
        return answers.Json(webhook_view(webhooks.find(snapshot, id)))


@router.patch(
    "/{id}",
    summary="Change its address, or what it is told of",
    responses=answered("Webhook", 404),
    openapi_extra=body_of("NewWebhook", patch=True),
)
def change_webhook(database: StoreOf, settings: SettingsOf, caller: AdminOf, id: str, body: BodyOf) -> Response:
    """What was not sent yet is sent as the webhook is then. One that is disabled stays so."""
    with database.read() as snapshot:
        found = webhooks.find(snapshot, id)
    present = {"url": found.url, "collections": found.collections, "actions": found.actions}
    wished = wish(merge_patch(present, body), private=_private(settings), known=found.url)
    return answers.Json(webhook_view(database.run(lambda transaction: webhooks.change(transaction, id, wished))))


@router.delete("/{id}", summary="Take a webhook away", status_code=204, responses=answered(None, 404, status=204))
def remove_webhook(database: StoreOf, caller: AdminOf, id: str) -> Response:
    database.run(lambda transaction: webhooks.remove(transaction, id))
    return Response(status_code=204)


@router.get(
    "/{id}/deliveries",
    summary="What was sent, the newest first; the last thousand are kept",
    responses=answered("Deliveries", 404),
)
def list_deliveries(
    database: StoreOf, caller: AdminOf, id: str, limit: Annotated[int, Query(ge=1, le=webhooks.KEPT)] = 100
) -> Response:
    with database.read() as snapshot:
        return answers.Json({"items": [delivery_view(each) for each in webhooks.deliveries(snapshot, id, limit)]})


@router.post(
    "/{id}/enable", summary="Try again at once, with the change where it stopped", responses=answered("Webhook", 404)
)
async def enable_webhook(database: StoreOf, caller: AdminOf, id: str, ask: AskOf) -> Response:
    def work(transaction: Transaction) -> Outcome:
        return Outcome(200, webhook_view(webhooks.enable(transaction, id)))

    return await answers.written(database, once(caller, ask, work))


@router.post("/{id}/disable", summary="Send nothing until it is enabled again", responses=answered("Webhook", 404))
async def disable_webhook(database: StoreOf, caller: AdminOf, id: str, ask: AskOf) -> Response:
    def work(transaction: Transaction) -> Outcome:
        return Outcome(200, webhook_view(webhooks.disable(transaction, id)))

    return await answers.written(database, once(caller, ask, work))


@router.post(
    "/{id}/rotate",
    summary="Give it a new secret, told this once",
    responses=answered("WebhookWithSecret", 404),
    dependencies=[Depends(refuse_key)],
)
async def rotate_secret(database: StoreOf, caller: AdminOf, id: str) -> Response:
    """Deliveries are signed with the last secret too, until the next time: a receiver changes over when it likes."""
    return await answers.written(
        database, lambda transaction: Outcome(200, _with_secret(webhooks.rotate(transaction, id)))
    )


@router.post(
    "/{id}/test",
    summary="Send something that is no change, and tell what was answered",
    responses=answered("Trial", 404),
)
def try_webhook(database: StoreOf, settings: SettingsOf, caller: AdminOf, id: str) -> Response:
    """The body sent is `{"action": "test", "at": …}`, signed as a change would be; also to one that is disabled."""
    with database.read() as snapshot:
        found = webhooks.find(snapshot, id)
    trial = try_out(database, found, private=_private(settings))
    return answers.Json({"status": trial.status, "error": trial.error or None})


def _private(settings: Settings) -> bool:
    return settings.webhooks_private == "yes"


def _with_secret(webhook: Webhook) -> dict[str, Any]:
    return {**webhook_view(webhook), "secret": webhook.secrets[0]}
