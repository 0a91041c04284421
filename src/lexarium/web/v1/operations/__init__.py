"""Every operation of v1, by its group in the documentation."""

from collections.abc import Iterator

from lexarium.web.v1.operation import Operation
from lexarium.web.v1.operations import (
    accounts,
    annotate,
    batch,
    changes,
    comments,
    conformance,
    export,
    proposals,
    records,
    releases,
    search,
    service,
    vocabularies,
    webhooks,
)

# Routes are tried in this order: the most frequent come first.
_MODULES = (
    search,
    records,
    service,
    vocabularies,
    changes,
    batch,
    annotate,
    proposals,
    comments,
    releases,
    accounts,
    webhooks,
    export,
    conformance,
)


def iter_operations() -> Iterator[tuple[str, Operation]]:
    """Yield every operation with its tag."""
    for module in _MODULES:
        tag = module.__name__.rpartition(".")[2]
        yield from ((tag, operation) for operation in module.OPERATIONS)
        yield from ((tag, operation.in_vocabulary()) for operation in module.OPERATIONS if operation.has_vocabulary)


OPERATIONS = tuple(operation for _, operation in iter_operations())
