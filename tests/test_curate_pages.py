"""Curating on the pages, over HTTP and without a script, on both engines."""

import re
from collections.abc import Iterator

import pytest

from lexarium.domain.accounts import Role
from lexarium.domain.stamps import now
from lexarium.service.access import create_token
from lexarium.service.accounts import change, named
from lexarium.store.database import Database
from tests.conftest import ENGINES, NewUrl
from tests.person import PASSWORD, Person, account, text
from tests.server import Server


@pytest.fixture(scope="module", params=ENGINES)
def sample(request: pytest.FixtureRequest, new_url: NewUrl) -> Iterator[Server]:
    told = {"LEXARIUM_SIGN_IN_RATE": "1000", "LEXARIUM_TRUSTED_PROXIES": "127.0.0.1"}
    with Server(new_url(request.param), "--sample", **told) as server:
        yield server


@pytest.fixture
def visitor(sample: Server) -> Person:
    return Person(sample)


@pytest.fixture
def contributor(sample: Server) -> Person:
    return _signed_in(sample, "contributor")


@pytest.fixture
def curator(sample: Server) -> Person:
    return _signed_in(sample, "curator")


def _signed_in(server: Server, role: str) -> Person:
    person = Person(server)
    person.sign_in(role)
    return person


# Signing in and out.


def test_who_signs_in_is_named_on_every_page_which_nobody_else_may_keep(visitor: Person) -> None:
    assert 'href="/sign-in?next=%2Fbrowse%2Fconcept%3Ffrom%3Dm"' in visitor.open("/browse/concept?from=m")
    assert visitor.answer.headers["cache-control"] == "no-cache"
    name = visitor.sign_in("curator", "/browse/concept?from=m")
    assert visitor.path == "/browse/concept?from=m"
    for path in ("/", "/browse/concept", "/id/trm_606958d85e21c", "/nothing/here"):
        assert name in visitor.open(path, 404 if path == "/nothing/here" else 200)
        assert visitor.answer.headers["cache-control"] == "private, no-store"
        assert "etag" not in visitor.answer.headers


def test_the_cookie_is_for_this_site_alone_and_for_no_script(sample: Server) -> None:
    name, visitor = account(sample, "contributor"), Person(sample)
    visitor.send("/sign-in", {"name": name, "password": PASSWORD}, 303)
    cookie = visitor.answer.headers["set-cookie"]
    assert {"HttpOnly", "Path=/", "SameSite=lax"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert 86_000 < int(re.findall(r"Max-Age=(\d+)", cookie)[0]) <= 86_400
    visitor.send("/sign-in", {"name": name, "password": PASSWORD}, 303, X_Forwarded_Proto="https")
    assert "Secure" in visitor.answer.headers["set-cookie"].split("; ")


def test_a_wrong_name_and_a_wrong_password_are_told_alike(sample: Server) -> None:
    name, visitor = account(sample, "contributor"), Person(sample)
    for given in ({"name": name, "password": "wrong"}, {"name": "nobody", "password": PASSWORD}, {}):
        body = visitor.send("/sign-in", given, 401)
        assert "The name or the password is not right." in body
        assert f'value="{given.get("name", "")}"' in body
        assert PASSWORD not in body
        assert not visitor.cookies


def test_signing_in_goes_by_the_same_limit_as_for_programs_and_tells_when_to_try_again(new_url: NewUrl) -> None:
    with Server(new_url("sqlite"), LEXARIUM_SIGN_IN_RATE="2") as server:
        name, visitor = account(server, "contributor"), Person(server)
        visitor.send("/sign-in", {"name": name, "password": "wrong"}, 401)
        server.post_json("/api/v1/sign-in", {"name": name, "password": "wrong"})
        body = visitor.send("/sign-in", {"name": name, "password": PASSWORD}, 429)
        assert f"Try again in {visitor.answer.headers['retry-after']} s." in body
        assert not visitor.cookies


def test_every_signing_in_has_a_token_of_its_own_and_ends_the_one_before(sample: Server) -> None:
    visitor = Person(sample)
    visitor.cookies["lexarium_session"] = planted = "lex_planted"
    name = visitor.sign_in("contributor")
    first = dict(visitor.cookies)
    assert planted not in first.values()
    visitor.send("/sign-in", {"name": name, "password": PASSWORD})
    assert visitor.cookies != first
    other = Person(sample)
    other.cookies = first
    assert name not in other.open("/")


def test_signing_out_ends_the_token_on_the_server(sample: Server) -> None:
    visitor = Person(sample)
    name = visitor.sign_in("contributor")
    thief = Person(sample)
    thief.cookies = dict(visitor.cookies)
    assert name in thief.open("/")
    visitor.press("Sign out")
    assert not visitor.cookies
    assert name not in thief.open("/")
    assert not thief.cookies, "a cookie that is good for nothing is cleared"


def test_a_token_that_has_ended_is_nobody_s(sample: Server) -> None:
    name, visitor = account(sample, "curator"), Person(sample)
    database = Database(sample.url)
    _, visitor.cookies["lexarium_session"] = create_token(database, name, expires=now() - 1)
    database.close()
    assert name not in visitor.open("/")
    assert not visitor.cookies


@pytest.mark.parametrize(
    "mean",
    ["//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "/\t/evil.example", "x"],
)
def test_nobody_is_sent_to_another_site(sample: Server, mean: str) -> None:
    name, visitor = account(sample, "contributor"), Person(sample)
    visitor.send("/sign-in", {"name": name, "password": PASSWORD, "next": mean}, 303)
    assert visitor.answer.headers["location"] == "/"


def test_a_form_of_another_site_signs_nobody_in_or_out(contributor: Person) -> None:
    for path in ("/sign-in", "/sign-out"):
        contributor.send(path, {}, 403, Sec_Fetch_Site="cross-site")
        contributor.send(path, {}, 403, Origin="https://evil.example")
    assert contributor.cookies


def test_a_role_that_is_taken_away_is_gone_at_the_next_page(sample: Server) -> None:
    visitor = Person(sample)
    name = visitor.sign_in("curator")
    assert 'href="/review"' in visitor.open("/")
    database = Database(sample.url)
    database.run(change(named(database, name).id, Role.CONTRIBUTOR))
    database.close()
    assert 'href="/review"' not in visitor.open("/")


def test_the_menu_offers_what_a_role_may_do(sample: Server) -> None:
    offered = {"contributor": {"/propose", "/proposals"}}
    offered["curator"] = offered["contributor"] | {"/review", "/import"}
    offered["admin"] = offered["curator"] | {"/admin"}
    for role, expected in offered.items():
        menu = re.search(r'<details class="account".*?</details>', _signed_in(sample, role).open("/"), re.DOTALL)
        assert menu is not None
        assert set(re.findall(r'href="([^"]+)"', menu.group())) == expected
    assert text(Person(sample).open("/")).count("Sign in") == 1
