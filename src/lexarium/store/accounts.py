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

from lexarium.domain.accounts import Account, Origin, Role, Token
from lexarium.store.schema import account, token
from lexarium.store.transaction import Transaction


class Use(NamedTuple):
    """How an account is used."""

    tokens: int
    """How many are good."""
    used: int | None
    """When one of them, or an earlier one, was last used."""
    password: bool
    """Whether it has one."""


def find_account(connection: Connection, name: str) -> Account | None:
    """The account of this name, or None."""
    row = connection.execute(select(account).where(account.c.name == name)).one_or_none()
    return None if row is None else Account(row.id, row.name, Role(row.role))


def find_account_by_id(connection: Connection, identifier: str) -> Account | None:
    """The account of this id, or None."""
    row = connection.execute(select(account).where(account.c.id == identifier)).one_or_none()
    return None if row is None else Account(row.id, row.name, Role(row.role))


def all_accounts(connection: Connection) -> list[Account]:
    """Every account, by name."""
    rows = connection.execute(select(account).order_by(account.c.name))
    return [Account(row.id, row.name, Role(row.role)) for row in rows]


def has_other_admin(connection: Connection, identifier: str) -> bool:
    """Whether someone is an admin but for this account."""
    query = select(account.c.id).where(account.c.role == Role.ADMIN, account.c.id != identifier).limit(1)
    return connection.execute(query).first() is not None


def accounts_from(connection: Connection, name: str, limit: int) -> list[Account]:
    """The accounts from a name on, by name, at most so many; without those that are erased."""
    query = select(account).where(account.c.name >= name, account.c.name != account.c.id)
    rows = connection.execute(query.order_by(account.c.name).limit(limit))
    return [Account(row.id, row.name, Role(row.role)) for row in rows]


def uses(connection: Connection, identifiers: Sequence[str], *, at: int) -> dict[str, Use]:
    """How these accounts are used at a moment."""
    counted = func.count(case((_is_good(at), token.c.id)))
    query = select(account.c.id, account.c.password, counted.label("tokens"), func.max(token.c.used).label("used"))
    query = query.outerjoin(token, token.c.account == account.c.id).where(account.c.id.in_(identifiers))
    rows = connection.execute(query.group_by(account.c.id, account.c.password))
    return {row.id: Use(row.tokens, row.used, row.password is not None) for row in rows}


def add_account(transaction: Transaction, new: Account, *, at: int) -> None:
    """Add an account whose id and name no other has."""
    values = {"id": new.id, "name": new.name, "role": new.role, "created": at}
    transaction.connection.execute(insert(account).values(values))


def set_password(transaction: Transaction, identifier: str, digest: str) -> None:
    """Keep the hash of an account's password."""
    transaction.connection.execute(update(account).where(account.c.id == identifier).values(password=digest))


def set_role(transaction: Transaction, identifier: str, role: Role) -> None:
    """Give an account another role."""
    transaction.connection.execute(update(account).where(account.c.id == identifier).values(role=role))
    transaction.accounts_changed()


def erase(transaction: Transaction, identifier: str, *, at: int) -> None:
    """Keep nothing of an account but its id: no name, no password, no word of its own, no token that is good."""
    emptied = {"name": identifier, "role": Role.CONTRIBUTOR, "password": None}
    transaction.connection.execute(update(account).where(account.c.id == identifier).values(emptied))
    own = token.c.account == identifier
    transaction.connection.execute(update(token).where(own).values(label=""))
    _revoke_with_descendants(transaction, own, at=at)


def password(connection: Connection, name: str) -> str | None:
    """The hash of an account's password; None where it has none, or there is no such account."""
    found: str | None = connection.execute(select(account.c.password).where(account.c.name == name)).scalar()
    return found


def find_token(connection: Connection, digest: str) -> Token | None:
    """The token whose secret has this hash, or None; whether it is still good is for the caller to see."""
    row = connection.execute(_TOKEN, {"digest": digest}).one_or_none()
    return None if row is None else _token(row)


def tokens(connection: Connection) -> Sequence[Token]:
    """Every token, the oldest first."""
    return [_token(row) for row in connection.execute(_TOKENS.order_by(token.c.created, token.c.id))]


