"""Hierarchies: finding where one bites its own tail."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from lexarium.domain.relations import Edge


def cycles(edges: Iterable[Edge], most: int = 20) -> list[list[str]]:
    """Chains of records that come back to where they began, at most so many; each starts and ends alike."""
    parents: dict[str, list[str]] = {}
    for edge in edges:
        parents.setdefault(edge.source, []).append(edge.target)
    return list(islice(_cycles(parents), most))


def circle_told(relations: Sequence[str], cycle: Sequence[str]) -> str:
    """That a hierarchy of these relations bites its own tail."""
    return f"a chain of {' and '.join(relations)} comes back to where it began: {' → '.join(cycle)}"


def _cycles(parents: dict[str, list[str]]) -> Iterator[list[str]]:
    """Walks upward from every record once, and sees where it comes upon the way it came."""
    done: set[str] = set()
    for start, first in parents.items():
        way: dict[str, Iterator[str]] = {} if start in done else {start: iter(first)}
        while way:
            here = next(reversed(way))
            for parent in way[here]:
                if parent in way:
                    passed = list(way)
                    yield [*passed[passed.index(parent) :], parent]
                elif parent in parents and parent not in done:
                    way[parent] = iter(parents[parent])
                    break
            else:
                done.add(here)
                del way[here]
