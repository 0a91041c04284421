"""People: who has an account, what each may do, and the end of one."""

from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.services.access import accounts, passwords
from lexarium.services.access.accounts import add_account
from lexarium.services.access.permissions import Permission
from lexarium.services.access.tokens import list_tokens_page
from lexarium.web.pages.filters import add_query
from lexarium.web.pages.form_fields import FORM_ERRORS, ROLE_CHOICES, FormValues, get_filled, get_text, to_field_errors
from lexarium.web.pages.page_routes import FormRoute, PageRoute
from lexarium.web.pages.session import require_caller
from lexarium.web.pages.site import Site
from lexarium.web.request_models import NewUser, UserChange, parse_model

_PATH = "/admin/people"
_PAGE_SIZE = 100
_SUCCESS_MESSAGES = {
    "added": "The account is made. Give it a password, or a token, so that it can be used.",
    "role": "The role is changed. It counts from the next request on.",
    "password": "The password is set. All sessions of the account, and the tokens made from them, have ended.",
    "erased": "The account is erased: its name, password and tokens are gone. What it wrote stays, under its id.",
}


def list_accounts(site: Site, request: Request) -> Response:
    """Every account, by name."""
    return _render_list(site, request, {}, {})


def _render_list(site: Site, request: Request, form_values: FormValues, errors: Mapping[str, str]) -> Response:
    start = request.query_params.get("from", "")
    with site.database.read() as snapshot:
        summaries = accounts.list_account_summaries(snapshot, start, _PAGE_SIZE + 1)
    context = {
        "people": summaries[:_PAGE_SIZE],
        "start": start,
        "next": summaries[_PAGE_SIZE].account.name if len(summaries) > _PAGE_SIZE else None,
        "roles": ROLE_CHOICES,
        "typed": form_values,
        "wrong": errors,
        "done": _SUCCESS_MESSAGES.get(request.query_params.get("did", "")),
    }
    return site.render(request, "people.html", context, 422 if errors else 200)


def add(site: Site, request: Request, fields: FormValues) -> Response:
    """Make an account."""
    try:
        new_user = parse_model(NewUser, get_filled(fields, "name", "role"), "This is not a valid account.")
        account = add_account(site.database, new_user.name, new_user.role)
    except FORM_ERRORS as error:
        return _render_list(site, request, fields, to_field_errors(error, "name"))
    return _redirect_to_account(account.id, "added")


def show_account(site: Site, request: Request) -> Response:
    """An account: its role, its tokens, and what can be done to it."""
    return _render_detail(site, request, {})


def _render_detail(site: Site, request: Request, errors: Mapping[str, str]) -> Response:
    account_id = request.path_params["id"]
    with site.database.read() as snapshot:
        summary = accounts.get_account_summary(snapshot, account_id)
        context = {
            "person": summary,
            "tokens": list_tokens_page(snapshot, None, _PAGE_SIZE, account_id=summary.account.id),
            "roles": ROLE_CHOICES,
            "own": require_caller(site, request).account.id == summary.account.id,
            "shortest": passwords.MIN_LENGTH,
            "wrong": errors,
            "done": _SUCCESS_MESSAGES.get(request.query_params.get("did", "")),
        }
    return site.render(request, "person.html", context, 422 if errors else 200)


def change_role(site: Site, request: Request, fields: FormValues) -> Response:
    """Give an account another role."""
    account_id = request.path_params["id"]
    try:
        change = parse_model(UserChange, {"role": get_text(fields, "role")}, "The account cannot be changed so.")
        site.database.run_write(accounts.build_update_account_task(account_id, change.role))
    except FORM_ERRORS as error:
        return _render_detail(site, request, to_field_errors(error, "role"))
    return _redirect_to_account(account_id, "role")


async def set_password(site: Site, request: Request, fields: FormValues) -> Response:
    """Give an account a password."""
    async with site.limits.sign_in_limiter.hash_semaphore:
        return await run_in_threadpool(_set_password, site, request, fields)


def _set_password(site: Site, request: Request, fields: FormValues) -> Response:
    account_id = request.path_params["id"]
    try:
        site.database.run_write(
            accounts.build_update_account_task(
                account_id, password_hash=passwords.hash_password(get_text(fields, "password"))
            )
        )
    except FORM_ERRORS as error:
        return _render_detail(site, request, to_field_errors(error, "password"))
    return _redirect_to_account(account_id, "password")


def confirm_erase(site: Site, request: Request) -> Response:
    """What erasing an account means, before it is done."""
    return _render_erase(site, request, {})


def _render_erase(site: Site, request: Request, errors: Mapping[str, str]) -> Response:
    with site.database.read() as snapshot:
        summary = accounts.get_account_summary(snapshot, request.path_params["id"])
    return site.render(request, "erase.html", {"person": summary, "wrong": errors}, 409 if errors else 200)


def erase(site: Site, request: Request, fields: FormValues) -> Response:
    """Erase an account."""
    try:
        accounts.erase_account(site.database, request.path_params["id"])
    except FORM_ERRORS as error:
        return _render_erase(site, request, to_field_errors(error))
    return RedirectResponse(add_query(_PATH, did="erased"), 303)


def _redirect_to_account(account_id: str, message_key: str) -> Response:
    return RedirectResponse(add_query(f"{_PATH}/{account_id}", did=message_key), 303)


_DETAIL_PATH = _PATH + "/{id}"
ROUTES = (
    PageRoute(_PATH, list_accounts, Permission.ADMINISTER),
    FormRoute(_PATH, add, Permission.ADMINISTER),
    PageRoute(_DETAIL_PATH, show_account, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/role", change_role, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/password", set_password, Permission.ADMINISTER),
    PageRoute(f"{_DETAIL_PATH}/erase", confirm_erase, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/erase", erase, Permission.ADMINISTER),
)
