"""Who may do what: accounts, tokens, and the one table of what each role may do."""

import re
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace

from lexarium.domain.account import Origin, Token
from lexarium.domain.errors import (
    DatabaseUnavailable,
    Unauthenticated,
)
from lexarium.domain.timestamps import now_ms
from lexarium.services.access.permissions import Caller
from lexarium.services.access.tokens import hash_secret
from lexarium.store import accounts
from lexarium.store.database import Database

_USE_UPDATE_INTERVAL_MS = 60_000
"""In milliseconds: the last use of a token need not be known better, and is not worth a write a request."""
_TOKEN_CACHE_SIZE = 10_000
"""How many tokens are remembered."""
_AUTHORIZATION_PATTERN = re.compile(r"(?:bearer|token) +(\S+) *", re.IGNORECASE)


class Authenticator:
    """Tells who calls. One who was let in is remembered until some account or token changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._token_cache: OrderedDict[str, Token] = OrderedDict()
        self._cache_position: tuple[str, int] | None = None

    def get_cached(self, authorization: str | None) -> Caller | None:
        """The caller that an `Authorization` header names, where no look into the store is needed for it.

        To be called from the thread that may ask for the catalogue's position.
        """
        position = self._database.get_position()
        if self._cache_position != (position.epoch, position.accounts):
            self._token_cache = OrderedDict()
            self._cache_position = (position.epoch, position.accounts)
        token = self._token_cache.get(hash_secret(_parse_authorization(authorization)))
        if token is None or _is_expired(token) or _needs_use_update(token):
            return None
        return _to_caller(token)

    def authenticate(self, authorization: str | None) -> Caller:
        """The caller that an `Authorization` header names. Raises `Unauthenticated` where it names none."""
        digest = hash_secret(_parse_authorization(authorization))
        # What is found is remembered in the same book that was open before: a new one may have been begun since.
        cache = self._token_cache
        with self._database.read(from_primary=True) as connection:
            token = accounts.find_token_by_hash(connection, digest)
        if token is None or token.revoked_at is not None:
            raise Unauthenticated("The token is not valid.")
        if _is_expired(token):
            raise Unauthenticated("The token has expired.")
        cache[digest] = self._record_use(token, cache.get(digest))
        if len(cache) > _TOKEN_CACHE_SIZE:
            cache.popitem(last=False)
        return _to_caller(token)

    def _record_use(self, token: Token, cached: Token | None) -> Token:
        """A token whose use is noted, or will be once it can: whoever only reads never waits for that."""
        if cached is not None and not _needs_use_update(cached):
            return replace(token, last_used_at=cached.last_used_at)
        if not _needs_use_update(token):
            return token
        used_at = now_ms()
        with suppress(DatabaseUnavailable):  # Where too much waits to be written, the next use is noted.
            self._database.submit_write(lambda transaction: accounts.set_token_used(transaction, token.id, at=used_at))
        return replace(token, last_used_at=used_at)


def _parse_authorization(authorization: str | None) -> str:
    if not authorization:
        raise Unauthenticated("This needs a token: send it as `Authorization: Bearer TOKEN`.")
    match = _AUTHORIZATION_PATTERN.fullmatch(authorization)
    if match is None:
        raise Unauthenticated("The Authorization header has another form than `Bearer TOKEN`.")
    return match.group(1)


def _is_expired(token: Token) -> bool:
    return token.expires_at is not None and token.expires_at <= now_ms()


def _needs_use_update(token: Token) -> bool:
    return token.last_used_at is None or now_ms() - token.last_used_at > _USE_UPDATE_INTERVAL_MS


def _to_caller(token: Token) -> Caller:
    return Caller(token.account, token.effective_role, token.id, token.expires_at, token.origin == Origin.SIGN_IN)