def tokens_before(
    connection: Connection, before: tuple[int, str] | None, limit: int, *, account_id: str | None, good_at: int | None
) -> Sequence[Token]:
    """Tokens, the newest first, at most so many: of an account or all, those that are good at a moment or all.

    `before` is when the last of the page before was made, and its id.
    """
    query = _TOKENS.order_by(token.c.created.desc(), token.c.id.desc()).limit(limit)
    if account_id is not None:
        query = query.where(token.c.account == account_id)
    if good_at is not None:
        query = query.where(_is_good(good_at))
    if before is not None:
        query = query.where(tuple_(token.c.created, token.c.id) < before)
    return [_token(row) for row in connection.execute(query)]


def find_token_by_id(connection: Connection, identifier: str) -> Token | None:
    """The token of this id, or None."""
    row = connection.execute(_TOKENS.where(token.c.id == identifier)).one_or_none()
    return None if row is None else _token(row)


def add_token(transaction: Transaction, new: Token, digest: str) -> None:
    """Add a token; only the hash of its secret is kept."""
    values = {
        "id": new.id,
        "account": new.account.id,
        "label": new.label,
        "role": new.role,
        "hash": digest,
        "created": new.created,
        "expires": new.expires,
        "origin": new.origin,
        "parent": new.parent,
    }
    transaction.connection.execute(insert(token).values(values))


def forget_sessions(transaction: Transaction, account_id: str, *, before: int) -> None:
    """Delete the sessions of an account that ended before a moment, unless a token made from one is still valid.

    Those stay because a new password must find what was made from them.
    """
    child = token.alias()
    has_children = exists().where(child.c.parent == token.c.id, child.c.revoked.is_(None))
    ended = _is_session_of(account_id) & (token.c.expires < before)
    transaction.connection.execute(delete(token).where(ended, ~has_children))


def note_use(transaction: Transaction, identifier: str, *, at: int) -> None:
    """Note that a token was used."""
    transaction.connection.execute(update(token).where(token.c.id == identifier).values(used=at))


def revoke_token(transaction: Transaction, identifier: str, *, at: int) -> None:
    """Revoke a token and all that were made with it; one already revoked stays as it was."""
    _revoke_with_descendants(transaction, token.c.id == identifier, at=at)


def end_session(transaction: Transaction, identifier: str, *, at: int) -> None:
    """Revoke the token of a session, and none that was made from it."""
    unrevoked = (token.c.id == identifier) & token.c.revoked.is_(None)
    transaction.connection.execute(update(token).where(unrevoked).values(revoked=at))
    transaction.accounts_changed()


def end_all_sessions(transaction: Transaction, account_id: str, *, at: int) -> None:
    """Revoke every session of an account, and all tokens that were made from one."""
    _revoke_with_descendants(transaction, _is_session_of(account_id), at=at)


def _is_session_of(account_id: str) -> ColumnElement[bool]:
    return (token.c.account == account_id) & (token.c.origin == Origin.SIGN_IN)


def _revoke_with_descendants(transaction: Transaction, roots: ColumnElement[bool], *, at: int) -> None:
    family = select(token.c.id).where(roots).cte("family", recursive=True)
    family = family.union(select(token.c.id).join(family, token.c.parent == family.c.id))
    valid = token.c.id.in_(select(family.c.id)) & token.c.revoked.is_(None)
    transaction.connection.execute(update(token).where(valid).values(revoked=at))
    transaction.accounts_changed()


_TOKENS = select(token, account.c.name, account.c.role.label("account_role")).join(
    account, account.c.id == token.c.account
)
# Built once: this is asked at every write, and to build a statement costs more than to run it.
_TOKEN = _TOKENS.where(token.c.hash == bindparam("digest"))


def _is_good(at: int) -> ColumnElement[bool]:
    return token.c.revoked.is_(None) & or_(token.c.expires.is_(None), token.c.expires > at)


def _token(row: Any) -> Token:
    return Token(
        id=row.id,
        account=Account(row.account, row.name, Role(row.account_role)),
        label=row.label,
        role=Role(row.role),
        created=row.created,
        expires=row.expires,
        used=row.used,
        revoked=row.revoked,
        origin=Origin(row.origin),
        parent=row.parent,
    )
