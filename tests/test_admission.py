"""More than a server can do: what is past that is refused at once, and what is taken is done."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from lexarium.web import admission
from tests.databases import NewUrl
from tests.server import Server
from torture.load import Lengths, harm, run


def test_past_the_most_requests_in_work_the_next_is_told_to_come_again(new_url: NewUrl) -> None:
    with (
        Server(new_url("sqlite"), LEXARIUM_REQUESTS="2", LEXARIUM_WRITE_BURST="1000") as server,
        ThreadPoolExecutor(30) as threads,
    ):
        token = server.token("curator")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

        def create(number: int) -> tuple[int, str]:
            answer = server.request("POST", "/api/v1/concept", headers, json.dumps({"name": f"concept {number}"}))
            if answer.status == 503:
                assert int(answer.headers["retry-after"]) > 0
                assert answer.json["status"] == 503
                assert answer.headers["x-request-id"]
            return answer.status, f"concept {number}"

        # What is told piece by piece counts once, and no more once it is told.
        for _ in range(50):
            assert server.get("/api/v1/export?format=jsonl").status == 200
        asked = list(threads.map(create, range(300)))
        assert {status for status, _ in asked} == {201, 503}
        taken = sorted(name for status, name in asked if status == 201)
        assert sorted(record["name"] for record in server.get("/api/v-alpha/concept").json) == taken
        probes = Counter(answer.status for answer in threads.map(server.get, ["/healthz"] * 100))
        assert probes == {200: 100}
        finished = Counter(answer.status for answer in threads.map(server.get, ["/api/v-alpha/concept"] * 100))
        assert finished == {200: 100}


def test_once_one_was_refused_an_eighth_is_taken_until_none_had_to_be_for_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(admission, "monotonic", lambda: now)
    work = admission.Work(64)

    def full_with(requests: int) -> bool:
        work.requests = requests
        return work.is_full()

    assert not full_with(63)
    assert full_with(64)
    now += 0.9
    assert work.is_strained
    assert full_with(8)
    assert not full_with(7)
    now += 0.9  # which is less than a second after the last refusal
    assert full_with(63)
    now += 1
    assert not work.is_strained
    assert not full_with(63)


def test_of_heavy_requests_as_many_are_taken_after_a_refusal_as_before() -> None:
    work = admission.Work(64, parts=1)
    work.requests = 64
    assert work.is_full()
    work.requests = 63
    assert not work.is_full()


@pytest.mark.full
def test_four_times_what_a_server_can_do_is_answered_or_refused_and_leaves_nothing_behind() -> None:
    outcome = run(Lengths(finding=1, idle=1, overload=5))
    assert outcome.overload.answered > 0
    assert outcome.overload.refused > 0
    assert harm(outcome) == []
