"""One answer of a server, and whether it is the one that is to be measured."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse

from benchmarks.data.records import Record
from benchmarks.harness.errors import UnexpectedResponse

HOST = "127.0.0.1"
_TIMEOUT_SECONDS = 300
_FIRST_BYTES = 1 << 16
_NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True)
class FetchedResponse:
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


def fetch(
    port: int, path: str, headers: Mapping[str, str] = _NO_HEADERS, pause_seconds: float = 0.0
) -> FetchedResponse:
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
        raise UnexpectedResponse(f"No whole answer to {path} came: {error!r}.") from error
    finally:
        connection.close()
    return FetchedResponse(response.status, response.getheader("Content-Type", ""), response.getheader("ETag"), body)


def check_collection(response: FetchedResponse, expected: Sequence[Record]) -> None:
    """Raise WrongAnswer unless the answer is a JSON array of exactly these records, in any order."""
    actual = _parse_json(response)
    if not isinstance(actual, list) or len(actual) != len(expected):
        raise UnexpectedResponse(f"Expected an array of {len(expected):,} records, got {_describe(actual)}.")
    by_id = {record["id"]: record for record in actual}
    for record in expected:
        _compare(by_id.get(record["id"]), record)


def check_record(response: FetchedResponse, expected: Record) -> None:
    """Raise WrongAnswer unless the answer is this record, perhaps with relations or alone in an array."""
    actual = _parse_json(response)
    _compare(actual[0] if isinstance(actual, list) and len(actual) == 1 else actual, expected)


def check_not_modified(response: FetchedResponse) -> None:
    """Raise WrongAnswer unless the answer is a 304 without a body."""
    if response.status != 304 or response.body:
        raise UnexpectedResponse(f"Expected an empty 304, got a {response.status} with {len(response.body):,} bytes.")


def _compare(actual: object, expected: Record) -> None:
    """Raise WrongAnswer unless every field is as expected; `got` may have more of them."""
    if not isinstance(actual, dict):
        raise UnexpectedResponse(f"Expected the record {expected['id']}, got {_describe(actual)}.")
    for field, value in expected.items():
        if actual.get(field) != value:
            raise UnexpectedResponse(f"Expected {value!r} as {field} of {expected['id']}, got {actual.get(field)!r}.")


def _parse_json(response: FetchedResponse) -> object:
    if response.status != 200 or not response.content_type.startswith("application/json"):
        raise UnexpectedResponse(
            f"Expected JSON with status 200, got {response.content_type or 'no type'} with {response.status}:"
            f" {response.body[:200]!r}."
        )
    try:
        decoded: object = json.loads(response.body)
    except ValueError as error:
        raise UnexpectedResponse(f"The body is not JSON: {error}.") from error
    return decoded


def _describe(value: object) -> str:
    return f"an array of {len(value):,}" if isinstance(value, list) else repr(value)[:200]
