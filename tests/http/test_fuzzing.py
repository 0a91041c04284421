"""Short runs of `torture.request_fuzz` and `torture.import_fuzz`."""

import random
from contextlib import closing

import pytest

from lexarium.formats.registry import FORMATS
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.store.database import Database
from torture import import_fuzz, request_fuzz

REQUESTS = 400


@pytest.mark.full
def test_random_requests_get_documented_responses(capsys: pytest.CaptureFixture[str]) -> None:
    with request_fuzz.create_fuzzer(random.Random(1)) as fuzzer:
        for _ in range(REQUESTS):
            fuzzer.send_random()
        fuzzer.check_form_coverage()
    kinds = {"v-alpha", "v1", "reconcile", "pages", "forms", "live", "malformed"}
    assert {label.partition(" ")[0] for label in fuzzer.counts} == kinds
    assert fuzzer.forms.list_untested() == {}
    assert len(fuzzer.forms.paths) > 30


@pytest.mark.parametrize("rounds", [pytest.param(2, marks=pytest.mark.short), pytest.param(4, marks=pytest.mark.full)])
def test_a_corrupted_file_of_any_format_is_imported_completely_or_not_at_all(rounds: int) -> None:
    rng = random.Random(2)
    with import_fuzz.create_fuzzer() as fuzzer:
        for _ in range(rounds):
            for name in fuzzer.originals:
                fuzzer.import_one(FORMATS[name], rng)
            for name in fuzzer.vocabulary_originals:
                fuzzer.import_vocabulary_file(FORMATS[name], rng)
    assert {label.partition(" ")[0] for label in fuzzer.counts} == set(FORMATS)
    assert {label.rpartition(" ")[2] for label in fuzzer.counts} == {"taken", "refused"}


@pytest.mark.full
def test_the_files_to_corrupt_are_valid() -> None:
    with import_fuzz.create_fuzzer() as fuzzer:
        for name, file_format in FORMATS.items():
            path = fuzzer.folder / f"good{file_format.extensions[0]}"
            path.write_bytes(fuzzer.originals[name])
            with closing(Database(f"sqlite:///{fuzzer.database_path}")) as database:
                outcome = import_fuzz._try_import(
                    database, path, file_format, "concept" if name in ("owl", "translation") else ""
                )
            assert outcome == import_fuzz.ACCEPTED, name
        for name, slug in import_fuzz.VOCABULARY_FORMATS.items():
            path = fuzzer.folder / f"good{FORMATS[name].extensions[0]}"
            path.write_bytes(fuzzer.vocabulary_originals[name])
            fuzzer.reset_database()
            with closing(Database(f"sqlite:///{fuzzer.database_path}")) as database:
                database.run_read(database.follow_vocabularies)
                request = ImportRequest([path], slug, FORMATS[name])
                outcome = import_fuzz._try_vocabulary_import(database, request, FORMATS[name])
            assert outcome == import_fuzz.ACCEPTED, f"{name} of {slug}"
