"""Errors for people. None of them knows HTTP or a terminal; one table in `web` maps them.

LexariumError
├── SettingError               a setting has an invalid value
├── StoreError                 the database cannot be used
│   ├── InvalidDatabase        no database, or not one of Lexarium's
│   ├── DatabaseDamaged        damaged, or marked as damaged
│   ├── SchemaTooNew           written by a newer Lexarium
│   └── DatabaseUnavailable    cannot be reached or written at the moment
│       └── DiskFull           the disk of the database is full
├── IndexNotReady              the search index is not ready yet
├── NotFound                   no such record, account or token
│   ├── RecordRetired          the record is retired, perhaps with a replacement
│   └── RecordMerged           the record is merged into another
├── Unauthenticated            no token, or an invalid one
├── PermissionDenied           the role does not allow it
│   └── QuotaExceeded          the contributor has reached the limit of open proposals
├── Conflict                   it exists already, or does not fit what exists
│   └── VersionConflict        it was changed since it was read
└── InvalidInput               the input is invalid; holds all problems
    ├── ImportRejected         files cannot be imported
    └── InvalidSchema          a schema cannot be loaded
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lexarium.domain.identifiers import get_local_id


class LexariumError(Exception):
    """Base class of errors that are meant to be read by the person who caused them."""


class SettingError(LexariumError):
    """A setting has an invalid value."""


class StoreError(LexariumError):
    """The database cannot be used."""


class InvalidDatabase(StoreError):
    """There is no database at the address, or it is not one of Lexarium's."""


class DatabaseDamaged(StoreError):
    """The database is damaged, or marked as damaged until a check passes."""

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason or message


class SchemaTooNew(StoreError):
    """The database was written by a newer Lexarium."""


class DatabaseUnavailable(StoreError):
    """The database cannot be reached or written at the moment."""


class DiskFull(DatabaseUnavailable):
    """The disk of the database is full."""


class IndexNotReady(LexariumError):
    """The search index is not ready yet."""


class NotFound(LexariumError):
    """There is no such record, account or token."""


class RecordRetired(NotFound):
    """The record is retired, perhaps with a replacement."""

    def __init__(self, record_id: str, replaced_by: str | None) -> None:
        replacement = f" Replaced by {get_local_id(replaced_by)}." if replaced_by else ""
        super().__init__(f"{get_local_id(record_id)} is retired.{replacement}")
        self.replaced_by = replaced_by


class RecordMerged(NotFound):
    """The record is merged into another."""

    def __init__(self, record_id: str, survivor_id: str) -> None:
        super().__init__(f"{get_local_id(record_id)} was merged into {get_local_id(survivor_id)}.")
        self.survivor_id = survivor_id


class Unauthenticated(LexariumError):
    """There is no token, or it is not valid."""


class PermissionDenied(LexariumError):
    """The role of the caller does not allow this."""


class QuotaExceeded(PermissionDenied):
    """The caller has reached the limit of open proposals."""


class Conflict(LexariumError):
    """Something exists already, or does not fit what exists. `details` describe that."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details


class VersionConflict(Conflict):
    """Something was changed since it was read."""


@dataclass(frozen=True)
class FieldProblem:
    """Problem with one field of an input."""

    field: str
    detail: str
    # Start of the message, if not the field.
    subject: str | None = None

    @property
    def message(self) -> str:
        """Complete sentence."""
        return f"{self.field if self.subject is None else self.subject} {self.detail}"


class InvalidInput(LexariumError):
    """The input is invalid. Holds all problems."""

    def __init__(self, message: str, problems: Sequence[FieldProblem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class ImportRejected(InvalidInput):
    """Files cannot be imported. Nothing of them was."""


class LineProblem(NamedTuple):
    """Problem with one line of a text, as a complete sentence."""

    line: int
    message: str


class InvalidSchema(InvalidInput):
    """A schema cannot be loaded. Holds all problems with their lines, and the warnings."""

    def __init__(self, problems: Iterable[LineProblem], warnings: Iterable[LineProblem] = ()) -> None:
        self.lines = tuple(sorted(set(problems)))
        self.warnings = tuple(sorted(set(warnings)))
        message = (
            "The schema has 1 problem." if len(self.lines) == 1 else f"The schema has {len(self.lines):,} problems."
        )
        super().__init__(message, [FieldProblem(f"line {line}", text) for line, text in self.lines])
