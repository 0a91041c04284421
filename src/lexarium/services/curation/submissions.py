"""Submit changes: published if the caller may publish, otherwise proposed."""

from collections.abc import Mapping
from typing import Any

from lexarium.domain.identifiers import MAIN_VOCABULARY
from lexarium.domain.proposal import Proposal
from lexarium.domain.schema.collections import Collection
from lexarium.services.access.permissions import Caller, Permission
from lexarium.services.curation.draft_checks import check_valpha_draft
from lexarium.services.curation.proposals import ProposalWriter
from lexarium.services.curation.record_writer import RecordWriter
from lexarium.services.records.lookup import VersionedRecord
from lexarium.store.transaction import Transaction


def open_writer(
    transaction: Transaction, caller: Caller, vocabulary: str = MAIN_VOCABULARY, summary: str = ""
) -> RecordWriter | ProposalWriter:
    """Return the writer that publishes if the caller may in a vocabulary, else the one that proposes."""
    if caller.has_permission(Permission.PUBLISH, vocabulary):
        return RecordWriter(transaction, caller, summary=summary)
    return ProposalWriter(transaction, caller, summary)


def submit_valpha_record(
    transaction: Transaction, caller: Caller, collection: Collection, values: Mapping[str, Any], *, from_form: bool
) -> VersionedRecord | Proposal:
    """Submit a new record from the values of a v-alpha POST; raise InvalidInput with all problems."""
    writer = open_writer(transaction, caller, collection.vocabulary)
    draft = check_valpha_draft(transaction, collection, values, from_form=from_form)
    return writer.create_valpha(collection, draft)
