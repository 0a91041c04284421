"""Manage accounts: list, create, change and erase them."""

from dataclasses import dataclass
from typing import Any

from lexarium.domain.account import Account, Role
from lexarium.domain.errors import Conflict, FieldProblem, InvalidInput, NotFound
from lexarium.domain.identifiers import mint_id
from lexarium.domain.text.characters import find_control_char, find_direction_control, find_unstorable_char
from lexarium.domain.text.timestamps import now_ms
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.services.idempotency import delete_account_responses
from lexarium.services.not_found import find_or_raise
from lexarium.store import accounts, comments
from lexarium.store.database import Database
from lexarium.store.position import Snapshot
from lexarium.store.transaction import Transaction

_MAX_NAME_CHARS = 200


@dataclass(frozen=True)
class AccountSummary:
    """An account and its usage."""

    account: Account
    active_tokens: int
    last_used_at: int | None  # to the minute
    has_password: bool


def list_account_summaries(snapshot: Snapshot, start: str, limit: int) -> list[AccountSummary]:
    """Return a page of accounts by name, from a name on, without erased ones."""
    return _load_summaries(
        snapshot, [] if find_unstorable_char(start) else accounts.list_accounts(snapshot, start, limit)
    )


def get_account_summary(snapshot: Snapshot, account_id: str) -> AccountSummary:
    """Return an account and its usage; raise NotFound if it does not exist or is erased."""
    account = get_account(snapshot, account_id)
    if account.is_erased:
        raise NotFound(f"Account {account_id} is erased.")
    return _load_summaries(snapshot, [accounts.load_vocabulary_roles(snapshot, account)])[0]


def _load_summaries(snapshot: Snapshot, account_list: list[Account]) -> list[AccountSummary]:
    usage = accounts.find_usage(snapshot, [account.id for account in account_list], at=now_ms())
    return [AccountSummary(account, *usage[account.id]) for account in account_list]


def list_accounts(database: Database) -> list[Account]:
    """Return all accounts by name."""
    with database.read() as snapshot:
        return accounts.list_all_accounts(snapshot)


def get_account(snapshot: Snapshot, account_id: str) -> Account:
    """Return the account with an id; raise NotFound."""
    message = f"Account {account_id!r} not found."
    account = find_or_raise(lambda: accounts.find_account_by_id(snapshot, account_id), account_id, message)
    return accounts.load_vocabulary_roles(snapshot, account)


def get_account_by_name(database: Database, name: str) -> Account:
    """Return the account with a name; raise NotFound."""
    message = f"Account {name!r} not found. See `lexarium user list`."
    with database.read() as snapshot:
        return find_or_raise(lambda: accounts.find_account_by_name(snapshot, name), name, message)


def add_account(database: Database, name: str, role: Role) -> Account:
    """Create an account in a transaction of its own."""
    return database.run_write(lambda transaction: create_account(transaction, name, role))


def create_account(transaction: Transaction, name: str, role: Role) -> Account:
    """Create an account; raise InvalidInput for the name, or Conflict if it is taken."""
    message = None
    if not name.strip():
        message = "must not be empty."
    elif len(name) > _MAX_NAME_CHARS:
        message = f"must have at most {_MAX_NAME_CHARS} characters."
    elif char := find_control_char(name) or find_direction_control(name):
        message = f"contains the character {char}, which is not allowed."
    if message:
        raise InvalidInput("Invalid account.", [FieldProblem("name", message)])
    if accounts.find_account_by_name(transaction.flush(), name):
        raise Conflict(f"Account {name!r} already exists.")
    account = Account(mint_id("usr"), name, role)
    accounts.add_account(transaction, account, at=now_ms())
    return account


def update_account(
    transaction: Transaction,
    account_id: str,
    role: Role | None = None,
    password_hash: str | None = None,
    vocabulary: str | None = None,
) -> Account:
    """Change the role, in a vocabulary or in all, or the password of an account; None leaves it unchanged.

    A new password ends every session and every token made from one. Raise Conflict if the account is erased, or if no
    admin would remain.
    """
    account = _get_active_account(transaction, account_id)
    if role is not None and vocabulary is not None:
        accounts.set_vocabulary_role(transaction, account_id, vocabulary, role)
    elif role is not None and role != account.role:
        _require_other_admin(transaction, account)
        accounts.set_role(transaction, account_id, role)
    if password_hash is not None:
        accounts.set_password(transaction, account_id, password_hash)
        accounts.end_all_sessions(transaction, account_id, at=now_ms())
    return get_account(transaction.flush(), account_id)


def set_vocabulary_role(transaction: Transaction, account_id: str, vocabulary: str, role: Role) -> None:
    """Give an account a role in one vocabulary, beside that in all; `Role.NONE` takes it away.

    Raise Conflict if the account is erased.
    """
    _get_active_account(transaction, account_id)
    accounts.set_vocabulary_role(transaction, account_id, vocabulary, role)


def erase_account(database: Database, account_id: str) -> None:
    """Erase the name, password, tokens and texts of comments of an account; its id stays in the change log.

    Raise Conflict if it is erased already or is the last admin.
    """

    def task(transaction: Transaction) -> None:
        _require_other_admin(transaction, _get_active_account(transaction, account_id))
        accounts.erase_account(transaction, account_id, at=now_ms())
        comments.erase_author(transaction, account_id)
        delete_account_responses(transaction, account_id)

    database.run_write(task)


def _get_active_account(transaction: Transaction, account_id: str) -> Account:
    account = get_account(transaction.flush(), account_id)
    if account.is_erased:
        raise Conflict(f"Account {account_id} is erased.")
    return account


def _require_other_admin(transaction: Transaction, account: Account) -> None:
    if account.role == Role.ADMIN and not accounts.has_other_admin(transaction.flush(), account.id):
        raise Conflict(f"{account.name} is the last admin. Make another admin first.")


def serialize_account(account: Account) -> dict[str, Any]:
    """Return an account as JSON of the API."""
    roles = {slug: role for slug, role in account.vocabulary_roles.items() if slug in VOCABULARIES}
    return {
        "id": account.id,
        "name": account.name,
        "role": account.role,
        "vocabulary_roles": {slug: role for slug, role in roles.items() if not VOCABULARIES[slug].is_removed},
        "erased": account.is_erased,
    }
