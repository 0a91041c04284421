"""Every operation of v1, by its group in the documentation."""

from lexarium.web.v1.operations import (
    accounts,
    annotate,
    batch,
    changes,
    export,
    history,
    proposals,
    records,
    relations,
    releases,
    search,
    service,
    webhooks,
)

COLLECTION_TAG = "{collection}"
OPERATIONS_BY_TAG = {
    # Routes are tried in this order: the most frequent come first.
    "search": search.OPERATIONS,
    COLLECTION_TAG: records.OPERATIONS + history.OPERATIONS + relations.OPERATIONS,
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
OPERATIONS = tuple(operation for operations in OPERATIONS_BY_TAG.values() for operation in operations)
