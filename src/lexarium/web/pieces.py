"""A body that is made piece by piece, each in a thread, few at a time however many ask."""

from collections.abc import AsyncIterator, Iterator

from starlette.concurrency import run_in_threadpool

from lexarium.web.limits import Limits


async def first(pieces: Iterator[bytes], limits: Limits) -> bytes | None:
    """The first piece, to be made before the answer begins: what can go wrong does so here, and has a status."""
    async with limits.heavy.turn():
        return await run_in_threadpool(next, pieces, None)


async def rest(piece: bytes | None, pieces: Iterator[bytes], limits: Limits) -> AsyncIterator[bytes]:
    """The first piece and those after it, each made once the client has taken the one before; empty ones left out."""
    while piece is not None:
        if piece:
            yield piece
        async with limits.heavy.next_turn():
            piece = await run_in_threadpool(next, pieces, None)
