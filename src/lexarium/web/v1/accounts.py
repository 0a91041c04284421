"""Accounts and their tokens."""

from contextlib import nullcontext

from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lexarium.services.access import accounts, passwords
from lexarium.services.access.accounts import build_create_account_task, serialize_account
from lexarium.services.access.accounts import list_accounts as read_accounts
from lexarium.services.access.permissions import Permission
from lexarium.services.access.tokens import list_tokens as read_tokens
from lexarium.services.access.tokens import revoke_token as end_token
from lexarium.services.access.tokens import serialize_token
from lexarium.services.idempotency import WriteResponse, make_idempotent
from lexarium.store.transaction import Transaction
from lexarium.web import request_models
from lexarium.web.http.rate_limits import client_address
from lexarium.web.http.write_requests import await_write
from lexarium.web.request_models import NewToken, NewUser, UserChange
from lexarium.web.v1 import answers
from lexarium.web.v1.requests import AdminOf, AskOf, BodyOf, CallerOf, LimitsOf, StoreOf, read_as, refuse_key
from lexarium.web.v1.schemas import SignIn, answered, body_of

router = APIRouter(tags=["accounts"])


@router.get("/me", summary="Who the token is of", responses=answered("Me"))
def me(caller: CallerOf) -> Response:
    return answers.Json({**serialize_account(caller.account), "token_role": caller.role})


@router.post(
    "/sign-in",
    summary="A token for a name and a password, good for a day",
    responses=answered("TokenWithSecret", 401, 429),
    openapi_extra=body_of("SignIn"),
    dependencies=[Depends(refuse_key)],
)
async def sign_in(request: Request, database: StoreOf, limits: LimitsOf, body: BodyOf) -> Response:
    given = read_as(SignIn, body)
    limits.sign_in_limiter.acquire(given.name, client_address(request))
    async with limits.sign_in_limiter.hash_semaphore:
        token, secret = await run_in_threadpool(passwords.sign_in, database, given.name, given.password)
    limits.sign_in_limiter.record_success(given.name, client_address(request))
    return answers.told(WriteResponse(200, {**serialize_token(token), "token": secret}))


@router.get("/users", summary="Every account", responses=answered("Accounts"))
def users(database: StoreOf, caller: AdminOf) -> Response:
    return answers.Json({"items": [serialize_account(each) for each in read_accounts(database)]})


@router.post(
    "/users",
    summary="Make an account",
    status_code=201,
    responses=answered("Account", status=201, headers=("Location",)),
    openapi_extra=body_of("NewUser"),
)
async def add_user(database: StoreOf, caller: AdminOf, body: BodyOf, ask: AskOf) -> Response:
    given = request_models.parse_model(NewUser, body, "This is not a valid account.")
    add = build_create_account_task(given.name, given.role)

    def work(transaction: Transaction) -> WriteResponse:
        account = add(transaction)
        return WriteResponse(201, serialize_account(account), f"{answers.PATH}/users/{account.id}")

    return await answers.written(database, make_idempotent(caller.account.id, ask, work))


@router.get("/users/{id}", summary="An account", responses=answered("Account", 404))
def read_user(database: StoreOf, caller: AdminOf, id: str) -> Response:
    with database.read() as snapshot:
        return answers.Json(serialize_account(accounts.get_account(snapshot, id)))


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
        caller.require(Permission.ADMINISTER)
    given = request_models.parse_model(UserChange, body, "The account cannot be changed so.")
    digest = None
    if given.password is not None:
        if own:
            limits.sign_in_limiter.acquire(caller.account.name, client_address(request))
        async with limits.sign_in_limiter.hash_semaphore:
            if own:
                await run_in_threadpool(passwords.verify_current_password, database, caller, given.old_password)
            digest = await run_in_threadpool(passwords.hash_password, given.password)
    changed = await await_write(database, accounts.build_update_account_task(id, given.role, digest))
    return answers.Json(serialize_account(changed))


@router.delete(
    "/users/{id}",
    summary="Erase an account: its name, password and tokens",
    status_code=204,
    responses=answered(None, 404, 409, status=204),
)
def erase_user(database: StoreOf, caller: AdminOf, id: str) -> Response:
    """The log goes on naming the id; nothing tells any more whose it was."""
    accounts.erase_account(database, id)
    return Response(status_code=204)


@router.get("/tokens", summary="One's own tokens; an admin's, everyone's", responses=answered("Tokens"))
def tokens(database: StoreOf, caller: CallerOf) -> Response:
    found = read_tokens(database)
    own = [
        each for each in found if caller.has_permission(Permission.ADMINISTER) or each.account.id == caller.account.id
    ]
    return answers.Json({"items": [serialize_token(each) for each in own]})


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
    given = request_models.parse_model(NewToken, body, "This is not a valid token.")
    if caller.in_session:
        limits.sign_in_limiter.acquire(caller.account.name, client_address(request))
    async with limits.sign_in_limiter.hash_semaphore if caller.in_session else nullcontext():
        token, secret = await run_in_threadpool(passwords.issue_token, database, caller, **given.model_dump())
    return answers.told(WriteResponse(201, {**serialize_token(token), "token": secret}))


@router.delete(
    "/tokens/{id}",
    summary="Revoke a token, and all that were made with it",
    status_code=204,
    responses=answered(None, 403, 404, status=204),
)
def revoke_token(database: StoreOf, caller: CallerOf, id: str) -> Response:
    end_token(database, id, caller)
    return Response(status_code=204)
