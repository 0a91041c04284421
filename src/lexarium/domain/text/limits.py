"""Maximum lengths of texts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TextLimits:
    """Maximum lengths in characters of texts that people write."""

    name: int = 500
    # All aliases as one v-alpha text. A single one may be as long as a name.
    alias: int = 2_000
    definition: int = 50_000


_limits = [TextLimits()]


def get_text_limits() -> TextLimits:
    """Return the limits of this process."""
    return _limits[0]


def set_text_limits(limits: TextLimits) -> None:
    """Set the limits of this process, at start-up."""
    _limits[0] = limits
