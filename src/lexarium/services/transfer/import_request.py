"""Request to import files: which ones, where to, how, and on whose behalf."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from lexarium.domain.change import Change
from lexarium.domain.editing.statement_merge import ConflictPreference
from lexarium.domain.errors import PermissionDenied, VersionConflict
from lexarium.domain.identifiers import SYSTEM_USER_ID, get_local_id
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.formats.registry import Format
from lexarium.services.access.permissions import REQUIRED_ROLE, Caller, Permission
from lexarium.services.vocabularies.access import get_read_scope


class RollBackDryRun(Exception):
    """Roll back the transaction of a dry run."""


class ImportMode(StrEnum):
    """Effect of an import on existing records."""

    # Replace what the same source stated before.
    UPDATE = "update"
    # Remove nothing.
    ADD = "add"
    # As update, and retire the records that the source no longer has.
    REPLACE = "replace"


@dataclass(frozen=True)
class ImportRequest:
    """Files to import, and how."""

    files: Sequence[Path] = ()
    # Slug of the vocabulary; the files say which one if it is empty.
    vocabulary: str = ""
    format: Format | None = None
    # Name of a collection of the vocabulary, or of the main one if none is chosen.
    collection: str = ""
    column_mapping: Mapping[str, str] = field(default_factory=dict)
    # Language of texts that have none.
    language: str = ""
    mode: ImportMode = ImportMode.UPDATE
    prefer: ConflictPreference | None = None
    # Identity of the source of files that have none of their own.
    source: str = ""
    # Let records that map to a term of the files exactly have its id.
    adopt: bool = False
    dry_run: bool = False
    # Revision of a dry run: raise VersionConflict if the import would now do something else to existing records.
    previewed_revision: int | None = None
    # None on the command line, where everything is allowed.
    caller: Caller | None = None

    @property
    def actor(self) -> str:
        """Account that the changes are logged with."""
        return SYSTEM_USER_ID if self.caller is None else self.caller.account.id

    def is_known(self, slug: str) -> bool:
        """Return whether there is a vocabulary as far as the caller may know. Administrators know removed ones too."""
        if self.caller is None or self.caller.has_permission(Permission.ADMINISTER):
            return slug in VOCABULARIES
        return slug in get_read_scope(self.caller).slugs

    def require_access(self, slug: str) -> None:
        """Raise PermissionDenied unless the caller may import into a vocabulary, or create it if it is not known."""
        if self.caller is None:
            return
        if self.is_known(slug):
            self.caller.require(Permission.PUBLISH, slug)
        elif not self.caller.has_permission(Permission.ADMINISTER):
            # The slug may be that of a vocabulary that the caller may not know.
            role = REQUIRED_ROLE[Permission.ADMINISTER]
            raise PermissionDenied(
                f"The files are of an unknown vocabulary, and creating one requires the role {role}. Choose"
                " another one with --vocabulary."
            )

    def require_same(self, change: Change, write_id: int) -> None:
        """Raise VersionConflict if a record has been changed after the preview, and before this write."""
        if self.previewed_revision is not None and self.previewed_revision < change.seq < write_id:
            local_id = get_local_id(change.record_id)
            raise VersionConflict(f"{local_id} was changed after the preview. Nothing was imported.")
