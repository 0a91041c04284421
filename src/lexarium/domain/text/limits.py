"""How long the texts may be that people write."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TextLimits:
    """The longest texts that people may write, in characters."""

    name: int = 500
    alias: int = 2_000
    """All other names of a record in one text, as v-alpha has them; one by one they are as long as a name."""
    definition: int = 50_000


_limits = [TextLimits()]


def get_text_limits() -> TextLimits:
    """Those that hold in this process."""
    return _limits[0]


def set_text_limits(limits: TextLimits) -> None:
    """Have others hold. For whoever wires the process, before anything is written."""
    _limits[0] = limits
