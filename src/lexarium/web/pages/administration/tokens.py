"""Tokens: one's own with one's password, and everyone's for who keeps the catalogue."""

from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.account import Token
from lexarium.domain.errors import NotFound
from lexarium.services.access import accounts, passwords
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.access.tokens import get_token, list_tokens_page, revoke_token
from lexarium.web.http.rate_limits import client_address
from lexarium.web.pages.filters import add_query
from lexarium.web.pages.form_fields import (
    FORM_ERRORS,
    ROLE_CHOICES,
    FormValues,
    get_filled,
    get_text,
    parse_page_key,
    to_field_errors,
)
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.session import require_caller
from lexarium.web.pages.site import Site
from lexarium.web.request_models import NewToken, parse_model

_ADMIN_PATH, _ACCOUNT_PATH = "/admin/tokens", "/account"
_PAGE_SIZE = 100
_SUCCESS_MESSAGES = {
    "revoked": "The token is revoked, and so are all that were made with it.",
    "password": "Your password is changed.",
}
_NO_STORE = {"cache-control": "no-store"}


def list_all(site: Site, request: Request) -> Response:
    """Everyone's tokens, the newest first."""
    return _render_list(site, request, {}, {})


def show_my_account(site: Site, request: Request) -> Response:
    """Who one is, one's own tokens, and one's password."""
    return _render_list(site, request, {}, {})


def _render_list(site: Site, request: Request, form_values: FormValues, errors: Mapping[str, str]) -> Response:
    caller, is_admin_page = require_caller(site, request), _is_admin_page(request)
    query = request.query_params
    account_id = (query.get("of") or None) if is_admin_page else caller.account.id
    include_inactive = bool(query.get("ended"))
    with site.database.read() as snapshot:
        token_page = list_tokens_page(
            snapshot,
            parse_page_key(query.get("before", "")),
            _PAGE_SIZE + 1,
            account_id=account_id,
            include_inactive=include_inactive,
        )
        owner = accounts.get_account(snapshot, account_id) if is_admin_page and account_id else None
    last = token_page[_PAGE_SIZE - 1] if len(token_page) > _PAGE_SIZE else None
    context = {
        "caller": caller,
        "tokens": token_page[:_PAGE_SIZE],
        "owner": owner,
        "ended": include_inactive,
        "next": last
        and add_query(request.url.path, before=f"{last.created_at}-{last.id}", of=account_id, ended=include_inactive),
        "roles": ROLE_CHOICES[: caller.role.rank + 1],
        "shortest": passwords.MIN_LENGTH,
        "typed": form_values,
        "wrong": errors,
        "done": _SUCCESS_MESSAGES.get(query.get("did", "")),
    }
    return site.render(request, "tokens.html" if is_admin_page else "account.html", context, 422 if errors else 200)


async def create(site: Site, request: Request, fields: FormValues) -> Response:
    """Make a token. Its secret stands on the page that answers, and nowhere else."""
    caller = await run_in_threadpool(require_caller, site, request)
    site.limits.sign_in_limiter.acquire(caller.account.name, client_address(request))
    async with site.limits.sign_in_limiter.hash_semaphore:
        return await run_in_threadpool(_create_and_render, site, request, caller, fields)


def _create_and_render(site: Site, request: Request, caller: Caller, fields: FormValues) -> Response:
    try:
        token, secret = _create_token(site, caller, fields)
    except FORM_ERRORS as error:
        return _render_list(
            site, request, fields, to_field_errors(error, "account" if _is_admin_page(request) else "label")
        )
    context = {"token": token, "secret": secret, "back": _ADMIN_PATH if _is_admin_page(request) else _ACCOUNT_PATH}
    return site.render(request, "new_token.html", context, 201, _NO_STORE)


def _create_token(site: Site, caller: Caller, fields: FormValues) -> tuple[Token, str]:
    field_names = ("account", "label", "role", "days", "old_password")
    new_token = parse_model(NewToken, get_filled(fields, *field_names), "This is not a valid token.")
    return passwords.issue_token(site.database, caller, **new_token.model_dump())


def confirm_revoke(site: Site, request: Request) -> Response:
    """Which token it is, before it is revoked."""
    return _render_revoke(site, request, {})


def _render_revoke(site: Site, request: Request, errors: Mapping[str, str]) -> Response:
    with site.database.read() as snapshot:
        token = get_token(snapshot, request.path_params["id"])
    caller = require_caller(site, request)
    if not _is_admin_page(request) and token.account.id != caller.account.id:
        raise NotFound("There is no such token of yours.")
    context = {"token": token, "wrong": errors, "this": token.id == caller.token_id, "back": _get_list_path(request)}
    return site.render(request, "revoke.html", context, 409 if errors else 200)


def revoke(site: Site, request: Request, fields: FormValues) -> Response:
    """Make a token useless."""
    try:
        revoke_token(site.database, request.path_params["id"], require_caller(site, request))
    except FORM_ERRORS as error:
        return _render_revoke(site, request, to_field_errors(error))
    return RedirectResponse(add_query(_get_list_path(request), did="revoked"), 303)


async def change_password(site: Site, request: Request, fields: FormValues) -> Response:
    """Change one's own password, which ends what the old one opened: this session too."""
    caller = await run_in_threadpool(require_caller, site, request)
    site.limits.sign_in_limiter.acquire(caller.account.name, client_address(request))
    async with site.limits.sign_in_limiter.hash_semaphore:
        return await run_in_threadpool(_change_password, site, request, caller, fields)


def _change_password(site: Site, request: Request, caller: Caller, fields: FormValues) -> Response:
    errors: dict[str, str] = {}
    try:
        password_hash = passwords.hash_password(get_text(fields, "password"))
    except FORM_ERRORS as error:
        errors |= to_field_errors(error, "password")
    try:
        passwords.verify_current_password(site.database, caller, get_text(fields, "old_password"))
        if not errors:
            site.database.run_write(accounts.build_update_account_task(caller.account.id, password_hash=password_hash))
    except FORM_ERRORS as error:
        errors |= to_field_errors(error, "old_password")
    if errors:
        return _render_list(site, request, {}, {f"own_{name}": message for name, message in errors.items()})
    return RedirectResponse(add_query(_ACCOUNT_PATH, did="password"), 303)


def _is_admin_page(request: Request) -> bool:
    return request.url.path.startswith(_ADMIN_PATH)


def _get_list_path(request: Request) -> str:
    return _ADMIN_PATH if _is_admin_page(request) else _ACCOUNT_PATH


def _build_routes(path: str, permission: Permission) -> tuple[Any, ...]:
    list_path, form_path = (path, f"{path}/tokens") if path == _ACCOUNT_PATH else (path, path)
    return (
        PageRoute(list_path, show_my_account if path == _ACCOUNT_PATH else list_all, permission),
        FormRoute(form_path, create, permission),
        PageRoute(f"{form_path}/{{id}}/revoke", confirm_revoke, permission),
        FormRoute(f"{form_path}/{{id}}/revoke", revoke, permission),
    )


ROUTES = (
    *_build_routes(_ADMIN_PATH, Permission.ADMINISTER),
    *_build_routes(_ACCOUNT_PATH, Permission.PROPOSE),
    FormRoute(f"{_ACCOUNT_PATH}/password", change_password, Permission.PROPOSE),
)
