"""Webhooks: programs that are told of changes."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import ValidationError
from starlette.responses import Response

from lexarium.domain.drafts import problems_of
from lexarium.domain.errors import Invalid
from lexarium.domain.stamps import text_of
from lexarium.domain.webhooks import Delivery, Webhook
from lexarium.service import webhooks
from lexarium.service.once import Outcome, once
from lexarium.store.transaction import Transaction
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import AdminOf, AskOf, BodyOf, SettingsOf, StoreOf, refuse_key
from lexarium.web.v1.schemas import NewWebhook, body_of

router = APIRouter(prefix="/webhooks", tags=["webhooks"])


@router.get("", summary="Every webhook, the oldest first")
def list_webhooks(database: StoreOf, caller: AdminOf) -> Response:
    with database.read() as snapshot:
        return answers.Json({"items": [_view(each) for each in webhooks.oldest_first(snapshot)]})


@router.post(
    "",
    summary="Have an address told of every change from now on; its secret is told this once",
    status_code=201,
    openapi_extra=body_of("NewWebhook"),
    dependencies=[Depends(refuse_key)],
)
def add_webhook(database: StoreOf, settings: SettingsOf, caller: AdminOf, body: BodyOf) -> Response:
    """Each change is a POST with what `GET /changes` tells of it, signed as Standard Webhooks, in order, at least once.

    Any answer but 2xx is tried again, later and later; after a day without one that is, the webhook is disabled.
    """
    try:
        given = NewWebhook.model_validate(body, extra="forbid")
    except ValidationError as error:
        raise Invalid("This is not a valid webhook.", problems_of(error)) from None
    private = settings.webhooks_private == "yes"
    new = webhooks.create(database, given.url, given.collections, given.actions, private=private)
    return answers.told(Outcome(201, {**_view(new), "secret": new.secret}, f"{answers.PATH}/webhooks/{new.id}"))


@router.get("/{id}", summary="A webhook, and how it stands")
def read_webhook(database: StoreOf, caller: AdminOf, id: str) -> Response:
    with database.read() as snapshot:
        return answers.Json(_view(webhooks.find(snapshot, id)))


@router.delete("/{id}", summary="Take a webhook away", status_code=204)
def remove_webhook(database: StoreOf, caller: AdminOf, id: str) -> Response:
    database.run(lambda transaction: webhooks.remove(transaction, id))
    return Response(status_code=204)


@router.get("/{id}/deliveries", summary="What was sent, the newest first; the last thousand are kept")
def list_deliveries(
    database: StoreOf, caller: AdminOf, id: str, limit: Annotated[int, Query(ge=1, le=webhooks.KEPT)] = 100
) -> Response:
    with database.read() as snapshot:
        return answers.Json({"items": [_told(each) for each in webhooks.deliveries(snapshot, id, limit)]})


@router.post("/{id}/enable", summary="Try again at once, with the change where it stopped")
async def enable_webhook(database: StoreOf, caller: AdminOf, id: str, ask: AskOf) -> Response:
    def work(transaction: Transaction) -> Outcome:
        return Outcome(200, _view(webhooks.enable(transaction, id)))

    return await answers.written(database, once(caller, ask, work))


def _view(webhook: Webhook) -> dict[str, Any]:
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


def _told(delivery: Delivery) -> dict[str, Any]:
    return {
        "seq": delivery.seq,
        "at": text_of(delivery.at),
        "status": delivery.status,
        "error": delivery.error or None,
    }
