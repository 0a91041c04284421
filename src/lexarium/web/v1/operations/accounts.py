"""Manage accounts and tokens; sign in."""

from contextlib import nullcontext
from functools import partial
from typing import Any

from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lexarium.client import models
from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.services.access import accounts, authentication, passwords, tokens
from lexarium.services.access.accounts import serialize_account
from lexarium.services.access.permissions import Permission
from lexarium.services.access.tokens import serialize_token
from lexarium.services.idempotency import WriteResponse
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.web.http.rate_limits import client_address
from lexarium.web.http.write_requests import await_write
from lexarium.web.request_models import NewToken, NewUser, UserChange, parse_model
from lexarium.web.v1.operation import NO_CONTENT, ById, Operation, RequestContext, json_body, returns
from lexarium.web.v1.responses import V1_PATH, OrjsonResponse


class SignInRequest(BaseModel, defer_build=True):
    """Name and password."""

    name: str = Field(min_length=1, max_length=200, description="Account name.")
    password: str = Field(min_length=1, max_length=1_000, description="Password.")


async def get_me(context: RequestContext) -> Response:
    """Get the current account"""
    return OrjsonResponse({**serialize_account(context.caller.account), "token_role": context.caller.role})


async def sign_in(context: RequestContext, body: SignInRequest) -> Response:
    """Sign in and create a token valid for one day"""
    sign_ins, address = context.site.limits.sign_in_limiter, client_address(context.request)
    sign_ins.acquire(body.name, address)
    async with sign_ins.hash_semaphore:
        token, secret = await run_in_threadpool(authentication.sign_in, context.site.database, body.name, body.password)
    sign_ins.record_success(body.name, address)
    return OrjsonResponse({**serialize_token(token), "token": secret})


def list_users(context: RequestContext) -> Response:
    """List accounts"""
    found = accounts.list_accounts(context.site.database)
    return OrjsonResponse({"items": [serialize_account(account) for account in found]})


def add_user(context: RequestContext, body: NewUser, transaction: Transaction) -> WriteResponse:
    """Create an account"""
    account = accounts.create_account(transaction, body.name, body.role)
    return WriteResponse(201, serialize_account(account), f"{V1_PATH}/users/{account.id}")


def read_user(context: RequestContext, path: ById, snapshot: Snapshot) -> Response:
    """Get an account"""
    return OrjsonResponse(serialize_account(accounts.get_account(snapshot, path.id)))


async def change_user(context: RequestContext, path: ById, data: dict[str, Any]) -> Response:
    """Update an account

    Admins can change any password and any role, in all vocabularies or in one. Others can change their own password;
    this requires the current one.
    """
    caller, database, sign_ins = context.caller, context.site.database, context.site.limits.sign_in_limiter
    is_self = path.id == caller.account.id
    slug = data.get("vocabulary")
    # Administrators of a vocabulary assign roles in it.
    local_slug = slug if isinstance(slug, str) and data.keys() == {"role", "vocabulary"} else None
    if local_slug is not None:
        context.get_scope((local_slug,))
    if not is_self or data.keys() & {"role", "vocabulary"}:
        caller.require(Permission.ADMINISTER, local_slug)
    body = parse_model(UserChange, data, "Invalid account update.")
    if body.vocabulary is not None:
        context.get_scope((body.vocabulary,))
        if body.role is None:
            problem = FieldProblem("role", "is required to set a role in a vocabulary.")
            raise InvalidInput("Invalid account update.", [problem])
    digest = None
    if body.password is not None:
        if is_self:
            sign_ins.acquire(caller.account.name, client_address(context.request))
        async with sign_ins.hash_semaphore:
            if is_self:
                await run_in_threadpool(passwords.verify_current_password, database, caller, body.old_password)
            digest = await run_in_threadpool(passwords.hash_password, body.password)
    update = partial(
        accounts.update_account, account_id=path.id, role=body.role, password_hash=digest, vocabulary=body.vocabulary
    )
    return OrjsonResponse(serialize_account(await await_write(database, update)))


def erase_user(context: RequestContext, path: ById) -> None:
    """Erase an account: its name, password and tokens

    The change log keeps the ID without a name.
    """
    accounts.erase_account(context.site.database, path.id)


def list_tokens(context: RequestContext) -> Response:
    """List tokens (admins: all)"""
    caller, found = context.caller, tokens.list_tokens(context.site.database)
    if not caller.has_permission(Permission.ADMINISTER):
        found = [token for token in found if token.account.id == caller.account.id]
    return OrjsonResponse({"items": [serialize_token(token) for token in found]})


async def add_token(context: RequestContext, body: NewToken) -> Response:
    """Create a token (secret shown once)

    Requires the password if called with a token from sign-in, because the new token outlives the session.
    """
    caller, sign_ins = context.caller, context.site.limits.sign_in_limiter
    if caller.in_session:
        sign_ins.acquire(caller.account.name, client_address(context.request))
    async with sign_ins.hash_semaphore if caller.in_session else nullcontext():
        token, secret = await run_in_threadpool(tokens.issue_token, context.site.database, caller, **body.model_dump())
    return OrjsonResponse({**serialize_token(token), "token": secret}, 201)


def revoke_token(context: RequestContext, path: ById) -> None:
    """Revoke a token and all tokens created with it"""
    tokens.revoke_token(context.site.database, path.id, context.caller)


# fmt: off
OPERATIONS = (
    Operation("GET", "/me", get_me, returns(models.Me), name="me", needs_token=True),
    Operation("POST", "/sign-in", sign_in, returns(models.TokenWithSecret), returns_secret=True, errors=(401, 429)),
    Operation("GET", "/users", list_users, returns(models.Accounts), name="users", permission=Permission.ADMINISTER),
    Operation("POST", "/users", add_user, returns(models.Account, "Location", status=201),
              body=json_body(NewUser, error="Invalid account.", strict=False),
              permission=Permission.ADMINISTER),
    Operation("GET", "/users/{id}", read_user, returns(models.Account), permission=Permission.ADMINISTER),
    Operation("PATCH", "/users/{id}", change_user, returns(models.Account), body=json_body(UserChange),
              needs_token=True, errors=(403, 409)),
    Operation("DELETE", "/users/{id}", erase_user, NO_CONTENT, permission=Permission.ADMINISTER, errors=(409,)),
    Operation("GET", "/tokens", list_tokens, returns(models.Tokens), name="tokens", needs_token=True),
    Operation("POST", "/tokens", add_token, returns(models.TokenWithSecret, status=201), returns_secret=True,
              body=json_body(NewToken, error="Invalid token request.", strict=False),
              needs_token=True, errors=(403, 404, 409)),
    Operation("DELETE", "/tokens/{id}", revoke_token, NO_CONTENT, needs_token=True, errors=(403,)),
)
# fmt: on
