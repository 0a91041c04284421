"""Looking whether the catalogue agrees with itself."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from lexarium.domain.changes import Change, State
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.hierarchy import circle_told, cycles
from lexarium.domain.merging import ends
from lexarium.domain.relations import HIERARCHIES, Edge
from lexarium.domain.rendering import Rendering, parse, render
from lexarium.store import edges, integrity, log
from lexarium.store.backend import Snapshot, read_position
from lexarium.store.database import Database
from lexarium.store.records import Stored
from lexarium.store.references import odd


@dataclass
class Findings:
    """What a check found."""

    records: int = 0
    changes: int = 0
    problems: list[str] = field(default_factory=list)
    """What must not be."""
    remarks: list[str] = field(default_factory=list)
    """What may be, and is worth knowing."""


def check(database: Database) -> Findings:
    """Hold the records against the log, the relations against the records, the log and the file against themselves.

    And what stands beside them, people and proposals say, against what it names.
    """
    found = Findings()
    with database.read() as connection:
        found.problems += database.backend.damage(connection)
        if found.problems:
            return found
        revision = read_position(connection).revision
        logged = integrity.log_extent(connection)
        found.changes = logged.count
        if (logged.count, logged.last) != (revision, revision):
            found.problems.append(
                f"the catalogue stands at revision {revision}, its log has {logged.count} changes up to {logged.last}"
            )
        found.problems += [f"the log lacks a version of {record}" for record in integrity.lacking_versions(connection)]
        found.problems += [
            f"change {bad.seq} in the log is not as it should be: version {bad.version} of {bad.record}"
            for bad in integrity.misfiled(connection)
        ]
        _look_at_records(connection, found)
        found.problems += [
            f"{gone} is in the log but not in the catalogue" for gone in integrity.only_in_log(connection)
        ]
        found.problems += [f"{table} {key}: {why}" for table, key, why in odd(connection, revision)]
        dangling = integrity.dangling(connection)
        if dangling:
            found.remarks.append(f"{dangling} relations name a record that is not in the catalogue")
        for relations in HIERARCHIES.values():
            for cycle in cycles(edges.inner(connection, relations)):
                found.remarks.append(circle_told(relations, cycle))
    return found


def _look_at_records(connection: Snapshot, found: Findings) -> None:
    """Hold every record against what the log says of it."""
    into: dict[str, str] = {}
    for batch in integrity.all_records(connection):
        found.records += len(batch)
        identifiers = [stored.id for stored, _, _ in batch]
        own = edges.of_sources(connection, identifiers)
        changes = log.latest(connection, identifiers)
        for stored, rendering, name in batch:
            found.problems += _rendered_wrongly(stored, rendering, name)
            found.problems += _logged_wrongly(stored, own.get(stored.id, frozenset()), changes.get(stored.id))
            if stored.state == State.MERGED and stored.id in changes:
                into[stored.id] = changes[stored.id].whole().replaced_by or stored.id
    found.problems += [f"{gone} is merged into no other record" for gone in sorted(into.keys() - ends(into).keys())]


def _rendered_wrongly(stored: Stored, rendering: Rendering, name: str) -> Iterator[str]:
    collection = COLLECTIONS.get(stored.collection)
    if collection is None:
        yield f"{stored.id} is in a collection that there is not: {stored.collection}"
        return
    try:
        fields = parse(stored.body)
        right = (
            render(collection, fields) == rendering
            and fields["name"] == name
            and list(fields) == list(collection.fields)
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        yield f"{stored.id} cannot be read"
        return
    if not right:
        yield f"{stored.id} is not rendered as it should be"


def _logged_wrongly(stored: Stored, own: frozenset[Edge], change: Change | None) -> Iterator[str]:
    if change is None:
        yield f"version {stored.version} of {stored.id} is not in the log"
        return
    try:
        whole = change.whole()
        right = (whole.rendering.body, whole.edges, whole.state) == (stored.body, own, stored.state)
    except (ValueError, KeyError, TypeError, AttributeError):
        yield f"version {stored.version} of {stored.id} cannot be read in the log"
        return
    if not right:
        yield f"{stored.id} is not what the log says it is"
