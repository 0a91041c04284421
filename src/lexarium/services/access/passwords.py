"""Passwords of people, and signing in with one."""

from dataclasses import replace
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from lexarium.domain.account import SESSION_TOKEN_LABEL, Origin, Role, Token
from lexarium.domain.errors import FieldProblem, InvalidInput, Unauthenticated
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.services.access.accounts import build_update_account_task, get_account_by_name
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.access.tokens import compute_expiry, create_token, limit_expiry
from lexarium.store import accounts
from lexarium.store.database import Database

MIN_LENGTH = 10
_MAX_LENGTH = 1_000
_SESSION_DAYS = 1
_hasher = PasswordHasher()


def hash_password(password: str) -> str:
    """The hash to keep of a new password. Raises `Invalid` where it is too short or too long."""
    if not MIN_LENGTH <= len(password) <= _MAX_LENGTH:
        detail = f"must have from {MIN_LENGTH} to {_MAX_LENGTH} characters."
        raise InvalidInput("This is not a valid password.", [FieldProblem("password", detail)])
    try:
        return _hasher.hash(password)
    except UnicodeEncodeError:
        detail = "holds half of a character, which cannot be kept."
        raise InvalidInput("This is not a valid password.", [FieldProblem("password", detail)]) from None


def set_password(database: Database, name: str, password: str) -> None:
    """Give an account a password, in place of the one it had."""
    password_hash = hash_password(password)
    database.run_write(build_update_account_task(get_account_by_name(database, name).id, password_hash=password_hash))


def verify_current_password(
    database: Database, caller: Caller, password: str | None, message: str = "The password stays as it is."
) -> None:
    """Raise where this is not the caller's password. Who has none yet needs an admin's token to begin with one."""
    with database.read(from_primary=True) as snapshot:
        password_hash = accounts.find_password_hash(snapshot, caller.account.name)
    if password_hash is None:
        caller.require(Permission.ADMINISTER)
    elif password is None or not _matches(password_hash, password):
        detail = "is required, and must be the password that you have now."
        raise InvalidInput(message, [FieldProblem("old_password", detail)])


def issue_token(  # noqa: PLR0913 (all that can be asked of a token)
    database: Database,
    caller: Caller,
    *,
    account: str | None,
    role: Role | None,
    days: int | None,
    label: str,
    old_password: str | None,
) -> tuple[Token, str]:
    """Make a token as a caller asks for it, for themselves or, by an admin, for the account of another name.

    In a session this needs the caller's password. The token may outlive the session, but no other token.
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
    """A token that is good for a day, and its secret. Raises `Unauthenticated`, whatever of the two was wrong."""
    with database.read(from_primary=True) as snapshot:
        password_hash = None if find_unstorable_char(name) else accounts.find_password_hash(snapshot, name)
    # Also where there is no such account, so that the time it takes does not tell.
    is_correct = _matches(password_hash or _dummy_hash(), password) and password_hash is not None
    if not is_correct:
        raise Unauthenticated("The name or the password is not right.")
    expires_at = compute_expiry(_SESSION_DAYS)
    return create_token(
        database,
        name,
        expires_at=expires_at,
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
