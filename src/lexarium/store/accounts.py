"""Accounts and tokens in the store."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from lexarium.domain.accounts import SIGNED_IN, Account, Role, Token
from lexarium.store.schema import account, token
from lexarium.store.transaction import Transaction


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
    transaction.connection.execute(update(token).where(own, token.c.revoked.is_(None)).values(revoked=at))
    transaction.accounts_changed()


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
    }
    transaction.connection.execute(insert(token).values(values))


def note_use(transaction: Transaction, identifier: str, *, at: int) -> None:
    """Note that a token was used."""
    transaction.connection.execute(update(token).where(token.c.id == identifier).values(used=at))


def revoke_token(transaction: Transaction, identifier: str, *, at: int) -> None:
    """Revoke a token; one already revoked stays as it was."""
    unrevoked = (token.c.id == identifier) & token.c.revoked.is_(None)
    transaction.connection.execute(update(token).where(unrevoked).values(revoked=at))
    transaction.accounts_changed()


def sign_out(transaction: Transaction, account_id: str, *, at: int) -> None:
    """Revoke the tokens that an account has had for its password."""
    theirs = (token.c.account == account_id) & (token.c.label == SIGNED_IN) & token.c.revoked.is_(None)
    transaction.connection.execute(update(token).where(theirs).values(revoked=at))
    transaction.accounts_changed()


_TOKENS = select(token, account.c.name, account.c.role.label("account_role")).join(
    account, account.c.id == token.c.account
)
# Built once: this is asked at every write, and to build a statement costs more than to run it.
_TOKEN = _TOKENS.where(token.c.hash == bindparam("digest"))


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
    )
