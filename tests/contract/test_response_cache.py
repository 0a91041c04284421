"""Response cache: an entry stays valid until something it depends on changes."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lexarium.domain.account import Role
from lexarium.domain.cache_tags import record_tag
from lexarium.domain.errors import DatabaseUnavailable
from lexarium.domain.schema.collections import CONCEPT, CONTRAST
from lexarium.services.access.accounts import add_account
from lexarium.services.access.authentication import Authenticator
from lexarium.services.access.tokens import create_token
from lexarium.services.records import queries
from lexarium.services.records.lookup import VersionedRecord
from lexarium.services.records.valpha_queries import open_valpha_reader, read_record
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from lexarium.store.transaction import Transaction
from lexarium.web.http.response_cache import CachedResponse, ResponseCache
from lexarium.web.middleware.admission import FairScheduler
from tests.support.databases import DatabaseUrlFactory
from tests.support.polling import DEADLINE_SECONDS
from tests.support.record_editor import RecordEditor

WriteTask = Callable[[RecordEditor], VersionedRecord]


class CachedCatalogue:
    """Catalogue, curator and the response cache of a server."""

    def __init__(self, url: str) -> None:
        self.database = open_database(url)
        # The same catalogue, opened as by another process.
        self.other_database = open_database(url)
        add_account(self.database, "cara", Role.CURATOR)
        _, secret = create_token(self.database, "cara")
        self.caller = Authenticator(self.database).authenticate(f"Bearer {secret}")
        self.cache = ResponseCache(1_000_000, self.database)

    def write(self, task: WriteTask, database: Database | None = None) -> VersionedRecord:
        return (database or self.database).run_write(lambda transaction: task(RecordEditor(transaction, self.caller)))

    def create(self, name: str, **relations: list[str]) -> str:
        return self.write(lambda writer: writer.create(CONCEPT, {"name": name, "relations": relations})).record.id

    def cache_response(self, parameter: str, value: str = "") -> None:
        """Read a response and cache it."""
        if parameter == "id":
            response = self.build_response(value)
        else:
            with open_valpha_reader(self.database) as now:
                body = (
                    now.render_by_name(CONCEPT, value)
                    if parameter == "name"
                    else b"".join(now.iter_collection(CONCEPT))
                )
                response = CachedResponse(now.position, body, [], "identity", frozenset(now.cache_tags))
        asyncio.run(self.cache.put((("concept", parameter, value), "identity"), response))

    def build_response(self, record_id: str, encoding: str = "identity") -> CachedResponse:
        """Build the current response for a record."""
        response = read_record(self.database, CONCEPT, record_id)
        return CachedResponse(response.position, response.body, [], encoding, frozenset(response.cache_tags))

    def get_cached(self, parameter: str, value: str = "") -> CachedResponse | None:
        """Return the cached response that is valid now."""
        asyncio.run(self.cache.apply_invalidations())
        return self.cache.get((("concept", parameter, value), "identity"))


@pytest.fixture
def catalogue(url: str) -> Iterator[CachedCatalogue]:
    cached_catalogue = CachedCatalogue(url)
    yield cached_catalogue
    cached_catalogue.database.close()
    cached_catalogue.other_database.close()


@pytest.mark.parametrize("from_other_database", [False, True])
def test_a_write_keeps_cached_responses_of_other_records(catalogue: CachedCatalogue, from_other_database: bool) -> None:
    record_id = catalogue.create("one")
    catalogue.cache_response("id", record_id)
    catalogue.cache_response("name", "one")
    catalogue.cache_response("")
    saved = catalogue.write(
        lambda writer: writer.create(CONCEPT, {"name": "two"}),
        catalogue.other_database if from_other_database else catalogue.database,
    )
    catalogue.database.observe_position(catalogue.other_database.get_position())
    for parameter, value in (("id", record_id), ("name", "one")):
        response = catalogue.get_cached(parameter, value)
        assert response is not None
        assert response.position.revision == saved.change.seq
        assert b"-%d-" % saved.change.seq in response.etag
    assert catalogue.get_cached("") is None


@pytest.mark.parametrize(
    "change",
    [
        lambda one, other: lambda writer: writer.patch(writer.get_published(CONCEPT, one, 1), {"definition_text": "x"}),
        lambda one, other: lambda writer: writer.patch(writer.get_published(CONCEPT, one, 1), {"name": "else"}),
        lambda one, other: lambda writer: writer.retire(writer.get_published(CONCEPT, one, 1)),
        lambda one, other: lambda writer: writer.create(CONCEPT, {"name": "child", "relations": {"KINDOF": [one]}}),
        lambda one, other: lambda writer: writer.patch(writer.get_published(CONCEPT, other, 1), {"name": "renamed"}),
        lambda one, other: (
            lambda writer: writer.patch(writer.get_published(CONCEPT, other, 1), {"relations": {"KINDOF": None}})
        ),
        lambda one, other: lambda writer: writer.retire(writer.get_published(CONCEPT, other, 1)),
    ],
)
def test_a_change_of_a_record_or_a_related_one_invalidates_its_cached_response(
    catalogue: CachedCatalogue, change: Callable[[str, str], WriteTask]
) -> None:
    record_id = catalogue.create("one")
    other = catalogue.create("other", KINDOF=[record_id])
    catalogue.cache_response("id", record_id)
    catalogue.cache_response("name", "one")
    catalogue.write(change(record_id, other))
    assert catalogue.get_cached("id", record_id) is None
    assert catalogue.get_cached("name", "one") is None


def test_restoring_a_record_invalidates_cached_responses_of_records_that_refer_to_it(
    catalogue: CachedCatalogue,
) -> None:
    record_id = catalogue.create("one")
    other = catalogue.create("other", KINDOF=[record_id])
    catalogue.write(lambda writer: writer.retire(writer.get_published(CONCEPT, record_id, 1)))
    catalogue.cache_response("id", other)
    catalogue.create("third")
    assert catalogue.get_cached("id", other) is not None
    with catalogue.database.read() as snapshot:
        published = queries.get_version(snapshot, CONCEPT, record_id, 1)
    catalogue.write(lambda writer: writer.revert(published, 2))
    assert catalogue.get_cached("id", other) is None


def test_a_new_record_invalidates_the_cached_response_for_its_name(catalogue: CachedCatalogue) -> None:
    record_id = catalogue.create("one")
    catalogue.cache_response("name", "ONE")
    catalogue.cache_response("id", record_id)
    catalogue.create("One")
    assert catalogue.get_cached("name", "ONE") is None
    assert catalogue.get_cached("id", record_id) is not None


def test_a_response_built_before_a_write_is_cached_afterwards_only_if_it_is_still_valid(
    catalogue: CachedCatalogue,
) -> None:
    record_id, other = catalogue.create("one"), catalogue.create("other")
    catalogue.cache_response("id", record_id)
    outdated, sound = catalogue.build_response(other), catalogue.build_response(record_id, "gzip")
    catalogue.write(lambda writer: writer.patch(writer.get_published(CONCEPT, other, 1), {"name": "changed"}))
    asyncio.run(catalogue.cache.put((("concept", "id", other), "identity"), outdated))
    asyncio.run(catalogue.cache.put((("concept", "id", record_id), "gzip"), sound))
    assert catalogue.get_cached("id", other) is None
    assert catalogue.cache.get((("concept", "id", record_id), "gzip")) is not None


@pytest.mark.parametrize("from_other_database", [False, True])
def test_removing_a_relation_invalidates_responses_that_depend_only_on_its_target(
    catalogue: CachedCatalogue, from_other_database: bool
) -> None:
    target = catalogue.create("target")
    other = catalogue.create("other", KINDOF=[target])
    key = (("concept", "count", target), "identity")
    position = catalogue.build_response(target).position
    count = CachedResponse(position, b"1", [], "identity", frozenset([record_tag(target)]))
    asyncio.run(catalogue.cache.put(key, count))
    catalogue.write(
        lambda writer: writer.patch(writer.get_published(CONCEPT, other, 1), {"relations": {"KINDOF": None}}),
        catalogue.other_database if from_other_database else catalogue.database,
    )
    catalogue.database.observe_position(catalogue.other_database.get_position())
    assert catalogue.get_cached("count", target) is None


def test_the_cache_checks_for_changes_once_per_event_loop_iteration(new_url: DatabaseUrlFactory) -> None:
    catalogue = CachedCatalogue(new_url("sqlite"))
    record_id = catalogue.create("one")
    catalogue.cache_response("id", record_id)
    key = (("concept", "id", record_id), "identity")

    async def read_in_rounds() -> list[bool]:
        is_cached = [catalogue.cache.get_in_round(key) is not None]
        catalogue.write(
            lambda writer: writer.patch(writer.get_published(CONCEPT, record_id, 1), {"name": "changed"}),
            catalogue.other_database,
        )
        # A request of the same iteration may have been sent before the write; `get` sees the write at once.
        is_cached.append(catalogue.cache.get_in_round(key) is not None)
        is_cached.append(catalogue.cache.get(key) is not None)
        await asyncio.sleep(0)
        is_cached.append(catalogue.cache.get_in_round(key) is not None)
        return is_cached

    assert asyncio.run(read_in_rounds()) == [True, True, False, False]
    catalogue.database.close()
    catalogue.other_database.close()


def test_a_new_contrast_keeps_all_cached_responses_of_concepts(catalogue: CachedCatalogue) -> None:
    record_id = catalogue.create("one")
    catalogue.cache_response("id", record_id)
    catalogue.cache_response("")
    catalogue.write(lambda writer: writer.create(CONTRAST, {"name": "a against b"}))
    assert catalogue.get_cached("id", record_id) is not None
    assert catalogue.get_cached("") is not None


def test_all_waiting_writers_fail_at_once_if_the_write_lock_is_unavailable(url: str) -> None:
    database, blocker = open_database(url), open_database(url)
    with blocker.write(), ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(database.run_write, Transaction.bump_accounts_revision) for _ in range(8)]
        for future in futures:
            with pytest.raises(DatabaseUnavailable):
                future.result(timeout=DEADLINE_SECONDS)
    database.run_write(Transaction.bump_accounts_revision)
    assert database.get_position().accounts == 1
    database.close()
    blocker.close()


def test_the_scheduler_runs_one_waiting_task_per_event_loop_iteration_in_order() -> None:
    async def run_turns() -> list[str]:
        turns, events = FairScheduler(), list[str]()

        async def take_turn(number: int) -> None:
            await turns.wait()
            events.append(f"long {number}")

        async def run_short_task() -> None:
            for number in range(3):
                events.append(f"short {number}")
                await asyncio.sleep(0)

        await asyncio.gather(*(take_turn(number) for number in range(3)), run_short_task())
        return events

    events = asyncio.run(run_turns())
    assert [event for event in events if event.startswith("long")] == ["long 0", "long 1", "long 2"]
    assert events.index("short 1") < events.index("long 2")
