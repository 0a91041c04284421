"""Hash and verify passwords; sign in; issue tokens."""

from dataclasses import replace
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from lexarium.domain.account import SESSION_TOKEN_LABEL, Origin, Role, Token
from lexarium.domain.errors import FieldProblem, InvalidInput, Unauthenticated
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.services.access.accounts import get_account_by_name, update_account
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.access.tokens import compute_expiry, create_token, limit_expiry
from lexarium.store import accounts
from lexarium.store.database import Database

MIN_LENGTH = 10
_MAX_LENGTH = 1_000
_SESSION_DAYS = 1
_hasher = PasswordHasher()


def hash_password(password: str) -> str:
    """Return the hash of a new password; raise InvalidInput if it is too short or too long."""
    detail = f"must have from {MIN_LENGTH} to {_MAX_LENGTH} characters."
    if MIN_LENGTH <= len(password) <= _MAX_LENGTH:
        try:
            return _hasher.hash(password)
        except UnicodeEncodeError:
            detail = "holds half of a character, which cannot be kept."
    raise InvalidInput("This is not a valid password.", [FieldProblem("password", detail)])


def set_password(database: Database, name: str, password: str) -> None:
    """Set the password of the account with a name; raise NotFound."""
    password_hash = hash_password(password)
    account_id = get_account_by_name(database, name).id
    database.run_write(lambda transaction: update_account(transaction, account_id, password_hash=password_hash))


def verify_current_password(
    database: Database, caller: Caller, password: str | None, message: str = "The password stays as it is."
) -> None:
    """Raise InvalidInput unless this is the caller's password; a caller without one must be an admin."""
    with database.read(from_primary=True) as snapshot:
        password_hash = accounts.find_password_hash(snapshot, caller.account.name)
    if password_hash is None:
        caller.require(Permission.ADMINISTER)
    elif password is None or not _matches(password_hash, password):
        detail = "is required, and must be the password that you have now."
        raise InvalidInput(message, [FieldProblem("old_password", detail)])


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

    In a session this requires the caller's password. The token may outlive a session, but no other token.
    """
    name = account or caller.account.name
    if name != caller.account.name:
        caller.require(Permission.ADMINISTER)
    issuer = caller
    if caller.in_session:
        verify_current_password(database, caller, old_password, "The token was not made.")
        issuer = replace(caller, token_expires_at=None)
    role = role or (caller.role if name == caller.account.name else None)
    expires_at = limit_expiry(issuer, role, compute_expiry(days))
    origin = Origin.SESSION if caller.in_session else Origin.TOKEN
    return create_token(database, name, role, expires_at, label, origin=origin, parent=caller.token_id)


def sign_in(database: Database, name: str, password: str) -> tuple[Token, str]:
    """Return a session token and its secret; raise Unauthenticated if the name or the password is wrong."""
    with database.read(from_primary=True) as snapshot:
        password_hash = None if find_unstorable_char(name) else accounts.find_password_hash(snapshot, name)
    # Verify against a dummy hash too: the response time must not reveal if the account exists.
    if not _matches(password_hash or _dummy_hash(), password) or password_hash is None:
        raise Unauthenticated("The name or the password is not right.")
    return create_token(
        database,
        name,
        expires_at=compute_expiry(_SESSION_DAYS),
        label=SESSION_TOKEN_LABEL,
        origin=Origin.SIGN_IN,
        expected_password_hash=password_hash,
    )


def _matches(password_hash: str, password: str) -> bool:
    try:
        return _hasher.verify(password_hash, password)
    except (VerificationError, InvalidHashError, UnicodeEncodeError):
        return False


@cache
def _dummy_hash() -> str:
    return _hasher.hash("nobody has this password")
