"""Issue, list and revoke access tokens."""

import hashlib
import secrets
from typing import Any

from lexarium.domain.account import Origin, Role, Token
from lexarium.domain.errors import Conflict, NotFound, PermissionDenied, Unauthenticated
from lexarium.domain.identifiers import mint_id
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.domain.timestamps import format_timestamp, now_ms
from lexarium.services.access.permissions import Caller, Permission
from lexarium.store import accounts
from lexarium.store.database import Database
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

_SESSION_RETENTION_MS = 90 * 86_400_000
"""In milliseconds: for how long the tokens of those who signed in are shown after their end."""


def create_token(  # noqa: PLR0913 (all that a token is, and what it rests on)
    database: Database,
    name: str,
    role: Role | None = None,
    expires_at: int | None = None,
    label: str = "",
    *,
    origin: Origin = Origin.COMMAND_LINE,
    parent: str | None = None,
    expected_password_hash: str | None = None,
) -> tuple[Token, str]:
    """Make a token for an account, and its secret, which is kept nowhere and cannot be had again.

    `parent` is the id of the token that it is made with: raises `Unauthenticated` where that was revoked meanwhile.
    `password` is the hash of the one that it rests on: raises `Unauthenticated` where the account has another by now.
    """
    secret = f"lex_{secrets.token_urlsafe(32)}"
    with database.write() as transaction:
        account = None if find_unstorable_char(name) else accounts.find_account_by_name(transaction.connection, name)
        if account is None:
            raise NotFound(f"There is no account named {name!r}. Make it with `lexarium user add`.")
        if account.is_erased:
            raise Conflict(f"The account {name} is erased.")
        if (
            expected_password_hash is not None
            and accounts.find_password_hash(transaction.connection, name) != expected_password_hash
        ):
            raise Unauthenticated("The password was changed just now.")
        if parent is not None and not _is_token_unrevoked(transaction, parent):
            raise Unauthenticated("The token was revoked just now.")
        if role is not None and role.rank > account.role.rank:
            raise PermissionDenied(
                f"{name} has the role {account.role}; a token of theirs cannot have the role {role}."
            )
        token = Token(
            id=mint_id("tok"),
            account=account,
            label=label,
            role=role or account.role,
            created_at=now_ms(),
            expires_at=expires_at,
            origin=origin,
            parent_id=parent,
        )
        accounts.add_token(transaction, token, hash_secret(secret))
        if origin == Origin.SIGN_IN:
            accounts.delete_expired_sessions(transaction, account.id, before=now_ms() - _SESSION_RETENTION_MS)
    return token, secret


def _is_token_unrevoked(transaction: Transaction, token_id: str) -> bool:
    token = accounts.find_token_by_id(transaction.connection, token_id)
    return token is not None and token.revoked_at is None


def compute_expiry(days: int | None) -> int | None:
    """When a token that is good for so many days, or for good, expires."""
    return None if days is None else now_ms() + days * 86_400_000


def limit_expiry(caller: Caller, role: Role | None, expires_at: int | None) -> int | None:
    """When a token that a caller makes expires. Raises `Forbidden` where it would outdo the caller's own."""
    if role is not None and role.rank > caller.role.rank:
        raise PermissionDenied(f"A token with the role {caller.role} cannot make one with the role {role}.")
    if caller.token_expires_at is None:
        return expires_at
    if expires_at is not None and expires_at > caller.token_expires_at:
        raise PermissionDenied(
            f"A token cannot make one that outlives it; it is good until {format_timestamp(caller.token_expires_at)}."
        )
    return caller.token_expires_at if expires_at is None else expires_at


def revoke_token(database: Database, token_id: str, caller: Caller | None = None) -> None:
    """Make a token, and all that were made with it, useless from now on. Raises `NotFound` where there is none.

    A caller who is no admin may revoke their own, up to the role that they call with.
    """

    def task(transaction: Transaction) -> None:
        token = None if find_unstorable_char(token_id) else accounts.find_token_by_id(transaction.connection, token_id)
        is_allowed = (
            caller is None
            or caller.has_permission(Permission.ADMINISTER)
            or (token is not None and token.account.id == caller.account.id)
        )
        if token is None or not is_allowed:
            raise NotFound(f"There is no token with the id {token_id!r}. `lexarium token list` shows them.")
        if caller is not None and token.effective_role.rank > caller.role.rank:
            raise PermissionDenied(
                f"A token with the role {caller.role} cannot revoke one with the role {token.effective_role}."
            )
        accounts.revoke_token(transaction, token_id, at=now_ms())

    database.run_write(task)


def end_session(database: Database, caller: Caller) -> None:
    """Revoke the token that the caller signed in with. Tokens made from the session stay valid."""
    database.run_write(lambda transaction: accounts.end_session(transaction, caller.token_id, at=now_ms()))


def list_tokens(database: Database) -> list[Token]:
    """Every token, the oldest first."""
    with database.read() as connection:
        return list(accounts.list_all_tokens(connection))


def hash_secret(secret: str) -> str:
    """Hash a token for storage."""
    # A token is 256 random bits, so a plain hash keeps it: there is nothing to guess.
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def list_tokens_page(
    snapshot: Snapshot,
    before: tuple[int, str] | None,
    limit: int,
    *,
    account_id: str | None = None,
    include_inactive: bool = False,
) -> list[Token]:
    """Tokens, the newest first, at most so many: an account's or everyone's, those that are good or all.

    `before` is when the last of the page before was made, and its id.
    """
    active_at = None if include_inactive else now_ms()
    return list(accounts.list_tokens(snapshot, before, limit, account_id=account_id, active_at=active_at))


def get_token(snapshot: Snapshot, token_id: str) -> Token:
    """The token of this id. Raises `NotFound` where there is none."""
    token = None if find_unstorable_char(token_id) else accounts.find_token_by_id(snapshot, token_id)
    if token is None:
        raise NotFound(f"There is no token with the id {token_id!r}.")
    return token


def serialize_token(token: Token) -> dict[str, Any]:
    """A token, without its secret."""
    return {
        "id": token.id,
        "account": token.account.name,
        "label": token.label,
        "role": token.role,
        "created": format_timestamp(token.created_at),
        "expires": None if token.expires_at is None else format_timestamp(token.expires_at),
        "last_used": None if token.last_used_at is None else format_timestamp(token.last_used_at),
        "revoked": None if token.revoked_at is None else format_timestamp(token.revoked_at),
        "origin": token.origin,
        "made_with": token.parent_id,
    }
