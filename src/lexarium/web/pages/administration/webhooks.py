"""Manage webhooks and show their deliveries."""

from starlette.responses import Response

from lexarium.domain.webhook import Webhook, WebhookDelivery
from lexarium.services.access.permissions import Permission
from lexarium.services.records.catalogue_state import get_position
from lexarium.services.vocabularies.head_records import list_vocabularies
from lexarium.services.webhooks import subscriptions
from lexarium.services.webhooks.delivery import send_test
from lexarium.services.webhooks.subscriptions import WebhookSettings
from lexarium.web.pages.form_fields import get_checked, get_text
from lexarium.web.pages.page import FormRoute, Page, PageRoute, redirect
from lexarium.web.request_models import parse_webhook
from lexarium.web.site import NO_STORE

_PATH = "/admin/webhooks"
_DETAIL_PATH = _PATH + "/{id}"
_PAGE_SIZE = 100


def list_webhooks(page: Page) -> Response:
    """Show all webhooks with their state, and a form to add one."""
    with page.read() as snapshot:
        context = {
            "webhooks": subscriptions.list_webhooks(snapshot),
            "vocabulary_choices": _list_vocabularies(),
            "revision": get_position(snapshot).revision,
        }
    return page.render("webhooks.html", context)


def add(page: Page) -> Response:
    """Create a webhook, and show its secret once."""
    return _render_secret(page, page.write(subscriptions.create_webhook, _parse_webhook(page)))


def show_webhook(page: Page, test: WebhookDelivery | None = None) -> Response:
    """Show a webhook with its latest deliveries, and forms to change it."""
    with page.read() as snapshot:
        webhook = subscriptions.get_webhook(snapshot, page.id)
        context = {
            "webhook": webhook,
            "revision": get_position(snapshot).revision,
            "deliveries": subscriptions.list_deliveries(snapshot, webhook.id, _PAGE_SIZE),
            "max_deliveries": subscriptions.MAX_DELIVERIES,
            "shown": _PAGE_SIZE,
            "form_values": page.fields if page.errors else _to_form_values(webhook),
            "vocabulary_choices": _list_vocabularies(),
            "test": test,
        }
    return page.render("webhook.html", context)


def update(page: Page) -> Response:
    """Change the URL or the filters of a webhook."""
    page.write(subscriptions.update_webhook, page.id, _parse_webhook(page, _get_webhook(page).url))
    return redirect(f"{_PATH}/{page.id}", did="changed")


def enable(page: Page) -> Response:
    """Enable a webhook, or retry a failing one now."""
    page.write(subscriptions.enable_webhook, page.id)
    return redirect(f"{_PATH}/{page.id}", did="enabled")


def disable(page: Page) -> Response:
    """Pause a webhook."""
    page.write(subscriptions.disable_webhook, page.id)
    return redirect(f"{_PATH}/{page.id}", did="paused")


def rotate_secret(page: Page) -> Response:
    """Replace the secret, and show the new one once."""
    return _render_secret(page, page.write(subscriptions.rotate_secret, page.id))


def send_test_delivery(page: Page) -> Response:
    """Send a test delivery, and show the response."""
    allow_private = page.site.settings.allows_private_webhooks
    delivery = send_test(page.site.database, _get_webhook(page), allow_private=allow_private)
    return show_webhook(page, delivery)


def confirm_delete(page: Page) -> Response:
    """Show a webhook, and ask for confirmation to delete it."""
    return page.render("delete_webhook.html", {"webhook": _get_webhook(page)})


def delete(page: Page) -> Response:
    """Delete a webhook."""
    page.write(subscriptions.delete_webhook, page.id)
    return redirect(_PATH, did="deleted")


def _get_webhook(page: Page) -> Webhook:
    with page.read() as snapshot:
        return subscriptions.get_webhook(snapshot, page.id)


def _list_vocabularies() -> list[tuple[str, str]]:
    return [(item.slug, item.title) for item in list_vocabularies()]


def _to_form_values(webhook: Webhook) -> dict[str, str]:
    chosen = {
        "vocabularies": webhook.vocabularies,
        "collections": webhook.collection_names,
        "actions": webhook.actions,
    }
    return {"url": webhook.url, **{f"{name}-{item}": "1" for name, items in chosen.items() for item in items}}


def _parse_webhook(page: Page, current_url: str | None = None) -> WebhookSettings:
    values = {
        "url": get_text(page.fields, "url").strip(),
        **{name: get_checked(page.fields, name) for name in ("vocabularies", "collections", "actions")},
    }
    return parse_webhook(values, allow_private=page.site.settings.allows_private_webhooks, current_url=current_url)


def _render_secret(page: Page, webhook: Webhook) -> Response:
    return page.render("webhook_secret.html", {"webhook": webhook, "secret": webhook.secrets[0]}, 201, NO_STORE)


ROUTES = (
    PageRoute(_PATH, list_webhooks, Permission.ADMINISTER),
    FormRoute(_PATH, add, Permission.ADMINISTER, list_webhooks, "url"),
    PageRoute(_DETAIL_PATH, show_webhook, Permission.ADMINISTER),
    FormRoute(_DETAIL_PATH, update, Permission.ADMINISTER, show_webhook, "url"),
    FormRoute(f"{_DETAIL_PATH}/enable", enable, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/disable", disable, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/rotate", rotate_secret, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/test", send_test_delivery, Permission.ADMINISTER),
    PageRoute(f"{_DETAIL_PATH}/delete", confirm_delete, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/delete", delete, Permission.ADMINISTER),
)
