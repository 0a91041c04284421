"""Warn of new names that other records of the vocabulary have, or that are similar to theirs."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import orjson

from lexarium.domain.identifiers import get_local_id, qualify_id
from lexarium.domain.record import Record
from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.domain.text.characters import find_control_char
from lexarium.search.documents import list_labels
from lexarium.search.near_names import NearNames
from lexarium.services.records.lookup import find_latest_changes
from lexarium.services.search.record_search import NearName, RecordSearch
from lexarium.services.vocabularies.access import ReadScope, list_collections
from lexarium.store.database import Database

# Names of one draft that are compared.
_MAX_NAMES = 6
# Names of a batch that are looked for in the index. All are compared with each other.
MAX_BATCH_NAMES = 1_000


@dataclass(frozen=True)
class WriteWarning:
    """A warning about a field of a write, with the record that it is about."""

    field: str
    detail: str
    id: str | None = None
    name: str | None = None


class _NewNames(NamedTuple):
    """New names of a draft, with their fields."""

    collection: Collection
    names: list[tuple[str, str]]
    # The one that has the draft, unless it is new.
    record_id: str | None


def list_new_names(draft: Mapping[str, Any], current: Record | None = None) -> list[tuple[str, str]]:
    """Return the names and aliases of a draft, or of a patch of one, that a record does not have, by their fields.

    The draft need not be valid.
    """
    names = [("name", draft.get("name"))]
    for key in ("names", "aliases"):
        items = draft.get(key)
        for index, item in enumerate(items if isinstance(items, list) else ()):
            names.append((f"{key}/{index}", item.get("text") if isinstance(item, dict) else None))
    known = set() if current is None else {label.text for label in list_labels(current)}
    new: dict[str, str] = {}
    for field, text in names:
        if isinstance(text, str) and text.strip() and text.strip() not in known:
            new.setdefault(text.strip(), field)
    return [(field, text) for text, field in new.items()][:_MAX_NAMES]


def find_name_warnings(
    record_search: RecordSearch, collection: Collection, draft: Mapping[str, Any], current: Record | None = None
) -> list[WriteWarning]:
    """Return warnings about the new names of a draft. Changes that are not indexed yet are not waited for."""
    record_id = None if current is None else current.id
    return _find_warnings(record_search, _NewNames(collection, list_new_names(draft, current), record_id))


def _find_warnings(record_search: RecordSearch, new: _NewNames) -> list[WriteWarning]:
    fields = {text: field for field, text in new.names}
    near = record_search.find_near_names(list(fields), new.collection.name, new.record_id, waits=False)
    return [_build_warning(fields[item.given], item) for item in near]


def _build_warning(field: str, near: NearName) -> WriteWarning:
    local_id = get_local_id(near.id)
    kind = "the same as" if near.is_same else "similar to"
    role = "the name of" if near.field == "name" and near.text == near.name else f"{near.text!r}, a name of"
    return WriteWarning(field, f"{near.given!r} is {kind} {role} {near.name!r} ({local_id}).", local_id, near.name)


class BatchNames:
    """Compare the new names of the lines of a batch with records and with each other, before they are written."""

    def __init__(self, lines: Iterable[bytes], scope: ReadScope, vocabulary: str) -> None:
        # By index of a line.
        self._lines: dict[int, _NewNames] = {}
        self._patches: dict[int, tuple[str, Mapping[str, Any]]] = {}
        for index, line in enumerate(lines):
            # A line that is not valid is reported when it is written.
            with suppress(orjson.JSONDecodeError, TypeError, KeyError, AttributeError):
                parsed = orjson.loads(line)
                slug = parsed.get("vocabulary", vocabulary)
                if slug in scope.slugs and parsed["op"] == "create":
                    [name] = list_collections(ReadScope((slug,), is_chosen=True), [parsed["collection"]]) or [""]
                    self._add(index, name, parsed["record"])
                elif slug in scope.slugs and parsed["op"] == "update" and not find_control_char(parsed["id"]):
                    self._patches[index] = (qualify_id(slug, parsed["id"]), parsed["change"])
        self._warnings: dict[int, list[WriteWarning]] = {}
        # Line, its field and name, an earlier line, and whether the names are equal.
        self._pairs: list[tuple[int, str, str, int, bool]] = []

    def _add(self, index: int, collection: str, draft: Mapping[str, Any], current: Record | None = None) -> None:
        names = list_new_names(draft, current)
        if names and collection in COLLECTIONS:
            record_id = None if current is None else current.id
            self._lines[index] = _NewNames(COLLECTIONS[collection], names, record_id)

    def compare(self, database: Database, record_search: RecordSearch) -> None:
        """Find what is near. Only the first names are looked for in the index, which takes a while for each."""
        with database.read() as snapshot:
            latest = find_latest_changes(snapshot, list({record_id for record_id, _ in self._patches.values()}))
        for index, (record_id, patch) in self._patches.items():
            if record_id in latest:
                record = latest[record_id].to_record()
                self._add(index, record.collection.name, patch, record)
        remaining = MAX_BATCH_NAMES
        for index, line in self._lines.items():
            remaining -= len(line.names)
            if remaining < 0:
                break
            self._warnings[index] = _find_warnings(record_search, line)
        by_vocabulary: dict[str, list[tuple[int, str, str]]] = {}
        for index, line in sorted(self._lines.items()):
            names = by_vocabulary.setdefault(line.collection.vocabulary, [])
            names += [(index, field, text) for field, text in line.names]
        for names in by_vocabulary.values():
            # Each text once: a batch may repeat one in every line.
            first_lines: dict[str, int] = {}
            for index, _, text in names:
                first_lines.setdefault(text, index)
            near_names = NearNames((str(index), text) for text, index in first_lines.items())
            near = {text: list(islice(near_names.find(text), _MAX_NAMES)) for text in first_lines}
            for index, field, text in names:
                earlier = {int(other): is_same for other, is_same in near[text] if int(other) < index}
                self._pairs += [(index, field, text, other, is_same) for other, is_same in earlier.items()]

    def list_warnings(self, written: Sequence[Record]) -> dict[int, list[WriteWarning]]:
        """Return the warnings by index of a line, given the record of each line."""
        warnings = {index: list(found) for index, found in self._warnings.items()}
        for index, field, text, other, is_same in self._pairs:
            record = written[other]
            if record.id != written[index].id:
                name = record.fields["name"]
                near = NearName(record.id, name, record.collection.name, "name", name, text, is_same)
                warnings.setdefault(index, []).append(_build_warning(field, near))
        return warnings
