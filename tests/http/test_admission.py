"""Admission control: reject requests beyond the limits at once, and finish admitted ones."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from lexarium.web.middleware import admission
from tests.support.databases import DatabaseUrlFactory
from tests.support.server import Server
from torture.overload import PhaseDurations, find_failures, run


def test_requests_beyond_the_limit_get_a_503_with_retry_after(new_url: DatabaseUrlFactory) -> None:
    with (
        Server(new_url("sqlite"), LEXARIUM_REQUESTS="2", LEXARIUM_WRITE_BURST="1000") as server,
        ThreadPoolExecutor(30) as threads,
    ):
        token = server.create_token("curator")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

        def create_concept(number: int) -> tuple[int, str]:
            response = server.request("POST", "/api/v1/concept", headers, json.dumps({"name": f"concept {number}"}))
            if response.status == 503:
                assert int(response.headers["retry-after"]) > 0
                assert response.json["status"] == 503
                assert response.headers["x-request-id"]
            return response.status, f"concept {number}"

        # A streamed response counts once, and no longer after its end.
        for _ in range(50):
            assert server.get("/api/v1/export?format=jsonl").status == 200
        results = list(threads.map(create_concept, range(300)))
        assert {status for status, _ in results} == {201, 503}
        accepted = sorted(name for status, name in results if status == 201)
        assert sorted(record["name"] for record in server.get("/api/v-alpha/concept").json) == accepted
        probes = Counter(response.status for response in threads.map(server.get, ["/healthz"] * 100))
        assert probes == {200: 100}
        finished = Counter(response.status for response in threads.map(server.get, ["/api/v-alpha/concept"] * 100))
        assert finished == {200: 100}


def test_after_a_rejection_the_limit_is_an_eighth_until_a_second_passes_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(admission, "monotonic", lambda: now)
    work = admission.ConcurrencyLimit(64)

    def is_full_with(requests: int) -> bool:
        work.active = requests
        return work.should_reject()

    assert not is_full_with(63)
    assert is_full_with(64)
    now += 0.9
    assert work.is_overloaded
    assert is_full_with(8)
    assert not is_full_with(7)
    now += 0.9  # less than a second after the last refusal
    assert is_full_with(63)
    now += 1
    assert not work.is_overloaded
    assert not is_full_with(63)


def test_the_limit_of_heavy_requests_stays_the_same_after_a_rejection() -> None:
    work = admission.ConcurrencyLimit(64, overload_divisor=1)
    work.active = 64
    assert work.should_reject()
    work.active = 63
    assert not work.should_reject()


@pytest.mark.full
def test_under_fourfold_overload_requests_are_served_or_rejected_and_resources_are_released() -> None:
    for _ in range(3):  # a busy machine may change its speed during a run
        outcome = run(PhaseDurations(capacity=1, idle=1, overload=5))
        if outcome.overload.rejected_count and not find_failures(outcome):
            break
    assert outcome.overload.success_count > 0
    assert outcome.overload.rejected_count > 0
    assert find_failures(outcome) == []
