"""Public path of `lexarium.client.transport`."""

from lexarium.client.transport import Unreachable

__all__ = ["Unreachable"]
