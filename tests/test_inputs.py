"""A little of what `python -m torture.inputs` and `python -m torture.files` do at length."""

import random
from contextlib import closing

import pytest

from lexarium.domain.collections import COLLECTIONS
from lexarium.exchange.formats import FORMATS
from lexarium.store.database import Database
from torture import files, inputs

REQUESTS = 800
ROUNDS = 6


@pytest.mark.full
def test_whatever_is_sent_the_server_answers_as_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    with inputs.made(random.Random(1)) as sent:
        for _ in range(REQUESTS):
            sent.one()
        sent.finish()
    kinds = {"v-alpha", "v1", "reconcile", "pages", "forms", "live", "malformed"}
    assert {told.partition(" ")[0] for told in sent.counts} == kinds
    assert sent.forms.untried() == {}
    assert len(sent.forms.paths) > 30


def test_a_spoilt_file_of_any_format_is_taken_whole_or_not_at_all() -> None:
    chance = random.Random(2)
    with files.made() as spoilt:
        for _ in range(ROUNDS):
            for name in spoilt.originals:
                spoilt.try_one(FORMATS[name], chance)
    assert {told.partition(" ")[0] for told in spoilt.counts} == set(FORMATS)
    assert {told.rpartition(" ")[2] for told in spoilt.counts} == {"taken", "refused"}


def test_what_is_spoilt_was_good_before() -> None:
    with files.made() as good:
        for name, each in FORMATS.items():
            path = good.folder / f"good{each.extensions[0]}"
            path.write_bytes(good.originals[name])
            with closing(Database(f"sqlite:///{good.place}")) as database:
                outcome = files._imported(database, path, each, None if each.writes else COLLECTIONS["concept"])
            assert outcome == files.TAKEN, name
