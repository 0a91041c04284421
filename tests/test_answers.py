"""Answers that are kept: each holds until something that it rests on changes, and no longer."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lexarium.domain.accounts import Role
from lexarium.domain.collections import CONCEPT, CONTRAST
from lexarium.domain.errors import Unavailable
from lexarium.service import looking
from lexarium.service.access import Callers, add_account, create_token
from lexarium.service.desk import Desk, Saved
from lexarium.service.reading import read_one, reading
from lexarium.store.database import Database
from lexarium.store.migrate import open_database
from lexarium.store.transaction import Transaction
from lexarium.web.answers import Answer, Answers
from lexarium.web.turns import Turns
from tests.waiting import DEADLINE

Write = Callable[[Desk], Saved]


class Catalogue:
    """A catalogue, a curator at its desk, and the answers kept of it."""

    def __init__(self, url: str) -> None:
        self.database = open_database(url)
        self.elsewhere = open_database(url)
        """The same catalogue as another process has it open."""
        add_account(self.database, "cara", Role.CURATOR)
        _, secret = create_token(self.database, "cara")
        self.caller = Callers(self.database).identify(f"Bearer {secret}")
        self.answers = Answers(1_000_000, self.database)

    def write(self, work: Write, database: Database | None = None) -> Saved:
        return (database or self.database).run(lambda transaction: work(Desk(transaction, self.caller)))

    def create(self, name: str, **relations: list[str]) -> str:
        return self.write(lambda desk: desk.create(CONCEPT, {"name": name, "relations": relations})).whole.id

    def keep(self, parameter: str, value: str = "") -> None:
        """Read an answer and keep it."""
        if parameter == "id":
            answer = self.one(value)
        else:
            with reading(self.database) as now:
                body = now.one_named(CONCEPT, value) if parameter == "name" else b"".join(now.whole(CONCEPT))
                answer = Answer(now.position, body, [], "identity", frozenset(now.grounds))
        asyncio.run(self.answers.keep((("concept", parameter, value), "identity"), answer))

    def one(self, identifier: str, encoding: str = "identity") -> Answer:
        """A record as an answer of now."""
        one = read_one(self.database, CONCEPT, identifier)
        return Answer(one.position, one.body, [], encoding, frozenset(one.grounds))

    def kept(self, parameter: str, value: str = "") -> Answer | None:
        """The answer as it is given out now."""
        asyncio.run(self.answers.catch_up())
        return self.answers.get((("concept", parameter, value), "identity"))


@pytest.fixture
def catalogue(url: str) -> Iterator[Catalogue]:
    opened = Catalogue(url)
    yield opened
    opened.database.close()
    opened.elsewhere.close()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_write_leaves_the_answers_of_other_records_standing(catalogue: Catalogue, elsewhere: bool) -> None:
    one = catalogue.create("one")
    catalogue.keep("id", one)
    catalogue.keep("name", "one")
    catalogue.keep("")
    made = catalogue.write(
        lambda desk: desk.create(CONCEPT, {"name": "two"}), catalogue.elsewhere if elsewhere else catalogue.database
    )
    catalogue.database.notice(catalogue.elsewhere.position())
    for parameter, value in (("id", one), ("name", "one")):
        answer = catalogue.kept(parameter, value)
        assert answer is not None
        assert answer.position.revision == made.change.seq
        assert b"-%d-" % made.change.seq in answer.etag
    assert catalogue.kept("") is None


@pytest.mark.parametrize(
    "change",
    [
        lambda one, other: lambda desk: desk.patch(desk.current(CONCEPT, one, 1), {"definition_text": "x"}),
        lambda one, other: lambda desk: desk.patch(desk.current(CONCEPT, one, 1), {"name": "else"}),
        lambda one, other: lambda desk: desk.retire(desk.current(CONCEPT, one, 1)),
        lambda one, other: lambda desk: desk.create(CONCEPT, {"name": "child", "relations": {"KINDOF": [one]}}),
        lambda one, other: lambda desk: desk.patch(desk.current(CONCEPT, other, 1), {"name": "renamed"}),
        lambda one, other: lambda desk: desk.patch(desk.current(CONCEPT, other, 1), {"relations": {"KINDOF": None}}),
        lambda one, other: lambda desk: desk.retire(desk.current(CONCEPT, other, 1)),
    ],
)
def test_a_change_of_a_record_or_of_what_it_is_related_to_ends_its_answer(
    catalogue: Catalogue, change: Callable[[str, str], Write]
) -> None:
    one = catalogue.create("one")
    other = catalogue.create("other", KINDOF=[one])
    catalogue.keep("id", one)
    catalogue.keep("name", "one")
    catalogue.write(change(one, other))
    assert catalogue.kept("id", one) is None
    assert catalogue.kept("name", "one") is None


def test_a_record_that_comes_back_ends_the_answers_of_those_that_point_to_it(catalogue: Catalogue) -> None:
    one = catalogue.create("one")
    other = catalogue.create("other", KINDOF=[one])
    catalogue.write(lambda desk: desk.retire(desk.current(CONCEPT, one, 1)))
    catalogue.keep("id", other)
    catalogue.create("third")
    assert catalogue.kept("id", other) is not None
    with catalogue.database.read() as snapshot:
        published = looking.version(snapshot, CONCEPT, one, 1)
    catalogue.write(lambda desk: desk.revert(published, 2))
    assert catalogue.kept("id", other) is None


def test_a_new_record_of_the_same_name_ends_the_answer_of_that_name(catalogue: Catalogue) -> None:
    one = catalogue.create("one")
    catalogue.keep("name", "ONE")
    catalogue.keep("id", one)
    catalogue.create("One")
    assert catalogue.kept("name", "ONE") is None
    assert catalogue.kept("id", one) is not None


def test_an_answer_read_before_a_write_is_kept_after_it_only_where_it_still_holds(catalogue: Catalogue) -> None:
    one, other = catalogue.create("one"), catalogue.create("other")
    catalogue.keep("id", one)
    stale, sound = catalogue.one(other), catalogue.one(one, "gzip")
    catalogue.write(lambda desk: desk.patch(desk.current(CONCEPT, other, 1), {"name": "changed"}))
    asyncio.run(catalogue.answers.keep((("concept", "id", other), "identity"), stale))
    asyncio.run(catalogue.answers.keep((("concept", "id", one), "gzip"), sound))
    assert catalogue.kept("id", other) is None
    assert catalogue.answers.get((("concept", "id", one), "gzip")) is not None


def test_a_new_contrast_leaves_every_answer_of_concepts_standing(catalogue: Catalogue) -> None:
    one = catalogue.create("one")
    catalogue.keep("id", one)
    catalogue.keep("")
    catalogue.write(lambda desk: desk.create(CONTRAST, {"name": "a against b"}))
    assert catalogue.kept("id", one) is not None
    assert catalogue.kept("") is not None


def test_when_no_turn_is_to_be_had_all_who_wait_are_told_at_once(url: str) -> None:
    database, blocker = open_database(url), open_database(url)
    with blocker.write(), ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(database.run, Transaction.accounts_changed) for _ in range(8)]
        for future in waiting:
            with pytest.raises(Unavailable):
                future.result(timeout=DEADLINE)
    database.run(Transaction.accounts_changed)
    assert database.position().accounts == 1
    database.close()
    blocker.close()


def test_turns_are_given_one_a_round_and_in_order() -> None:
    async def play() -> list[str]:
        turns, told = Turns(), list[str]()

        async def long(number: int) -> None:
            await turns.take()
            told.append(f"long {number}")

        async def short() -> None:
            for number in range(3):
                told.append(f"short {number}")
                await asyncio.sleep(0)

        await asyncio.gather(*(long(number) for number in range(3)), short())
        return told

    told = asyncio.run(play())
    assert [each for each in told if each.startswith("long")] == ["long 0", "long 1", "long 2"]
    assert told.index("short 1") < told.index("long 2")
