"""Passwords of people, and signing in with one."""

from dataclasses import replace
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from lexarium.domain.accounts import SIGNED_IN, Origin, Role, Token
from lexarium.domain.errors import Invalid, Problem, Unauthenticated
from lexarium.domain.text import unstorable
from lexarium.service.access import Caller, Deed, create_token, in_days, lent
from lexarium.service.accounts import change, named
from lexarium.store import accounts
from lexarium.store.database import Database

SHORTEST = 10
_LONGEST = 1_000
_SESSION_DAYS = 1
_hasher = PasswordHasher()


def hashed(password: str) -> str:
    """The hash to keep of a new password. Raises `Invalid` where it is too short or too long."""
    if not SHORTEST <= len(password) <= _LONGEST:
        wrong = f"must have from {SHORTEST} to {_LONGEST} characters."
        raise Invalid("This is not a valid password.", [Problem("password", wrong)])
    try:
        return _hasher.hash(password)
    except UnicodeEncodeError:
        wrong = "holds half of a character, which cannot be kept."
        raise Invalid("This is not a valid password.", [Problem("password", wrong)]) from None


def set_password(database: Database, name: str, password: str) -> None:
    """Give an account a password, in place of the one it had."""
    digest = hashed(password)
    database.run(change(named(database, name).id, password=digest))


def prove(
    database: Database, caller: Caller, password: str | None, refusal: str = "The password stays as it is."
) -> None:
    """Raise where this is not the caller's password. Who has none yet needs an admin's token to begin with one."""
    with database.read(newest=True) as snapshot:
        digest = accounts.password(snapshot, caller.account.name)
    if digest is None:
        caller.require(Deed.ADMINISTER)
    elif password is None or not _verified(digest, password):
        wrong = "is required, and must be the password that you have now."
        raise Invalid(refusal, [Problem("old_password", wrong)])


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
        caller.require(Deed.ADMINISTER)
    maker = caller
    if caller.in_session:
        prove(database, caller, old_password, "The token was not made.")
        maker = replace(caller, expires=None)
    role = role or (caller.role if name == caller.account.name else None)
    expires = lent(maker, role, in_days(days))
    origin = Origin.SESSION if caller.in_session else Origin.TOKEN
    return create_token(database, name, role, expires, label, origin=origin, parent=caller.token)


def sign_in(database: Database, name: str, password: str) -> tuple[Token, str]:
    """A token that is good for a day, and its secret. Raises `Unauthenticated`, whatever of the two was wrong."""
    with database.read(newest=True) as snapshot:
        digest = None if unstorable(name) else accounts.password(snapshot, name)
    # Also where there is no such account, so that the time it takes does not tell.
    right = _verified(digest or _nobodys(), password) and digest is not None
    if not right:
        raise Unauthenticated("The name or the password is not right.")
    expires = in_days(_SESSION_DAYS)
    return create_token(database, name, expires=expires, label=SIGNED_IN, origin=Origin.SIGN_IN, password=digest)


def _verified(digest: str, password: str) -> bool:
    try:
        return _hasher.verify(digest, password)
    except (VerificationError, InvalidHashError, UnicodeEncodeError):
        return False


@cache
def _nobodys() -> str:
    return _hasher.hash("nobody has this password")
