"""Tokens: one's own with one's password, and everyone's for who keeps the catalogue."""

from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexarium.domain.accounts import Token
from lexarium.domain.errors import NotFound
from lexarium.service import accounts, passwords
from lexarium.service.access import Caller, Deed, revoke_token
from lexarium.service.accounts import token as get_token
from lexarium.service.accounts import tokens
from lexarium.web.asked import NewToken, formed
from lexarium.web.limits import address_of
from lexarium.web.pages.fields import MISTAKES, ROLES, Typed, given, mistakes_of, place, text
from lexarium.web.pages.session import known
from lexarium.web.pages.site import Form, Page, Site
from lexarium.web.pages.wording import with_query

_ALL, _OWN = "/admin/tokens", "/account"
_SHOWN = 100
_DONE = {
    "revoked": "The token is revoked, and so are all that were made with it.",
    "password": "Your password is changed.",
}
_SECRET = {"cache-control": "no-store"}


def every(site: Site, request: Request) -> Response:
    """Everyone's tokens, the newest first."""
    return _list(site, request, {}, {})


def own(site: Site, request: Request) -> Response:
    """Who one is, one's own tokens, and one's password."""
    return _list(site, request, {}, {})


def _list(site: Site, request: Request, typed: Typed, wrong: Mapping[str, str]) -> Response:
    caller, of_all = known(site, request), _is_all(request)
    asked = request.query_params
    account_id = (asked.get("of") or None) if of_all else caller.account.id
    ended = bool(asked.get("ended"))
    with site.database.read() as snapshot:
        found = tokens(snapshot, place(asked.get("before", "")), _SHOWN + 1, account_id=account_id, ended=ended)
        owner = accounts.find(snapshot, account_id) if of_all and account_id else None
    last = found[_SHOWN - 1] if len(found) > _SHOWN else None
    told = {
        "caller": caller,
        "tokens": found[:_SHOWN],
        "owner": owner,
        "ended": ended,
        "next": last and with_query(request.url.path, before=f"{last.created}-{last.id}", of=account_id, ended=ended),
        "roles": ROLES[: caller.role.rank + 1],
        "shortest": passwords.SHORTEST,
        "typed": typed,
        "wrong": wrong,
        "done": _DONE.get(asked.get("did", "")),
    }
    return site.render(request, "tokens.html" if of_all else "account.html", told, 422 if wrong else 200)


async def make(site: Site, request: Request, fields: Typed) -> Response:
    """Make a token. Its secret stands on the page that answers, and nowhere else."""
    caller = await run_in_threadpool(known, site, request)
    site.limits.sign_ins.take(caller.account.name, address_of(request))
    async with site.limits.sign_ins.hashing:
        return await run_in_threadpool(_make, site, request, caller, fields)


def _make(site: Site, request: Request, caller: Caller, fields: Typed) -> Response:
    try:
        token, secret = _made(site, caller, fields)
    except MISTAKES as error:
        return _list(site, request, fields, mistakes_of(error, "account" if _is_all(request) else "label"))
    told = {"token": token, "secret": secret, "back": _ALL if _is_all(request) else _OWN}
    return site.render(request, "new_token.html", told, 201, _SECRET)


def _made(site: Site, caller: Caller, fields: Typed) -> tuple[Token, str]:
    names = ("account", "label", "role", "days", "old_password")
    asked = formed(NewToken, given(fields, *names), "This is not a valid token.")
    return passwords.issue_token(site.database, caller, **asked.model_dump())


def ask_revoke(site: Site, request: Request) -> Response:
    """Which token it is, before it is revoked."""
    return _revoking(site, request, {})


def _revoking(site: Site, request: Request, wrong: Mapping[str, str]) -> Response:
    with site.database.read() as snapshot:
        token = get_token(snapshot, request.path_params["id"])
    caller = known(site, request)
    if not _is_all(request) and token.account.id != caller.account.id:
        raise NotFound("There is no such token of yours.")
    told = {"token": token, "wrong": wrong, "this": token.id == caller.token, "back": _back(request)}
    return site.render(request, "revoke.html", told, 409 if wrong else 200)


def revoke(site: Site, request: Request, fields: Typed) -> Response:
    """Make a token useless."""
    try:
        revoke_token(site.database, request.path_params["id"], known(site, request))
    except MISTAKES as error:
        return _revoking(site, request, mistakes_of(error))
    return RedirectResponse(with_query(_back(request), did="revoked"), 303)


async def change_password(site: Site, request: Request, fields: Typed) -> Response:
    """Change one's own password, which ends what the old one opened: this session too."""
    caller = await run_in_threadpool(known, site, request)
    site.limits.sign_ins.take(caller.account.name, address_of(request))
    async with site.limits.sign_ins.hashing:
        return await run_in_threadpool(_change_password, site, request, caller, fields)


def _change_password(site: Site, request: Request, caller: Caller, fields: Typed) -> Response:
    wrong: dict[str, str] = {}
    try:
        digest = passwords.hashed(text(fields, "password"))
    except MISTAKES as error:
        wrong |= mistakes_of(error, "password")
    try:
        passwords.prove(site.database, caller, text(fields, "old_password"))
        if not wrong:
            site.database.run(accounts.change(caller.account.id, password=digest))
    except MISTAKES as error:
        wrong |= mistakes_of(error, "old_password")
    if wrong:
        return _list(site, request, {}, {f"own_{name}": told for name, told in wrong.items()})
    return RedirectResponse(with_query(_OWN, did="password"), 303)


def _is_all(request: Request) -> bool:
    return request.url.path.startswith(_ALL)


def _back(request: Request) -> str:
    return _ALL if _is_all(request) else _OWN


def _pages(address: str, deed: Deed) -> tuple[Any, ...]:
    listing, form = (address, f"{address}/tokens") if address == _OWN else (address, address)
    return (
        Page(listing, own if address == _OWN else every, deed),
        Form(form, make, deed),
        Page(f"{form}/{{id}}/revoke", ask_revoke, deed),
        Form(f"{form}/{{id}}/revoke", revoke, deed),
    )


PAGES = (
    *_pages(_ALL, Deed.ADMINISTER),
    *_pages(_OWN, Deed.PROPOSE),
    Form(f"{_OWN}/password", change_password, Deed.PROPOSE),
)
