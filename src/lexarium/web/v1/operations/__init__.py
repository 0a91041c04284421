"""Every operation of v1, by its group in the documentation."""

from collections.abc import Iterator

from lexarium.web.v1.operation import Operation
from lexarium.web.v1.operations import (
    accounts,
    annotate,
    batch,
    changes,
    conformance,
    export,
    proposals,
    records,
    releases,
    search,
    service,
    webhooks,
)

# Routes are tried in this order: the most frequent come first.
_MODULES = (
    search,
    records,
    service,
    changes,
    batch,
    annotate,
    proposals,
    releases,
    accounts,
    webhooks,
    export,
    conformance,
)
OPERATIONS = tuple(operation for module in _MODULES for operation in module.OPERATIONS)


def iter_operations() -> Iterator[tuple[str, Operation]]:
    """Yield every operation with its tag."""
    for module in _MODULES:
        for operation in module.OPERATIONS:
            yield module.__name__.rpartition(".")[2], operation
