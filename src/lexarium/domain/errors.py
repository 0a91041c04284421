"""What can go wrong, told to people. None of these knows HTTP or a terminal; one table in `web` maps them.

LexariumError
├── SettingError           a setting has a value it cannot have
├── StoreError             the database cannot be used as it is
│   ├── NotACatalogue      it is no database, or not one of Lexarium's
│   ├── TooNew             a newer Lexarium made it
│   └── Unavailable        it cannot be reached or written now
├── NotFound               no such record, account or token
├── Unauthenticated        no token, or one that is not valid
├── Forbidden              the role does not allow it
├── Conflict               it is there already
└── Invalid                what was given breaks rules; carries every problem found
    └── ImportRefused      the same, of files
"""

from collections.abc import Sequence
from dataclasses import dataclass


class LexariumError(Exception):
    """The root of all errors that are meant to be read by the person who caused them."""


class SettingError(LexariumError):
    """A setting has a value it cannot have."""


class StoreError(LexariumError):
    """The database cannot be used as it is."""


class NotACatalogue(StoreError):
    """What the database address points to is no database, or not one of Lexarium's."""


class TooNew(StoreError):
    """The database was written by a newer Lexarium."""


class Unavailable(StoreError):
    """The database cannot be reached, or cannot be written, at this moment."""


class NotFound(LexariumError):
    """There is no such record, account or token."""


class Unauthenticated(LexariumError):
    """No token was given, or one that is not valid."""


class Forbidden(LexariumError):
    """The role of the caller does not allow this."""


class Conflict(LexariumError):
    """What should be made is there already."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with one field of what was given."""

    field: str
    detail: str


class Invalid(LexariumError):
    """What was given breaks rules: every problem at once."""

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class ImportRefused(Invalid):
    """Files that cannot be imported. Nothing of them was."""
