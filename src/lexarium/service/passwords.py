"""Passwords of people, and signing in with one."""

from dataclasses import replace
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from lexarium.domain.accounts import SIGNED_IN, Token
from lexarium.domain.errors import Invalid, Problem, Unauthenticated
from lexarium.domain.text import unstorable
from lexarium.service.access import Caller, Deed, create_token, in_days
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


def prove(database: Database, caller: Caller, password: str | None) -> None:
    """Raise where this is not the caller's password. Who has none yet needs an admin's token to begin with one."""
    with database.read(newest=True) as snapshot:
        digest = accounts.password(snapshot, caller.account.name)
    if digest is None:
        caller.require(Deed.ADMINISTER)
    elif password is None or not _verified(digest, password):
        wrong = "is required, and must be the password that you have now."
        raise Invalid("The password stays as it is.", [Problem("old_password", wrong)])


def proven(database: Database, caller: Caller, password: str | None) -> Caller:
    """The caller as one who has just told their password: what they make may outlive the token that they call with.

    Raises where it is not theirs.
    """
    prove(database, caller, password)
    return replace(caller, expires=None)


def sign_in(database: Database, name: str, password: str) -> tuple[Token, str]:
    """A token that is good for a day, and its secret. Raises `Unauthenticated`, whatever of the two was wrong."""
    with database.read(newest=True) as snapshot:
        digest = None if unstorable(name) else accounts.password(snapshot, name)
    # Also where there is no such account, so that the time it takes does not tell.
    right = _verified(digest or _nobodys(), password) and digest is not None
    if not right:
        raise Unauthenticated("The name or the password is not right.")
    return create_token(database, name, expires=in_days(_SESSION_DAYS), label=SIGNED_IN, password=digest)


def _verified(digest: str, password: str) -> bool:
    try:
        return _hasher.verify(digest, password)
    except (VerificationError, InvalidHashError, UnicodeEncodeError):
        return False


@cache
def _nobodys() -> str:
    return _hasher.hash("nobody has this password")
