"""Passwords of people, and signing in with one."""

from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from lexarium.domain.accounts import Token
from lexarium.domain.errors import Invalid, NotFound, Problem, Unauthenticated
from lexarium.domain.text import unstorable
from lexarium.service.access import create_token
from lexarium.store import accounts
from lexarium.store.database import Database
from lexarium.store.transaction import Transaction

SHORTEST = 10
_LONGEST = 1_000
_SESSION_DAYS = 1
_hasher = PasswordHasher()


def set_password(database: Database, name: str, password: str) -> None:
    """Give an account a password, in place of the one it had."""
    if not SHORTEST <= len(password) <= _LONGEST:
        wrong = f"must have from {SHORTEST} to {_LONGEST} characters."
        raise Invalid("This is not a valid password.", [Problem("password", wrong)])
    digest = _hasher.hash(password)

    def work(transaction: Transaction) -> None:
        if unstorable(name) or not accounts.set_password(transaction, name, digest):
            raise NotFound(f"There is no account named {name!r}. Make it with `lexarium user add`.")

    database.run(work)


def sign_in(database: Database, name: str, password: str) -> tuple[Token, str]:
    """A token that is good for a day, and its secret. Raises `Unauthenticated`, whatever of the two was wrong."""
    with database.read() as snapshot:
        digest = None if unstorable(name) else accounts.password(snapshot, name)
    try:
        # Also where there is no such account, so that the time it takes does not tell.
        right = _hasher.verify(digest or _nobodys(), password) and digest is not None
    except (VerificationError, InvalidHashError):
        right = False
    if not right:
        raise Unauthenticated("The name or the password is not right.")
    return create_token(database, name, days=_SESSION_DAYS, label="signed in")


@cache
def _nobodys() -> str:
    return _hasher.hash("nobody has this password")
