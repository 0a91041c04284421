"""Issue, list and revoke access tokens."""

import hashlib
import secrets
from typing import Any

from lexarium.domain.account import Origin, Role, Token
from lexarium.domain.errors import Conflict, NotFound, PermissionDenied, Unauthenticated
from lexarium.domain.identifiers import mint_id
from lexarium.domain.text.timestamps import format_timestamp, now_ms
from lexarium.services.access.passwords import verify_current_password
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.not_found import find_or_raise
from lexarium.store import accounts
from lexarium.store.database import Database
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

_DAY_MS = 86_400_000
# Expired sessions stay listed this long.
_SESSION_RETENTION_MS = 90 * _DAY_MS


def create_token(  # noqa: PLR0913 (the options of a token)
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
    """Create a token for an account; return it and its secret, which is not stored.

    `parent` is the id of the token that creates it. Raise Unauthenticated if the parent was revoked, or if the
    password is no longer the expected one.
    """
    secret = f"lex_{secrets.token_urlsafe(32)}"
    with database.write() as transaction:
        connection = transaction.flush()
        message = f"Account {name!r} not found. Create it with `lexarium user add`."
        account = find_or_raise(lambda: accounts.find_account_by_name(connection, name), name, message)
        if account.is_erased:
            raise Conflict(f"Account {name} is erased.")
        account = accounts.load_vocabulary_roles(connection, account)
        if expected_password_hash and accounts.find_password_hash(connection, name) != expected_password_hash:
            raise Unauthenticated("The password has just been changed.")
        if parent is not None:
            parent_token = accounts.find_token_by_id(connection, parent)
            if parent_token is None or parent_token.revoked_at is not None:
                raise Unauthenticated("The token has just been revoked.")
        highest = account.highest_role
        if role is not None and role.rank > highest.rank:
            raise PermissionDenied(f"{name} has the role {highest}; its tokens cannot have the role {role}.")
        token = Token(
            id=mint_id("tok"),
            account=account,
            label=label,
            role=role or highest,
            created_at=now_ms(),
            expires_at=expires_at,
            origin=origin,
            parent_id=parent,
        )
        accounts.add_token(transaction, token, hash_secret(secret))
        if origin == Origin.SIGN_IN:
            accounts.delete_expired_sessions(transaction, account.id, before=now_ms() - _SESSION_RETENTION_MS)
    return token, secret


def compute_expiry(days: int | None) -> int | None:
    """Return the time some days ahead, or None for no expiry."""
    return None if days is None else now_ms() + days * _DAY_MS


def issue_token(  # noqa: PLR0913 (the options of a token)
    database: Database,
    caller: Caller,
    *,
    account: str | None,
    role: Role | None,
    days: int | None,
    label: str,
    old_password: str | None,
) -> tuple[Token, str]:
    """Create a token for the caller or, if the caller is an admin, for another account; return it and its secret.

    In a session this requires the caller's password. The token may outlive a session, but no other token. Raise
    PermissionDenied if it would exceed the token of the caller.
    """
    name = account or caller.account.name
    if name != caller.account.name:
        caller.require(Permission.ADMINISTER)
    elif role is None:
        role = caller.highest_role
    if caller.in_session:
        verify_current_password(database, caller, old_password, "Token not created.")
    if role is not None and role.rank > caller.highest_role.rank:
        raise PermissionDenied(f"A token with role {caller.highest_role} cannot create one with role {role}.")
    expires_at = compute_expiry(days)
    latest = None if caller.in_session else caller.token_expires_at
    if latest is not None and expires_at is not None and expires_at > latest:
        raise PermissionDenied(f"The new token must expire before this one ({format_timestamp(latest)}).")
    origin = Origin.SESSION if caller.in_session else Origin.TOKEN
    return create_token(database, name, role, expires_at or latest, label, origin=origin, parent=caller.token_id)


def revoke_token(database: Database, token_id: str, caller: Caller | None = None) -> None:
    """Revoke a token and all tokens made with it; raise NotFound.

    A caller who is not an admin may revoke their own tokens, up to the role of the token they use.
    """

    def task(transaction: Transaction) -> None:
        message = f"Token {token_id!r} not found. See `lexarium token list`."
        token = find_or_raise(lambda: accounts.find_token_by_id(transaction.flush(), token_id), token_id, message)
        if caller and not caller.has_permission(Permission.ADMINISTER) and token.account.id != caller.account.id:
            raise NotFound(message)
        if caller is not None and token.effective_role.rank > caller.role.rank:
            raise PermissionDenied(
                f"A token with role {caller.role} cannot revoke one with role {token.effective_role}."
            )
        accounts.revoke_token(transaction, token_id, at=now_ms())

    database.run_write(task)


def end_session(database: Database, caller: Caller) -> None:
    """Revoke the token that the caller signed in with. Tokens made from the session stay valid."""
    database.run_write(lambda transaction: accounts.end_session(transaction, caller.token_id, at=now_ms()))


def list_tokens(database: Database) -> list[Token]:
    """Return all tokens, the oldest first."""
    with database.read() as connection:
        return list(accounts.list_all_tokens(connection))


def hash_secret(secret: str) -> str:
    """Hash a token for storage."""
    # A token has 256 random bits, so it needs no slow, salted hash.
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def list_tokens_page(
    snapshot: Snapshot,
    before: tuple[int, str] | None,
    limit: int,
    *,
    account_id: str | None = None,
    include_inactive: bool = False,
) -> list[Token]:
    """Return a page of the tokens of one account or all, the newest first.

    `before` is the creation time and the id of the last token of the page before.
    """
    active_at = None if include_inactive else now_ms()
    return list(accounts.list_tokens(snapshot, before, limit, account_id=account_id, active_at=active_at))


def get_token(snapshot: Snapshot, token_id: str) -> Token:
    """Return the token with an id; raise NotFound."""
    message = f"Token {token_id!r} not found."
    return find_or_raise(lambda: accounts.find_token_by_id(snapshot, token_id), token_id, message)


def serialize_token(token: Token) -> dict[str, Any]:
    """Return a token as JSON of the API, without its secret."""
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
