"""Every operation of v1, by its group in the documentation."""

from collections.abc import Iterator

from lexarium.domain.schema.collections import COLLECTIONS, Collection
from lexarium.web.v1.operation import Operation
from lexarium.web.v1.operations import (
    accounts,
    annotate,
    batch,
    changes,
    export,
    proposals,
    records,
    releases,
    search,
    service,
    webhooks,
)

_OPERATIONS_BY_TAG = {
    # Routes are tried in this order: the most frequent come first.
    "search": search.OPERATIONS,
    "{collection}": records.OPERATIONS,
    "service": service.OPERATIONS,
    "changes": changes.OPERATIONS,
    "batch": batch.OPERATIONS,
    "annotate": annotate.OPERATIONS,
    "proposals": proposals.OPERATIONS,
    "releases": releases.OPERATIONS,
    "accounts": accounts.OPERATIONS,
    "webhooks": webhooks.OPERATIONS,
    "export": export.OPERATIONS,
}
OPERATIONS = tuple(operation for operations in _OPERATIONS_BY_TAG.values() for operation in operations)


def iter_operations() -> Iterator[tuple[str, str, Operation, Collection | None]]:
    """Yield each operation with its tag, its path and its collection: one on collections for each of them."""
    for tag, operations in _OPERATIONS_BY_TAG.items():
        for operation in operations:
            if operation.on_collection:
                for name, collection in COLLECTIONS.items():
                    yield name, operation.path.replace("{collection}", name), operation, collection
            else:
                yield tag, operation.path, operation, None
