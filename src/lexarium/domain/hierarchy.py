"""Find cycles in a hierarchy."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from lexarium.domain.record import Relation


def find_cycles(relations: Iterable[Relation], limit: int = 20) -> list[list[str]]:
    """Return cycles of record ids; each starts and ends with the same id."""
    parents: dict[str, list[str]] = {}
    for relation in relations:
        parents.setdefault(relation.source, []).append(relation.target)
    return list(islice(_iter_cycles(parents), limit))


def format_cycle(type_names: Sequence[str], cycle: Sequence[str]) -> str:
    """Return a description of a cycle."""
    return f"{' and '.join(type_names)} relations form a cycle: {' → '.join(cycle)}"


def _iter_cycles(parents: dict[str, list[str]]) -> Iterator[list[str]]:
    """Search upward, depth-first, from each record once."""
    visited: set[str] = set()
    for start, first in parents.items():
        path: dict[str, Iterator[str]] = {} if start in visited else {start: iter(first)}
        while path:
            node = next(reversed(path))
            for parent in path[node]:
                if parent in path:
                    nodes = list(path)
                    yield [*nodes[nodes.index(parent) :], parent]
                elif parent in parents and parent not in visited:
                    path[parent] = iter(parents[parent])
                    break
            else:
                visited.add(node)
                del path[node]
