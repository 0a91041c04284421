"""Fetch responses and check their content."""

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
    """Complete response."""

    status: int
    content_type: str
    etag: str | None
    body: bytes


def request(connection: HTTPConnection, path: str, headers: Mapping[str, str] = _NO_HEADERS) -> HTTPResponse:
    """Request a path with only these headers and `Host`, like the load generator; the body is not read yet."""
    connection.putrequest("GET", path, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    return connection.getresponse()


def connect(port: int) -> HTTPConnection:
    """Return a connection to a local port, which the first request opens."""
    return HTTPConnection(HOST, port, timeout=_TIMEOUT_SECONDS)


def fetch(
    port: int, path: str, headers: Mapping[str, str] = _NO_HEADERS, pause_seconds: float = 0.0
) -> FetchedResponse:
    """Fetch a response over a new connection, with a pause after the first bytes of the body.

    Raise UnexpectedResponse if the connection breaks.
    """
    connection = connect(port)
    try:
        response = request(connection, path, headers)
        first = response.read(_FIRST_BYTES)
        time.sleep(pause_seconds)
        body = first + response.read()
    except (OSError, HTTPException) as error:
        raise UnexpectedResponse(f"The response to {path} is incomplete: {error!r}.") from error
    finally:
        connection.close()
    return FetchedResponse(response.status, response.getheader("Content-Type", ""), response.getheader("ETag"), body)


def check_collection(response: FetchedResponse, expected: Sequence[Record]) -> None:
    """Raise UnexpectedResponse unless the body is an array of exactly these records, in any order."""
    actual = _parse_json(response)
    if not isinstance(actual, list) or len(actual) != len(expected):
        raise UnexpectedResponse(f"Expected an array of {len(expected):,} records, got {_describe(actual)}.")
    by_id = {record["id"]: record for record in actual}
    for record in expected:
        _compare(by_id.get(record["id"]), record)


def check_record(response: FetchedResponse, expected: Record) -> None:
    """Raise UnexpectedResponse unless the body is this record, perhaps with relations or inside an array."""
    actual = _parse_json(response)
    _compare(actual[0] if isinstance(actual, list) and len(actual) == 1 else actual, expected)


def check_not_modified(response: FetchedResponse) -> None:
    """Raise UnexpectedResponse unless the response is a 304 without a body."""
    if response.status != 304 or response.body:
        raise UnexpectedResponse(f"Expected an empty 304, got a {response.status} with {len(response.body):,} bytes.")


def _compare(actual: object, expected: Record) -> None:
    """Raise UnexpectedResponse unless every expected field is equal; `actual` may have more fields."""
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
