"""Who may do what: every address that the application has, asked by nobody and in every role."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lexarium.domain.accounts import Role
from lexarium.domain.collections import COLLECTIONS
from lexarium.service.access import LEAST_ROLE, Deed
from lexarium.web.pages import addresses
from lexarium.web.pages.site import SIGN_IN, Page
from tests.databases import NewUrl
from tests.routes import METHODS, Address, every_address
from tests.server import Answer, Server

READ, KNOWN = "read", "known"
"""What everyone may; what everyone may who has an account, whatever their role."""
PROPOSE, PUBLISH, ADMINISTER = Deed.PROPOSE, Deed.PUBLISH, Deed.ADMINISTER
TABLE: dict[str, dict[str, str | Deed]] = {
    "/api": {"GET": READ},
    "/api/": {"GET": READ},
    "/api/v-alpha": {"GET": READ},
    "/api/v-alpha/": {"GET": READ},
    "/api/v-alpha/{collection}": {"GET": READ, "POST": PROPOSE},
    "/api/v-alpha/search": {"GET": READ},
    "/api/v1": {"GET": READ},
    "/api/v1/annotate": {"POST": READ},
    "/api/v1/batch": {"POST": PUBLISH},
    "/api/v1/changes": {"GET": READ},
    "/api/v1/export": {"GET": READ},
    "/api/v1/me": {"GET": KNOWN},
    "/api/v1/proposals": {"GET": KNOWN, "POST": PROPOSE},
    "/api/v1/proposals/{id}": {"GET": KNOWN},
    "/api/v1/proposals/{id}/accept": {"POST": PUBLISH},
    "/api/v1/proposals/{id}/reject": {"POST": PUBLISH},
    "/api/v1/proposals/{id}/withdraw": {"POST": PROPOSE},
    "/api/v1/records/{id}": {"GET": READ},
    "/api/v1/releases": {"GET": READ, "POST": PUBLISH},
    "/api/v1/releases/{name}": {"GET": READ},
    "/api/v1/search": {"GET": READ},
    "/api/v1/sign-in": {"POST": READ},
    "/api/v1/suggest": {"GET": READ},
    "/api/v1/tokens": {"GET": KNOWN, "POST": KNOWN},
    "/api/v1/tokens/{id}": {"DELETE": KNOWN},
    "/api/v1/users": {"GET": ADMINISTER, "POST": ADMINISTER},
    "/api/v1/users/{id}": {"GET": ADMINISTER, "PATCH": ADMINISTER, "DELETE": ADMINISTER},
    "/api/v1/webhooks": {"GET": ADMINISTER, "POST": ADMINISTER},
    "/api/v1/webhooks/{id}": {"GET": ADMINISTER, "PATCH": ADMINISTER, "DELETE": ADMINISTER},
    "/api/v1/webhooks/{id}/deliveries": {"GET": ADMINISTER},
    **{f"/api/v1/webhooks/{{id}}/{what}": {"POST": ADMINISTER} for what in ("disable", "enable", "rotate", "test")},
    "/api/v1/{collection}": {"GET": READ, "POST": PROPOSE},
    "/api/v1/{collection}/{id}": {"GET": READ, "PUT": PROPOSE, "PATCH": PROPOSE, "DELETE": PROPOSE},
    "/api/v1/{collection}/{id}/ancestors": {"GET": READ},
    "/api/v1/{collection}/{id}/descendants": {"GET": READ},
    "/api/v1/{collection}/{id}/diff": {"GET": READ},
    "/api/v1/{collection}/{id}/history": {"GET": READ},
    "/api/v1/{collection}/{id}/history/{version}": {"GET": READ},
    "/api/v1/{collection}/{id}/merge": {"POST": PUBLISH},
    "/api/v1/{collection}/{id}/relations": {"GET": READ, "PUT": PUBLISH, "DELETE": PUBLISH},
    "/api/v1/{collection}/{id}/revert": {"POST": PUBLISH},
    "/docs": {"GET": READ},
    "/healthz": {"GET": READ},
    "/id/{id:path}": {"GET": READ},
    "/metrics": {"GET": READ},
    "/openapi.json": {"GET": READ},
    "/readyz": {"GET": READ},
    "/reconcile": {"GET": READ, "POST": READ},
    "/reconcile/": {"GET": READ, "POST": READ},
    **{
        f"/reconcile/{kind}/{what}": {"GET": READ}
        for kind in ("suggest", "flyout")
        for what in ("entity", "property", "type")
    },
    "/reconcile/preview": {"GET": READ},
    "/reconcile/properties": {"GET": READ},
    "/static/{path}": {"GET": READ},
    "/vocabulary": {"GET": READ},
    "/{collection}": {"GET": READ},
    "/{collection}/id/{id:path}": {"GET": READ},
}
"""What each method of each address takes; the addresses of pages declare that themselves."""
NOTHING_THERE = {
    "/api/v-alpha/{collection}/",
    "/api/v-alpha/search/",
    "/api/v-alpha/{rest:path}",
    "/api/{rest:path}",
}
"""Addresses that only say, to every method, where something is instead."""
SIGNING = {SIGN_IN, "/sign-out"}
UNASKED = {"HEAD", "OPTIONS"}
"""HEAD is as GET; OPTIONS tells only which methods there are."""
COOKIE = "lexarium_session"
RANK: dict[str | Deed, int] = {READ: 0, KNOWN: 1, **{deed: role.rank + 1 for deed, role in LEAST_ROLE.items()}}
ROLES = {"nobody": 0, **{str(role): role.rank + 1 for role in Role}}


def test_the_roles_are_one_above_the_other() -> None:
    assert RANK == {READ: 0, KNOWN: 1, PROPOSE: 1, PUBLISH: 2, ADMINISTER: 3}


def general(path: str) -> str:
    """An address for every collection as one."""
    return re.sub(rf"(^|/)({'|'.join(COLLECTIONS)})(?=/|$)", r"\1{collection}", path)


def declared() -> dict[str, dict[str, str | Deed]]:
    """What pages and forms say they take."""
    found: dict[str, dict[str, str | Deed]] = {}
    for page in addresses.PAGES:
        method = "GET" if isinstance(page, Page) else "POST"
        found.setdefault(page.path, {})[method] = page.deed or READ
    return found


@dataclass(frozen=True)
class Asked:
    server: Server
    tokens: dict[str, str]
    ids: dict[str, str]

    def send(self, role: str, method: str, address: Address) -> Answer:
        collection = next((name for name in COLLECTIONS if f"/{name}/" in f"{address.path}/"), "concept")
        parts = {"id": self.ids[collection], "collection": collection, "version": "1", "name": "x"}
        target = address.filled(**parts, kind="concept", rest="x", path="style.css")
        headers = {"If-Match": '"99"', "Content-Type": "application/json"}
        if role in self.tokens:
            headers |= {"Authorization": f"Bearer {self.tokens[role]}", "Cookie": f"{COOKIE}={self.tokens[role]}"}
        return self.server.request(method, target, headers, None if method == "GET" else "{}")


@pytest.fixture(scope="module")
def asked(new_url: NewUrl) -> Iterator[Asked]:
    with Server(new_url("sqlite"), "--sample") as server:
        tokens = {str(role): server.token(role) for role in Role}
        ids = {name: server.get(f"/api/v1/{name}?limit=1").json["items"][0]["id"] for name in COLLECTIONS}
        yield Asked(server, tokens, ids)


@pytest.fixture(scope="module")
def every(asked: Asked) -> list[Address]:
    return every_address(asked.server.url)


def test_every_address_stands_in_the_table_and_every_row_is_an_address(every: list[Address]) -> None:
    table = TABLE | declared()
    there = {general(address.path) for address in every}
    assert there == set(table) | NOTHING_THERE
    for address in every:
        if address.methods < set(METHODS):
            assert address.methods - UNASKED <= table[general(address.path)].keys(), address.path


def test_every_address_answers_each_role_as_the_table_says(asked: Asked, every: list[Address]) -> None:
    table = TABLE | declared()
    for address in every:
        taken = table.get(general(address.path), {})
        for method in sorted(address.methods - UNASKED):
            if method not in taken:
                assert asked.send("admin", method, address).status in (308, 404, 405), (method, address.path)
                continue
            if method == "POST" and address.path in SIGNING:
                continue  # Everyone may: who signs in wrongly is told 401, and who signs out is nobody from then on.
            for role, rank in ROLES.items():
                answer = asked.send(role, method, address)
                to_sign_in = answer.status == 303 and answer.headers["location"].startswith("/sign-in")
                refused = 401 if answer.status == 401 or to_sign_in else 403 if answer.status == 403 else 0
                due = RANK[taken[method]]
                expected = 0 if rank >= due else 401 if rank == 0 else 403
                assert refused == expected, (method, address.path, role, answer.status)
                assert answer.status < 500 or address.path == "/readyz", (method, address.path, role)
