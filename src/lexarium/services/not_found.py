"""Look something up by a key that a client sent, or raise NotFound."""

from collections.abc import Callable
from typing import TypeVar

from lexarium.domain.errors import NotFound
from lexarium.domain.text.characters import find_unstorable_char

Found = TypeVar("Found")


def find_or_raise(find: Callable[[], Found | None], key: str, message: str) -> Found:
    """Return the result of `find`; raise NotFound with a message if it is None or empty.

    A key with characters that no database can store is not looked up.
    """
    result = None if find_unstorable_char(key) else find()
    if not result:
        raise NotFound(message)
    return result
