"""Who may do what: accounts, tokens, and the one table of what each role may do."""

import hashlib
import re
import secrets
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum

from lexarium.domain.accounts import Account, Origin, Role, Token
from lexarium.domain.errors import Conflict, Forbidden, Invalid, NotFound, Problem, Unauthenticated, Unavailable
from lexarium.domain.identifiers import mint
from lexarium.domain.stamps import now, text_of
from lexarium.domain.text import direction_control, forbidden, unstorable
from lexarium.store import accounts
from lexarium.store.database import Database
from lexarium.store.transaction import Transaction
from lexarium.store.writer import Work

_NAME_LIMIT = 200
_USE_NOTED_EVERY = 60_000
"""In milliseconds: the last use of a token need not be known better, and is not worth a write a request."""
_REMEMBERED = 10_000
"""How many tokens are remembered."""
_SESSIONS_KEPT = 90 * 86_400_000
"""In milliseconds: for how long the tokens of those who signed in are shown after their end."""
_AUTHORIZATION = re.compile(r"(?:bearer|token) +(\S+) *", re.IGNORECASE)


class Deed(Enum):
    """What someone may want to do that needs a role."""

    PROPOSE = "propose a record or a change, and withdraw one's own proposal"
    PUBLISH = "create, change, relate, retire, merge and revert records; decide proposals; name releases; send batches"
    ADMINISTER = "make, change and erase accounts, make and revoke the tokens of others, keep webhooks"


LEAST_ROLE = {Deed.PROPOSE: Role.CONTRIBUTOR, Deed.PUBLISH: Role.CURATOR, Deed.ADMINISTER: Role.ADMIN}
"""Who may do what: the one table. Reading needs no role."""


@dataclass(frozen=True)
class Caller:
    """Who asks, and in which role."""

    account: Account
    role: Role
    token: str
    """The id of the token that was sent."""
    expires: int | None = None
    """When that token is no longer good; None: never."""
    in_session: bool = False
    """Whether that token is a session's."""

    def may(self, deed: Deed) -> bool:
        """Whether the role allows it."""
        return self.role.rank >= LEAST_ROLE[deed].rank

    def require(self, deed: Deed) -> None:
        """Raise `Forbidden` where the role does not allow it."""
        if not self.may(deed):
            raise Forbidden(f"This needs the role {LEAST_ROLE[deed]}; the token has the role {self.role}.")


