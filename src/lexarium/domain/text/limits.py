"""InputLimits of what people write."""

from dataclasses import dataclass


@dataclass(frozen=True)
class InputLimits:
    """Maximum lengths of texts in characters, and limits of the open proposals of a contributor."""

    name: int = 500
    # All aliases as one v-alpha text. A single one may be as long as a name.
    alias: int = 2_000
    definition: int = 50_000
    open_proposals: int = 1_000
    # Total size of the changes that they propose.
    open_proposal_bytes: int = 16 << 20


_limits = [InputLimits()]


def get_input_limits() -> InputLimits:
    """Return the limits of this process."""
    return _limits[0]


def set_input_limits(limits: InputLimits) -> None:
    """Set the limits of this process, at start-up."""
    _limits[0] = limits
