"""Which proxies are believed when they say who a client is."""

from contextlib import closing

import pytest

from lexarium.domain.errors import SettingError
from lexarium.settings import Settings
from lexarium.web.limits import SignIns
from lexarium.web.problems import HttpProblem
from tests.databases import NewUrl
from tests.server import Server


def scheme_of(server: Server, **headers: str) -> str:
    """The scheme that a server believes it is asked by: its manifest begins its addresses with it."""
    address: str = server.get("/reconcile", **headers).json["view"]["url"]
    return address.partition(":")[0]


def test_headers_are_believed_only_where_the_proxy_is_trusted(new_url: NewUrl) -> None:
    url = new_url("sqlite")
    with Server(url) as server:
        assert scheme_of(server, X_Forwarded_Proto="https") == "http"
    with Server(url, LEXARIUM_TRUSTED_PROXIES="192.0.2.1, 127.0.0.0/8", LEXARIUM_SIGN_IN_RATE="1") as server:
        assert scheme_of(server, X_Forwarded_Proto="https") == "https"
        assert scheme_of(server, X_Forwarded_Proto="gopher") == "http"
        # The last that is no proxy of ours counts; what is no address counts for nothing.
        assert statuses(server, "203.0.113.7", "spoofed, 203.0.113.7", "198.51.100.1, 203.0.113.7, 192.0.2.1") == [
            401,
            429,
            429,
        ]
        assert statuses(server, "203.0.113.8", "2001:db8::1", "2001:0db8::0001", "nonsense", "127.0.0.1") == [
            401,
            401,
            429,
            401,
            429,
        ]
        # One line has all addresses of IPv6 that begin alike; an address of IPv4 is the same, however it is written.
        assert statuses(server, "2001:db8::2", "2001:db8:0:1::1", "::ffff:203.0.113.8") == [429, 401, 429]


def test_an_account_is_not_tried_without_end_from_many_addresses_and_its_owner_gets_in() -> None:
    sign_ins = SignIns(2)

    def let_in(address: str) -> bool:
        try:
            sign_ins.take("ada", address)
        except HttpProblem:
            return False
        return True

    assert let_in("198.51.100.1")
    sign_ins.succeeded("ada", "198.51.100.1")
    found = [let_in(f"203.0.113.{number}") for number in range(100)]
    assert 30 < sum(found) < 50, "many more than from one address, and no end of them"
    assert not let_in("198.51.100.2")
    assert let_in("198.51.100.1"), "where its owner has signed in before"


def test_lists_in_several_lines_and_addresses_with_ports_are_read(new_url: NewUrl) -> None:
    with Server(new_url("sqlite"), LEXARIUM_TRUSTED_PROXIES="127.0.0.0/8", LEXARIUM_SIGN_IN_RATE="1") as server:
        assert scheme_of(server, X_Forwarded_Proto="http, https") == "https"
        assert statuses(server, "203.0.113.7:4711", "203.0.113.7", "[2001:db8::1]:4711", "2001:db8::1") == [
            401,
            429,
            401,
            429,
        ]
        with closing(server.connect()) as connection:
            connection.putrequest("POST", "/api/v1/sign-in")
            for line in ("203.0.113.9", "203.0.113.7", "127.0.0.1"):
                connection.putheader("X-Forwarded-For", line)
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(len(SIGN_IN)))
            connection.endheaders(SIGN_IN.encode())
            assert connection.getresponse().status == 429


SIGN_IN = '{"name": "nobody", "password": "not this one"}'


def statuses(server: Server, *forwarded: str) -> list[int]:
    """What tries to sign in to one account are answered, each from an address; each address has one try."""
    found = []
    for each in forwarded:
        headers = {"Content-Type": "application/json", "X-Forwarded-For": each}
        found.append(server.request("POST", "/api/v1/sign-in", headers, SIGN_IN).status)
    return found


def test_what_is_no_address_is_refused_by_name() -> None:
    with pytest.raises(SettingError, match=r"trusted_proxies .*must name addresses or networks: .*nginx"):
        Settings.of({"LEXARIUM_TRUSTED_PROXIES": "10.0.0.0/8, nginx"})
