"""Python client of a Lexarium server."""

from lexarium.client.client import Catalogue, NotFound, Records, Refused, Rows, Stale
from lexarium.client.transport import Unreachable

__all__ = ["Catalogue", "NotFound", "Records", "Refused", "Rows", "Stale", "Unreachable"]
