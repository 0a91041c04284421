"""Accounts and tokens in the store."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from lexarium.domain.account import Account, Origin, Role, Token
from lexarium.store.schema import account_table, token_table
from lexarium.store.transaction import Transaction


class AccountUsage(NamedTuple):
    """How an account is used."""

    active_tokens: int
    """How many are good."""
    last_used_at: int | None
    """When one of them, or an earlier one, was last used."""
    has_password: bool
    """Whether it has one."""


def find_account_by_name(connection: Connection, name: str) -> Account | None:
    """The account of this name, or None."""
    row = connection.execute(select(account_table).where(account_table.c.name == name)).one_or_none()
    return None if row is None else Account(row.id, row.name, Role(row.role))


def find_account_by_id(connection: Connection, account_id: str) -> Account | None:
    """The account of this id, or None."""
    row = connection.execute(select(account_table).where(account_table.c.id == account_id)).one_or_none()
    return None if row is None else Account(row.id, row.name, Role(row.role))


def list_all_accounts(connection: Connection) -> list[Account]:
    """Every account, by name."""
    rows = connection.execute(select(account_table).order_by(account_table.c.name))
    return [Account(row.id, row.name, Role(row.role)) for row in rows]


def has_other_admin(connection: Connection, account_id: str) -> bool:
    """Whether someone is an admin but for this account."""
    query = (
        select(account_table.c.id).where(account_table.c.role == Role.ADMIN, account_table.c.id != account_id).limit(1)
    )
    return connection.execute(query).first() is not None


def list_accounts(connection: Connection, start_name: str, limit: int) -> list[Account]:
    """The accounts from a name on, by name, at most so many; without those that are erased."""
    query = select(account_table).where(account_table.c.name >= start_name, account_table.c.name != account_table.c.id)
    rows = connection.execute(query.order_by(account_table.c.name).limit(limit))
    return [Account(row.id, row.name, Role(row.role)) for row in rows]


def find_usage(connection: Connection, account_ids: Sequence[str], *, at: int) -> dict[str, AccountUsage]:
    """How these accounts are used at a moment."""
    active_count = func.count(case((_is_active(at), token_table.c.id)))
    query = select(
        account_table.c.id,
        account_table.c.password,
        active_count.label("tokens"),
        func.max(token_table.c.used).label("used"),
    )
    query = query.outerjoin(token_table, token_table.c.account == account_table.c.id).where(
        account_table.c.id.in_(account_ids)
    )
    rows = connection.execute(query.group_by(account_table.c.id, account_table.c.password))
    return {row.id: AccountUsage(row.tokens, row.used, row.password is not None) for row in rows}


def add_account(transaction: Transaction, account: Account, *, at: int) -> None:
    """Add an account whose id and name no other has."""
    values = {"id": account.id, "name": account.name, "role": account.role, "created": at}
    transaction.connection.execute(insert(account_table).values(values))


def set_password(transaction: Transaction, account_id: str, password_hash: str) -> None:
    """Keep the hash of an account's password."""
    transaction.connection.execute(
        update(account_table).where(account_table.c.id == account_id).values(password=password_hash)
    )


def set_role(transaction: Transaction, account_id: str, role: Role) -> None:
    """Give an account another role."""
    transaction.connection.execute(update(account_table).where(account_table.c.id == account_id).values(role=role))
    transaction.bump_accounts_revision()


def erase_account(transaction: Transaction, account_id: str, *, at: int) -> None:
    """Keep nothing of an account but its id: no name, no password, no word of its own, no token that is good."""
    erased_values = {"name": account_id, "role": Role.CONTRIBUTOR, "password": None}
    transaction.connection.execute(update(account_table).where(account_table.c.id == account_id).values(erased_values))
    is_own = token_table.c.account == account_id
    transaction.connection.execute(update(token_table).where(is_own).values(label=""))
    _revoke_with_descendants(transaction, is_own, at=at)


def find_password_hash(connection: Connection, name: str) -> str | None:
    """The hash of an account's password; None where it has none, or there is no such account."""
    password_hash: str | None = connection.execute(
        select(account_table.c.password).where(account_table.c.name == name)
    ).scalar()
    return password_hash


def find_token_by_hash(connection: Connection, secret_hash: str) -> Token | None:
    """The token whose secret has this hash, or None; whether it is still good is for the caller to see."""
    row = connection.execute(_SELECT_TOKEN_BY_HASH, {"digest": secret_hash}).one_or_none()
    return None if row is None else _to_token(row)


