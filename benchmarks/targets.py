"""What Lexarium is to reach, and whether it did."""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.reads import Read, Reading
from benchmarks.streaming import Streamed

START_SECONDS = 1.5
MEMORY_MB = 150
# Buffers and the database's page cache; it does not grow with the collection.
STREAMING_MB = 16
_TELLING_BODY_MB = 2 * STREAMING_MB
_NOT_MEASURED = "not measured"

Readings = Mapping[tuple[str, Read], Reading]


@dataclass(frozen=True)
class Verdict:
    """One target; `reached` is None where this run cannot tell."""

    target: str
    measured: str
    reached: bool | None


@dataclass(frozen=True)
class _Ratio:
    target: str
    least: float
    read: Read
    peer: str
    peer_read: Read


_RATIOS = (
    _Ratio("whole collection of about 1 MB, of nginx", 0.8, Read.COLLECTION, "nginx", Read.COLLECTION),
    _Ratio("whole collection, times DRF", 50, Read.COLLECTION, "Django REST framework", Read.COLLECTION),
    _Ratio("one record, of nginx's small file", 0.25, Read.RECORD, "nginx", Read.RECORD),
    _Ratio("304, of nginx's small file", 0.25, Read.NOT_MODIFIED, "nginx", Read.RECORD),
)


def read_verdicts(readings: Readings) -> list[Verdict]:
    """The targets on the catalogue of about 1 MB; `readings` may lack servers that were left out."""
    return [*(_ratio_verdict(ratio, readings) for ratio in _RATIOS), _memory_verdict(readings)]


def start_verdict(catalogue: str, seconds: float) -> Verdict:
    """The target for the start, at one size of catalogue."""
    return Verdict(
        f"start to first answer at {catalogue}, at most {START_SECONDS} s",
        f"{seconds:.2f} s",
        seconds <= START_SECONDS,
    )


def streaming_verdict(streamed: Streamed) -> Verdict:
    """The target for a collection past the cache limit; a small body cannot show constant memory."""
    growth, body = streamed.growth_bytes / 1e6, streamed.body_bytes / 1e6
    return Verdict(
        f"memory rises by at most {STREAMING_MB} MB while a body past the cache limit streams",
        f"{growth:.1f} MB at a body of {body:.1f} MB",
        growth <= STREAMING_MB if body >= _TELLING_BODY_MB else None,
    )


def _ratio_verdict(ratio: _Ratio, readings: Readings) -> Verdict:
    title = f"{ratio.target}: at least {ratio.least:g}"
    ours = readings.get(("Lexarium", ratio.read))
    theirs = readings.get((ratio.peer, ratio.peer_read))
    if ours is None or theirs is None:
        return Verdict(title, _NOT_MEASURED, None)
    measured = ours.speed.requests_per_second / theirs.speed.requests_per_second
    return Verdict(title, f"{measured:.2f}", measured >= ratio.least)


def _memory_verdict(readings: Readings) -> Verdict:
    title = f"memory of one worker, under {MEMORY_MB} MB"
    ours = [reading.memory_bytes / 1e6 for (server, _), reading in readings.items() if server == "Lexarium"]
    if not ours:
        return Verdict(title, _NOT_MEASURED, None)
    return Verdict(title, f"{max(ours):.0f} MB", max(ours) < MEMORY_MB)