class Callers:
    """Tells who calls. One who was let in is remembered until some account or token changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tokens: OrderedDict[str, Token] = OrderedDict()
        self._known_at: tuple[str, int] | None = None

    def remembered(self, authorization: str | None) -> Caller | None:
        """The caller that an `Authorization` header names, where no look into the store is needed for it.

        To be called from the thread that may ask for the catalogue's position.
        """
        position = self._database.position()
        if self._known_at != (position.epoch, position.accounts):
            self._tokens = OrderedDict()
            self._known_at = (position.epoch, position.accounts)
        token = self._tokens.get(_digest(_secret(authorization)))
        if token is None or _expired(token) or _use_unnoted(token):
            return None
        return _caller(token)

    def identify(self, authorization: str | None) -> Caller:
        """The caller that an `Authorization` header names. Raises `Unauthenticated` where it names none."""
        digest = _digest(_secret(authorization))
        # What is found is remembered in the same book that was open before: a new one may have been begun since.
        known = self._tokens
        with self._database.read(newest=True) as connection:
            token = accounts.find_token(connection, digest)
        if token is None or token.revoked is not None:
            raise Unauthenticated("The token is not valid.")
        if _expired(token):
            raise Unauthenticated("The token has expired.")
        known[digest] = self._noted(token, known.get(digest))
        if len(known) > _REMEMBERED:
            known.popitem(last=False)
        return _caller(token)

    def _noted(self, token: Token, remembered: Token | None) -> Token:
        """A token whose use is noted, or will be once it can: whoever only reads never waits for that."""
        if remembered is not None and not _use_unnoted(remembered):
            return replace(token, used=remembered.used)
        if not _use_unnoted(token):
            return token
        used = now()
        with suppress(Unavailable):  # Where too much waits to be written, the next use is noted.
            self._database.submit(lambda transaction: accounts.note_use(transaction, token.id, at=used))
        return replace(token, used=used)


def _secret(authorization: str | None) -> str:
    if not authorization:
        raise Unauthenticated("This needs a token: send it as `Authorization: Bearer TOKEN`.")
    match = _AUTHORIZATION.fullmatch(authorization)
    if match is None:
        raise Unauthenticated("The Authorization header has another form than `Bearer TOKEN`.")
    return match.group(1)


def _expired(token: Token) -> bool:
    return token.expires is not None and token.expires <= now()


def _use_unnoted(token: Token) -> bool:
    return token.used is None or now() - token.used > _USE_NOTED_EVERY


def _caller(token: Token) -> Caller:
    return Caller(token.account, token.reach, token.id, token.expires, token.origin == Origin.SIGN_IN)


def add_account(database: Database, name: str, role: Role) -> Account:
    """Make an account. Raises `Conflict` where the name is taken."""
    return database.run(addition(name, role))


def addition(name: str, role: Role) -> Work[Account]:
    """The work that makes an account. Raises `Invalid` where it cannot have the name, the work `Conflict`."""
    wrong = None
    if not name.strip():
        wrong = "must not be empty."
    elif len(name) > _NAME_LIMIT:
        wrong = f"must have at most {_NAME_LIMIT} characters."
    elif char := forbidden(name) or direction_control(name):
        wrong = f"holds the character {char}, which is not allowed."
    if wrong:
        raise Invalid("This is not a valid account.", [Problem("name", wrong)])
    account = Account(mint("usr"), name, role)

    def work(transaction: Transaction) -> Account:
        if accounts.find_account(transaction.connection, name):
            raise Conflict(f"There is an account named {name!r} already.")
        accounts.add_account(transaction, account, at=now())
        return account

    return work


def create_token(  # noqa: PLR0913 (all that a token is, and what it rests on)
    database: Database,
    name: str,
    role: Role | None = None,
    expires: int | None = None,
    label: str = "",
    *,
    origin: Origin = Origin.COMMAND_LINE,
    parent: str | None = None,
    password: str | None = None,
) -> tuple[Token, str]:
    """Make a token for an account, and its secret, which is kept nowhere and cannot be had again.

    `parent` is the id of the token that it is made with: raises `Unauthenticated` where that was revoked meanwhile.
    `password` is the hash of the one that it rests on: raises `Unauthenticated` where the account has another by now.
    """
    secret = f"lex_{secrets.token_urlsafe(32)}"
    with database.write() as transaction:
        account = None if unstorable(name) else accounts.find_account(transaction.connection, name)
        if account is None:
            raise NotFound(f"There is no account named {name!r}. Make it with `lexarium user add`.")
        if account.erased:
            raise Conflict(f"The account {name} is erased.")
        if password is not None and accounts.password(transaction.connection, name) != password:
            raise Unauthenticated("The password was changed just now.")
        if parent is not None and not _is_unrevoked(transaction, parent):
            raise Unauthenticated("The token was revoked just now.")
        if role is not None and role.rank > account.role.rank:
            raise Forbidden(f"{name} has the role {account.role}; a token of theirs cannot have the role {role}.")
        token = Token(
            id=mint("tok"),
            account=account,
            label=label,
            role=role or account.role,
            created=now(),
            expires=expires,
            origin=origin,
            parent=parent,
        )
        accounts.add_token(transaction, token, _digest(secret))
        if origin == Origin.SIGN_IN:
            accounts.forget_sessions(transaction, account.id, before=now() - _SESSIONS_KEPT)
    return token, secret


def _is_unrevoked(transaction: Transaction, identifier: str) -> bool:
    found = accounts.find_token_by_id(transaction.connection, identifier)
    return found is not None and found.revoked is None


def in_days(days: int | None) -> int | None:
    """When a token that is good for so many days, or for good, expires."""
    return None if days is None else now() + days * 86_400_000


def lent(maker: Caller, role: Role | None, expires: int | None) -> int | None:
    """When a token that a caller makes expires. Raises `Forbidden` where it would outdo the caller's own."""
    if role is not None and role.rank > maker.role.rank:
        raise Forbidden(f"A token with the role {maker.role} cannot make one with the role {role}.")
    if maker.expires is None:
        return expires
    if expires is not None and expires > maker.expires:
        raise Forbidden(f"A token cannot make one that outlives it; it is good until {text_of(maker.expires)}.")
    return maker.expires if expires is None else expires


def revoke_token(database: Database, identifier: str, by: Caller | None = None) -> None:
    """Make a token, and all that were made with it, useless from now on. Raises `NotFound` where there is none.

    A caller who is no admin may revoke their own, up to the role that they call with.
    """

    def work(transaction: Transaction) -> None:
        found = None if unstorable(identifier) else accounts.find_token_by_id(transaction.connection, identifier)
        own = by is None or by.may(Deed.ADMINISTER) or (found is not None and found.account.id == by.account.id)
        if found is None or not own:
            raise NotFound(f"There is no token with the id {identifier!r}. `lexarium token list` shows them.")
        if by is not None and found.reach.rank > by.role.rank:
            raise Forbidden(f"A token with the role {by.role} cannot revoke one with the role {found.reach}.")
        accounts.revoke_token(transaction, identifier, at=now())

    database.run(work)


def end_session(database: Database, caller: Caller) -> None:
    """Revoke the token that the caller signed in with. Tokens made from the session stay valid."""
    database.run(lambda transaction: accounts.end_session(transaction, caller.token, at=now()))


def list_accounts(database: Database) -> list[Account]:
    """Every account, by name."""
    with database.read() as connection:
        return accounts.all_accounts(connection)


def list_tokens(database: Database) -> list[Token]:
    """Every token, the oldest first."""
    with database.read() as connection:
        return list(accounts.tokens(connection))


def _digest(secret: str) -> str:
    # A token is 256 random bits, so a plain hash keeps it: there is nothing to guess.
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
