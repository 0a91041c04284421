"""Manage tokens: all of them as administrator, or one's own together with one's password."""

from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lexarium.domain.errors import NotFound
from lexarium.services.access import accounts, passwords
from lexarium.services.access.permissions import Permission
from lexarium.services.access.tokens import get_token, issue_token, list_tokens_page, revoke_token
from lexarium.web.http.paging import parse_page_key, split_page
from lexarium.web.http.rate_limits import client_address
from lexarium.web.pages.form_fields import (
    FORM_ERRORS,
    ROLE_CHOICES,
    get_filled,
    get_text,
    to_field_errors,
)
from lexarium.web.pages.page import FormRoute, Page, PageHandler, PageRoute, redirect
from lexarium.web.request_models import NewToken, parse_model
from lexarium.web.site import NO_STORE
from lexarium.web.template_filters import add_query

_ADMIN_PATH, _ACCOUNT_PATH = "/admin/tokens", "/account"
_PAGE_SIZE = 100


def list_tokens(page: Page) -> Response:
    """Show a page of tokens, newest first: all of them, or on the account page one's own."""
    caller, is_admin_page, query = page.caller, _is_admin_page(page), page.query
    account_id = (query.get("of") or None) if is_admin_page else caller.account.id
    include_inactive, page_key = bool(query.get("ended")), parse_page_key(query.get("before", ""))
    with page.read() as snapshot:
        tokens = list_tokens_page(
            snapshot, page_key, _PAGE_SIZE + 1, account_id=account_id, include_inactive=include_inactive
        )
        owner = accounts.get_account(snapshot, account_id) if is_admin_page and account_id else None
    shown, last = split_page(tokens, _PAGE_SIZE)
    context = {
        "caller": caller,
        "tokens": shown,
        "owner": owner,
        "include_inactive": include_inactive,
        "next": last
        and add_query(
            page.request.url.path, before=f"{last.created_at}-{last.id}", of=account_id, ended=include_inactive
        ),
        "roles": ROLE_CHOICES[: caller.role.rank + 1],
    }
    return page.render("tokens.html" if is_admin_page else "my_account.html", context)


def create(page: Page) -> Response:
    """Create a token, and show its secret once."""
    values = get_filled(page.fields, "account", "label", "role", "days", "old_password")
    new_token = parse_model(NewToken, values, "Invalid token request.")
    token, secret = issue_token(page.site.database, page.caller, **new_token.model_dump())
    context = {"token": token, "secret": secret, "back": _get_list_path(page)}
    return page.render("token_created.html", context, 201, NO_STORE)


def confirm_revoke(page: Page) -> Response:
    """Show a token, and ask for confirmation to revoke it."""
    with page.read() as snapshot:
        token = get_token(snapshot, page.id)
    if not _is_admin_page(page) and token.account.id != page.caller.account.id:
        raise NotFound("Token not found.")
    context = {"token": token, "is_current": token.id == page.caller.token_id, "back": _get_list_path(page)}
    return page.render("revoke_token.html", context, error_status=409)


def revoke(page: Page) -> Response:
    """Revoke a token."""
    revoke_token(page.site.database, page.id, page.caller)
    return redirect(_get_list_path(page), did="revoked")


def change_password(page: Page) -> Response:
    """Change one's own password. This ends all sessions of the account, the current one included."""
    errors: dict[str, str] = {}
    try:
        password_hash = passwords.hash_password(get_text(page.fields, "password"))
    except FORM_ERRORS as error:
        errors |= to_field_errors(error, "password")
    try:
        passwords.verify_current_password(page.site.database, page.caller, get_text(page.fields, "old_password"))
        if not errors:
            page.write(accounts.update_account, page.caller.account.id, password_hash=password_hash)
    except FORM_ERRORS as error:
        errors |= to_field_errors(error, "old_password")
    if errors:
        page.errors = {f"own_{name}": message for name, message in errors.items()}
        return list_tokens(page)
    return redirect(_ACCOUNT_PATH, did="password")


async def _limit_rate(handler: PageHandler, page: Page) -> Response:
    """Run a handler that hashes a password, within the limits of signing in."""
    caller, limiter = await run_in_threadpool(lambda: page.caller), page.site.limits.sign_in_limiter
    limiter.acquire(caller.account.name, client_address(page.request))
    async with limiter.hash_semaphore:
        return await run_in_threadpool(handler, page)


def _is_admin_page(page: Page) -> bool:
    return page.request.url.path.startswith(_ADMIN_PATH)


def _get_list_path(page: Page) -> str:
    return _ADMIN_PATH if _is_admin_page(page) else _ACCOUNT_PATH


ROUTES = (
    PageRoute(_ADMIN_PATH, list_tokens, Permission.ADMINISTER),
    FormRoute(_ADMIN_PATH, partial(_limit_rate, create), Permission.ADMINISTER, list_tokens, "account"),
    PageRoute(f"{_ADMIN_PATH}/{{id}}/revoke", confirm_revoke, Permission.ADMINISTER),
    FormRoute(f"{_ADMIN_PATH}/{{id}}/revoke", revoke, Permission.ADMINISTER, confirm_revoke),
    PageRoute(_ACCOUNT_PATH, list_tokens, Permission.PROPOSE),
    FormRoute(f"{_ACCOUNT_PATH}/password", partial(_limit_rate, change_password), Permission.PROPOSE),
    FormRoute(f"{_ACCOUNT_PATH}/tokens", partial(_limit_rate, create), Permission.PROPOSE, list_tokens, "label"),
    PageRoute(f"{_ACCOUNT_PATH}/tokens/{{id}}/revoke", confirm_revoke, Permission.PROPOSE),
    FormRoute(f"{_ACCOUNT_PATH}/tokens/{{id}}/revoke", revoke, Permission.PROPOSE, confirm_revoke),
)
