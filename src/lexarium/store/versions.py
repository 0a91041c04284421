"""Reading the log as the catalogue's past: any record, any list, at any revision."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Exists,
    Integer,
    Select,
    bindparam,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
)

from lexarium.domain.changes import Action, Change, State, labels_of, whole_of
from lexarium.domain.grounds import Ground
from lexarium.store import records
from lexarium.store.backend import POSITION, Position, read_position
from lexarium.store.records import BATCH
from lexarium.store.schema import catalogue, change, record
from lexarium.store.tallies import Tallies

_later = change.alias("later")
IS_LAST = (change.c.record == record.c.id) & (change.c.version == record.c.version)
"""Whether a change is the last of a record."""

SORTS: dict[str, Any] = {
    "name": change.c.name_key,
    "id": change.c.record,
    "updated": change.c.seq,
    "order": change.c.order_key,
}
"""What a list may be sorted by, last the collection's own order; records that are alike in it come by id."""


@dataclass(frozen=True)
class Listing:
    """A list of records as it was at a revision; what is None is not asked."""

    collection: str
    revision: int
    sort: str = "name"
    descending: bool = False
    state: State | None = State.PUBLISHED
    ids: tuple[str, ...] | None = None
    name_key: str | None = None
    class_id: str | None = None
    owner: str | None = None
    flagged: bool | None = None
    updated_since: int | None = None

    @property
    def unfiltered(self) -> bool:
        """Whether it holds all records of a collection that are in a state."""
        return replace(self, sort="name", descending=False) == Listing(self.collection, self.revision, state=self.state)


@dataclass(frozen=True)
class Place:
    """Where a page ends: the sort key and the id of its last record."""

    key: str | int
    record: str


def find(connection: Connection, identifier: str, revision: int) -> Change | None:
    """The last change of a record up to a revision."""
    query = select(change).where(change.c.record == identifier, change.c.seq <= revision)
    row = connection.execute(query.order_by(change.c.version.desc()).limit(1)).one_or_none()
    return None if row is None else change_of(row)


def present(connection: Connection, identifier: str) -> tuple[Position, Change | None]:
    """The last change of a record, and the position: by one statement."""
    row = connection.execute(_PRESENT, {"identifier": identifier}).one()
    position, last = Position._make(row[:_POSITION]), row[_POSITION:]
    return position, None if last[0] is None else change_of(last)


_POSITION = len(Position._fields)
_PRESENT = (
    POSITION.add_columns(*change.c)
    .join_from(catalogue, record, record.c.id == bindparam("identifier"), isouter=True)
    .join(change, IS_LAST, isouter=True)
)


def at(connection: Connection, identifiers: Sequence[str], revision: int) -> list[Change]:
    """The last change of each of these (at most BATCH) up to a revision; one that was not there yet is left out."""
    query = select(change).where(change.c.record.in_(identifiers), change.c.seq <= revision, ~_newer(revision))
    return [change_of(row) for row in connection.execute(query)]


def touched(connection: Connection, seq: int, limit: int) -> tuple[int, set[str]]:
    """The records of the changes after a seq, at most so many, and the seq of the last of these."""
    query = select(change.c.seq, change.c.record).where(change.c.seq > seq).order_by(change.c.seq).limit(limit)
    rows = connection.execute(query).all()
    return rows[-1].seq, {row.record for row in rows}


def find_version(connection: Connection, identifier: str, version: int) -> Change | None:
    """A version of a record."""
    query = select(change).where(change.c.record == identifier, change.c.version == version)
    row = connection.execute(query).one_or_none()
    return None if row is None else change_of(row)


def find_versions(connection: Connection, wanted: Sequence[tuple[str, int]]) -> dict[str, Change]:
    """These versions of records, one of each, by record."""
    found: dict[str, Change] = {}
    for start in range(0, len(wanted), BATCH):
        some = tuple_(change.c.record, change.c.version).in_(wanted[start : start + BATCH])
        found |= {row.record: change_of(row) for row in connection.execute(select(change).where(some))}
    return found


def turning(connection: Connection, identifier: str, state: State) -> Change:
    """The change that brought a record to the state it is in: not always its last."""
    other = select(func.max(change.c.version)).where(change.c.record == identifier, change.c.state != state)
    query = select(change).where(
        change.c.record == identifier, change.c.version > func.coalesce(other.scalar_subquery(), 0)
    )
    return change_of(connection.execute(query.order_by(change.c.version).limit(1)).one())


