"""Performance targets and whether they are met."""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.harness.read_scenarios import ReadResult, ReadScenario
from benchmarks.harness.streaming import StreamingResult

MAX_START_SECONDS = 1.5
MAX_MEMORY_MB = 150
# Buffers and the database's page cache, which do not grow with the collection.
MAX_STREAMING_GROWTH_MB = 16
_MIN_CONCLUSIVE_MB = 2 * MAX_STREAMING_GROWTH_MB
_NOT_MEASURED = "not measured"

ReadResults = Mapping[tuple[str, ReadScenario], ReadResult]


@dataclass(frozen=True)
class TargetResult:
    """Result for one target; `is_met` is None if this run is inconclusive."""

    target: str
    measured: str
    is_met: bool | None


@dataclass(frozen=True)
class _RatioTarget:
    target: str
    minimum: float
    scenario: ReadScenario
    peer: str
    peer_scenario: ReadScenario


_RATIO_TARGETS = (
    _RatioTarget(
        "whole collection of about 1 MB, ratio to nginx", 0.8, ReadScenario.COLLECTION, "nginx", ReadScenario.COLLECTION
    ),
    _RatioTarget(
        "whole collection, ratio to DRF", 50, ReadScenario.COLLECTION, "Django REST framework", ReadScenario.COLLECTION
    ),
    _RatioTarget("one record, ratio to a small file of nginx", 0.25, ReadScenario.RECORD, "nginx", ReadScenario.RECORD),
    _RatioTarget("304, ratio to a small file of nginx", 0.25, ReadScenario.NOT_MODIFIED, "nginx", ReadScenario.RECORD),
)


def check_read_targets(results: ReadResults) -> list[TargetResult]:
    """Check the targets of the 1 MB catalogue; `results` may lack servers that were left out."""
    return [*(_check_ratio_target(ratio, results) for ratio in _RATIO_TARGETS), _check_memory_target(results)]


def check_startup_target(catalogue: str, seconds: float) -> TargetResult:
    """Check the startup target at one size of catalogue."""
    return TargetResult(
        f"time from start to the first response with {catalogue}, at most {MAX_START_SECONDS} s",
        f"{seconds:.2f} s",
        seconds <= MAX_START_SECONDS,
    )


def check_streaming_target(result: StreamingResult) -> TargetResult:
    """Check the target for streaming; a small body is inconclusive."""
    growth, body = result.growth_bytes / 1e6, result.body_bytes / 1e6
    return TargetResult(
        f"growth of memory while a body larger than the cache is streamed, at most {MAX_STREAMING_GROWTH_MB} MB",
        f"{growth:.1f} MB with a body of {body:.1f} MB",
        growth <= MAX_STREAMING_GROWTH_MB if body >= _MIN_CONCLUSIVE_MB else None,
    )


def _check_ratio_target(ratio: _RatioTarget, results: ReadResults) -> TargetResult:
    title = f"{ratio.target}: at least {ratio.minimum:g}"
    lexarium = results.get(("Lexarium", ratio.scenario))
    peer = results.get((ratio.peer, ratio.peer_scenario))
    if lexarium is None or peer is None:
        return TargetResult(title, _NOT_MEASURED, None)
    measured = lexarium.speed.requests_per_second / peer.speed.requests_per_second
    return TargetResult(title, f"{measured:.2f}", measured >= ratio.minimum)


def _check_memory_target(results: ReadResults) -> TargetResult:
    title = f"memory of one worker, less than {MAX_MEMORY_MB} MB"
    megabytes = [result.memory_bytes / 1e6 for (server, _), result in results.items() if server == "Lexarium"]
    if not megabytes:
        return TargetResult(title, _NOT_MEASURED, None)
    return TargetResult(title, f"{max(megabytes):.0f} MB", max(megabytes) < MAX_MEMORY_MB)
