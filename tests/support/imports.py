"""Build, import and read records."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lexarium.domain.account import Role
from lexarium.domain.change import Action, Change
from lexarium.domain.editing.defaults import assign_defaults
from lexarium.domain.labels import Alias, AliasScope
from lexarium.domain.record import Record, build_record
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.formats.parsed import ParsedRecord
from lexarium.formats.text_encoding import Utf8Stream
from lexarium.services.access.accounts import add_account
from lexarium.services.access.permissions import Caller
from lexarium.services.records.valpha_queries import open_valpha_reader
from lexarium.services.transfer.field_import.importer import import_files, import_records
from lexarium.services.transfer.import_report import ImportReport
from lexarium.store import change_log
from lexarium.store.database import Database
from lexarium.store.transaction import Transaction
from tests.support.record_editor import RecordEditor


class Curator:
    """Edit records as a user does."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._caller = Caller(add_account(database, "Ada", Role.CURATOR), Role.CURATOR, "tok_test")

    def edit(self, record_id: str, **draft: Any) -> None:
        self.run(lambda writer: writer.patch(writer.get_record(record_id), draft))

    def run(self, task: Callable[[RecordEditor], Any]) -> Any:
        return self._database.run_write(lambda transaction: task(RecordEditor(transaction, self._caller)))


def open_text(document: bytes) -> io.BufferedReader:
    """Open a document as an import does."""
    return io.BufferedReader(Utf8Stream(io.BufferedReader(io.BytesIO(document))))


def find_last_change(database: Database, record_id: str) -> Change:
    with database.read() as snapshot:
        return change_log.find_latest(snapshot, [record_id])[record_id]


def load_record(database: Database, record_id: str) -> Record:
    return find_last_change(database, record_id).to_record()


def import_parsed(database: Database, *records: ParsedRecord, **options: Any) -> ImportReport:
    return import_records(database, "somewhere", records, **options)


def build_alias(text: str, lang: str = "en", scope: AliasScope = "exact") -> Alias:
    return Alias(text=text, lang=lang, scope=scope)


def build_term(suffix: str, **fields: Any) -> dict[str, Any]:
    defaults = {
        "id": f"trm_{suffix}",
        "name": suffix,
        "alias": "",
        "definition_text": f"What {suffix} is.",
        "id_concept_class": "",
        "id_user": "usr_1",
        "event_stamp": "2020-01-02T03:04:05",
        "def_id": f"def_{suffix}",
        "def_id_user": "usr_2",
        "def_event_stamp": "2020-01-02T03:04:06",
        "creation_time": 1577934245000,
        "last_updated": 1577934245000,
    }
    return defaults | fields


def build_kind_of(parent: str) -> dict[str, str]:
    return {"id": f"trm_{parent}", "name": parent, "relationship": "KINDOF", "direction": "parent"}


def write_json(path: Path, records: object) -> Path:
    path.write_text(json.dumps(records), "utf-8")
    return path


def import_json(database: Database, tmp_path: Path, name: str, records: object, **options: Any) -> ImportReport:
    return import_files(database, [write_json(tmp_path / name, records)], **options)


def list_records(database: Database, name: str = "concept") -> list[dict[str, Any]]:
    with open_valpha_reader(database) as snapshot:
        records: list[dict[str, Any]] = json.loads(b"".join(snapshot.iter_collection(COLLECTIONS[name])))
        return records


def get_valpha_record(database: Database, record_id: str) -> dict[str, Any]:
    with open_valpha_reader(database) as snapshot:
        stored = snapshot.get_row(record_id)
        record: dict[str, Any] = json.loads(snapshot.render(COLLECTIONS[stored.collection], stored))
        return record


def build_log_entry(name: str, *, kind: str = "concept", suffix: str = "", version: int = 1) -> change_log.RecordWrite:
    collection: Collection = COLLECTIONS[kind]
    fields = {"id": f"{collection.id_prefixes[0]}_{suffix or name}", "name": name}
    record = assign_defaults(build_record(collection, fields), 1_600_000_000_000)
    action = Action.CREATE if version == 1 else Action.UPDATE
    return change_log.RecordWrite(record, version, action)


def save_entries(transaction: Transaction, *entries: change_log.RecordWrite) -> None:
    change_log.save_records(transaction, entries, actor="usr_test", at=1_700_000_000_000)
