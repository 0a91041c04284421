"""Authenticate the callers of requests."""

from contextlib import suppress

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from lexarium.domain.errors import Unauthenticated
from lexarium.services.access.authentication import Authenticator
from lexarium.services.access.permissions import Caller
from lexarium.web.http import session


async def authenticate_request(request: Request, authenticator: Authenticator) -> Caller:
    """Return the caller of a request; raise `Unauthenticated`."""
    return await authenticate_header(request.headers.get("authorization"), authenticator)


async def authenticate_header(authorization: str | None, authenticator: Authenticator) -> Caller:
    """Return the caller that an `Authorization` header names; raise `Unauthenticated`."""
    caller = authenticator.get_cached(authorization)
    return await run_in_threadpool(authenticator.authenticate, authorization) if caller is None else caller


async def find_reader(request: Request, authenticator: Authenticator) -> Caller | None:
    """Return the caller of a request that needs no token; raise Unauthenticated if it has one that is not valid.

    A session of the pages counts too, as long as it lasts.
    """
    header = request.headers.get("authorization")
    if header is not None:
        return await authenticate_header(header, authenticator)
    session_header = session.get_authorization(request)
    if session_header is not None:
        with suppress(Unauthenticated):
            return await authenticate_header(session_header, authenticator)
    return None


class AccessGate:
    """Decide whether a request may read."""

    def __init__(self, authenticator: Authenticator, is_private: bool) -> None:
        self._authenticator = authenticator
        self.is_private = is_private

    async def require_reader(self, request: Request) -> None:
        """Raise `Unauthenticated` where the catalogue is private and the request has neither token nor session."""
        if self.is_private:
            authorization = request.headers.get("authorization") or session.get_authorization(request)
            await authenticate_header(authorization, self._authenticator)
