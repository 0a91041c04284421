"""Accounts once they are made: shown, changed, erased."""

from dataclasses import dataclass, replace
from typing import Any

from lexarium.domain.account import Account, Role
from lexarium.domain.errors import Conflict, FieldProblem, InvalidInput, NotFound
from lexarium.domain.identifiers import mint_id
from lexarium.domain.text.characters import find_control_char, find_direction_control, find_unstorable_char
from lexarium.domain.timestamps import now_ms
from lexarium.services.idempotency import delete_account_responses
from lexarium.store import accounts
from lexarium.store.database import Database
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction
from lexarium.store.write_queue import WriteTask


@dataclass(frozen=True)
class AccountSummary:
    """An account, and how it is used."""

    account: Account
    active_tokens: int
    """How many of its tokens are good."""
    last_used_at: int | None
    """When it was last used, to the minute."""
    has_password: bool
    """Whether it can sign in with one."""


def list_account_summaries(snapshot: Snapshot, start: str, limit: int) -> list[AccountSummary]:
    """The accounts from a name on, by name, at most so many; without those that are erased."""
    return _load_summaries(
        snapshot, [] if find_unstorable_char(start) else accounts.list_accounts(snapshot, start, limit)
    )


def get_account_summary(snapshot: Snapshot, account_id: str) -> AccountSummary:
    """The account of this id, and how it is used. Raises `NotFound` where there is none, or not any more."""
    account = get_account(snapshot, account_id)
    if account.is_erased:
        raise NotFound(f"The account {account_id} is erased.")
    return _load_summaries(snapshot, [account])[0]


def _load_summaries(snapshot: Snapshot, account_list: list[Account]) -> list[AccountSummary]:
    usage = accounts.find_usage(snapshot, [account.id for account in account_list], at=now_ms())
    return [AccountSummary(account, *usage[account.id]) for account in account_list]


def get_account(snapshot: Snapshot, account_id: str) -> Account:
    """The account of this id. Raises `NotFound` where there is none."""
    account = None if find_unstorable_char(account_id) else accounts.find_account_by_id(snapshot, account_id)
    if account is None:
        raise NotFound(f"There is no account with the id {account_id!r}.")
    return account


def get_account_by_name(database: Database, name: str) -> Account:
    """The account of this name. Raises `NotFound` where there is none."""
    with database.read() as snapshot:
        account = None if find_unstorable_char(name) else accounts.find_account_by_name(snapshot, name)
    if account is None:
        raise NotFound(f"There is no account named {name!r}. `lexarium user list` shows them.")
    return account


def build_update_account_task(
    account_id: str, role: Role | None = None, password_hash: str | None = None
) -> WriteTask[Account]:
    """The work that gives an account another role or a password, told as its hash; None leaves it as it is.

    A new password ends every session, and every token made from one. It raises `Conflict` where the last admin would
    be none, or the account is erased.
    """

    def task(transaction: Transaction) -> Account:
        account = _get_active_account(transaction, account_id)
        if role is not None and role != account.role:
            _require_other_admin(transaction, account)
            accounts.set_role(transaction, account_id, role)
        if password_hash is not None:
            accounts.set_password(transaction, account_id, password_hash)
            accounts.end_all_sessions(transaction, account_id, at=now_ms())
        return replace(account, role=role or account.role)

    return task


def erase_account(database: Database, account_id: str) -> None:
    """Erase the name of an account, its password and its tokens. The log goes on naming its id.

    Raises `Conflict` for the last admin, and where it is erased already.
    """

    def task(transaction: Transaction) -> None:
        _require_other_admin(transaction, _get_active_account(transaction, account_id))
        accounts.erase_account(transaction, account_id, at=now_ms())
        delete_account_responses(transaction, account_id)

    database.run_write(task)


def serialize_account(account: Account) -> dict[str, Any]:
    """An account."""
    return {"id": account.id, "name": account.name, "role": account.role, "erased": account.is_erased}


def _get_active_account(transaction: Transaction, account_id: str) -> Account:
    account = get_account(transaction.connection, account_id)
    if account.is_erased:
        raise Conflict(f"The account {account_id} is erased.")
    return account


def _require_other_admin(transaction: Transaction, account: Account) -> None:
    if account.role == Role.ADMIN and not accounts.has_other_admin(transaction.connection, account.id):
        raise Conflict(f"{account.name} is the last admin. Make another admin first.")


_MAX_NAME_CHARS = 200


def add_account(database: Database, name: str, role: Role) -> Account:
    """Make an account. Raises `Conflict` where the name is taken."""
    return database.run_write(build_create_account_task(name, role))


def build_create_account_task(name: str, role: Role) -> WriteTask[Account]:
    """The work that makes an account. Raises `Invalid` where it cannot have the name, the work `Conflict`."""
    message = None
    if not name.strip():
        message = "must not be empty."
    elif len(name) > _MAX_NAME_CHARS:
        message = f"must have at most {_MAX_NAME_CHARS} characters."
    elif char := find_control_char(name) or find_direction_control(name):
        message = f"holds the character {char}, which is not allowed."
    if message:
        raise InvalidInput("This is not a valid account.", [FieldProblem("name", message)])
    account = Account(mint_id("usr"), name, role)

    def task(transaction: Transaction) -> Account:
        if accounts.find_account_by_name(transaction.connection, name):
            raise Conflict(f"There is an account named {name!r} already.")
        accounts.add_account(transaction, account, at=now_ms())
        return account

    return task


def list_accounts(database: Database) -> list[Account]:
    """Every account, by name."""
    with database.read() as connection:
        return accounts.list_all_accounts(connection)
