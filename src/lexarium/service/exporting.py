"""Taking the catalogue out, in constant memory."""

from collections.abc import Iterator, Sequence

from lexarium.domain.collections import Collection
from lexarium.exchange import valpha
from lexarium.service.reading import reading
from lexarium.store.database import Database


def export_valpha(database: Database, collections: Sequence[Collection]) -> Iterator[bytes]:
    """The published records of these collections with their relations, as one v-alpha JSON array in pieces."""
    with reading(database) as now:
        yield from valpha.join(shape for collection in collections for shape in now.shapes(collection))
