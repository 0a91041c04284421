"""Hierarchies: finding where one bites its own tail."""

from collections import defaultdict
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from lexarium.domain.relations import Edge


def cycles(edges: Iterable[Edge], most: int = 20) -> list[list[str]]:
    """Chains of records that come back to where they began, at most so many; each starts and ends alike."""
    parents: dict[str, set[str]] = defaultdict(set)
    for edge in edges:
        parents[edge.source].add(edge.target)
    found: list[list[str]] = []
    while len(found) < most:
        try:
            TopologicalSorter(parents).prepare()
        except CycleError as error:
            cycle: list[str] = error.args[1][::-1]
            found.append(cycle)
            # Cut the knot and look for the next one.
            parents[cycle[0]].discard(cycle[1])
        else:
            break
    return found
