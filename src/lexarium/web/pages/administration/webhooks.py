"""Manage webhooks and show their deliveries."""

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
from lexarium.web.pages import form_fields
from lexarium.web.pages.filters import action_label, add_query
from lexarium.web.pages.form_fields import FORM_ERRORS, NO_VALUES, FormValues, to_field_errors
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.site import NO_STORE, Site
from lexarium.web.request_models import parse_webhook

_PATH = "/admin/webhooks"
_DETAIL_PATH = _PATH + "/{id}"
_PAGE_SIZE = 100
_SUCCESS_MESSAGES = {
    "changed": "The webhook is changed.",
    "enabled": "The webhook goes on, with the change where it stopped.",
    "paused": "The webhook is paused: nothing is sent until it goes on.",
    "deleted": "The webhook is gone, and the log of its deliveries with it.",
}
_CHOICES: dict[str, Any] = {
    "collection_choices": form_fields.COLLECTION_CHOICES,
    "actions": [(action.value, action_label(action)) for action in Action],
}


def list_webhooks(
    site: Site, request: Request, form_values: FormValues = NO_VALUES, errors: Mapping[str, str] = NO_VALUES
) -> Response:
    """Show all webhooks with their state, and a form to add one."""
    with site.database.read() as snapshot:
        context = {
            "webhooks": subscriptions.list_webhooks(snapshot),
            "revision": read_position(snapshot).revision,
            "form_values": form_values,
            "errors": errors,
            "notice": _SUCCESS_MESSAGES.get(request.query_params.get("did", "")),
            **_CHOICES,
        }
    return site.render(request, "webhooks.html", context, 422 if errors else 200)


def add(site: Site, request: Request, fields: FormValues) -> Response:
    """Create a webhook, and show its secret once."""
    try:
        settings = _parse_webhook(site, fields)
        webhook = site.database.run_write(lambda transaction: subscriptions.create_webhook(transaction, settings))
    except FORM_ERRORS as error:
        return list_webhooks(site, request, fields, to_field_errors(error, "url"))
    return _render_secret(site, request, webhook)


def show_webhook(
    site: Site,
    request: Request,
    form_values: FormValues | None = None,
    errors: Mapping[str, str] = NO_VALUES,
    test_result: str | None = None,
) -> Response:
    """Show a webhook with its latest deliveries, and forms to change it."""
    with site.database.read() as snapshot:
        webhook = subscriptions.get_webhook(snapshot, request.path_params["id"])
        context = {
            "webhook": webhook,
            "revision": read_position(snapshot).revision,
            "deliveries": subscriptions.list_deliveries(snapshot, webhook.id, _PAGE_SIZE),
            "max_deliveries": subscriptions.MAX_DELIVERIES,
            "shown": _PAGE_SIZE,
            "form_values": _to_form_values(webhook) if form_values is None else form_values,
            "errors": errors,
            "test_result": test_result,
            "notice": _SUCCESS_MESSAGES.get(request.query_params.get("did", "")),
            **_CHOICES,
        }
    return site.render(request, "webhook.html", context, 422 if errors else 200)


def update(site: Site, request: Request, fields: FormValues) -> Response:
    """Change the URL or the filters of a webhook."""
    webhook = _get_webhook(site, request)
    try:
        settings = _parse_webhook(site, fields, webhook.url)
        site.database.run_write(lambda transaction: subscriptions.update_webhook(transaction, webhook.id, settings))
    except FORM_ERRORS as error:
        return show_webhook(site, request, fields, to_field_errors(error, "url"))
    return _redirect_to_webhook(webhook, "changed")


def enable(site: Site, request: Request, fields: FormValues) -> Response:
    """Enable a webhook, or retry a failing one now."""
    return _redirect_to_webhook(_run_task(site, request, subscriptions.enable_webhook), "enabled")


def disable(site: Site, request: Request, fields: FormValues) -> Response:
    """Pause a webhook."""
    return _redirect_to_webhook(_run_task(site, request, subscriptions.disable_webhook), "paused")


def rotate_secret(site: Site, request: Request, fields: FormValues) -> Response:
    """Replace the secret, and show the new one once."""
    return _render_secret(site, request, _run_task(site, request, subscriptions.rotate_secret))


def _run_task(site: Site, request: Request, task: Callable[[Transaction, str], Webhook]) -> Webhook:
    return site.database.run_write(lambda transaction: task(transaction, request.path_params["id"]))


def _get_webhook(site: Site, request: Request) -> Webhook:
    with site.database.read() as snapshot:
        return subscriptions.get_webhook(snapshot, request.path_params["id"])


def send_test_delivery(site: Site, request: Request, fields: FormValues) -> Response:
    """Send a test delivery, and show the response."""
    delivery = send_test(site.database, _get_webhook(site, request), allow_private=_allows_private_addresses(site))
    return show_webhook(site, request, test_result=delivery.error or f"It answered {delivery.status}.")


def confirm_delete(site: Site, request: Request) -> Response:
    """Show a webhook, and ask for confirmation to delete it."""
    return site.render(request, "delete_webhook.html", {"webhook": _get_webhook(site, request)})


def delete(site: Site, request: Request, fields: FormValues) -> Response:
    """Delete a webhook."""
    site.database.run_write(lambda transaction: subscriptions.delete_webhook(transaction, request.path_params["id"]))
    return RedirectResponse(add_query(_PATH, did="deleted"), 303)


def _to_form_values(webhook: Webhook) -> dict[str, str]:
    boxes = [*(f"collections-{item}" for item in webhook.collections), *(f"actions-{item}" for item in webhook.actions)]
    return {"url": webhook.url, **dict.fromkeys(boxes, "1")}


def _parse_webhook(site: Site, fields: FormValues, current_url: str | None = None) -> WebhookSettings:
    values = {
        "url": form_fields.get_text(fields, "url").strip(),
        "collections": form_fields.get_checked(fields, "collections", COLLECTIONS),
        "actions": form_fields.get_checked(fields, "actions", Action),
    }
    return parse_webhook(values, allow_private=_allows_private_addresses(site), current_url=current_url)


def _allows_private_addresses(site: Site) -> bool:
    return site.settings.webhooks_private == "yes"


def _render_secret(site: Site, request: Request, webhook: Webhook) -> Response:
    context = {"webhook": webhook, "secret": webhook.secrets[0]}
    return site.render(request, "webhook_secret.html", context, 201, NO_STORE)


def _redirect_to_webhook(webhook: Webhook, message_key: str) -> Response:
    return RedirectResponse(add_query(f"{_PATH}/{webhook.id}", did=message_key), 303)


ROUTES = (
    PageRoute(_PATH, list_webhooks, Permission.ADMINISTER),
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
