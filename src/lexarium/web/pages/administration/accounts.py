"""List, add, change and erase accounts."""

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lexarium.domain.account import Role
from lexarium.services.access import accounts, passwords
from lexarium.services.access.permissions import Permission
from lexarium.services.access.tokens import list_tokens_page
from lexarium.services.vocabularies.head_records import get_vocabulary, list_vocabularies
from lexarium.web.pages.form_fields import ROLE_CHOICES, get_filled, get_text
from lexarium.web.pages.page import FormRoute, Page, PageRoute, redirect
from lexarium.web.request_models import NewUser, UserChange, parse_model

_PATH = "/admin/people"
_DETAIL_PATH = _PATH + "/{id}"
_PAGE_SIZE = 100


def list_accounts(page: Page) -> Response:
    """Show a page of all accounts by name, with a form to add one."""
    start = page.query.get("from", "")
    with page.read() as snapshot:
        summaries = accounts.list_account_summaries(snapshot, start, _PAGE_SIZE + 1)
    context = {
        "accounts": summaries[:_PAGE_SIZE],
        "start": start,
        "next": summaries[_PAGE_SIZE].account.name if len(summaries) > _PAGE_SIZE else None,
        "roles": ROLE_CHOICES,
    }
    return page.render("accounts.html", context)


def add(page: Page) -> Response:
    """Add an account."""
    new_user = parse_model(NewUser, get_filled(page.fields, "name", "role"), "Invalid account.")
    account = accounts.add_account(page.site.database, new_user.name, new_user.role)
    return redirect(f"{_PATH}/{account.id}", did="added")


def show_account(page: Page) -> Response:
    """Show an account with its tokens, and forms to change it."""
    with page.read() as snapshot:
        summary = accounts.get_account_summary(snapshot, page.id)
        context = {
            "summary": summary,
            "tokens": list_tokens_page(snapshot, None, _PAGE_SIZE, account_id=page.id),
            "roles": ROLE_CHOICES,
            "vocabularies": list_vocabularies(),
            "is_own": page.caller.account.id == page.id,
        }
    return page.render("account.html", context)


def change_role(page: Page) -> Response:
    """Change the role of an account."""
    change = parse_model(UserChange, {"role": get_text(page.fields, "role")}, "Invalid account update.")
    page.write(accounts.update_account, page.id, change.role)
    return redirect(f"{_PATH}/{page.id}", did="role")


def change_vocabulary_role(page: Page) -> Response:
    """Change the role of an account in one vocabulary."""
    change = parse_model(UserChange, {"role": get_text(page.fields, "role")}, "Invalid account update.")
    vocabulary = get_vocabulary(get_text(page.fields, "vocabulary"))
    page.write(accounts.set_vocabulary_role, page.id, vocabulary.slug, change.role or Role.NONE)
    return redirect(f"{_PATH}/{page.id}", did="role")


async def set_password(page: Page) -> Response:
    """Set the password of an account."""
    async with page.site.limits.sign_in_limiter.hash_semaphore:
        password_hash = await run_in_threadpool(passwords.hash_password, get_text(page.fields, "password"))
        await run_in_threadpool(page.write, accounts.update_account, page.id, password_hash=password_hash)
    return redirect(f"{_PATH}/{page.id}", did="password")


def confirm_erase(page: Page) -> Response:
    """Explain what erasing an account means, and ask for confirmation."""
    with page.read() as snapshot:
        summary = accounts.get_account_summary(snapshot, page.id)
    return page.render("erase_account.html", {"summary": summary}, error_status=409)


def erase(page: Page) -> Response:
    """Erase an account."""
    accounts.erase_account(page.site.database, page.id)
    return redirect(_PATH, did="erased")


ROUTES = (
    PageRoute(_PATH, list_accounts, Permission.ADMINISTER),
    FormRoute(_PATH, add, Permission.ADMINISTER, list_accounts, "name"),
    PageRoute(_DETAIL_PATH, show_account, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/role", change_role, Permission.ADMINISTER, show_account, "role"),
    FormRoute(f"{_DETAIL_PATH}/vocabulary", change_vocabulary_role, Permission.ADMINISTER, show_account, "vocabulary"),
    FormRoute(f"{_DETAIL_PATH}/password", set_password, Permission.ADMINISTER, show_account, "password"),
    PageRoute(f"{_DETAIL_PATH}/erase", confirm_erase, Permission.ADMINISTER),
    FormRoute(f"{_DETAIL_PATH}/erase", erase, Permission.ADMINISTER, confirm_erase),
)
