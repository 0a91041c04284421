"""Trusted proxies and the client address."""

from contextlib import closing

import pytest

from lexarium.domain.errors import SettingError
from lexarium.settings import Settings
from lexarium.web.http.problems import HTTPProblem
from lexarium.web.http.rate_limits import SignInLimiter
from tests.support.databases import DatabaseUrlFactory
from tests.support.server import Server


def get_scheme(server: Server, **headers: str) -> str:
    """Return the scheme of the URLs in the manifest."""
    address: str = server.get("/reconcile", **headers).json["view"]["url"]
    return address.partition(":")[0]


def test_forwarded_headers_are_used_only_from_trusted_proxies(new_url: DatabaseUrlFactory) -> None:
    url = new_url("sqlite")
    with Server(url) as server:
        assert get_scheme(server, X_Forwarded_Proto="https") == "http"
    with Server(url, LEXARIUM_TRUSTED_PROXIES="192.0.2.1, 127.0.0.0/8", LEXARIUM_SIGN_IN_RATE="1") as server:
        assert get_scheme(server, X_Forwarded_Proto="https") == "https"
        assert get_scheme(server, X_Forwarded_Proto="gopher") == "http"
        # The last address that is not a trusted proxy counts; what is not an address is ignored.
        assert try_sign_ins(server, "203.0.113.7", "spoofed, 203.0.113.7", "198.51.100.1, 203.0.113.7, 192.0.2.1") == [
            401,
            429,
            429,
        ]
        assert try_sign_ins(server, "203.0.113.8", "2001:db8::1", "2001:0db8::0001", "nonsense", "127.0.0.1") == [
            401,
            401,
            429,
            401,
            429,
        ]
        # An IPv6 network shares one limit. An IPv4 address is the same in any notation.
        assert try_sign_ins(server, "2001:db8::2", "2001:db8:0:1::1", "::ffff:203.0.113.8") == [429, 401, 429]


def test_sign_ins_from_many_addresses_are_limited_without_locking_out_the_owner() -> None:
    sign_ins = SignInLimiter(2)

    def is_allowed(address: str) -> bool:
        try:
            sign_ins.acquire("ada", address)
        except HTTPProblem:
            return False
        return True

    assert is_allowed("198.51.100.1")
    sign_ins.record_success("ada", "198.51.100.1")
    results = [is_allowed(f"203.0.113.{number}") for number in range(100)]
    assert 30 < sum(results) < 50, "many more than from one address, and no end of them"
    assert not is_allowed("198.51.100.2")
    assert is_allowed("198.51.100.1"), "where its owner has signed in before"


def test_forwarded_headers_may_have_several_lines_and_addresses_with_ports(new_url: DatabaseUrlFactory) -> None:
    with Server(new_url("sqlite"), LEXARIUM_TRUSTED_PROXIES="127.0.0.0/8", LEXARIUM_SIGN_IN_RATE="1") as server:
        assert get_scheme(server, X_Forwarded_Proto="http, https") == "https"
        assert try_sign_ins(server, "203.0.113.7:4711", "203.0.113.7", "[2001:db8::1]:4711", "2001:db8::1") == [
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


def try_sign_ins(server: Server, *forwarded: str) -> list[int]:
    """Try to sign in once from each forwarded address; return the statuses."""
    codes = []
    for client_address in forwarded:
        headers = {"Content-Type": "application/json", "X-Forwarded-For": client_address}
        codes.append(server.request("POST", "/api/v1/sign-in", headers, SIGN_IN).status)
    return codes


def test_an_invalid_proxy_address_is_reported() -> None:
    with pytest.raises(SettingError, match=r"trusted_proxies .*must list addresses or networks: .*nginx"):
        Settings.from_environment({"LEXARIUM_TRUSTED_PROXIES": "10.0.0.0/8, nginx"})