def merges_since(connection: Connection, merge: Change, identifiers: Sequence[str]) -> list[Change]:
    """The changes that merges after this one made of these records, in order."""
    found: list[Change] = []
    for start in range(0, len(identifiers), BATCH):
        query = select(change).where(change.c.record.in_(identifiers[start : start + BATCH]))
        query = query.where(change.c.action == Action.MERGE, change.c.batch > merge.batch)
        found += [change_of(row) for row in connection.execute(query)]
    return sorted(found, key=lambda each: each.seq)


def in_class(connection: Connection, class_id: str) -> list[str]:
    """The records, of whatever state, whose class this is now."""
    return list(connection.execute(_IN_CLASS, {"class_id": class_id}).scalars())


def count_in_class(connection: Connection, class_id: str) -> int:
    """How many published records have this class now."""
    query = select(func.count()).select_from(_IN_CLASS.where(record.c.state == State.PUBLISHED).subquery())
    number: int = connection.execute(query, {"class_id": class_id}).scalar_one()
    return number


_IN_CLASS = select(change.c.record).join(record, IS_LAST).where(change.c.class_id == bindparam("class_id"))


def history(connection: Connection, identifier: str, revision: int) -> list[Change]:
    """Every change of a record up to a revision, the newest first."""
    query = select(change).where(change.c.record == identifier, change.c.seq <= revision)
    return [change_of(row) for row in connection.execute(query.order_by(change.c.version.desc()))]


def in_batch(connection: Connection, batch: int) -> list[Change]:
    """The changes that one write made, in order."""
    return [
        change_of(row)
        for row in connection.execute(select(change).where(change.c.batch == batch).order_by(change.c.seq))
    ]


def since(connection: Connection, seq: int, limit: int, collections: Sequence[str] = ()) -> list[Change]:
    """The changes after a seq, in order, at most so many."""
    query = select(change).where(change.c.seq > seq).order_by(change.c.seq).limit(limit)
    if collections:
        query = query.where(change.c.collection.in_(collections))
    return [change_of(row) for row in connection.execute(query).all()]


def shaken(connection: Connection, seq: int, most: int) -> set[Ground] | None:
    """The grounds that the changes after a seq have shaken; None where there are more changes than so many."""
    rows = connection.execute(_DOCUMENTS, {"seq": seq, "most": most + 1}).all()
    if len(rows) > most:
        return None
    return {ground for row in rows for ground in whole_of(row.collection, row.document).grounds}


_DOCUMENTS = select(change.c.collection, change.c.document).where(change.c.seq > bindparam("seq"))
_DOCUMENTS = _DOCUMENTS.limit(bindparam("most", type_=Integer))


def newest(connection: Connection, after: str, limit: int) -> list[Change]:
    """The last change of every record, of whatever collection and state, by id: those after an id, at most so many."""
    # Said of both: PostgreSQL may go through both in order, and would begin with the first change of all.
    beyond = (record.c.id > after) & (change.c.record > after)
    query = select(change).join(record, IS_LAST).where(beyond).order_by(record.c.id).limit(limit)
    return [change_of(row) for row in connection.execute(query)]


class Labelled(NamedTuple):
    """A record as a change left it: what it is called by, nothing where it is not published."""

    seq: int
    record: str
    collection: str
    labels: list[str]


def labelled(connection: Connection, seq: int, revision: int, limit: int) -> list[Labelled]:
    """The records that were changed after a seq, each by its last change up to a revision, at most so many."""
    query = select(change.c.seq, change.c.record, change.c.collection, change.c.state, change.c.document)
    query = query.where(change.c.seq > seq, change.c.seq <= revision, ~_newer(revision))
    return [
        Labelled(seq, identifier, collection, labels_of(document) if state == State.PUBLISHED else [])
        for seq, identifier, collection, state, document in connection.execute(
            query.order_by(change.c.seq).limit(limit)
        )
    ]


def page(connection: Connection, listing: Listing, after: Place | None, limit: int) -> list[Change]:
    """The next records of a list."""
    key = SORTS[listing.sort]
    query = _as_of(listing, after)
    if after is not None:
        # The bound stands by itself, so that an index begins there: within an alternative it would be read whole.
        bound, past = (key <= after.key, key < after.key) if listing.descending else (key >= after.key, key > after.key)
        query = query.where(bound, or_(past, change.c.record > after.record))
    query = query.order_by(key.desc() if listing.descending else key, change.c.record).limit(limit)
    return [change_of(row) for row in connection.execute(query)]


