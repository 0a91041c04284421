"""Webhooks: who is told of changes, how that goes, and what was sent."""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.changes import Action
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.webhooks import Webhook
from lexarium.service import webhooks
from lexarium.service.access import Deed
from lexarium.service.deliverer import try_out
from lexarium.service.webhooks import Wish
from lexarium.store.backend import read_position
from lexarium.store.transaction import Transaction
from lexarium.web.asked import wish
from lexarium.web.pages.fields import KINDS, MISTAKES, Typed, mistakes_of, text, ticked
from lexarium.web.pages.site import Form, Page, Site
from lexarium.web.pages.wording import done, with_query

_WEBHOOKS = "/admin/webhooks"
_SHOWN = 100
_DONE = {
    "changed": "The webhook is changed.",
    "enabled": "The webhook goes on, with the change where it stopped.",
    "paused": "The webhook is paused: nothing is sent until it goes on.",
    "deleted": "The webhook is gone, and the log of its deliveries with it.",
}
_SECRET = {"cache-control": "no-store"}


def listing(site: Site, request: Request) -> Response:
    """Every webhook, and how it stands."""
    return _list(site, request, {}, {})


def _list(site: Site, request: Request, typed: Typed, wrong: Mapping[str, str]) -> Response:
    with site.database.read() as snapshot:
        told = {
            "hooks": webhooks.oldest_first(snapshot),
            "revision": read_position(snapshot).revision,
            "typed": typed,
            "wrong": wrong,
            "done": _DONE.get(request.query_params.get("did", "")),
            **_choices(),
        }
    return site.render(request, "webhooks.html", told, 422 if wrong else 200)


def add(site: Site, request: Request, fields: Typed) -> Response:
    """Make a webhook. Its secret stands on the page that answers, and nowhere else."""
    try:
        wished = _wish(site, fields)
        made = site.database.run(lambda transaction: webhooks.create(transaction, wished))
    except MISTAKES as error:
        return _list(site, request, fields, mistakes_of(error, "url"))
    return _with_secret(site, request, made)


def one(site: Site, request: Request) -> Response:
    """A webhook, and what was sent to it."""
    return _one(site, request, {})


def _one(site: Site, request: Request, more: Mapping[str, Any]) -> Response:
    identifier = request.path_params["id"]
    with site.database.read() as snapshot:
        hook = webhooks.find(snapshot, identifier)
        told = {
            "hook": hook,
            "revision": read_position(snapshot).revision,
            "deliveries": webhooks.deliveries(snapshot, identifier, _SHOWN),
            "kept": webhooks.KEPT,
            "shown": _SHOWN,
            "typed": _typed(hook),
            "wrong": {},
            "tried": None,
            "done": _DONE.get(request.query_params.get("did", "")),
            **_choices(),
            **more,
        }
    return site.render(request, "webhook.html", told, 422 if told["wrong"] else 200)


def change(site: Site, request: Request, fields: Typed) -> Response:
    """Tell something else from now on, or elsewhere."""
    identifier = request.path_params["id"]
    with site.database.read() as snapshot:
        present = webhooks.find(snapshot, identifier)
    try:
        wished = _wish(site, fields, present.url)
        site.database.run(lambda transaction: webhooks.change(transaction, identifier, wished))
    except MISTAKES as error:
        return _one(site, request, {"typed": fields, "wrong": mistakes_of(error, "url")})
    return _seen(identifier, "changed")


def enable(site: Site, request: Request, fields: Typed) -> Response:
    """Go on."""
    return _done(site, request, webhooks.enable, "enabled")


def disable(site: Site, request: Request, fields: Typed) -> Response:
    """Pause."""
    return _done(site, request, webhooks.disable, "paused")


def _done(site: Site, request: Request, work: Callable[[Transaction, str], Webhook], did: str) -> Response:
    identifier = request.path_params["id"]
    site.database.run(lambda transaction: work(transaction, identifier))
    return _seen(identifier, did)


def rotate(site: Site, request: Request, fields: Typed) -> Response:
    """Give it a new secret, which stands on the page that answers."""
    identifier = request.path_params["id"]
    hook = site.database.run(lambda transaction: webhooks.rotate(transaction, identifier))
    return _with_secret(site, request, hook)


def test(site: Site, request: Request, fields: Typed) -> Response:
    """Send something that is no change, and tell what was answered."""
    with site.database.read() as snapshot:
        hook = webhooks.find(snapshot, request.path_params["id"])
    trial = try_out(site.database, hook, private=_private(site))
    return _one(site, request, {"tried": trial.error or f"It answered {trial.status}."})


def ask_delete(site: Site, request: Request) -> Response:
    """Which webhook it is, before it is deleted."""
    with site.database.read() as snapshot:
        hook = webhooks.find(snapshot, request.path_params["id"])
    return site.render(request, "delete_webhook.html", {"hook": hook})


def delete(site: Site, request: Request, fields: Typed) -> Response:
    """Take a webhook away."""
    site.database.run(lambda transaction: webhooks.remove(transaction, request.path_params["id"]))
    return RedirectResponse(with_query(_WEBHOOKS, did="deleted"), 303)


def _choices() -> dict[str, Any]:
    return {"kinds": KINDS, "actions": [(each.value, done(each)) for each in Action]}


def _typed(hook: Webhook) -> dict[str, str]:
    """A webhook as its form has it."""
    boxes = [*(f"collections-{each}" for each in hook.collections), *(f"actions-{each}" for each in hook.actions)]
    return {"url": hook.url, **dict.fromkeys(boxes, "1")}


def _wish(site: Site, fields: Typed, known: str | None = None) -> Wish:
    asked = {
        "url": text(fields, "url").strip(),
        "collections": ticked(fields, "collections", COLLECTIONS),
        "actions": ticked(fields, "actions", Action),
    }
    return wish(asked, private=_private(site), known=known)


def _private(site: Site) -> bool:
    return site.settings.webhooks_private == "yes"


def _with_secret(site: Site, request: Request, hook: Webhook) -> Response:
    return site.render(request, "webhook_secret.html", {"hook": hook, "secret": hook.secrets[0]}, 201, _SECRET)


def _seen(identifier: str, did: str) -> Response:
    return RedirectResponse(with_query(f"{_WEBHOOKS}/{identifier}", did=did), 303)


_ONE = _WEBHOOKS + "/{id}"
PAGES = (
    Page(_WEBHOOKS, listing, Deed.ADMINISTER),
    Form(_WEBHOOKS, add, Deed.ADMINISTER),
    Page(_ONE, one, Deed.ADMINISTER),
    Form(_ONE, change, Deed.ADMINISTER),
    Form(f"{_ONE}/enable", enable, Deed.ADMINISTER),
    Form(f"{_ONE}/disable", disable, Deed.ADMINISTER),
    Form(f"{_ONE}/rotate", rotate, Deed.ADMINISTER),
    Form(f"{_ONE}/test", test, Deed.ADMINISTER),
    Page(f"{_ONE}/delete", ask_delete, Deed.ADMINISTER),
    Form(f"{_ONE}/delete", delete, Deed.ADMINISTER),
)
