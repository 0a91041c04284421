"""Heavy requests (annotate, export, reconcile) have limits of their own, so that they keep no reader out."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
from sqlalchemy import text

from tests.databases import NewUrl
from tests.postgres import plain
from tests.server import Answer, Server
from tests.waiting import wait_until

MANY = 10
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
UNHURRIED = {"LEXARIUM_DATABASE_SECONDS": "300", "LEXARIUM_HEAVY_AT_ONCE": "1"}


def export(server: Server) -> Answer:
    return server.get("/api/v1/export?format=jsonl")


def extend(server: Server) -> Answer:
    asked = json.dumps({"ids": ["trm_1"], "properties": [{"id": "definition"}]})
    return server.request("POST", "/reconcile", FORM, urlencode({"extend": asked}))


def annotate(server: Server) -> Answer:
    return server.post_json("/api/v1/annotate", {"text": "memory"})


def annotate_on_the_page(server: Server) -> Answer:
    return server.request("POST", "/annotate", FORM, urlencode({"text": "memory"}))


def add_record(server: Server) -> None:
    assert server.post_json("/api/v1/concept", {"name": "memory"}, server.token("curator")).status == 201


@contextmanager
def blocked_log(url: str) -> Iterator[None]:
    """Hold everyone up who reads the log of changes, which all heavy requests do, until the block ends."""
    with plain(url) as connection:
        connection.execute(text("LOCK TABLE change IN ACCESS EXCLUSIVE MODE"))
        yield


def is_answered(future: "Future[Answer]") -> bool:
    return future.done()


@pytest.mark.parametrize("heavy", [export, extend, annotate, annotate_on_the_page])
def test_heavy_requests_past_the_limit_are_refused_and_readers_are_served(
    new_url: NewUrl, heavy: Callable[[Server], Answer]
) -> None:
    url = new_url("postgres")
    limits = {"LEXARIUM_REQUESTS": "4", "LEXARIUM_HEAVY_REQUESTS": "3", "LEXARIUM_HEAVY_SECONDS": "300"}
    with Server(url, **UNHURRIED, **limits) as server, ThreadPoolExecutor(MANY) as threads:
        add_record(server)
        assert server.get("/api/v1/releases").status == 200
        with blocked_log(url):
            asked = [threads.submit(heavy, server) for _ in range(MANY)]
            wait_until(lambda: any(map(is_answered, asked)))
            refused = next(filter(is_answered, asked)).result()
            assert refused.status == 503
            assert "annotate, export or reconcile" in refused.body.decode()
            assert int(refused.headers["retry-after"]) > 0
            assert [server.get("/api/v1/releases").status for _ in range(MANY)] == [200] * MANY
            if heavy in (export, extend):  # annotating gives up after a while by itself
                assert not all(map(is_answered, asked))
        assert {future.result().status for future in asked} <= {200, 503}


def test_a_heavy_request_waits_its_turn_and_is_refused_where_that_takes_too_long(new_url: NewUrl) -> None:
    url = new_url("postgres")
    with Server(url, **UNHURRIED, LEXARIUM_HEAVY_SECONDS="1") as server, ThreadPoolExecutor(3) as threads:
        add_record(server)
        assert export(server).status == 200
        with blocked_log(url):
            asked = [threads.submit(each, server) for each in (export, export, extend)]
            wait_until(lambda: sum(map(is_answered, asked)) == 2)
            for future in filter(is_answered, asked):
                assert future.result().status == 503
                assert future.result().headers["retry-after"] == "1"
                assert "wait" in future.result().json["detail"]
        assert sorted(future.result().status for future in asked) == [200, 503, 503]
