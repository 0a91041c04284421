"""Taking in the history of records: what the catalogue lacks of it; of those that went another way here, its end."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from lexarium.domain.changes import Action, State, Whole, whole_of
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.completion import complete
from lexarium.domain.identifiers import SYSTEM_USER
from lexarium.domain.progress import Progress
from lexarium.domain.relations import Edge
from lexarium.exchange.incoming import Incoming, Version
from lexarium.service.merging import CIRCLE, impossible, not_merged
from lexarium.service.reports import Notes, Report
from lexarium.store import edges, log, records, upstream
from lexarium.store.records import BATCH
from lexarium.store.retold import Awaited, RetoldVersion
from lexarium.store.staging import Stage
from lexarium.store.transaction import Transaction


def keep(stage: Stage, source: int, incoming: Incoming, version: Version) -> None:
    """Put a version where it waits."""
    collection = COLLECTIONS[incoming.collection]
    whole = Whole(
        collection=collection,
        fields=complete(collection, incoming.fields, version.at),
        edges=frozenset(incoming.edges),
        state=incoming.state or State.PUBLISHED,
        replaced_by=incoming.replaced_by,
        aliases=incoming.aliases,
        sources=incoming.sources or (),
    )
    stage.versions.add(
        RetoldVersion(
            id=whole.id,
            number=version.number,
            collection=collection.name,
            source=source,
            line=incoming.line,
            write=version.write,
            at=version.at,
            actor=version.actor,
            action=version.action,
            document=whole.document(version.proposed),
        )
    )


def check(stage: Stage, problems: Notes) -> None:
    """Note every version that does not go with those before it."""
    for each in stage.versions.arrange() if stage.versions else ():
        if each.number == each.expected:
            what = f"{each.id} is of another collection here than before"
        else:
            what = f"version {each.number} of {each.id} comes where version {each.expected} was expected"
        problems.add(stage.place(each.source, each.line), what)


def retell(transaction: Transaction, stage: Stage, report: Report, progress: Progress) -> None:
    """Write every version that the catalogue lacks, as they were made elsewhere, in their order.

    So it is of a record that is not there, and of one that is now what it was once in the file. What the last version
    of any other says waits from then on like any record.
    """
    if not stage.versions:
        return
    for identifiers in stage.versions.identifiers(BATCH):
        stage.versions.lack(_lacking(transaction, stage, identifiers))
    retired = _doubted(transaction, stage, report)
    done, total = 0, stage.versions.count()
    write = (-1, -1)
    for batch in stage.versions.lacking(BATCH):
        told = []
        for each in batch:
            begins, write = (
                write != (each.version.source, each.version.write),
                (each.version.source, each.version.write),
            )
            made = _retold(each, begins=begins)
            told.append(_retired(made, retired[made.whole.id]) if made.last and made.whole.id in retired else made)
        log.retell(transaction, told)
        _finish(transaction, stage, report, [each for each in told if each.last])
        done += len(batch)
        progress("writing", done, total)
    # What the import itself writes is a write of its own.
    transaction.batch = transaction.revision + 1
    for version in stage.versions.latest():
        _await(stage, version)


def _lacking(transaction: Transaction, stage: Stage, identifiers: Sequence[str]) -> dict[str, int]:
    """Those of these records of which the catalogue lacks versions, and the last that it has: 0, where it has none."""
    present = log.latest(transaction.connection, identifiers)
    lacking = {identifier: 0 for identifier in identifiers if identifier not in present}
    return lacking | {
        identifier: change.version
        for identifier, change in present.items()
        if stage.versions.goes_on(identifier, change.version, change.document)
    }


def _doubted(transaction: Transaction, stage: Stage, report: Report) -> dict[str, str]:
    """Those records that are told to have been merged into what they cannot be, and why: each is only retired."""
    gone = list(stage.versions.merged())
    names = sorted({each.into for each in gone})
    collections = records.collections(transaction.connection, names) | dict(stage.collections(names))
    collections |= dict(stage.versions.collections(names))
    told = {each.id: each.into for each in gone}
    kinds = {each.id: each.collection for each in gone}
    found = impossible(transaction.connection, told, kinds, collections)
    for each in gone:
        if each.id in found:
            report.warnings.add(stage.place(each.source, each.line), not_merged(each.id, found[each.id]))
    return found


def _retired(made: log.Retold, why: str) -> log.Retold:
    """A version that is told as merged, and cannot be."""
    into = None if why == CIRCLE else made.whole.replaced_by
    whole = replace(made.whole, state=State.RETIRED, replaced_by=into)
    return replace(made, whole=whole, document=whole.document(), action=Action.RETIRE)


def _retold(awaited: Awaited, *, begins: bool) -> log.Retold:
    version = awaited.version
    return log.Retold(
        whole=whole_of(version.collection, version.document),
        version=version.number,
        action=Action(version.action),
        at=version.at,
        actor=version.actor,
        document=version.document,
        begins=begins,
        last=awaited.last,
        new=awaited.new,
    )


def _finish(transaction: Transaction, stage: Stage, report: Report, told: Sequence[log.Retold]) -> None:
    """Write the relations of records that are there now, and count them."""
    # Others may have told of some before the record came.
    waiting = edges.of_sources(transaction.connection, [each.whole.id for each in told])
    added: list[Edge] = []
    removed: list[Edge] = []
    for each in told:
        gone = each.action == Action.RETIRE
        kind = "created" if each.new else "retired" if gone else "updated"
        collection = each.whole.collection.name
        {"created": report.created, "retired": report.retired, "updated": report.updated}[kind][collection] += 1
        report.show(kind, each.whole.id, collection, each.whole.fields["name"])
        there = waiting.get(each.whole.id, frozenset())
        added += each.whole.edges - there
        if each.new:
            stage.tell(each.whole.id, there - each.whole.edges, ())
        else:
            removed += there - each.whole.edges
    log.relate(transaction, added, removed)
    report.relate(added, removed)
    edited = {
        each.whole.id: {upstream.BROUGHT: each.version} if each.actor != SYSTEM_USER else {}
        for each in told
        if each.actor != SYSTEM_USER or not each.new
    }
    upstream.remember(transaction.connection, edited)


def _await(stage: Stage, version: RetoldVersion) -> None:
    whole = whole_of(version.collection, version.document)
    rest: dict[str, Any] = {"sources": whole.sources, "state": whole.state, "replaced_by": whole.replaced_by}
    if whole.aliases is not None:
        rest["aliases"] = [alias.model_dump() for alias in whole.aliases]
    fields = orjson.dumps(whole.fields)
    stage.add(whole.id, version.collection, version.source, version.line, fields, orjson.dumps(rest))
    stage.tell(whole.id, whole.edges, [(name, "source") for name in whole.collection.relations])
