"""Accounts once they are made: shown, changed, erased."""

from dataclasses import dataclass, replace
from typing import Any

from lexarium.domain.accounts import Account, Role, Token
from lexarium.domain.errors import Conflict, NotFound
from lexarium.domain.stamps import now, text_of
from lexarium.domain.text import unstorable
from lexarium.service.once import forget
from lexarium.store import accounts
from lexarium.store.backend import Snapshot
from lexarium.store.database import Database
from lexarium.store.transaction import Transaction
from lexarium.store.writer import Work


@dataclass(frozen=True)
class Person:
    """An account, and how it is used."""

    account: Account
    tokens: int
    """How many of its tokens are good."""
    used: int | None
    """When it was last used, to the minute."""
    password: bool
    """Whether it can sign in with one."""


def people(snapshot: Snapshot, start: str, limit: int) -> list[Person]:
    """The accounts from a name on, by name, at most so many; without those that are erased."""
    return _persons(snapshot, [] if unstorable(start) else accounts.accounts_from(snapshot, start, limit))


def person(snapshot: Snapshot, identifier: str) -> Person:
    """The account of this id, and how it is used. Raises `NotFound` where there is none, or not any more."""
    account = find(snapshot, identifier)
    if account.erased:
        raise NotFound(f"The account {identifier} is erased.")
    return _persons(snapshot, [account])[0]


def _persons(snapshot: Snapshot, found: list[Account]) -> list[Person]:
    uses = accounts.uses(snapshot, [each.id for each in found], at=now())
    return [Person(each, *uses[each.id]) for each in found]


def tokens(
    snapshot: Snapshot,
    before: tuple[int, str] | None,
    limit: int,
    *,
    account_id: str | None = None,
    ended: bool = False,
) -> list[Token]:
    """Tokens, the newest first, at most so many: an account's or everyone's, those that are good or all.

    `before` is when the last of the page before was made, and its id.
    """
    good_at = None if ended else now()
    return list(accounts.tokens_before(snapshot, before, limit, account_id=account_id, good_at=good_at))


def token(snapshot: Snapshot, identifier: str) -> Token:
    """The token of this id. Raises `NotFound` where there is none."""
    found = None if unstorable(identifier) else accounts.find_token_by_id(snapshot, identifier)
    if found is None:
        raise NotFound(f"There is no token with the id {identifier!r}.")
    return found


def find(snapshot: Snapshot, identifier: str) -> Account:
    """The account of this id. Raises `NotFound` where there is none."""
    found = None if unstorable(identifier) else accounts.find_account_by_id(snapshot, identifier)
    if found is None:
        raise NotFound(f"There is no account with the id {identifier!r}.")
    return found


def named(database: Database, name: str) -> Account:
    """The account of this name. Raises `NotFound` where there is none."""
    with database.read() as snapshot:
        found = None if unstorable(name) else accounts.find_account(snapshot, name)
    if found is None:
        raise NotFound(f"There is no account named {name!r}. `lexarium user list` shows them.")
    return found


def change(identifier: str, role: Role | None = None, password: str | None = None) -> Work[Account]:
    """The work that gives an account another role or a password, told as its hash; None leaves it as it is.

    A new password ends every session, and every token made from one. It raises `Conflict` where the last admin would
    be none, or the account is erased.
    """

    def work(transaction: Transaction) -> Account:
        account = _usable(transaction, identifier)
        if role is not None and role != account.role:
            _refuse_last_admin(transaction, account)
            accounts.set_role(transaction, identifier, role)
        if password is not None:
            accounts.set_password(transaction, identifier, password)
            accounts.end_all_sessions(transaction, identifier, at=now())
        return replace(account, role=role or account.role)

    return work


def erase(database: Database, identifier: str) -> None:
    """Erase the name of an account, its password and its tokens. The log goes on naming its id.

    Raises `Conflict` for the last admin, and where it is erased already.
    """

    def work(transaction: Transaction) -> None:
        _refuse_last_admin(transaction, _usable(transaction, identifier))
        accounts.erase(transaction, identifier, at=now())
        forget(transaction, identifier)

    database.run(work)


def account_view(account: Account) -> dict[str, Any]:
    """An account."""
    return {"id": account.id, "name": account.name, "role": account.role, "erased": account.erased}


def token_view(token: Token) -> dict[str, Any]:
    """A token, without its secret."""
    return {
        "id": token.id,
        "account": token.account.name,
        "label": token.label,
        "role": token.role,
        "created": text_of(token.created),
        "expires": None if token.expires is None else text_of(token.expires),
        "last_used": None if token.used is None else text_of(token.used),
        "revoked": None if token.revoked is None else text_of(token.revoked),
        "origin": token.origin,
        "made_with": token.parent,
    }


def _usable(transaction: Transaction, identifier: str) -> Account:
    account = find(transaction.connection, identifier)
    if account.erased:
        raise Conflict(f"The account {identifier} is erased.")
    return account


def _refuse_last_admin(transaction: Transaction, account: Account) -> None:
    if account.role == Role.ADMIN and not accounts.has_other_admin(transaction.connection, account.id):
        raise Conflict(f"{account.name} is the last admin. Make another admin first.")
