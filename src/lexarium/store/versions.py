"""Reading the log as the catalogue's past: any record, any list, at any revision."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
)

from lexarium.domain.changes import Action, Change, State, whole_of
from lexarium.domain.grounds import Ground
from lexarium.store.backend import read_position
from lexarium.store.schema import change, record

_later = change.alias("later")

SORTS: dict[str, Any] = {"name": change.c.name_key, "id": change.c.record, "updated": change.c.at}
"""What a list may be sorted by; records that are alike in it come by id."""


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


def find_version(connection: Connection, identifier: str, version: int) -> Change | None:
    """A version of a record."""
    query = select(change).where(change.c.record == identifier, change.c.version == version)
    row = connection.execute(query).one_or_none()
    return None if row is None else change_of(row)


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
    return [change_of(row) for row in connection.execute(query)]


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
    last = (change.c.record == record.c.id) & (change.c.version == record.c.version)
    query = select(change).join(record, last).where(record.c.id > after).order_by(record.c.id).limit(limit)
    return [change_of(row) for row in connection.execute(query)]


def page(connection: Connection, listing: Listing, after: Place | None, limit: int) -> list[Change]:
    """The next records of a list."""
    key = SORTS[listing.sort]
    query = _as_of(listing)
    if after is not None:
        past = key < after.key if listing.descending else key > after.key
        query = query.where(or_(past, and_(key == after.key, change.c.record > after.record)))
    query = query.order_by(key.desc() if listing.descending else key, change.c.record).limit(limit)
    return [change_of(row) for row in connection.execute(query)]


def total(connection: Connection, listing: Listing) -> int:
    """How many records a list has."""
    number: int = connection.execute(select(func.count()).select_from(_as_of(listing).subquery())).scalar_one()
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
    current = (record.c.id == change.c.record) & (record.c.version == change.c.version)
    # The document, which is the larger part, is fetched only where it is needed.
    document = case((record.c.id.is_(None), change.c.document))
    query = _as_of(listing).with_only_columns(
        change.c.order_key, change.c.record, document.label("document"), record.c.body, record.c.hit_length
    )
    query = query.join(record, current, isouter=True).order_by(change.c.order_key, change.c.record).limit(limit)
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


def _rendered_now(connection: Connection, collection: str, after: Place | None, limit: int) -> list[Rendered]:
    query = select(record.c.order_key, record.c.id, record.c.body, record.c.hit_length)
    query = query.where(record.c.collection == collection, record.c.state == State.PUBLISHED)
    query = query.order_by(record.c.order_key, record.c.id).limit(limit)
    if after is not None:
        query = query.where(tuple_(record.c.order_key, record.c.id) > tuple_(literal(after.key), literal(after.record)))
    return [Rendered._make(row) for row in connection.execute(query).all()]


def change_of(row: Any) -> Change:
    """A row of the log as a change."""
    return Change(
        seq=row.seq,
        at=row.at,
        actor=row.actor,
        batch=row.batch,
        action=Action(row.action),
        collection=row.collection,
        record=row.record,
        version=row.version,
        document=row.document,
    )


def _as_of(wanted: Listing) -> Select[Any]:
    newer = exists().where(
        _later.c.record == change.c.record, _later.c.version == change.c.version + 1, _later.c.seq <= wanted.revision
    )
    return select(change).where(change.c.seq <= wanted.revision, ~newer, *_conditions(wanted))


def _conditions(wanted: Listing) -> Iterator[ColumnElement[bool]]:
    yield change.c.collection == wanted.collection
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