def total(connection: Connection, listing: Listing, tallies: Tallies) -> int:
    """How many records a list has."""
    if listing.state is not None and listing.unfiltered:
        return tallies.at(connection, listing.revision)[listing.collection, listing.state]
    counted = _as_of(replace(listing, sort="name")).subquery()
    number: int = connection.execute(select(func.count()).select_from(counted)).scalar_one()
    return number


class Rendered(NamedTuple):
    """A record as rendered, and its place in its collection."""

    key: str
    record: str
    body: bytes
    hit_length: int


def rendered(connection: Connection, listing: Listing, after: Place | None, limit: int) -> list[Rendered]:
    """The next published records of a collection, as rendered.

    While nothing has changed since the listing's revision they are read as they are kept, which is much faster.
    """
    if read_position(connection).revision == listing.revision:
        return _rendered_now(connection, listing.collection, after, limit)
    # The document, which is the larger part, is fetched only where it is needed.
    document = case((record.c.id.is_(None), change.c.document))
    query = _as_of(listing).with_only_columns(
        change.c.order_key, change.c.record, document.label("document"), record.c.body, record.c.hit_length
    )
    query = query.join(record, IS_LAST, isouter=True).order_by(change.c.order_key, change.c.record).limit(limit)
    if after is not None:
        query = query.where(
            tuple_(change.c.order_key, change.c.record) > tuple_(literal(after.key), literal(after.record))
        )
    found = []
    for key, identifier, document_then, body, hit_length in connection.execute(query).all():
        if document_then is None:
            found.append(Rendered(key, identifier, body, hit_length))
        else:
            past = whole_of(listing.collection, document_then).rendering
            found.append(Rendered(key, identifier, past.body, past.hit_length))
    return found


def hits_of(connection: Connection, identifiers: Sequence[str], revision: int) -> dict[str, bytes]:
    """Those of these records (at most BATCH) that were search hits at a revision, as rendered, by identifier."""
    if read_position(connection).revision == revision:
        return records.hits_of(connection, identifiers)
    then = (each.whole() for each in at(connection, identifiers, revision))
    published = {whole.id: whole.rendering for whole in then if whole.state == State.PUBLISHED}
    return {each: past.body[: past.hit_length] for each, past in published.items() if past.hit_length}


def _rendered_now(connection: Connection, collection: str, after: Place | None, limit: int) -> list[Rendered]:
    query = select(record.c.order_key, record.c.id, record.c.body, record.c.hit_length)
    query = query.where(record.c.collection == collection, record.c.state == State.PUBLISHED)
    query = query.order_by(record.c.order_key, record.c.id).limit(limit)
    if after is not None:
        query = query.where(tuple_(record.c.order_key, record.c.id) > tuple_(literal(after.key), literal(after.record)))
    return [Rendered._make(row) for row in connection.execute(query).all()]


def change_of(row: Any) -> Change:
    """A row of the log as a change."""
    # By place, since many are read: to find a column by its name takes longer than all else.
    seq, at, actor, batch, action, collection, identifier, version = row[:8]
    return Change(seq, at, actor, batch, _ACTIONS[action], collection, identifier, version, row[-1])


_ACTIONS = {action.value: action for action in Action}


def _as_of(wanted: Listing, after: Place | None = None) -> Select[Any]:
    newer = _newer(wanted.revision)
    if after is not None and wanted.sort == "id":
        # PostgreSQL goes through both by id, side by side, and would begin with the first of all.
        newer = newer.where(_later.c.record <= after.record if wanted.descending else _later.c.record >= after.record)
    return select(change).where(change.c.seq <= wanted.revision, ~newer, *_conditions(wanted))


def _newer(revision: int) -> Exists:
    """Whether the record of a change was changed again, up to a revision."""
    return exists().where(
        _later.c.record == change.c.record, _later.c.version == change.c.version + 1, _later.c.seq <= revision
    )


def _conditions(wanted: Listing) -> Iterator[ColumnElement[bool]]:
    # Not by an index of the collection where the newest come first, or last: the log is in that order already. Nor
    # where a few records are asked for: all of the collection would be gone through.
    elsewhere = wanted.sort == "updated" or wanted.ids is not None
    collection = change.c.collection + literal("") if elsewhere else change.c.collection
    yield collection == wanted.collection
    if wanted.ids is not None:
        yield change.c.record.in_(wanted.ids)
    for column, value in (
        (change.c.state, wanted.state),
        (change.c.name_key, wanted.name_key),
        (change.c.class_id, wanted.class_id),
        (change.c.owner, wanted.owner),
        (change.c.flagged, wanted.flagged),
    ):
        if value is not None:
            yield column == value
    if wanted.updated_since is not None:
        yield change.c.at >= wanted.updated_since
