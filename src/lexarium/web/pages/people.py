"""People: who has an account, what each may do, and the end of one."""

from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.service import accounts, passwords
from lexarium.service.access import Deed, add_account
from lexarium.service.accounts import tokens
from lexarium.web.asked import NewUser, UserChange, formed
from lexarium.web.pages.fields import MISTAKES, ROLES, Typed, given, mistakes_of, text
from lexarium.web.pages.session import known
from lexarium.web.pages.site import Form, Page, Site
from lexarium.web.pages.wording import with_query

_PEOPLE = "/admin/people"
_SHOWN = 100
_DONE = {
    "added": "The account is made. Give it a password, or a token, so that it can be used.",
    "role": "The role is changed. It counts from the next request on.",
    "password": "The password is set. All sessions of the account, and the tokens made from them, have ended.",
    "erased": "The account is erased: its name, password and tokens are gone. What it wrote stays, under its id.",
}


def people(site: Site, request: Request) -> Response:
    """Every account, by name."""
    return _list(site, request, {}, {})


def _list(site: Site, request: Request, typed: Typed, wrong: Mapping[str, str]) -> Response:
    start = request.query_params.get("from", "")
    with site.database.read() as snapshot:
        found = accounts.people(snapshot, start, _SHOWN + 1)
    told = {
        "people": found[:_SHOWN],
        "start": start,
        "next": found[_SHOWN].account.name if len(found) > _SHOWN else None,
        "roles": ROLES,
        "typed": typed,
        "wrong": wrong,
        "done": _DONE.get(request.query_params.get("did", "")),
    }
    return site.render(request, "people.html", told, 422 if wrong else 200)


def add(site: Site, request: Request, fields: Typed) -> Response:
    """Make an account."""
    try:
        asked = formed(NewUser, given(fields, "name", "role"), "This is not a valid account.")
        made = add_account(site.database, asked.name, asked.role)
    except MISTAKES as error:
        return _list(site, request, fields, mistakes_of(error, "name"))
    return _seen(made.id, "added")


def person(site: Site, request: Request) -> Response:
    """An account: its role, its tokens, and what can be done to it."""
    return _one(site, request, {})


def _one(site: Site, request: Request, wrong: Mapping[str, str]) -> Response:
    identifier = request.path_params["id"]
    with site.database.read() as snapshot:
        found = accounts.person(snapshot, identifier)
        told = {
            "person": found,
            "tokens": tokens(snapshot, None, _SHOWN, account_id=found.account.id),
            "roles": ROLES,
            "own": known(site, request).account.id == found.account.id,
            "shortest": passwords.SHORTEST,
            "wrong": wrong,
            "done": _DONE.get(request.query_params.get("did", "")),
        }
    return site.render(request, "person.html", told, 422 if wrong else 200)


def change_role(site: Site, request: Request, fields: Typed) -> Response:
    """Give an account another role."""
    identifier = request.path_params["id"]
    try:
        asked = formed(UserChange, {"role": text(fields, "role")}, "The account cannot be changed so.")
        site.database.run(accounts.change(identifier, asked.role))
    except MISTAKES as error:
        return _one(site, request, mistakes_of(error, "role"))
    return _seen(identifier, "role")


async def set_password(site: Site, request: Request, fields: Typed) -> Response:
    """Give an account a password."""
    async with site.limits.sign_ins.hashing:
        return await run_in_threadpool(_set_password, site, request, fields)


def _set_password(site: Site, request: Request, fields: Typed) -> Response:
    identifier = request.path_params["id"]
    try:
        site.database.run(accounts.change(identifier, password=passwords.hashed(text(fields, "password"))))
    except MISTAKES as error:
        return _one(site, request, mistakes_of(error, "password"))
    return _seen(identifier, "password")


def ask_erase(site: Site, request: Request) -> Response:
    """What erasing an account means, before it is done."""
    return _erasing(site, request, {})


def _erasing(site: Site, request: Request, wrong: Mapping[str, str]) -> Response:
    with site.database.read() as snapshot:
        found = accounts.person(snapshot, request.path_params["id"])
    return site.render(request, "erase.html", {"person": found, "wrong": wrong}, 409 if wrong else 200)


def erase(site: Site, request: Request, fields: Typed) -> Response:
    """Erase an account."""
    try:
        accounts.erase(site.database, request.path_params["id"])
    except MISTAKES as error:
        return _erasing(site, request, mistakes_of(error))
    return RedirectResponse(with_query(_PEOPLE, did="erased"), 303)


def _seen(identifier: str, did: str) -> Response:
    return RedirectResponse(with_query(f"{_PEOPLE}/{identifier}", did=did), 303)


_ONE = _PEOPLE + "/{id}"
PAGES = (
    Page(_PEOPLE, people, Deed.ADMINISTER),
    Form(_PEOPLE, add, Deed.ADMINISTER),
    Page(_ONE, person, Deed.ADMINISTER),
    Form(f"{_ONE}/role", change_role, Deed.ADMINISTER),
    Form(f"{_ONE}/password", set_password, Deed.ADMINISTER),
    Page(f"{_ONE}/erase", ask_erase, Deed.ADMINISTER),
    Form(f"{_ONE}/erase", erase, Deed.ADMINISTER),
)
