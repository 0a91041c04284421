"""One answer of a server, and whether it is the one that is to be measured."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse

from benchmarks.errors import WrongAnswer
from benchmarks.records import Record

HOST = "127.0.0.1"
_TIMEOUT_SECONDS = 300
_FIRST_BYTES = 1 << 16
_NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    status: int
    content_type: str
    etag: str | None
    body: bytes


def request(connection: HTTPConnection, path: str, headers: Mapping[str, str] = _NO_HEADERS) -> HTTPResponse:
    """Ask for a path with no header but these and `Host`, as the load does; the body is still to be read."""
    connection.putrequest("GET", path, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    return connection.getresponse()


def connect(port: int) -> HTTPConnection:
    """A connection to a server of this machine; it is opened by the first request."""
    return HTTPConnection(HOST, port, timeout=_TIMEOUT_SECONDS)


def fetch(port: int, path: str, headers: Mapping[str, str] = _NO_HEADERS, pause_seconds: float = 0.0) -> Answer:
    """One whole answer over a connection of its own, with a pause after the body's first bytes.

    Raises WrongAnswer where the connection breaks before the answer's end.
    """
    connection = connect(port)
    try:
        response = request(connection, path, headers)
        first = response.read(_FIRST_BYTES)
        time.sleep(pause_seconds)
        body = first + response.read()
    except (OSError, HTTPException) as error:
        raise WrongAnswer(f"No whole answer to {path} came: {error!r}.") from error
    finally:
        connection.close()
    return Answer(response.status, response.getheader("Content-Type", ""), response.getheader("ETag"), body)


def check_collection(answer: Answer, expected: Sequence[Record]) -> None:
    """Raise WrongAnswer unless the answer is a JSON array of exactly these records, in any order."""
    got = _json(answer)
    if not isinstance(got, list) or len(got) != len(expected):
        raise WrongAnswer(f"Expected an array of {len(expected):,} records, got {_shape(got)}.")
    by_id = {record["id"]: record for record in got}
    for record in expected:
        _compare(by_id.get(record["id"]), record)


def check_record(answer: Answer, expected: Record) -> None:
    """Raise WrongAnswer unless the answer is this record, perhaps with relations or alone in an array."""
    got = _json(answer)
    _compare(got[0] if isinstance(got, list) and len(got) == 1 else got, expected)


def check_not_modified(answer: Answer) -> None:
    """Raise WrongAnswer unless the answer is a 304 without a body."""
    if answer.status != 304 or answer.body:
        raise WrongAnswer(f"Expected an empty 304, got a {answer.status} with {len(answer.body):,} bytes.")


def _compare(got: object, expected: Record) -> None:
    """Raise WrongAnswer unless every field is as expected; `got` may have more of them."""
    if not isinstance(got, dict):
        raise WrongAnswer(f"Expected the record {expected['id']}, got {_shape(got)}.")
    for field, value in expected.items():
        if got.get(field) != value:
            raise WrongAnswer(f"Expected {value!r} as {field} of {expected['id']}, got {got.get(field)!r}.")


def _json(answer: Answer) -> object:
    if answer.status != 200 or not answer.content_type.startswith("application/json"):
        raise WrongAnswer(
            f"Expected JSON with status 200, got {answer.content_type or 'no type'} with {answer.status}:"
            f" {answer.body[:200]!r}."
        )
    try:
        decoded: object = json.loads(answer.body)
    except ValueError as error:
        raise WrongAnswer(f"The body is not JSON: {error}.") from error
    return decoded


def _shape(value: object) -> str:
    return f"an array of {len(value):,}" if isinstance(value, list) else repr(value)[:200]
