"""Authenticate callers by bearer token; sign in with a password."""

import re
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace

from lexarium.domain.account import SESSION_TOKEN_LABEL, Origin, Token
from lexarium.domain.errors import DatabaseUnavailable, Unauthenticated
from lexarium.domain.text.characters import find_unstorable_char
from lexarium.domain.text.timestamps import now_ms
from lexarium.services.access.passwords import verify_password
from lexarium.services.access.permissions import Caller
from lexarium.services.access.tokens import compute_expiry, create_token, hash_secret
from lexarium.store import accounts
from lexarium.store.database import Database

# The last use of a token is not worth a write per request.
_USE_UPDATE_INTERVAL_MS = 60_000
_TOKEN_CACHE_SIZE = 10_000
_SESSION_DAYS = 1
_AUTHORIZATION_PATTERN = re.compile(r"(?:bearer|token) +(\S+) *", re.IGNORECASE)


class Authenticator:
    """Authenticates callers; caches verified tokens until an account or token changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._token_cache: OrderedDict[str, Token] = OrderedDict()
        self._cache_position: tuple[str, int] | None = None

    def get_cached(self, authorization: str | None) -> Caller | None:
        """Return the caller of an `Authorization` header if cached, else None.

        Call it from the thread that may read the catalogue's position.
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
        """Return the caller of an `Authorization` header, read from the store; raise Unauthenticated."""
        digest = hash_secret(_parse_authorization(authorization))
        # Taken before the read: if an account changes meanwhile, a new cache begins without this token.
        cache = self._token_cache
        with self._database.read(from_primary=True) as connection:
            token = accounts.find_token_by_hash(connection, digest)
            if token is not None:
                token = replace(token, account=accounts.load_vocabulary_roles(connection, token.account))
        if token is None or token.revoked_at is not None:
            raise Unauthenticated("Invalid token.")
        if _is_expired(token):
            raise Unauthenticated("Token has expired.")
        cache[digest] = self._record_use(token, cache.get(digest))
        if len(cache) > _TOKEN_CACHE_SIZE:
            cache.popitem(last=False)
        return _to_caller(token)

    def _record_use(self, token: Token, cached: Token | None) -> Token:
        if cached is not None and not _needs_use_update(cached):
            return replace(token, last_used_at=cached.last_used_at)
        if not _needs_use_update(token):
            return token
        used_at = now_ms()
        with suppress(DatabaseUnavailable):  # The next use is recorded if the queue is full.
            self._database.submit_write(lambda transaction: accounts.set_token_used(transaction, token.id, at=used_at))
        return replace(token, last_used_at=used_at)


def sign_in(database: Database, name: str, password: str) -> tuple[Token, str]:
    """Return a session token and its secret; raise Unauthenticated if the name or the password is wrong."""
    with database.read(from_primary=True) as snapshot:
        password_hash = None if find_unstorable_char(name) else accounts.find_password_hash(snapshot, name)
    # Verified without a hash too: the response time must not reveal if the account exists.
    if not verify_password(password_hash, password):
        raise Unauthenticated("Wrong name or password.")
    return create_token(
        database,
        name,
        expires_at=compute_expiry(_SESSION_DAYS),
        label=SESSION_TOKEN_LABEL,
        origin=Origin.SIGN_IN,
        expected_password_hash=password_hash,
    )


def _parse_authorization(authorization: str | None) -> str:
    if not authorization:
        raise Unauthenticated("Token required: send `Authorization: Bearer TOKEN`.")
    match = _AUTHORIZATION_PATTERN.fullmatch(authorization)
    if match is None:
        raise Unauthenticated("Invalid Authorization header; expected `Bearer TOKEN`.")
    return match.group(1)


def _is_expired(token: Token) -> bool:
    return token.expires_at is not None and token.expires_at <= now_ms()


def _needs_use_update(token: Token) -> bool:
    return token.last_used_at is None or now_ms() - token.last_used_at > _USE_UPDATE_INTERVAL_MS


def _to_caller(token: Token) -> Caller:
    account = token.account
    return Caller(
        account,
        token.effective_role,
        token.id,
        token.expires_at,
        token.origin == Origin.SIGN_IN,
        {slug: min(token.role, role, key=lambda item: item.rank) for slug, role in account.vocabulary_roles.items()},
    )
