"""Load on one address with wrk, and the proof that every answer was the right one.

Looking at every body costs wrk half its speed at 1 MB and would flatter slow servers, so each timed run comes
after a checked one: the same load for a moment, with status and body of every answer compared with the right
one byte for byte. In the timed run wrk counts answers of 400 and above, and the bytes an answer takes on the
wire must be those of the checked run: a 200 among 304s, or a short body, shows there.
"""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from benchmarks.answers import HOST, fetch
from benchmarks.cores import pinned
from benchmarks.errors import BenchmarkError, WrongAnswer

CONNECTIONS = 16
# Past either of these one connection already keeps a worker busy, and more of them only queue.
LARGE_BODY_BYTES = 4_000_000
SLOW_ANSWER_SECONDS = 0.1
_CHECK_SECONDS = 1.0
# A run lasts long enough for so many answers of a slow server: a little over a whole number, for jitter.
_LEAST_ANSWERS = 3.2
_LEAST_CHECKED = 2.2
_TIMEOUT_SECONDS = 300
_MARK = "result:"

_TIMED = """
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
_CHECKED = (
    _TIMED
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
class Question:
    """A request that is sent over and over, the one right answer to it, and how long an idle server took."""

    port: int
    path: str
    headers: Mapping[str, str]
    status: int
    body: bytes
    answer_seconds: float


@dataclass(frozen=True)
class Speed:
    """What a timed run measured."""

    requests_per_second: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class _Run:
    """What the script's line of figures says, in its order; times are in microseconds."""

    requests: int
    bytes: int
    microseconds: int
    p50: int
    p99: int
    bad_statuses: int
    failures: int
    wrong: int
    first_wrong: str


@dataclass(frozen=True)
class Loader:
    """Runs wrk on a core; `folder` takes its scripts."""

    wrk: str
    core: int | None
    folder: Path

    def measure(self, question: Question, seconds: float) -> Speed:
        """Load for about so many seconds, more where an answer takes longer.

        Raises WrongAnswer where any answer was not the right one.
        """
        checked = self._checked(question)
        timed = self._timed(question, seconds)
        _compare(checked, timed, _connections(question))
        return Speed(timed.requests / timed.microseconds * 1e6, timed.p50 / 1e3, timed.p99 / 1e3)

    def _checked(self, question: Question) -> _Run:
        body_file = self.folder / "expected"
        body_file.write_bytes(question.body)
        script = _CHECKED.format(
            headers=_lua_table(question.headers),
            mark=_MARK,
            body_file=json.dumps(str(body_file)),
            status=question.status,
        )
        return self._run(question, script, max(_CHECK_SECONDS, _LEAST_CHECKED * question.answer_seconds))

    def _timed(self, question: Question, seconds: float) -> _Run:
        script = _TIMED.format(headers=_lua_table(question.headers), mark=_MARK)
        return self._run(question, script, max(seconds, _LEAST_ANSWERS * question.answer_seconds))

    def _run(self, question: Question, script: str, seconds: float) -> _Run:
        run = self._wrk(question, script, seconds)
        # An answer may take longer now than it did before the load.
        while not run.requests and not run.failures and seconds < _TIMEOUT_SECONDS:
            seconds *= 2
            run = self._wrk(question, script, seconds)
        _refuse_wrong(run, question)
        return run

    def _wrk(self, question: Question, script: str, seconds: float) -> _Run:
        script_file = self.folder / "load.lua"
        script_file.write_text(script)
        command = [
            self.wrk,
            "--threads=1",
            f"--connections={_connections(question)}",
            f"--duration={ceil(seconds)}s",
            f"--timeout={_TIMEOUT_SECONDS}s",
            "--latency",
            f"--script={script_file}",
            f"http://{HOST}:{question.port}{question.path}",
        ]
        with pinned(self.core):
            done = subprocess.run(command, check=False, capture_output=True, text=True)
        # wrk leaves while its last requests still wait in the server; one more answer comes after them all.
        fetch(question.port, question.path, question.headers)
        return _parse(done.stdout, done.stderr)


def _connections(question: Question) -> int:
    slow = question.answer_seconds > SLOW_ANSWER_SECONDS
    return 1 if slow or len(question.body) > LARGE_BODY_BYTES else CONNECTIONS


def _lua_table(values: Mapping[str, str]) -> str:
    # A JSON string of ASCII characters is a Lua string too.
    entries = (f"[{json.dumps(name)}] = {json.dumps(value)}" for name, value in values.items())
    return "{" + ", ".join(entries) + "}"


def _parse(output: str, errors: str) -> _Run:
    for line in output.splitlines():
        if line.startswith(_MARK):
            *numbers, first_wrong = line.removeprefix(_MARK).strip().split(" ", 8)
            requests, size, duration, p50, p99, statuses, failures, wrong = map(int, numbers)
            return _Run(requests, size, duration, p50, p99, statuses, failures, wrong, first_wrong)
    raise BenchmarkError(f"wrk gave no result: {(errors or output).strip()[-500:]}")


def _refuse_wrong(run: _Run, question: Question) -> None:
    if run.wrong:
        raise WrongAnswer(
            f"{run.wrong:,} of {run.requests:,} answers to {question.path} under load were wrong; the first:"
            f" {run.first_wrong} instead of {question.status} with {len(question.body):,}."
        )
    if run.bad_statuses or run.failures or not run.requests:
        raise WrongAnswer(
            f"Of {run.requests:,} answers to {question.path} under load {run.bad_statuses:,} had a status of"
            f" 400 or above and {run.failures:,} did not arrive."
        )


def _compare(checked: _Run, timed: _Run, connections: int) -> None:
    """Raise WrongAnswer unless an answer takes as many bytes in both runs.

    Each run's bytes include those of answers still on their way when it ended, at most one a connection.
    """
    right = checked.bytes / checked.requests
    got = timed.bytes / timed.requests
    on_the_way = right * connections / min(checked.requests, timed.requests)
    if abs(got - right) > on_the_way + 1:
        raise WrongAnswer(f"Answers under load took {got:,.1f} bytes each instead of {right:,.1f}.")
