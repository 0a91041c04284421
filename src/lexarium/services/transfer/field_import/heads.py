"""Create the vocabularies that JSON Lines describe, from the versions of their head records."""

from dataclasses import replace

from lexarium.domain.errors import Conflict, InvalidInput
from lexarium.domain.record import Record
from lexarium.domain.vocabulary import (
    VOCABULARIES,
    Vocabulary,
    check_values,
    parse_head_record,
    register_vocabularies,
)
from lexarium.formats.parsed import ParsedRecord, ParsedVersion
from lexarium.services.transfer.import_report import ImportReport, ProblemList
from lexarium.store import change_log
from lexarium.store.change_log import ImportedVersion
from lexarium.store.database import Database
from lexarium.store.transaction import Transaction


class HeadStage:
    """Versions of the head records of vocabularies that are not here yet.

    They are registered while their records are read, since their schemas say what the records mean.
    """

    def __init__(self, problems: ProblemList, report: ImportReport) -> None:
        self._problems = problems
        self._report = report
        # By the slug of the vocabulary.
        self._versions: dict[str, list[tuple[Record, ParsedVersion]]] = {}
        # The last lines that `register` has not seen, each with its location, by slug.
        self._pending: dict[str, tuple[str, Record]] = {}
        # Whether any vocabulary was registered.
        self._is_registered = False

    def add(self, source: str, parsed: ParsedRecord) -> None:
        """Add a version. Those of a vocabulary that is here already are skipped."""
        record, version = parsed.record, parsed.version
        location = f"{source}, line {parsed.line}"
        if record is None or version is None:
            self._problems.add(location, "a vocabulary has no version")
            return
        slug = record.local_id
        self._pending[slug] = location, record
        if slug in VOCABULARIES:
            return
        versions = self._versions.setdefault(slug, [])
        expected = len(versions) + 1
        if version.number != expected:
            message = f"version {version.number} of the vocabulary {slug} found, but {expected} was expected"
            self._problems.add(location, message)
        versions.append((record, version))

    def register(self) -> None:
        """Register the vocabularies once all their versions are added; report what is wrong with them."""
        pending, self._pending = self._pending, {}
        for location, record in pending.values():
            self._register(location, parse_head_record(record))

    def _register(self, location: str, vocabulary: Vocabulary) -> None:
        here = VOCABULARIES.get(vocabulary.slug)
        if here is not None:
            if replace(here, is_default=False, is_valpha=False) != vocabulary:
                message = f"the vocabulary {here.slug} already exists; its metadata, rules and schema are kept"
                self._report.warnings.add(location, message)
            return
        try:
            check_values(vocabulary.slug, vocabulary.to_values(), VOCABULARIES.values())
        except InvalidInput as error:
            for problem in error.problems:
                self._problems.add(location, f"{problem.field} of the vocabulary {problem.detail}")
            return
        self._is_registered = True
        register_vocabularies([*VOCABULARIES.values(), vocabulary])

    def apply(self, database: Database, transaction: Transaction) -> None:
        """Write the versions; raise Conflict if somebody has created one of the vocabularies meanwhile."""
        if not self._is_registered:
            return
        for versions in self._versions.values():
            self._write(transaction, versions)
        transaction.bump_vocabularies_revision()
        database.follow_vocabularies(transaction.flush(), transaction.position)
        self._report.new_vocabularies = list(self._versions)
        self._report.vocabulary, self._report.is_new_vocabulary = self._report.new_vocabularies[-1], True

    @staticmethod
    def _write(transaction: Transaction, stated: list[tuple[Record, ParsedVersion]]) -> None:
        [*_, (last, _)] = stated
        if change_log.find_latest(transaction.flush(), [last.id]):
            raise Conflict(f"The vocabulary {last.local_id} was created during the import. Import again.")
        writes = [version.write_id for _, version in stated]
        versions = [
            ImportedVersion(
                change_log.build_row(record, record.to_document(version.origin, version.summary)),
                version.number,
                version.action,
                version.at,
                version.actor,
                starts_write=place == 0 or version.write_id != writes[place - 1],
                is_current=record is last,
                is_new_record=True,
            )
            for place, (record, version) in enumerate(stated)
        ]
        change_log.insert_history(transaction, versions)

    def close(self, database: Database) -> None:
        """Register the vocabularies as the database has them."""
        if self._is_registered:
            database.reload_vocabularies()