def list_all_tokens(connection: Connection) -> Sequence[Token]:
    """Every token, the oldest first."""
    return [
        _to_token(row) for row in connection.execute(_SELECT_TOKENS.order_by(token_table.c.created, token_table.c.id))
    ]


def list_tokens(
    connection: Connection, before: tuple[int, str] | None, limit: int, *, account_id: str | None, active_at: int | None
) -> Sequence[Token]:
    """Tokens, the newest first, at most so many: of an account or all, those that are good at a moment or all.

    `before` is when the last of the page before was made, and its id.
    """
    query = _SELECT_TOKENS.order_by(token_table.c.created.desc(), token_table.c.id.desc()).limit(limit)
    if account_id is not None:
        query = query.where(token_table.c.account == account_id)
    if active_at is not None:
        query = query.where(_is_active(active_at))
    if before is not None:
        query = query.where(tuple_(token_table.c.created, token_table.c.id) < before)
    return [_to_token(row) for row in connection.execute(query)]


def find_token_by_id(connection: Connection, token_id: str) -> Token | None:
    """The token of this id, or None."""
    row = connection.execute(_SELECT_TOKENS.where(token_table.c.id == token_id)).one_or_none()
    return None if row is None else _to_token(row)


def add_token(transaction: Transaction, token: Token, secret_hash: str) -> None:
    """Add a token; only the hash of its secret is kept."""
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
    transaction.connection.execute(insert(token_table).values(values))


def delete_expired_sessions(transaction: Transaction, account_id: str, *, before: int) -> None:
    """Delete the sessions of an account that ended before a moment, unless a token made from one is still valid.

    Those stay because a new password must find what was made from them.
    """
    child = token_table.alias()
    has_children = exists().where(child.c.parent == token_table.c.id, child.c.revoked.is_(None))
    has_ended = _is_session_of(account_id) & (token_table.c.expires < before)
    transaction.connection.execute(delete(token_table).where(has_ended, ~has_children))


def set_token_used(transaction: Transaction, token_id: str, *, at: int) -> None:
    """Note that a token was used."""
    transaction.connection.execute(update(token_table).where(token_table.c.id == token_id).values(used=at))


def revoke_token(transaction: Transaction, token_id: str, *, at: int) -> None:
    """Revoke a token and all that were made with it; one already revoked stays as it was."""
    _revoke_with_descendants(transaction, token_table.c.id == token_id, at=at)


def end_session(transaction: Transaction, token_id: str, *, at: int) -> None:
    """Revoke the token of a session, and none that was made from it."""
    is_unrevoked = (token_table.c.id == token_id) & token_table.c.revoked.is_(None)
    transaction.connection.execute(update(token_table).where(is_unrevoked).values(revoked=at))
    transaction.bump_accounts_revision()


def end_all_sessions(transaction: Transaction, account_id: str, *, at: int) -> None:
    """Revoke every session of an account, and all tokens that were made from one."""
    _revoke_with_descendants(transaction, _is_session_of(account_id), at=at)


def _is_session_of(account_id: str) -> ColumnElement[bool]:
    return (token_table.c.account == account_id) & (token_table.c.origin == Origin.SIGN_IN)


def _revoke_with_descendants(transaction: Transaction, roots: ColumnElement[bool], *, at: int) -> None:
    family = select(token_table.c.id).where(roots).cte("family", recursive=True)
    family = family.union(select(token_table.c.id).join(family, token_table.c.parent == family.c.id))
    is_valid = token_table.c.id.in_(select(family.c.id)) & token_table.c.revoked.is_(None)
    transaction.connection.execute(update(token_table).where(is_valid).values(revoked=at))
    transaction.bump_accounts_revision()


_SELECT_TOKENS = select(token_table, account_table.c.name, account_table.c.role.label("account_role")).join(
    account_table, account_table.c.id == token_table.c.account
)
# Built once: this is asked at every write, and to build a statement costs more than to run it.
_SELECT_TOKEN_BY_HASH = _SELECT_TOKENS.where(token_table.c.hash == bindparam("digest"))


def _is_active(at: int) -> ColumnElement[bool]:
    return token_table.c.revoked.is_(None) & or_(token_table.c.expires.is_(None), token_table.c.expires > at)


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
