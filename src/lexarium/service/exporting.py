"""Taking the catalogue out, as it is or as it was."""

from collections.abc import Iterator, Sequence

from lexarium.domain.collections import Collection
from lexarium.exchange import valpha
from lexarium.service.looking import revision_of
from lexarium.service.past import Past
from lexarium.service.reading import Reading
from lexarium.store.database import Database


def export_valpha(
    database: Database, collections: Sequence[Collection], release: str | None = None, as_of: int | None = None
) -> Iterator[bytes]:
    """The published records of these collections with their relations, as one v-alpha JSON array in pieces.

    Of a release, or of an earlier revision, to the byte what was exported then. The present takes constant memory.
    """
    with database.read() as snapshot:
        now = Reading(snapshot)
        revision = revision_of(snapshot, release, as_of)
        then = now if revision == now.position.revision else Past(snapshot, revision)
        yield from valpha.join(shape for collection in collections for shape in then.shapes(collection))
