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


def read_release_file(server: Server) -> HttpResponse:
    return server.get("/api/v1/releases/1/files/jsonl")


def extend(server: Server, path: str = "/reconcile") -> HttpResponse:
    extend_query = json.dumps({"ids": [RECORD_IDS[server.url]], "properties": [{"id": "definition"}]})
    return server.request("POST", path, FORM_HEADERS, urlencode({"extend": extend_query}))


def extend_from_vocabulary(server: Server) -> HttpResponse:
    return extend(server, "/vocabularies/main/reconcile")


def annotate(server: Server) -> HttpResponse:
    return server.post_json("/api/v1/annotate", {"text": "memory"})


def annotate_on_page(server: Server) -> HttpResponse:
    return server.request("POST", "/annotate", FORM_HEADERS, urlencode({"text": "memory"}))


HEAVY_REQUESTS = [export, read_release_file, extend, extend_from_vocabulary, annotate, annotate_on_page]
# By the server that has the record.
RECORD_IDS: dict[str, str] = {}


def add_record(server: Server) -> None:
    token = server.create_token("curator")
    response = server.post_json("/api/v1/concept", {"name": "memory"}, token)
    assert response.status == 201
    assert server.post_json("/api/v1/releases", {"name": "1"}, token).status == 201
    RECORD_IDS[server.url] = response.json["id"]


@contextmanager
def lock_change_log(url: str) -> Iterator[None]:
    """Lock the change log, which all heavy requests read, during the block."""
    with open_sqlalchemy(url) as connection:
        connection.execute(text("LOCK TABLE change IN ACCESS EXCLUSIVE MODE"))
        yield


def is_done(future: "Future[HttpResponse]") -> bool:
    return future.done()


@pytest.mark.parametrize("heavy", HEAVY_REQUESTS)
def test_heavy_requests_beyond_the_limit_are_rejected_while_reads_are_served(
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
            assert "annotate, export and reconcile" in response.body.decode()
            assert int(response.headers["retry-after"]) > 0
            assert [server.get("/api/v1/releases").status for _ in range(REQUEST_COUNT)] == [200] * REQUEST_COUNT
            if heavy not in (annotate, annotate_on_page):  # which time out by themselves
                assert not all(map(is_done, futures))
        assert {future.result().status for future in futures} <= {200, 503}


def test_a_heavy_request_is_rejected_after_waiting_too_long(new_url: DatabaseUrlFactory) -> None:
    url = new_url("postgres")
    settings = {**SLOW_SETTINGS, "LEXARIUM_HEAVY_SECONDS": "1", "LEXARIUM_CACHE_MB": "0"}
    with Server(url, **settings) as server, ThreadPoolExecutor(3) as threads:
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


def test_the_amount_of_text_annotated_at_once_is_limited_per_client(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite"), LEXARIUM_ANNOTATE_MB="10") as server:
        connection = server.connect()
        connection.putrequest("POST", "/api/v1/annotate")
        connection.putheader("Content-Type", "text/plain")
        connection.putheader("Content-Length", str(10 << 20))
        connection.endheaders(b"a text that has only begun")
        for send in (annotate, annotate_on_page):
            wait_until(lambda send=send: send(server).status == 429)
            response = send(server)
            assert "10 MiB" in response.body.decode()
            assert response.headers["retry-after"] == "1"
        assert server.get("/api/v1/releases").status == 200
        connection.close()
        wait_until(lambda: annotate(server).status == 200)
        text_of_ten = b"memory " * ((10 << 20) // 7)
        for _ in range(2):  # the first no longer counts
            assert server.request("POST", "/api/v1/annotate", {"Content-Type": "text/plain"}, text_of_ten).status == 200
