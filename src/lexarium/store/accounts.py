"""Queries for accounts and tokens."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from lexarium.domain.account import Account, Origin, Role, Token
from lexarium.domain.cache_tags import UNLOGGED_TAG
from lexarium.store.dependencies import depend_on
from lexarium.store.schema import account_table, membership_table, token_table
from lexarium.store.transaction import Transaction

_account, _token, _membership = account_table.c, token_table.c, membership_table.c
_SELECT_ACCOUNTS = select(account_table).where(_account.id.in_(sa.bindparam("ids", expanding=True)))


class AccountUsage(NamedTuple):
    """Use of an account."""

    active_tokens: int
    # Last use of any of its tokens, active or not.
    last_used_at: int | None
    has_password: bool


def find_account_by_name(connection: Connection, name: str) -> Account | None:
    """Return the account with a name, or None."""
    return _find_account(connection, _account.name == name)


def find_account_by_id(connection: Connection, account_id: str) -> Account | None:
    """Return the account with an id, or None."""
    return _find_account(connection, _account.id == account_id)


def find_accounts(connection: Connection, account_ids: Sequence[str]) -> list[Account]:
    """Return those of these accounts that exist."""
    if not account_ids:
        return []
    with depend_on([UNLOGGED_TAG]):
        rows = connection.execute(_SELECT_ACCOUNTS, {"ids": account_ids}).all()
    return [_to_account(row) for row in rows]


def load_vocabulary_roles(connection: Connection, account: Account) -> Account:
    """Return an account with its roles in single vocabularies."""
    query = select(_membership.vocabulary, _membership.role).where(_membership.account == account.id)
    rows = connection.execute(query.order_by(_membership.vocabulary)).all()
    return replace(account, vocabulary_roles={slug: Role(role) for slug, role in rows}) if rows else account


def set_vocabulary_role(transaction: Transaction, account_id: str, vocabulary: str, role: Role) -> None:
    """Set the role of an account in a vocabulary; `Role.NONE` takes it away."""
    is_own = (_membership.account == account_id) & (_membership.vocabulary == vocabulary)
    transaction.execute(delete(membership_table).where(is_own))
    if role is not Role.NONE:
        values = {"account": account_id, "vocabulary": vocabulary, "role": role}
        transaction.execute(insert(membership_table).values(values))
    transaction.bump_accounts_revision()


def list_all_accounts(connection: Connection) -> list[Account]:
    """Return all accounts by name, with their roles in single vocabularies."""
    roles: dict[str, dict[str, Role]] = {}
    for row in connection.execute(select(membership_table).order_by(_membership.vocabulary)):
        roles.setdefault(row.account, {})[row.vocabulary] = Role(row.role)
    rows = connection.execute(select(account_table).order_by(_account.name))
    return [replace(_to_account(row), vocabulary_roles=roles.get(row.id, {})) for row in rows]


def has_other_admin(connection: Connection, account_id: str) -> bool:
    """Return whether an account other than this one is an admin."""
    query = select(_account.id).where(_account.role == Role.ADMIN, _account.id != account_id).limit(1)
    return connection.execute(query).first() is not None


def list_accounts(connection: Connection, start_name: str, limit: int) -> list[Account]:
    """Return a page of accounts by name, from a name on, without those that are erased."""
    query = select(account_table).where(_account.name >= start_name, _account.name != _account.id)
    return [_to_account(row) for row in connection.execute(query.order_by(_account.name).limit(limit))]


def find_usage(connection: Connection, account_ids: Sequence[str], *, at: int) -> dict[str, AccountUsage]:
    """Return the use of accounts at a time, by account id."""
    active_count = func.count(sa.case((_is_active(at), _token.id)))
    query = select(_account.id, active_count, func.max(_token.used), _account.password.is_not(None))
    query = query.outerjoin(token_table, _token.account == _account.id).where(_account.id.in_(account_ids))
    rows = connection.execute(query.group_by(_account.id, _account.password))
    return {account_id: AccountUsage(*usage) for account_id, *usage in rows}


def add_account(transaction: Transaction, account: Account, *, at: int) -> None:
    """Add an account. Its id and name must be free."""
    values = {"id": account.id, "name": account.name, "role": account.role, "created": at}
    transaction.execute(insert(account_table).values(values))


def set_password(transaction: Transaction, account_id: str, password_hash: str) -> None:
    """Set the password hash of an account."""
    _update_account(transaction, account_id, password=password_hash)


def set_role(transaction: Transaction, account_id: str, role: Role) -> None:
    """Set the role of an account."""
    _update_account(transaction, account_id, role=role)
    transaction.bump_accounts_revision()


def find_notified(connection: Connection, account_id: str) -> int:
    """Return the time until which an account has seen its notifications."""
    notified: int = connection.execute(select(_account.notified).where(_account.id == account_id)).scalar_one()
    return notified


def set_notified(transaction: Transaction, account_id: str, until: int) -> None:
    """Set the time until which an account has seen its notifications."""
    _update_account(transaction, account_id, notified=until)


def erase_account(transaction: Transaction, account_id: str, *, at: int) -> None:
    """Erase the name, password and token labels of an account, and revoke its tokens."""
    _update_account(transaction, account_id, name=account_id, role=Role.CONTRIBUTOR, password=None)
    transaction.execute(delete(membership_table).where(_membership.account == account_id))
    is_own = _token.account == account_id
    transaction.execute(update(token_table).where(is_own).values(label=""))
    _revoke_with_descendants(transaction, is_own, at=at)


def find_password_hash(connection: Connection, name: str) -> str | None:
    """Return the password hash of an account, or None if it has none or does not exist."""
    password_hash: str | None = connection.execute(select(_account.password).where(_account.name == name)).scalar()
    return password_hash


def find_token_by_hash(connection: Connection, secret_hash: str) -> Token | None:
    """Return the token with a secret hash, or None. It may be expired or revoked."""
    row = connection.execute(_SELECT_TOKEN_BY_HASH, {"digest": secret_hash}).one_or_none()
    return None if row is None else _to_token(row)


def find_token_by_id(connection: Connection, token_id: str) -> Token | None:
    """Return the token with an id, or None."""
    row = connection.execute(_SELECT_TOKENS.where(_token.id == token_id)).one_or_none()
    return None if row is None else _to_token(row)


def list_all_tokens(connection: Connection) -> Sequence[Token]:
    """Return all tokens, the oldest first."""
    return [_to_token(row) for row in connection.execute(_SELECT_TOKENS.order_by(_token.created, _token.id))]


def list_tokens(
    connection: Connection, before: tuple[int, str] | None, limit: int, *, account_id: str | None, active_at: int | None
) -> Sequence[Token]:
    """Return a page of tokens, the newest first; optionally only those of an account, or active at a time.

    `before` is the creation time and id of the last token of the previous page.
    """
    query = _SELECT_TOKENS.order_by(_token.created.desc(), _token.id.desc()).limit(limit)
    if account_id is not None:
        query = query.where(_token.account == account_id)
    if active_at is not None:
        query = query.where(_is_active(active_at))
    if before is not None:
        query = query.where(sa.tuple_(_token.created, _token.id) < before)
    return [_to_token(row) for row in connection.execute(query)]


def add_token(transaction: Transaction, token: Token, secret_hash: str) -> None:
    """Add a token. Only the hash of its secret is stored."""
    values = {
        "id": token.id,
        "account": token.account.id,
        "label": token.label,
        "role": token.role,
        "hash": secret_hash,
        "created": token.created_at,
        "expires": token.expires_at,
        "origin": token.origin,
        "parent": token.parent_id,
    }
    transaction.execute(insert(token_table).values(values))


def delete_expired_sessions(transaction: Transaction, account_id: str, *, before: int) -> None:
    """Delete the sessions of an account that expired before a time.

    Sessions from which a valid token was made stay: a new password must find that token through them.
    """
    child = token_table.alias()
    has_children = sa.exists().where(child.c.parent == _token.id, child.c.revoked.is_(None))
    has_ended = _is_session_of(account_id) & (_token.expires < before)
    transaction.execute(delete(token_table).where(has_ended, ~has_children))


def set_token_used(transaction: Transaction, token_id: str, *, at: int) -> None:
    """Set the time a token was last used."""
    transaction.execute(update(token_table).where(_token.id == token_id).values(used=at))


def revoke_token(transaction: Transaction, token_id: str, *, at: int) -> None:
    """Revoke a token and all tokens that were made with it. Tokens revoked before keep their time."""
    _revoke_with_descendants(transaction, _token.id == token_id, at=at)


def end_session(transaction: Transaction, token_id: str, *, at: int) -> None:
    """Revoke the token of a session, but no token that was made from it."""
    _revoke(transaction, _token.id == token_id, at=at)


def end_all_sessions(transaction: Transaction, account_id: str, *, at: int) -> None:
    """Revoke all sessions of an account and all tokens that were made from them."""
    _revoke_with_descendants(transaction, _is_session_of(account_id), at=at)


def _find_account(connection: Connection, condition: ColumnElement[bool]) -> Account | None:
    row = connection.execute(select(account_table).where(condition)).one_or_none()
    return None if row is None else _to_account(row)


def _update_account(transaction: Transaction, account_id: str, **values: Any) -> None:
    transaction.execute(update(account_table).where(_account.id == account_id).values(values))


def _is_session_of(account_id: str) -> ColumnElement[bool]:
    return (_token.account == account_id) & (_token.origin == Origin.SIGN_IN)


def _is_active(at: int) -> ColumnElement[bool]:
    return _token.revoked.is_(None) & (_token.expires.is_(None) | (_token.expires > at))


def _revoke_with_descendants(transaction: Transaction, roots: ColumnElement[bool], *, at: int) -> None:
    family = select(_token.id).where(roots).cte("family", recursive=True)
    family = family.union(select(_token.id).join(family, _token.parent == family.c.id))
    _revoke(transaction, _token.id.in_(select(family.c.id)), at=at)


def _revoke(transaction: Transaction, condition: ColumnElement[bool], *, at: int) -> None:
    transaction.execute(update(token_table).where(condition, _token.revoked.is_(None)).values(revoked=at))
    transaction.bump_accounts_revision()


_SELECT_TOKENS = select(token_table, _account.name, _account.role.label("account_role")).join(
    account_table, _account.id == _token.account
)
# Built once: it runs at every write, and building a statement costs more than running it.
_SELECT_TOKEN_BY_HASH = _SELECT_TOKENS.where(_token.hash == sa.bindparam("digest"))


def _to_account(row: Any) -> Account:
    return Account(row.id, row.name, Role(row.role))


def _to_token(row: Any) -> Token:
    return Token(
        id=row.id,
        account=Account(row.account, row.name, Role(row.account_role)),
        label=row.label,
        role=Role(row.role),
        created_at=row.created,
        expires_at=row.expires,
        last_used_at=row.used,
        revoked_at=row.revoked,
        origin=Origin(row.origin),
        parent_id=row.parent,
    )
