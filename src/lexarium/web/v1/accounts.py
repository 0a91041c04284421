"""Accounts and their tokens."""

from typing import Any

from fastapi import APIRouter, Depends, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lexarium.domain.accounts import Account, Token
from lexarium.domain.drafts import problems_of
from lexarium.domain.errors import Forbidden, Invalid, NotFound
from lexarium.domain.stamps import text_of
from lexarium.service import access, passwords
from lexarium.service.access import Deed
from lexarium.service.once import Outcome, once
from lexarium.web.limits import address_of
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import AdminOf, AskOf, BodyOf, CallerOf, LimitsOf, StoreOf, read_as, refuse_key
from lexarium.web.v1.schemas import NewToken, NewUser, SignIn, body_of

router = APIRouter(tags=["accounts"])


@router.get("/me", summary="Who the token is of")
def me(caller: CallerOf) -> Response:
    return answers.Json({**_account(caller.account), "token_role": caller.role})


@router.post(
    "/sign-in",
    summary="A token for a name and a password, good for a day",
    openapi_extra=body_of("SignIn"),
    dependencies=[Depends(refuse_key)],
)
async def sign_in(request: Request, database: StoreOf, limits: LimitsOf, body: BodyOf) -> Response:
    given = read_as(SignIn, body)
    limits.sign_ins.take(given.name, address_of(request))
    async with limits.sign_ins.hashing:
        token, secret = await run_in_threadpool(passwords.sign_in, database, given.name, given.password)
    return answers.told(Outcome(200, {**_token(token), "token": secret}))


@router.get("/users", summary="Every account")
def users(database: StoreOf, caller: AdminOf) -> Response:
    return answers.Json({"items": [_account(each) for each in access.list_accounts(database)]})


@router.post("/users", summary="Make an account", status_code=201, openapi_extra=body_of("NewUser"))
async def add_user(database: StoreOf, caller: AdminOf, body: BodyOf, ask: AskOf) -> Response:
    try:
        given = NewUser.model_validate(body, extra="forbid")
    except ValidationError as error:
        raise Invalid("This is not a valid account.", problems_of(error)) from None
    add = access.addition(given.name, given.role)
    return await answers.written(
        database, once(caller, ask, lambda transaction: Outcome(201, _account(add(transaction))))
    )


@router.get("/tokens", summary="One's own tokens; an admin's, everyone's")
def tokens(database: StoreOf, caller: CallerOf) -> Response:
    found = access.list_tokens(database)
    own = [each for each in found if caller.may(Deed.ADMINISTER) or each.account.id == caller.account.id]
    return answers.Json({"items": [_token(each) for each in own]})


@router.post(
    "/tokens",
    summary="Make a token; its secret is told this once",
    status_code=201,
    openapi_extra=body_of("NewToken"),
    dependencies=[Depends(refuse_key)],
)
def add_token(database: StoreOf, caller: CallerOf, body: BodyOf) -> Response:
    try:
        given = NewToken.model_validate(body, extra="forbid")
    except ValidationError as error:
        raise Invalid("This is not a valid token.", problems_of(error)) from None
    name = given.account or caller.account.name
    if name != caller.account.name:
        caller.require(Deed.ADMINISTER)
    role = given.role or (caller.role if name == caller.account.name else None)
    if role is not None and role.rank > caller.role.rank:
        raise Forbidden(f"A token with the role {caller.role} cannot make one with the role {role}.")
    token, secret = access.create_token(database, name, role, given.days, given.label)
    return answers.told(Outcome(201, {**_token(token), "token": secret}))


@router.delete("/tokens/{id}", summary="Make a token useless from now on", status_code=204)
def revoke_token(database: StoreOf, caller: CallerOf, id: str) -> Response:
    own = {each.id for each in access.list_tokens(database) if each.account.id == caller.account.id}
    if id not in own and not caller.may(Deed.ADMINISTER):
        raise NotFound(f"There is no token with the id {id!r}.")
    access.revoke_token(database, id)
    return Response(status_code=204)


def _account(account: Account) -> dict[str, Any]:
    return {"id": account.id, "name": account.name, "role": account.role}


def _token(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "account": token.account.name,
        "label": token.label,
        "role": token.role,
        "created": text_of(token.created),
        "expires": None if token.expires is None else text_of(token.expires),
        "last_used": None if token.used is None else text_of(token.used),
        "revoked": None if token.revoked is None else text_of(token.revoked),
    }
