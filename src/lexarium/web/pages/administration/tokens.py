"""Manage tokens: all of them as administrator, or one's own together with one's password."""

from collections.abc import Callable, Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.errors import NotFound
from lexarium.services.access import accounts, passwords
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.access.tokens import get_token, issue_token, list_tokens_page, revoke_token
from lexarium.web.http.rate_limits import client_address
from lexarium.web.pages import form_fields
from lexarium.web.pages.filters import add_query
from lexarium.web.pages.form_fields import FORM_ERRORS, NO_VALUES, ROLE_CHOICES, FormValues, get_text, to_field_errors
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.site import NO_STORE, Site
from lexarium.web.request_models import NewToken, parse_model

_ADMIN_PATH, _ACCOUNT_PATH = "/admin/tokens", "/account"
_PAGE_SIZE = 100
_SUCCESS_MESSAGES = {
    "revoked": "The token is revoked, and so are all that were made with it.",
    "password": "Your password is changed.",
}


def list_tokens(
    site: Site, request: Request, form_values: FormValues = NO_VALUES, errors: Mapping[str, str] = NO_VALUES
) -> Response:
    """Show a page of tokens, newest first: all of them, or on the account page one's own."""
    caller, is_admin_page, query = site.require_caller(request), _is_admin_page(request), request.query_params
    account_id = (query.get("of") or None) if is_admin_page else caller.account.id
    include_inactive = bool(query.get("ended"))
    page_key = form_fields.parse_page_key(query.get("before", ""))
    with site.database.read() as snapshot:
        tokens = list_tokens_page(
            snapshot, page_key, _PAGE_SIZE + 1, account_id=account_id, include_inactive=include_inactive
        )
        owner = accounts.get_account(snapshot, account_id) if is_admin_page and account_id else None
    last = tokens[_PAGE_SIZE - 1] if len(tokens) > _PAGE_SIZE else None
    context = {
        "caller": caller,
        "tokens": tokens[:_PAGE_SIZE],
        "owner": owner,
        "include_inactive": include_inactive,
        "next": last
        and add_query(request.url.path, before=f"{last.created_at}-{last.id}", of=account_id, ended=include_inactive),
        "roles": ROLE_CHOICES[: caller.role.rank + 1],
        "min_password_length": passwords.MIN_LENGTH,
        "form_values": form_values,
        "errors": errors,
        "notice": _SUCCESS_MESSAGES.get(query.get("did", "")),
    }
    return site.render(request, "tokens.html" if is_admin_page else "my_account.html", context, 422 if errors else 200)


async def create(site: Site, request: Request, fields: FormValues) -> Response:
    """Create a token, and show its secret once."""
    return await _run_password_task(_create, site, request, fields)


def _create(site: Site, request: Request, caller: Caller, fields: FormValues) -> Response:
    values = form_fields.get_filled(fields, "account", "label", "role", "days", "old_password")
    try:
        new_token = parse_model(NewToken, values, "This is not a valid token.")
        token, secret = issue_token(site.database, caller, **new_token.model_dump())
    except FORM_ERRORS as error:
        default_field = "account" if _is_admin_page(request) else "label"
        return list_tokens(site, request, fields, to_field_errors(error, default_field))
    context = {"token": token, "secret": secret, "back": _get_list_path(request)}
    return site.render(request, "token_created.html", context, 201, NO_STORE)


def confirm_revoke(site: Site, request: Request, errors: Mapping[str, str] = NO_VALUES) -> Response:
    """Show a token, and ask for confirmation to revoke it."""
    with site.database.read() as snapshot:
        token = get_token(snapshot, request.path_params["id"])
    caller = site.require_caller(request)
    if not _is_admin_page(request) and token.account.id != caller.account.id:
        raise NotFound("There is no such token of yours.")
    is_current = token.id == caller.token_id
    context = {"token": token, "errors": errors, "is_current": is_current, "back": _get_list_path(request)}
    return site.render(request, "revoke_token.html", context, 409 if errors else 200)


def revoke(site: Site, request: Request, fields: FormValues) -> Response:
    """Revoke a token."""
    try:
        revoke_token(site.database, request.path_params["id"], site.require_caller(request))
    except FORM_ERRORS as error:
        return confirm_revoke(site, request, to_field_errors(error))
    return RedirectResponse(add_query(_get_list_path(request), did="revoked"), 303)


async def change_password(site: Site, request: Request, fields: FormValues) -> Response:
    """Change one's own password. This ends all sessions of the account, the current one included."""
    return await _run_password_task(_change_password, site, request, fields)


def _change_password(site: Site, request: Request, caller: Caller, fields: FormValues) -> Response:
    errors: dict[str, str] = {}
    try:
        password_hash = passwords.hash_password(get_text(fields, "password"))
    except FORM_ERRORS as error:
        errors |= to_field_errors(error, "password")
    try:
        passwords.verify_current_password(site.database, caller, get_text(fields, "old_password"))
        if not errors:
            site.database.run_write(
                lambda transaction: accounts.update_account(transaction, caller.account.id, password_hash=password_hash)
            )
    except FORM_ERRORS as error:
        errors |= to_field_errors(error, "old_password")
    if errors:
        return list_tokens(site, request, errors={f"own_{name}": message for name, message in errors.items()})
    return RedirectResponse(add_query(_ACCOUNT_PATH, did="password"), 303)


async def _run_password_task(
    task: Callable[[Site, Request, Caller, FormValues], Response], site: Site, request: Request, fields: FormValues
) -> Response:
    """Run a task that hashes a password, within the limits of signing in."""
    caller, limiter = await run_in_threadpool(site.require_caller, request), site.limits.sign_in_limiter
    limiter.acquire(caller.account.name, client_address(request))
    async with limiter.hash_semaphore:
        return await run_in_threadpool(task, site, request, caller, fields)


def _is_admin_page(request: Request) -> bool:
    return request.url.path.startswith(_ADMIN_PATH)


def _get_list_path(request: Request) -> str:
    return _ADMIN_PATH if _is_admin_page(request) else _ACCOUNT_PATH


ROUTES = (
    PageRoute(_ADMIN_PATH, list_tokens, Permission.ADMINISTER),
    FormRoute(_ADMIN_PATH, create, Permission.ADMINISTER),
    PageRoute(f"{_ADMIN_PATH}/{{id}}/revoke", confirm_revoke, Permission.ADMINISTER),
    FormRoute(f"{_ADMIN_PATH}/{{id}}/revoke", revoke, Permission.ADMINISTER),
    PageRoute(_ACCOUNT_PATH, list_tokens, Permission.PROPOSE),
    FormRoute(f"{_ACCOUNT_PATH}/password", change_password, Permission.PROPOSE),
    FormRoute(f"{_ACCOUNT_PATH}/tokens", create, Permission.PROPOSE),
    PageRoute(f"{_ACCOUNT_PATH}/tokens/{{id}}/revoke", confirm_revoke, Permission.PROPOSE),
    FormRoute(f"{_ACCOUNT_PATH}/tokens/{{id}}/revoke", revoke, Permission.PROPOSE),
)
