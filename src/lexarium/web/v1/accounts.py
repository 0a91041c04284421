"""Accounts and their tokens."""

from contextlib import nullcontext

from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lexarium.service import accounts, passwords
from lexarium.service.access import Deed, addition
from lexarium.service.access import list_accounts as read_accounts
from lexarium.service.access import list_tokens as read_tokens
from lexarium.service.access import revoke_token as end_token
from lexarium.service.accounts import account_view, token_view
from lexarium.service.once import Outcome, once
from lexarium.store.transaction import Transaction
from lexarium.web import asked
from lexarium.web.asked import NewToken, NewUser, UserChange
from lexarium.web.limits import address_of
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import AdminOf, AskOf, BodyOf, CallerOf, LimitsOf, StoreOf, read_as, refuse_key
from lexarium.web.v1.schemas import SignIn, answered, body_of
from lexarium.web.writes import done

router = APIRouter(tags=["accounts"])


@router.get("/me", summary="Who the token is of", responses=answered("Me"))
def me(caller: CallerOf) -> Response:
    return answers.Json({**account_view(caller.account), "token_role": caller.role})


@router.post(
    "/sign-in",
    summary="A token for a name and a password, good for a day",
    responses=answered("TokenWithSecret", 401, 429),
    openapi_extra=body_of("SignIn"),
    dependencies=[Depends(refuse_key)],
)
async def sign_in(request: Request, database: StoreOf, limits: LimitsOf, body: BodyOf) -> Response:
    given = read_as(SignIn, body)
    limits.sign_ins.take(given.name, address_of(request))
    async with limits.sign_ins.hashing:
        token, secret = await run_in_threadpool(passwords.sign_in, database, given.name, given.password)
    limits.sign_ins.succeeded(given.name, address_of(request))
    return answers.told(Outcome(200, {**token_view(token), "token": secret}))


@router.get("/users", summary="Every account", responses=answered("Accounts"))
def users(database: StoreOf, caller: AdminOf) -> Response:
    return answers.Json({"items": [account_view(each) for each in read_accounts(database)]})


@router.post(
    "/users",
    summary="Make an account",
    status_code=201,
    responses=answered("Account", status=201, headers=("Location",)),
    openapi_extra=body_of("NewUser"),
)
async def add_user(database: StoreOf, caller: AdminOf, body: BodyOf, ask: AskOf) -> Response:
    given = asked.formed(NewUser, body, "This is not a valid account.")
    add = addition(given.name, given.role)

    def work(transaction: Transaction) -> Outcome:
        account = add(transaction)
        return Outcome(201, account_view(account), f"{answers.PATH}/users/{account.id}")

    return await answers.written(database, once(caller, ask, work))


@router.get("/users/{id}", summary="An account", responses=answered("Account", 404))
def read_user(database: StoreOf, caller: AdminOf, id: str) -> Response:
    with database.read() as snapshot:
        return answers.Json(account_view(accounts.find(snapshot, id)))


@router.patch(
    "/users/{id}",
    summary="Change a role or a password",
    responses=answered("Account", 403, 404, 409),
    openapi_extra=body_of("UserChange"),
)
async def change_user(
    request: Request, database: StoreOf, limits: LimitsOf, caller: CallerOf, id: str, body: BodyOf
) -> Response:
    """An admin changes anyone's role and password; everyone their own password, by telling the old one."""
    own = id == caller.account.id
    if not own or "role" in body:
        caller.require(Deed.ADMINISTER)
    given = asked.formed(UserChange, body, "The account cannot be changed so.")
    digest = None
    if given.password is not None:
        if own:
            limits.sign_ins.take(caller.account.name, address_of(request))
        async with limits.sign_ins.hashing:
            if own:
                await run_in_threadpool(passwords.prove, database, caller, given.old_password)
            digest = await run_in_threadpool(passwords.hashed, given.password)
    changed = await done(database, accounts.change(id, given.role, digest))
    return answers.Json(account_view(changed))


@router.delete(
    "/users/{id}",
    summary="Erase an account: its name, password and tokens",
    status_code=204,
    responses=answered(None, 404, 409, status=204),
)
def erase_user(database: StoreOf, caller: AdminOf, id: str) -> Response:
    """The log goes on naming the id; nothing tells any more whose it was."""
    accounts.erase(database, id)
    return Response(status_code=204)


@router.get("/tokens", summary="One's own tokens; an admin's, everyone's", responses=answered("Tokens"))
def tokens(database: StoreOf, caller: CallerOf) -> Response:
    found = read_tokens(database)
    own = [each for each in found if caller.may(Deed.ADMINISTER) or each.account.id == caller.account.id]
    return answers.Json({"items": [token_view(each) for each in own]})


@router.post(
    "/tokens",
    summary="Make a token; its secret is told this once",
    status_code=201,
    responses=answered("TokenWithSecret", 403, 404, 409, 429, status=201),
    openapi_extra=body_of("NewToken"),
    dependencies=[Depends(refuse_key)],
)
async def add_token(request: Request, database: StoreOf, limits: LimitsOf, caller: CallerOf, body: BodyOf) -> Response:
    """With a token from sign-in this needs the password: the new token outlives the session."""
    given = asked.formed(NewToken, body, "This is not a valid token.")
    if caller.in_session:
        limits.sign_ins.take(caller.account.name, address_of(request))
    async with limits.sign_ins.hashing if caller.in_session else nullcontext():
        token, secret = await run_in_threadpool(passwords.issue_token, database, caller, **given.model_dump())
    return answers.told(Outcome(201, {**token_view(token), "token": secret}))


@router.delete(
    "/tokens/{id}",
    summary="Revoke a token, and all that were made with it",
    status_code=204,
    responses=answered(None, 403, 404, status=204),
)
def revoke_token(database: StoreOf, caller: CallerOf, id: str) -> Response:
    end_token(database, id, caller)
    return Response(status_code=204)
