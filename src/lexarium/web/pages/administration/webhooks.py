"""Webhooks: who is told of changes, how that goes, and what was sent."""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.change import Action
from lexarium.domain.schema.collections import COLLECTIONS
from lexarium.domain.webhook import Webhook
from lexarium.services.access.permissions import Permission
from lexarium.services.webhooks import subscriptions
from lexarium.services.webhooks.delivery import send_test
from lexarium.services.webhooks.subscriptions import WebhookSettings
from lexarium.store.position import read_position
from lexarium.store.transaction import Transaction
from lexarium.web.pages.filters import action_label, add_query
from lexarium.web.pages.form_fields import (
    COLLECTION_CHOICES,
    FORM_ERRORS,
    FormValues,
    get_checked,
    get_text,
    to_field_errors,
)
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.site import Site
from lexarium.web.request_models import parse_webhook

_PATH = "/admin/webhooks"
_PAGE_SIZE = 100
_SUCCESS_MESSAGES = {
    "changed": "The webhook is changed.",
    "enabled": "The webhook goes on, with the change where it stopped.",
    "paused": "The webhook is paused: nothing is sent until it goes on.",
    "deleted": "The webhook is gone, and the log of its deliveries with it.",
}
_NO_STORE = {"cache-control": "no-store"}


def show_list(site: Site, request: Request) -> Response:
    """Every webhook, and how it stands."""
    return _render_list(site, request, {}, {})


def _render_list(site: Site, request: Request, form_values: FormValues, errors: Mapping[str, str]) -> Response:
    with site.database.read() as snapshot:
        context = {
            "hooks": subscriptions.list_webhooks(snapshot),
            "revision": read_position(snapshot).revision,
            "typed": form_values,
            "wrong": errors,
            "done": _SUCCESS_MESSAGES.get(request.query_params.get("did", "")),
            **_build_choices(),
        }
    return site.render(request, "webhooks.html", context, 422 if errors else 200)


def add(site: Site, request: Request, fields: FormValues) -> Response:
    """Make a webhook. Its secret stands on the page that answers, and nowhere else."""
    try:
        settings = _parse_webhook(site, fields)
        webhook = site.database.run_write(lambda transaction: subscriptions.create_webhook(transaction, settings))
    except FORM_ERRORS as error:
        return _render_list(site, request, fields, to_field_errors(error, "url"))
    return _render_secret(site, request, webhook)


def show_webhook(site: Site, request: Request) -> Response:
    """A webhook, and what was sent to it."""
    return _render_detail(site, request, {})


def _render_detail(site: Site, request: Request, extra: Mapping[str, Any]) -> Response:
    webhook_id = request.path_params["id"]
    with site.database.read() as snapshot:
        webhook = subscriptions.get_webhook(snapshot, webhook_id)
        context = {
            "hook": webhook,
            "revision": read_position(snapshot).revision,
            "deliveries": subscriptions.list_deliveries(snapshot, webhook_id, _PAGE_SIZE),
            "kept": subscriptions.MAX_DELIVERIES,
            "shown": _PAGE_SIZE,
            "typed": _to_form_values(webhook),
            "wrong": {},
            "tried": None,
            "done": _SUCCESS_MESSAGES.get(request.query_params.get("did", "")),
            **_build_choices(),
            **extra,
        }
    return site.render(request, "webhook.html", context, 422 if context["wrong"] else 200)


def update(site: Site, request: Request, fields: FormValues) -> Response:
    """Tell something else from now on, or elsewhere."""
    webhook_id = request.path_params["id"]
    with site.database.read() as snapshot:
        current = subscriptions.get_webhook(snapshot, webhook_id)
    try:
        settings = _parse_webhook(site, fields, current.url)
        site.database.run_write(lambda transaction: subscriptions.update_webhook(transaction, webhook_id, settings))
    except FORM_ERRORS as error:
        return _render_detail(site, request, {"typed": fields, "wrong": to_field_errors(error, "url")})
    return _redirect_to_webhook(webhook_id, "changed")


