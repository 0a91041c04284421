"""What can go wrong, told to people. None of these knows HTTP or a terminal; one table in `web` maps them.

LexariumError
├── SettingError           a setting has a value it cannot have
├── StoreError             the database cannot be used as it is
│   ├── NotACatalogue      it is no database, or not one of Lexarium's
│   ├── Damaged            it is damaged, or marked as damaged
│   ├── TooNew             a newer Lexarium made it
│   └── Unavailable        it cannot be reached or written now
│       └── NoRoom         the disk that it is on is full
├── Unready                the search index is not there yet
├── NotFound               no such record, account or token
│   ├── Gone               the record is retired; perhaps another stands in for it
│   └── Moved              the record is merged into another
├── Unauthenticated        no token, or one that is not valid
├── Forbidden              the role does not allow it
│   └── QuotaExceeded      a contributor has as many open proposals as they may have
├── Conflict               it is there already, or what is there does not go with it
│   └── Stale              it has been changed since it was read
└── Invalid                what was given breaks rules; carries every problem found
    └── ImportRefused      the same, of files
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class LexariumError(Exception):
    """The root of all errors that are meant to be read by the person who caused them."""


class SettingError(LexariumError):
    """A setting has a value it cannot have."""


class StoreError(LexariumError):
    """The database cannot be used as it is."""


class InvalidDatabase(StoreError):
    """What the database address points to is no database, or not one of Lexarium's."""


class DatabaseDamaged(StoreError):
    """The database is damaged, or marked as damaged until a check passes."""

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason or message


class SchemaTooNew(StoreError):
    """The database was written by a newer Lexarium."""


class DatabaseUnavailable(StoreError):
    """The database cannot be reached, or cannot be written, at this moment."""


class DiskFull(DatabaseUnavailable):
    """The disk that the database is on is full."""


class IndexNotReady(LexariumError):
    """The search index is not there yet."""


class NotFound(LexariumError):
    """There is no such record, account or token."""


class RecordRetired(NotFound):
    """The record is retired."""

    def __init__(self, record_id: str, replaced_by: str | None) -> None:
        replacement = f" {replaced_by} stands in for it." if replaced_by else ""
        super().__init__(f"{record_id} is retired.{replacement}")
        self.replaced_by = replaced_by


class RecordMerged(NotFound):
    """The record is merged into another."""

    def __init__(self, record_id: str, survivor_id: str) -> None:
        super().__init__(f"{record_id} is merged into {survivor_id}.")
        self.survivor_id = survivor_id


class Unauthenticated(LexariumError):
    """No token was given, or one that is not valid."""


class PermissionDenied(LexariumError):
    """The role of the caller does not allow this."""


class QuotaExceeded(PermissionDenied):
    """The caller has as many open proposals as they may have."""


class Conflict(LexariumError):
    """What should be made is there already, or what is there does not go with it; `details` say what is there."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details


class VersionConflict(Conflict):
    """What should be changed has been changed since it was read."""


@dataclass(frozen=True)
class FieldProblem:
    """One thing that is wrong with one field of what was given."""

    field: str
    detail: str
    subject: str | None = None
    """What the sentence about it begins with; None: the field."""

    @property
    def message(self) -> str:
        """What is wrong, in full."""
        return f"{self.field if self.subject is None else self.subject} {self.detail}"


class InvalidInput(LexariumError):
    """What was given breaks rules: every problem at once."""

    def __init__(self, message: str, problems: Sequence[FieldProblem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class ImportRejected(InvalidInput):
    """Files that cannot be imported. Nothing of them was."""
