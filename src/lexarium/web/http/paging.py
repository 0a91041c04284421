"""Pages of lists whose items are ordered by time and id."""

import re
from collections.abc import Sequence
from typing import TypeVar

from lexarium.domain.errors import FieldProblem, InvalidInput
from lexarium.domain.text.characters import find_unstorable_char

_PAGE_KEY = re.compile(r"([0-9]{1,18})-(.+)", re.DOTALL)
ItemT = TypeVar("ItemT")


def parse_page_key(value: str) -> tuple[int, str] | None:
    """Parse the parameter "time-id" at which a page of a list begins; return None if it is invalid."""
    match = _PAGE_KEY.fullmatch(value)
    return (int(match[1]), match[2]) if match and not find_unstorable_char(match[2]) else None


def parse_cursor(name: str, value: str | None) -> tuple[int, str] | None:
    """Parse an optional parameter "time-id"; raise InvalidInput if it is invalid."""
    page_key = None if value is None else parse_page_key(value)
    if value is not None and page_key is None:
        raise InvalidInput("Invalid cursor.", [FieldProblem(name, "is not a cursor of this service.")])
    return page_key


def split_page(items: Sequence[ItemT], size: int) -> tuple[Sequence[ItemT], ItemT | None]:
    """Return the items of a page and, if there are more than these, its last one."""
    return items[:size], items[size - 1] if len(items) > size else None
