"""Run wrk and verify every response.

Comparing bodies halves wrk's speed at 1 MB and would favour slow servers. So each timed run follows a short checked
run, in which the status and body of every response are compared byte for byte. In the timed run wrk counts
responses of 400 and above, and the bytes per response on the wire must equal those of the checked run, which
reveals a 200 among 304s or a short body.
"""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from benchmarks.harness.cpu_pinning import pin_to_core
from benchmarks.harness.errors import BenchmarkError, UnexpectedResponse
from benchmarks.harness.http_client import HOST, fetch

CONNECTIONS = 16
# Above either limit one connection already keeps a worker busy, and more would only queue.
LARGE_BODY_BYTES = 4_000_000
SLOW_RESPONSE_SECONDS = 0.1
_CHECK_SECONDS = 1.0
# A run lasts long enough for this many responses of a slow server, plus a little for jitter.
_MIN_RESPONSES = 3.2
_MIN_CHECKED_RESPONSES = 2.2
_TIMEOUT_SECONDS = 300
_RESULT_PREFIX = "result:"

_TIMED_SCRIPT = """
for name, value in pairs({headers}) do wrk.headers[name] = value end
local threads = {{}}
function setup(thread) threads[#threads + 1] = thread end
function done(summary, latency)
  local errors = summary.errors
  io.write("{mark} ", string.format("%d %d %d %d %d %d %d %d %s\\n", summary.requests, summary.bytes,
    summary.duration, latency:percentile(50), latency:percentile(99), errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    threads[1]:get("wrong") or 0, threads[1]:get("first_wrong") or "none"))
end
"""
_CHECKED_SCRIPT = (
    _TIMED_SCRIPT
    + """
local file = io.open({body_file}, "rb")
local expected = file:read("*a")
file:close()
wrong = 0
function response(status, _, body)
  if status == {status} and body == expected then return end
  wrong = wrong + 1
  first_wrong = first_wrong or string.format("status %d with %d bytes", status, #body)
end
"""
)


@dataclass(frozen=True)
class LoadRequest:
    """Request sent repeatedly, its correct response, and the response time of an idle server."""

    port: int
    path: str
    headers: Mapping[str, str]
    status: int
    body: bytes
    response_seconds: float


@dataclass(frozen=True)
class LoadResult:
    """Result of a timed run."""

    requests_per_second: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class _WrkOutput:
    """Fields of the script's result line, in order; times are in microseconds."""

    requests: int
    bytes: int
    microseconds: int
    p50: int
    p99: int
    bad_statuses: int
    failures: int
    wrong_count: int
    first_wrong: str


@dataclass(frozen=True)
class WrkRunner:
    """Run wrk on a core; `folder` holds its scripts."""

    wrk: str
    core: int | None
    folder: Path

    def measure(self, request: LoadRequest, seconds: float) -> LoadResult:
        """Load a server for about this many seconds, longer if responses are slow.

        Raise UnexpectedResponse if any response was wrong.
        """
        checked = self._run_checked(request)
        timed = self._run_timed(request, seconds)
        _compare_sizes(checked, timed, _count_connections(request))
        return LoadResult(timed.requests / timed.microseconds * 1e6, timed.p50 / 1e3, timed.p99 / 1e3)

    def _run_checked(self, request: LoadRequest) -> _WrkOutput:
        body_file = self.folder / "expected"
        body_file.write_bytes(request.body)
        script = _CHECKED_SCRIPT.format(
            headers=format_lua_table(request.headers),
            mark=_RESULT_PREFIX,
            body_file=json.dumps(str(body_file)),
            status=request.status,
        )
        return self._run_script(request, script, max(_CHECK_SECONDS, _MIN_CHECKED_RESPONSES * request.response_seconds))

    def _run_timed(self, request: LoadRequest, seconds: float) -> _WrkOutput:
        script = _TIMED_SCRIPT.format(headers=format_lua_table(request.headers), mark=_RESULT_PREFIX)
        return self._run_script(request, script, max(seconds, _MIN_RESPONSES * request.response_seconds))

    def _run_script(self, request: LoadRequest, script: str, seconds: float) -> _WrkOutput:
        output = self._run_wrk(request, script, seconds)
        # Responses may take longer now than before the load.
        while not output.requests and not output.failures and seconds < _TIMEOUT_SECONDS:
            seconds *= 2
            output = self._run_wrk(request, script, seconds)
        _require_correct(output, request)
        return output

    def _run_wrk(self, request: LoadRequest, script: str, seconds: float) -> _WrkOutput:
        script_file = self.folder / "load.lua"
        script_file.write_text(script)
        command = [
            self.wrk,
            "--threads=1",
            f"--connections={_count_connections(request)}",
            f"--duration={ceil(seconds)}s",
            f"--timeout={_TIMEOUT_SECONDS}s",
            "--latency",
            f"--script={script_file}",
            f"http://{HOST}:{request.port}{request.path}",
        ]
        with pin_to_core(self.core):
            completed = subprocess.run(command, check=False, capture_output=True, text=True)
        # wrk exits while its last requests still wait in the server; one more response comes after all of them.
        fetch(request.port, request.path, request.headers)
        return _parse_output(completed.stdout, completed.stderr)


def _count_connections(request: LoadRequest) -> int:
    is_slow = request.response_seconds > SLOW_RESPONSE_SECONDS
    return 1 if is_slow or len(request.body) > LARGE_BODY_BYTES else CONNECTIONS


def format_lua_table(values: Mapping[str, str]) -> str:
    """Return a Lua table constructor."""
    # A JSON string of ASCII characters is also a Lua string.
    entries = (f"[{json.dumps(name)}] = {json.dumps(value)}" for name, value in values.items())
    return "{" + ", ".join(entries) + "}"


def _parse_output(output: str, errors: str) -> _WrkOutput:
    for line in output.splitlines():
        if line.startswith(_RESULT_PREFIX):
            *numbers, first_wrong = line.removeprefix(_RESULT_PREFIX).strip().split(" ", 8)
            requests, size, duration, p50, p99, statuses, failures, wrong_count = map(int, numbers)
            return _WrkOutput(requests, size, duration, p50, p99, statuses, failures, wrong_count, first_wrong)
    raise BenchmarkError(f"wrk printed no result: {(errors or output).strip()[-500:]}")


def _require_correct(output: _WrkOutput, request: LoadRequest) -> None:
    if output.wrong_count:
        raise UnexpectedResponse(
            f"{output.wrong_count:,} of {output.requests:,} responses to {request.path} under load were wrong; first:"
            f" {output.first_wrong} instead of {request.status} with {len(request.body):,}."
        )
    if output.bad_statuses or output.failures or not output.requests:
        raise UnexpectedResponse(
            f"Of {output.requests:,} responses to {request.path} under load {output.bad_statuses:,} had a status of"
            f" 400 or above and {output.failures:,} did not arrive."
        )


def _compare_sizes(checked: _WrkOutput, timed: _WrkOutput, connections: int) -> None:
    """Raise UnexpectedResponse unless responses have the same size in both runs.

    The bytes of a run include responses that were incomplete at its end, at most one per connection.
    """
    expected_size = checked.bytes / checked.requests
    actual_size = timed.bytes / timed.requests
    in_flight = expected_size * connections / min(checked.requests, timed.requests)
    if abs(actual_size - expected_size) > in_flight + 1:
        raise UnexpectedResponse(
            f"Responses under load had {actual_size:,.1f} bytes each instead of {expected_size:,.1f}."
        )
