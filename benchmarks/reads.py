"""The three reads that are measured, and one visit to a server that measures them."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from benchmarks.answers import Answer, check_collection, check_not_modified, check_record, fetch
from benchmarks.catalogue import Catalogue
from benchmarks.errors import WrongAnswer
from benchmarks.load import Loader, Question, Speed
from benchmarks.memory import used_bytes
from benchmarks.processes import Running, Server, running


class Read(Enum):
    """A kind of read; its value is what the report calls it."""

    COLLECTION = "the whole collection"
    RECORD = "one record"
    NOT_MODIFIED = "304 for the whole collection"


@dataclass(frozen=True)
class Reading:
    """What one read measured at one server; the memory is that of all its processes right after the load."""

    speed: Speed
    memory_bytes: int


def visit(
    server: Server, catalogue: Catalogue, loader: Loader, core: int | None, seconds: float
) -> Iterator[tuple[Read, Reading]]:
    """Start a server, verify each of its answers, measure each under load, and stop it.

    Raises WrongAnswer, naming the server, at the first answer that is not the one to be measured.
    """
    with running(server, core, server.record_path) as started:
        try:
            for read, question in _questions(started, catalogue):
                speed = loader.measure(question, seconds)
                yield read, Reading(speed, used_bytes(started.pid))
        except WrongAnswer as error:
            raise WrongAnswer(f"{server.name}: {error}") from error


def _questions(started: Running, catalogue: Catalogue) -> Iterator[tuple[Read, Question]]:
    server = started.server
    collection, question = _question(
        server, server.collection_path, {}, lambda got: check_collection(got, catalogue.concepts)
    )
    yield Read.COLLECTION, question
    _, question = _question(server, server.record_path, {}, lambda got: check_record(got, catalogue.example))
    yield Read.RECORD, question
    if server.answers_304:
        if collection.etag is None:
            raise WrongAnswer("The whole collection came without an ETag.")
        headers = {"If-None-Match": collection.etag}
        _, question = _question(server, server.collection_path, headers, check_not_modified)
        yield Read.NOT_MODIFIED, question


def _question(
    server: Server, path: str, headers: dict[str, str], check: Callable[[Answer], None]
) -> tuple[Answer, Question]:
    began = time.perf_counter()
    answer = fetch(server.port, path, headers)
    seconds = time.perf_counter() - began
    check(answer)
    return answer, Question(server.port, path, headers, answer.status, answer.body, seconds)