def enable(site: Site, request: Request, fields: FormValues) -> Response:
    """Go on."""
    return _update_and_redirect(site, request, subscriptions.enable_webhook, "enabled")


def disable(site: Site, request: Request, fields: FormValues) -> Response:
    """Pause."""
    return _update_and_redirect(site, request, subscriptions.disable_webhook, "paused")


def _update_and_redirect(
    site: Site, request: Request, task: Callable[[Transaction, str], Webhook], message_key: str
) -> Response:
    webhook_id = request.path_params["id"]
    site.database.run_write(lambda transaction: task(transaction, webhook_id))
    return _redirect_to_webhook(webhook_id, message_key)


def rotate_secret(site: Site, request: Request, fields: FormValues) -> Response:
    """Give it a new secret, which stands on the page that answers."""
    webhook_id = request.path_params["id"]
    webhook = site.database.run_write(lambda transaction: subscriptions.rotate_secret(transaction, webhook_id))
    return _render_secret(site, request, webhook)


def send_test_delivery(site: Site, request: Request, fields: FormValues) -> Response:
    """Send something that is no change, and tell what was answered."""
    with site.database.read() as snapshot:
        webhook = subscriptions.get_webhook(snapshot, request.path_params["id"])
    delivery = send_test(site.database, webhook, allow_private=_allows_private_addresses(site))
    return _render_detail(site, request, {"tried": delivery.error or f"It answered {delivery.status}."})


def confirm_delete(site: Site, request: Request) -> Response:
    """Which webhook it is, before it is deleted."""
    with site.database.read() as snapshot:
        webhook = subscriptions.get_webhook(snapshot, request.path_params["id"])
    return site.render(request, "delete_webhook.html", {"hook": webhook})


def delete(site: Site, request: Request, fields: FormValues) -> Response:
    """Take a webhook away."""
    site.database.run_write(lambda transaction: subscriptions.delete_webhook(transaction, request.path_params["id"]))
    return RedirectResponse(add_query(_PATH, did="deleted"), 303)


def _build_choices() -> dict[str, Any]:
    return {"kinds": COLLECTION_CHOICES, "actions": [(action.value, action_label(action)) for action in Action]}


def _to_form_values(webhook: Webhook) -> dict[str, str]:
    """A webhook as its form has it."""
    boxes = [*(f"collections-{item}" for item in webhook.collections), *(f"actions-{item}" for item in webhook.actions)]
    return {"url": webhook.url, **dict.fromkeys(boxes, "1")}


def _parse_webhook(site: Site, fields: FormValues, current_url: str | None = None) -> WebhookSettings:
    values = {
        "url": get_text(fields, "url").strip(),
        "collections": get_checked(fields, "collections", COLLECTIONS),
        "actions": get_checked(fields, "actions", Action),
    }
    return parse_webhook(values, allow_private=_allows_private_addresses(site), current_url=current_url)


def _allows_private_addresses(site: Site) -> bool:
    return site.settings.webhooks_private == "yes"


def _render_secret(site: Site, request: Request, webhook: Webhook) -> Response:
    return site.render(request, "webhook_secret.html", {"hook": webhook, "secret": webhook.secrets[0]}, 201, _NO_STORE)


def _redirect_to_webhook(webhook_id: str, message_key: str) -> Response:
    return RedirectResponse(add_query(f"{_PATH}/{webhook_id}", did=message_key), 303)


_DETAIL_PATH = _PATH + "/{id}"
ROUTES = (
    PageRoute(_PATH, show_list, Permission.ADMINISTER),
    FormRoute(_PATH, add, Permission.ADMINISTER),
    PageRoute(_DETAIL_PATH, show_webhook, Permission.ADMINISTER),
    FormRoute(_DETAIL_PATH, update, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/enable", enable, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/disable", disable, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/rotate", rotate_secret, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/test", send_test_delivery, Permission.ADMINISTER),
    PageRoute(f"{_DETAIL_PATH}/delete", confirm_delete, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/delete", delete, Permission.ADMINISTER),
)
