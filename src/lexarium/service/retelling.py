"""Taking in the history of records: of those that the catalogue lacks all of it, of others what they came to be."""

from collections.abc import Sequence
from typing import Any

import orjson

from lexarium.domain.changes import Action, State, Whole, whole_of
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.completion import complete
from lexarium.domain.identifiers import SYSTEM_USER
from lexarium.domain.relations import Edge
from lexarium.exchange.incoming import Incoming, Version
from lexarium.service.reports import Notes, Progress, Report
from lexarium.store import edges, log, records, upstream
from lexarium.store.records import BATCH
from lexarium.store.retold import RetoldVersion
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
    """Write every version of the records that the catalogue lacks, as they were made elsewhere, in their order.

    What the last version of any other says waits from then on like any record.
    """
    if not stage.versions:
        return
    for identifiers in stage.versions.identifiers(BATCH):
        stage.versions.lack(set(identifiers) - records.existing(transaction.connection, identifiers))
    done, total = 0, stage.versions.count()
    write = (-1, -1)
    for batch in stage.versions.lacking(BATCH):
        told = []
        for version, last in batch:
            begins, write = write != (version.source, version.write), (version.source, version.write)
            told.append(_retold(version, begins=begins, last=last))
        log.retell(transaction, told)
        _finish(transaction, stage, report, [each for each in told if each.last])
        done += len(batch)
        progress("writing", done, total)
    # What the import itself writes is a write of its own.
    transaction.batch = transaction.revision + 1
    for version in stage.versions.latest():
        _await(stage, version)


def _retold(version: RetoldVersion, *, begins: bool, last: bool) -> log.Retold:
    return log.Retold(
        whole=whole_of(version.collection, version.document),
        version=version.number,
        action=Action(version.action),
        at=version.at,
        actor=version.actor,
        document=version.document,
        begins=begins,
        last=last,
    )


def _finish(transaction: Transaction, stage: Stage, report: Report, told: Sequence[log.Retold]) -> None:
    """Write the relations of records that are there now, and count them."""
    # Others may have told of some before the record came.
    waiting = edges.of_sources(transaction.connection, [each.whole.id for each in told])
    added: list[Edge] = []
    for each in told:
        report.created[each.whole.collection.name] += 1
        there = waiting.get(each.whole.id, frozenset())
        added += each.whole.edges - there
        stage.tell(each.whole.id, there - each.whole.edges, ())
    log.relate(transaction, added, ())
    report.relations_added += len(added)
    edited = {each.whole.id: {upstream.BROUGHT: each.version} for each in told if each.actor != SYSTEM_USER}
    upstream.remember(transaction.connection, edited)


def _await(stage: Stage, version: RetoldVersion) -> None:
    whole = whole_of(version.collection, version.document)
    rest: dict[str, Any] = {"sources": whole.sources, "state": whole.state, "replaced_by": whole.replaced_by}
    if whole.aliases is not None:
        rest["aliases"] = [alias.model_dump() for alias in whole.aliases]
    fields = orjson.dumps(whole.fields)
    stage.add(whole.id, version.collection, version.source, version.line, fields, orjson.dumps(rest))
    stage.tell(whole.id, whole.edges, [(name, "source") for name in whole.collection.relations])
