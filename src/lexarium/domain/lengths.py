"""How long the texts may be that people write."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Lengths:
    """The longest texts that people may write, in characters."""

    name: int = 500
    alias: int = 2_000
    """All other names of a record in one text, as v-alpha has them; one by one they are as long as a name."""
    definition: int = 50_000


_chosen = [Lengths()]


def lengths() -> Lengths:
    """Those that hold in this process."""
    return _chosen[0]


def choose(chosen: Lengths) -> None:
    """Have others hold. For whoever wires the process, before anything is written."""
    _chosen[0] = chosen
