"""Hash, set and verify passwords."""

from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.services.access.accounts import get_account_by_name, update_account
from lexarium.services.access.permissions import Caller, Permission
from lexarium.store import accounts
from lexarium.store.database import Database

MIN_LENGTH = 10
_MAX_LENGTH = 1_000
_hasher = PasswordHasher()


def hash_password(password: str) -> str:
    """Return the hash of a new password; raise InvalidInput if it is too short or too long."""
    detail = f"must have {MIN_LENGTH} to {_MAX_LENGTH} characters."
    if MIN_LENGTH <= len(password) <= _MAX_LENGTH:
        try:
            return _hasher.hash(password)
        except UnicodeEncodeError:
            detail = "contains an invalid character."
    raise InvalidInput("Invalid password.", [FieldProblem("password", detail)])


def set_password(database: Database, name: str, password: str) -> None:
    """Set the password of the account with a name; raise NotFound."""
    password_hash = hash_password(password)
    account_id = get_account_by_name(database, name).id
    database.run_write(lambda transaction: update_account(transaction, account_id, password_hash=password_hash))


def verify_current_password(
    database: Database, caller: Caller, password: str | None, message: str = "Password not changed."
) -> None:
    """Raise InvalidInput unless this is the caller's password; a caller without one must be an admin."""
    with database.read(from_primary=True) as snapshot:
        password_hash = accounts.find_password_hash(snapshot, caller.account.name)
    if password_hash is None:
        caller.require(Permission.ADMINISTER)
    elif password is None or not verify_password(password_hash, password):
        detail = "must be your current password."
        raise InvalidInput(message, [FieldProblem("old_password", detail)])


def verify_password(password_hash: str | None, password: str) -> bool:
    """Return whether a password has a hash. Without a hash it does not, but finding that out takes as long."""
    try:
        return _hasher.verify(password_hash or _dummy_hash(), password) and password_hash is not None
    except (VerificationError, InvalidHashError, UnicodeEncodeError):
        return False


@cache
def _dummy_hash() -> str:
    return _hasher.hash("nobody has this password")
