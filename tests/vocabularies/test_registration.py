"""Registry of vocabularies in a process, updated by transactions with different snapshots."""

import pytest

from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.services.vocabularies.head_records import create_vocabulary, remove_vocabulary
from lexarium.store.database import Database


def test_an_old_snapshot_does_not_restore_a_removed_vocabulary(database: Database) -> None:
    database.run_write(lambda transaction: create_vocabulary(transaction, "ada", "moss", {"schema": "skos"}))
    with database.read() as old_snapshot:
        database.follow_vocabularies(old_snapshot)
        database.run_write(lambda transaction: remove_vocabulary(transaction, "ada", "moss"))
        assert VOCABULARIES["moss"].is_removed
        assert not database.follow_vocabularies(old_snapshot)
    assert VOCABULARIES["moss"].is_removed


def test_a_vocabulary_of_a_rolled_back_transaction_is_not_kept(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.write() as transaction:
        create_vocabulary(transaction, "ada", "moss", {"schema": "skos"})
        database.follow_vocabularies(transaction.flush(), transaction.position)
        assert "moss" in VOCABULARIES
        raise ZeroDivisionError
    database.get_position()
    assert "moss" not in VOCABULARIES
