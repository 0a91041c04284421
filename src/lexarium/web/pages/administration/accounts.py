"""List, add, change and erase accounts."""

from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.services.access import accounts, passwords
from lexarium.services.access.permissions import Permission
from lexarium.services.access.tokens import list_tokens_page
from lexarium.web.pages import form_fields
from lexarium.web.pages.filters import add_query
from lexarium.web.pages.form_fields import FORM_ERRORS, NO_VALUES, ROLE_CHOICES, FormValues, get_text, to_field_errors
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.site import Site
from lexarium.web.request_models import NewUser, UserChange, parse_model

_PATH = "/admin/people"
_DETAIL_PATH = _PATH + "/{id}"
_PAGE_SIZE = 100
_SUCCESS_MESSAGES = {
    "added": "The account is made. Give it a password, or a token, so that it can be used.",
    "role": "The role is changed. It counts from the next request on.",
    "password": "The password is set. All sessions of the account, and the tokens made from them, have ended.",
    "erased": "The account is erased: its name, password and tokens are gone. What it wrote stays, under its id.",
}


def list_accounts(
    site: Site, request: Request, form_values: FormValues = NO_VALUES, errors: Mapping[str, str] = NO_VALUES
) -> Response:
    """Show a page of all accounts by name, with a form to add one."""
    start = request.query_params.get("from", "")
    with site.database.read() as snapshot:
        summaries = accounts.list_account_summaries(snapshot, start, _PAGE_SIZE + 1)
    context = {
        "accounts": summaries[:_PAGE_SIZE],
        "start": start,
        "next": summaries[_PAGE_SIZE].account.name if len(summaries) > _PAGE_SIZE else None,
        "roles": ROLE_CHOICES,
        "form_values": form_values,
        "errors": errors,
        "notice": _SUCCESS_MESSAGES.get(request.query_params.get("did", "")),
    }
    return site.render(request, "accounts.html", context, 422 if errors else 200)


def add(site: Site, request: Request, fields: FormValues) -> Response:
    """Add an account."""
    try:
        values = form_fields.get_filled(fields, "name", "role")
        new_user = parse_model(NewUser, values, "This is not a valid account.")
        account = accounts.add_account(site.database, new_user.name, new_user.role)
    except FORM_ERRORS as error:
        return list_accounts(site, request, fields, to_field_errors(error, "name"))
    return _redirect_to_account(account.id, "added")


def show_account(site: Site, request: Request, errors: Mapping[str, str] = NO_VALUES) -> Response:
    """Show an account with its tokens, and forms to change it."""
    with site.database.read() as snapshot:
        summary = accounts.get_account_summary(snapshot, request.path_params["id"])
        context = {
            "summary": summary,
            "tokens": list_tokens_page(snapshot, None, _PAGE_SIZE, account_id=summary.account.id),
            "roles": ROLE_CHOICES,
            "is_own": site.require_caller(request).account.id == summary.account.id,
            "min_password_length": passwords.MIN_LENGTH,
            "errors": errors,
            "notice": _SUCCESS_MESSAGES.get(request.query_params.get("did", "")),
        }
    return site.render(request, "account.html", context, 422 if errors else 200)


def change_role(site: Site, request: Request, fields: FormValues) -> Response:
    """Change the role of an account."""
    account_id = request.path_params["id"]
    try:
        change = parse_model(UserChange, {"role": get_text(fields, "role")}, "The account cannot be changed so.")
        site.database.run_write(lambda transaction: accounts.update_account(transaction, account_id, change.role))
    except FORM_ERRORS as error:
        return show_account(site, request, to_field_errors(error, "role"))
    return _redirect_to_account(account_id, "role")


async def set_password(site: Site, request: Request, fields: FormValues) -> Response:
    """Set the password of an account."""
    async with site.limits.sign_in_limiter.hash_semaphore:
        return await run_in_threadpool(_set_password, site, request, fields)


def _set_password(site: Site, request: Request, fields: FormValues) -> Response:
    account_id = request.path_params["id"]
    try:
        password_hash = passwords.hash_password(get_text(fields, "password"))
        site.database.run_write(
            lambda transaction: accounts.update_account(transaction, account_id, password_hash=password_hash)
        )
    except FORM_ERRORS as error:
        return show_account(site, request, to_field_errors(error, "password"))
    return _redirect_to_account(account_id, "password")


def confirm_erase(site: Site, request: Request, errors: Mapping[str, str] = NO_VALUES) -> Response:
    """Explain what erasing an account means, and ask for confirmation."""
    with site.database.read() as snapshot:
        summary = accounts.get_account_summary(snapshot, request.path_params["id"])
    return site.render(request, "erase_account.html", {"summary": summary, "errors": errors}, 409 if errors else 200)


def erase(site: Site, request: Request, fields: FormValues) -> Response:
    """Erase an account."""
    try:
        accounts.erase_account(site.database, request.path_params["id"])
    except FORM_ERRORS as error:
        return confirm_erase(site, request, to_field_errors(error))
    return RedirectResponse(add_query(_PATH, did="erased"), 303)


def _redirect_to_account(account_id: str, message_key: str) -> Response:
    return RedirectResponse(add_query(f"{_PATH}/{account_id}", did=message_key), 303)


ROUTES = (
    PageRoute(_PATH, list_accounts, Permission.ADMINISTER),
    FormRoute(_PATH, add, Permission.ADMINISTER),
    PageRoute(_DETAIL_PATH, show_account, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/role", change_role, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/password", set_password, Permission.ADMINISTER),
    PageRoute(f"{_DETAIL_PATH}/erase", confirm_erase, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/erase", erase, Permission.ADMINISTER),
)
