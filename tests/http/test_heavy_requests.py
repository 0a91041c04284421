"""Heavy requests (annotate, export, reconcile) have limits of their own, so that other reads go on."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
from sqlalchemy import text

from tests.support.databases import DatabaseUrlFactory
from tests.support.polling import wait_until
from tests.support.postgres import open_sqlalchemy
from tests.support.server import HttpResponse, Server

REQUEST_COUNT = 10
FORM_HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}
SLOW_SETTINGS = {"LEXARIUM_DATABASE_SECONDS": "300", "LEXARIUM_HEAVY_AT_ONCE": "1"}


def export(server: Server) -> HttpResponse:
    return server.get("/api/v1/export?format=jsonl")


def extend(server: Server) -> HttpResponse:
    extend_query = json.dumps({"ids": [RECORD_IDS[server.url]], "properties": [{"id": "definition"}]})
    return server.request("POST", "/reconcile", FORM_HEADERS, urlencode({"extend": extend_query}))


def annotate(server: Server) -> HttpResponse:
    return server.post_json("/api/v1/annotate", {"text": "memory"})


def annotate_on_page(server: Server) -> HttpResponse:
    return server.request("POST", "/annotate", FORM_HEADERS, urlencode({"text": "memory"}))


# By the server that has the record.
RECORD_IDS: dict[str, str] = {}


def add_record(server: Server) -> None:
    response = server.post_json("/api/v1/concept", {"name": "memory"}, server.create_token("curator"))
    assert response.status == 201
    RECORD_IDS[server.url] = response.json["id"]


@contextmanager
def lock_change_log(url: str) -> Iterator[None]:
    """Lock the change log, which all heavy requests read, during the block."""
    with open_sqlalchemy(url) as connection:
        connection.execute(text("LOCK TABLE change IN ACCESS EXCLUSIVE MODE"))
        yield


def is_done(future: "Future[HttpResponse]") -> bool:
    return future.done()


@pytest.mark.parametrize("heavy", [export, extend, annotate, annotate_on_page])
def test_heavy_requests_past_the_limit_are_refused_and_readers_are_served(
    new_url: DatabaseUrlFactory, heavy: Callable[[Server], HttpResponse]
) -> None:
    url = new_url("postgres")
    limits = {"LEXARIUM_REQUESTS": "4", "LEXARIUM_HEAVY_REQUESTS": "3", "LEXARIUM_HEAVY_SECONDS": "300"}
    with Server(url, **SLOW_SETTINGS, **limits) as server, ThreadPoolExecutor(REQUEST_COUNT) as threads:
        add_record(server)
        assert server.get("/api/v1/releases").status == 200
        with lock_change_log(url):
            futures = [threads.submit(heavy, server) for _ in range(REQUEST_COUNT)]
            wait_until(lambda: any(map(is_done, futures)))
            response = next(filter(is_done, futures)).result()
            assert response.status == 503
            assert "annotate, export or reconcile" in response.body.decode()
            assert int(response.headers["retry-after"]) > 0
            assert [server.get("/api/v1/releases").status for _ in range(REQUEST_COUNT)] == [200] * REQUEST_COUNT
            if heavy in (export, extend):  # annotating times out by itself
                assert not all(map(is_done, futures))
        assert {future.result().status for future in futures} <= {200, 503}


def test_a_heavy_request_waits_its_turn_and_is_refused_where_that_takes_too_long(new_url: DatabaseUrlFactory) -> None:
    url = new_url("postgres")
    with Server(url, **SLOW_SETTINGS, LEXARIUM_HEAVY_SECONDS="1") as server, ThreadPoolExecutor(3) as threads:
        add_record(server)
        assert export(server).status == 200
        with lock_change_log(url):
            futures = [threads.submit(operation, server) for operation in (export, export, extend)]
            wait_until(lambda: sum(map(is_done, futures)) == 2)
            for future in filter(is_done, futures):
                assert future.result().status == 503
                assert future.result().headers["retry-after"] == "1"
                assert "wait" in future.result().json["detail"]
        assert sorted(future.result().status for future in futures) == [200, 503, 503]
