"""Curation pages over HTTP, without scripts, on both engines."""

import re
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from lexarium import __version__
from lexarium.domain.account import Role
from lexarium.domain.editing.validation import OPTIONAL_KEYS, build_draft_model
from lexarium.domain.schema.collections import MAIN_COLLECTIONS
from lexarium.domain.text.timestamps import now_ms
from lexarium.services.access.accounts import get_account_by_name, update_account
from lexarium.services.access.tokens import create_token
from lexarium.services.access.tokens import get_token as find_token
from lexarium.store.database import Database
from tests.support.browserless_client import PASSWORD, BrowserlessClient, create_account, parse_forms, strip_tags
from tests.support.curated_sample import WORKING_MEMORY
from tests.support.databases import ENGINES, DatabaseUrlFactory
from tests.support.polling import wait_until
from tests.support.route_list import list_routes
from tests.support.server import Server


@pytest.fixture(scope="module", params=ENGINES)
def sample(request: pytest.FixtureRequest, sample_url: DatabaseUrlFactory) -> Iterator[Server]:
    settings = {"LEXARIUM_SIGN_IN_RATE": "1000", "LEXARIUM_TRUSTED_PROXIES": "127.0.0.1"}
    with Server(sample_url(request.param), **settings) as server:
        server.wait_until_ready()
        yield server


@pytest.fixture
def visitor(sample: Server) -> BrowserlessClient:
    return BrowserlessClient(sample)


@pytest.fixture(scope="module")
def cookies(sample: Server) -> dict[str, dict[str, str]]:
    """Session cookies by role, signed in once because hashing passwords takes long."""
    return {role: _sign_in(sample, role).cookies for role in ("contributor", "curator")}


@pytest.fixture
def contributor(sample: Server, cookies: dict[str, dict[str, str]]) -> BrowserlessClient:
    return _create_visitor(sample, cookies["contributor"])


@pytest.fixture
def curator(sample: Server, cookies: dict[str, dict[str, str]]) -> BrowserlessClient:
    return _create_visitor(sample, cookies["curator"])


def _create_visitor(server: Server, cookies: Mapping[str, str]) -> BrowserlessClient:
    person = BrowserlessClient(server)
    person.cookies = dict(cookies)
    return person


def _sign_in(server: Server, role: str) -> BrowserlessClient:
    person = BrowserlessClient(server)
    person.sign_in(role)
    return person


# Signing in and out


def test_pages_show_the_name_of_the_signed_in_user_and_are_not_cached(visitor: BrowserlessClient) -> None:
    assert 'href="/sign-in?next=%2Fbrowse%2Fconcept%3Ffrom%3Dm"' in visitor.open("/browse/concept?from=m")
    assert visitor.response.headers["cache-control"] == "no-cache"
    name = visitor.sign_in("curator", "/browse/concept?from=m")
    assert visitor.path == "/browse/concept?from=m"
    for path in ("/", "/browse/concept", "/id/trm_606958d85e21c", "/docs", "/nothing/here"):
        assert name in visitor.open(path, 404 if path == "/nothing/here" else 200)
        assert visitor.response.headers["cache-control"] == "private, no-store"
        assert "etag" not in visitor.response.headers


def test_the_session_cookie_is_http_only_and_same_site(sample: Server) -> None:
    name, visitor = create_account(sample, "contributor"), BrowserlessClient(sample)
    visitor.send("/sign-in", {"name": name, "password": PASSWORD}, 303)
    cookie = visitor.response.headers["set-cookie"]
    assert {"HttpOnly", "Path=/", "SameSite=lax"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert 86_000 < int(re.findall(r"Max-Age=(\d+)", cookie)[0]) <= 86_400


def test_under_https_the_session_cookie_has_the_host_prefix(sample: Server) -> None:
    name, visitor = create_account(sample, "contributor"), BrowserlessClient(sample)
    visitor.send("/sign-in", {"name": name, "password": PASSWORD}, 303, X_Forwarded_Proto="https")
    cookie, *marks = visitor.response.headers["set-cookie"].split("; ")
    assert {"Secure", "Path=/"} <= set(marks)
    assert not any(mark.startswith("Domain") for mark in marks)
    assert cookie.startswith("__Host-lexarium_session=")

    def is_signed_in(cookie: str) -> bool:
        response = sample.get("/", Cookie=cookie, X_Forwarded_Proto="https", Accept="text/html")
        return name.encode() in response.body

    assert is_signed_in(cookie)
    assert not is_signed_in(cookie.removeprefix("__Host-")), "what a neighbouring host may have set counts for nothing"


def test_a_wrong_name_and_a_wrong_password_get_the_same_message(sample: Server) -> None:
    name, visitor = create_account(sample, "contributor"), BrowserlessClient(sample)
    for form_values in ({"name": name, "password": "wrong"}, {"name": "nobody", "password": PASSWORD}, {}):
        body = visitor.send("/sign-in", form_values, 401)
        assert "Wrong name or password." in body
        assert f'value="{form_values.get("name", "")}"' in body
        assert PASSWORD not in body
        assert not visitor.cookies


def test_page_and_api_sign_ins_share_a_rate_limit_and_show_when_to_try_again(
    new_url: DatabaseUrlFactory,
) -> None:
    with Server(new_url("sqlite"), LEXARIUM_SIGN_IN_RATE="2") as server:
        name, visitor = create_account(server, "contributor"), BrowserlessClient(server)
        visitor.send("/sign-in", {"name": name, "password": "wrong"}, 401)
        server.post_json("/api/v1/sign-in", {"name": name, "password": "wrong"})
        body = visitor.send("/sign-in", {"name": name, "password": PASSWORD}, 429)
        assert f"Try again in {visitor.response.headers['retry-after']} s." in body
        assert not visitor.cookies


def test_each_sign_in_gets_a_new_session_and_ends_the_previous_one(sample: Server) -> None:
    visitor = BrowserlessClient(sample)
    visitor.cookies["lexarium_session"] = planted = "lex_planted"
    name = visitor.sign_in("contributor")
    first = dict(visitor.cookies)
    assert planted not in first.values()
    visitor.send("/sign-in", {"name": name, "password": PASSWORD})
    assert visitor.cookies != first
    other = BrowserlessClient(sample)
    other.cookies = first
    assert name not in other.open("/")


def test_signing_out_revokes_the_session_on_the_server(sample: Server) -> None:
    visitor = BrowserlessClient(sample)
    name = visitor.sign_in("contributor")
    thief = BrowserlessClient(sample)
    thief.cookies = dict(visitor.cookies)
    assert name in thief.open("/")
    visitor.press("Sign out")
    assert not visitor.cookies
    assert name not in thief.open("/")
    assert not thief.cookies, "a cookie that is good for nothing is cleared"


def test_an_expired_session_is_rejected_and_its_cookie_cleared(sample: Server) -> None:
    name, visitor = create_account(sample, "curator"), BrowserlessClient(sample)
    database = Database(sample.url)
    _, visitor.cookies["lexarium_session"] = create_token(database, name, expires_at=now_ms() - 1)
    database.close()
    assert name not in visitor.open("/")
    assert not visitor.cookies


def test_a_session_is_recognized_while_another_process_writes(sample: Server) -> None:
    name, visitor, database = create_account(sample, "curator"), BrowserlessClient(sample), Database(sample.url)
    _, visitor.cookies["lexarium_session"] = create_token(database, name)
    token, secret = create_token(database, name)
    with database.write():
        for path in ("/", "/import"):
            assert name in visitor.open(path), path
        assert sample.get("/api/v1/proposals", Authorization=f"Bearer {secret}").status == 200
        with database.read() as snapshot:
            assert find_token(snapshot, token.id).last_used_at is None

    def is_use_recorded() -> bool:
        with database.read() as snapshot:
            return find_token(snapshot, token.id).last_used_at is not None

    wait_until(is_use_recorded)
    database.close()


@pytest.mark.parametrize(
    "foreign_url",
    ["//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "/\t/evil.example", "x"],
)
def test_sign_in_does_not_redirect_to_another_site(sample: Server, foreign_url: str) -> None:
    name, visitor = create_account(sample, "contributor"), BrowserlessClient(sample)
    visitor.send("/sign-in", {"name": name, "password": PASSWORD, "next": foreign_url}, 303)
    assert visitor.response.headers["location"] == "/"


def test_a_cross_site_form_neither_signs_in_nor_out(contributor: BrowserlessClient) -> None:
    for path in ("/sign-in", "/sign-out"):
        contributor.send(path, {}, 403, Sec_Fetch_Site="cross-site")
        contributor.send(path, {}, 403, Origin="https://evil.example")
    assert contributor.cookies


def test_a_demotion_takes_effect_on_the_next_page(sample: Server) -> None:
    visitor = BrowserlessClient(sample)
    name = visitor.sign_in("curator")
    assert 'href="/review"' in visitor.open("/")
    database = Database(sample.url)
    account_id = get_account_by_name(database, name).id
    database.run_write(lambda transaction: update_account(transaction, account_id, Role.CONTRIBUTOR))
    database.close()
    assert 'href="/review"' not in visitor.open("/")


def test_the_menu_offers_the_pages_that_a_role_may_use(sample: Server) -> None:
    expected_links = {"contributor": {"/propose", "/proposals", "/notifications", "/account"}}
    expected_links["curator"] = expected_links["contributor"] | {"/review", "/import"}
    expected_links["admin"] = expected_links["curator"] | {"/admin"}
    for role, expected in expected_links.items():
        menu = re.search(r'<details class="account".*?</details>', _sign_in(sample, role).open("/"), re.DOTALL)
        assert menu is not None
        assert set(re.findall(r'href="([^"]+)"', menu.group())) == expected
    assert strip_tags(BrowserlessClient(sample).open("/")).count("Sign in") == 1


def test_a_page_that_requires_an_account_is_shown_after_sign_in(sample: Server) -> None:
    name, visitor = create_account(sample, "contributor"), BrowserlessClient(sample)
    visitor.open("/propose/concept?name=x", 303)
    assert visitor.response.headers["location"] == "/sign-in?next=%2Fpropose%2Fconcept%3Fname%3Dx"
    visitor.open("/propose/concept?name=x")
    visitor.press("Sign in", {"name": name, "password": PASSWORD})
    assert visitor.path == "/propose/concept?name=x"
    assert visitor.open("/sign-in?next=/browse")
    assert visitor.path == "/browse", "whoever is signed in already is sent on"


def test_a_form_submitted_after_the_session_expired_is_restored_after_sign_in(sample: Server) -> None:
    visitor = BrowserlessClient(sample)
    name, odd_name = visitor.sign_in("contributor"), 'fear "of" <spiders> & ünïcode'
    visitor.open("/propose/concept")
    visitor.cookies["lexarium_session"] = "ended"
    visitor.press("Propose", {"name": odd_name, "definition_text": "One.\r\n\r\n  Two."}, 401)
    assert "Your input is kept" in visitor.body
    visitor.press("Sign in", {"name": name, "password": "wrong"}, 401)
    visitor.press("Sign in", {"name": name, "password": PASSWORD})
    assert "Your input has not been submitted yet." in visitor.body
    body = visitor.press("Submit")
    assert odd_name in strip_tags(body)
    assert "<ins>One.\n\n  Two.</ins>" in body


@pytest.mark.parametrize(
    ("path", "page_path"),
    [
        ("/account/password", "/account"),
        ("/admin/people/x/password", "/admin/people/x"),
        ("/account/tokens", "/account"),
    ],
)
def test_a_password_submitted_after_the_session_expired_is_not_shown(sample: Server, path: str, page_path: str) -> None:
    visitor = BrowserlessClient(sample)
    body = visitor.send(path, {"old_password": "an old secret", "password": "a new secret", "label": "x"}, 401)
    assert "secret" not in body
    assert f'name="next" value="{page_path}"' in body


def test_pages_that_show_the_name_of_the_user_are_not_stored(visitor: BrowserlessClient) -> None:
    parts = {"id": WORKING_MEMORY, "collection": "concept", "kind": "definition", "upload": "x", "name": "x"}
    name, count = visitor.sign_in("admin"), 0
    cookie = f"lexarium_session={visitor.cookies['lexarium_session']}"
    for route in list_routes(visitor.server.url):
        if "GET" not in route.methods or route.path.startswith("/api/"):
            continue
        path = route.fill_path(**parts, rest="x", path="style.css", version="1")
        response = visitor.server.get(path, Accept="text/html", Cookie=cookie)
        if name.encode() in response.body:
            count += 1
            assert response.headers["cache-control"] == "private, no-store", path
    assert count > 20


def test_malformed_requests_get_an_error_page(curator: BrowserlessClient) -> None:
    curator.open(f"/id/{WORKING_MEMORY}/history?before={'9' * 5_000}")
    curator.send("/propose/concept", {"name": "x"}, 403, Origin="http://[x")


def test_a_page_that_requires_a_higher_role_says_so(contributor: BrowserlessClient) -> None:
    record = create_concept(contributor.server)
    message = "This page requires the role curator; your role is contributor."
    assert message in contributor.open(f"/merge/{record}", 403)
    for path in (f"/merge/{record}", f"/revert/{record}"):
        assert message in contributor.send(path, {"into": WORKING_MEMORY, "version": "1", "newest": "1"}, 403)


@pytest.mark.parametrize(
    "path",
    ["/propose/concept", "/preview/concept", "/edit/x", "/edit/x/relations", "/retire/x", "/merge/x", "/revert/x"],
)
def test_a_cross_site_form_changes_nothing(curator: BrowserlessClient, path: str) -> None:
    curator.send(path, {"name": "x"}, 403, Sec_Fetch_Site="cross-site")
    curator.send(path, {"name": "x"}, 403, Sec_Fetch_Site="same-site")


# New records

FORM_VALUES = {
    "name": "mental time travel",
    "aliases": "chronesthesia\r\nviaje mental | es | related",
    "definition_text": "Living through another time.\r\n\r\nIn the mind.",
    "sources": "Tulving, 1985",
    "id_concept_class": "ctp_memory",
}


def test_a_record_of_a_curator_is_published_at_once(curator: BrowserlessClient) -> None:
    curator.open("/propose/concept")
    body = curator.press("Publish", make_unique(FORM_VALUES))
    assert "Published." in body
    created = get_record(curator, curator.path)
    assert created["aliases"] == [
        {"text": "chronesthesia", "lang": "en", "scope": "exact"},
        {"text": "viaje mental", "lang": "es", "scope": "related"},
    ]
    assert created["definition_text"] == "Living through another time.\n\nIn the mind."
    assert created["sources"] == ["Tulving, 1985"]
    assert created["id_concept_class"] == "ctp_memory"


def test_a_record_of_a_contributor_is_a_proposal_that_can_be_withdrawn(contributor: BrowserlessClient) -> None:
    assert "Propose a concept" in strip_tags(contributor.open("/propose"))
    contributor.open("/propose/concept")
    form_data = make_unique(FORM_VALUES)
    body = contributor.press("Propose", form_data)
    assert contributor.path.startswith("/proposals?did=prp_")
    assert "A curator will review it." in body
    assert form_data["name"] in strip_tags(body)
    assert form_data["name"] not in strip_tags(
        contributor.open(f"/browse/concept?from={form_data['name'].replace(' ', '+')}")
    )
    contributor.open("/proposals")
    assert "Proposal withdrawn" in contributor.press("Withdraw")
    assert "withdrawn" in contributor.open("/proposals")


def test_a_form_has_every_editable_field_of_its_collection(curator: BrowserlessClient) -> None:
    for collection in MAIN_COLLECTIONS.values():
        form = next(form for form in parse_forms(curator.open(f"/propose/{collection.name}")) if "key" in form.fields)
        expected = set(build_draft_model(collection.name).model_fields) - {"relations"} - OPTIONAL_KEYS
        fields = {name for name in form.fields if not name.startswith("relations.")}
        assert fields == expected | {"key", "summary"}
    curator.open("/propose/concept_class")
    curator.press("Publish", {"name": "a class", "description": "It holds."})
    assert get_record(curator, curator.path)["description"] == "It holds."
    curator.open("/propose/citation")
    curator.press("Publish", {"name": "a paper", "citation_authors": "N. N."})
    assert get_record(curator, curator.path)["fields"]["citation_authors"] == "N. N."
    curator.open("/propose/disorder")
    curator.press("Publish", {"name": "a disorder", "id_protocol": "DOID", "flag_for_curator": "1"})
    assert get_record(curator, curator.path)["flag_for_curator"] == 1


def test_all_errors_are_shown_beside_their_fields_and_the_input_is_kept(
    curator: BrowserlessClient,
) -> None:
    curator.open("/propose/disorder")
    form_values = {
        "name": " ",
        "definition": "kept <b>",
        "id_protocol": "x" * 51,
        "flag_for_curator": "soon",
        "aliases": "good\r\nbad | not a tag",
    }
    body = curator.press("Publish", form_values, 422)
    for field, invalid in {
        "name": "Must not be empty.",
        "id_protocol": "Must have at most 50 characters.",
        "flag_for_curator": "Must be a whole number.",
        "aliases": "Line 2, its lang, must be a language tag, such as en or pt-BR.",
    }.items():
        assert f'<span class="wrong" id="{field}-wrong">{invalid}</span>' in body
        assert re.search(rf'id="{field}"[^>]* aria-invalid="true" aria-describedby="[^"]*{field}-wrong"', body)
        assert f'<a href="#{field}">' in body, "the summary leads to the field"
    form = next(form for form in parse_forms(body) if "key" in form.fields)
    assert {name: form.fields[name] for name in form_values} == form_values
    assert "<title>Not saved" in body


def test_a_preview_shows_the_draft_and_similar_records_without_saving(curator: BrowserlessClient) -> None:
    curator.open("/propose/concept")
    form_values = {**make_unique(FORM_VALUES), "name": "wroking memory", "aliases": "attention"}
    body = curator.press("Preview", form_values)
    assert "<p>Living through another time.</p><p>In the mind.</p>" in re.sub(r"\n\s*", "", body)
    similar = re.search(r'<div role="status" class="alike">.*?</div>', body, re.DOTALL)
    assert similar is not None
    assert f'href="/id/{WORKING_MEMORY}"' in similar.group()
    assert ">attention</a>" in similar.group()
    assert next(form for form in parse_forms(body) if "key" in form.fields).fields["name"] == "wroking memory"
    assert curator.server.get("/api/v1/concept?name=wroking+memory").json["total"] == 0
    preview = curator.send("/preview/concept", form_values)
    assert similar.group() in preview
    assert "<html" not in preview


def test_a_preview_shows_errors_found_so_far(curator: BrowserlessClient) -> None:
    preview = strip_tags(
        curator.send("/preview/concept", {"name": "", "aliases": "fine\r\nmine | nonsense tag | sideways"})
    )
    assert "Aliases : Line 2, its lang, must be a language tag" in preview.replace("Aliases:", "Aliases :")
    assert "Line 2, its scope, must be one of" in preview
    assert "Name" not in preview.partition("Preview")[0], "it is still to be typed"
    assert "Errors:" not in curator.send("/preview/concept", {"name": "x", "aliases": "memoria | es | narrow"})
    assert "Errors:" not in curator.open("/propose/concept")
    curator.press("Preview", {"name": "x" * 501, "aliases": "a | !"})
    assert "Name: Must have at most 500 characters." in strip_tags(curator.body)


def test_loosely_related_names_are_not_reported_as_similar(curator: BrowserlessClient) -> None:
    body = curator.send("/preview/concept", {"name": "memory of a kind that nobody has named"})
    assert "a similar name" not in body
    assert "a similar name" not in curator.send("/preview/concept", {"name": "", "aliases": "\x00"})
    preview = curator.send("/preview/concept", {"name": "working memory", "record": WORKING_MEMORY})
    assert "a similar name" not in preview


def test_a_form_submitted_twice_creates_one_record(curator: BrowserlessClient) -> None:
    curator.open("/propose/concept")
    form = next(form for form in parse_forms(curator.body) if "key" in form.fields)
    form_data = {**form.fields, **make_unique(FORM_VALUES)}
    curator.send("/propose/concept", form_data)
    first = curator.path
    curator.send("/propose/concept", form_data)
    assert curator.path == first
    confirmed = {"anyway": first.partition("?")[0].rpartition("/")[2]}
    curator.send("/propose/concept", {**form_data, **confirmed, "definition_text": "Another."})
    assert curator.path != first, "what was changed meanwhile is another record"


@pytest.mark.parametrize(("role", "label"), [("curator", "Create anyway"), ("contributor", "Propose anyway")])
def test_a_record_with_a_similar_name_is_created_after_confirmation(
    curator: BrowserlessClient, contributor: BrowserlessClient, role: str, label: str
) -> None:
    client = {"curator": curator, "contributor": contributor}[role]
    client.open("/propose/concept")
    body = client.press("Publish" if role == "curator" else "Propose", {"name": "workin memory"}, 409)
    notice = body.partition('role="alert"')[2].partition("<form")[0]
    assert f'href="/id/{WORKING_MEMORY}"' in notice
    assert "a similar name" in strip_tags(notice)
    assert body.count(f'href="/id/{WORKING_MEMORY}"') == 1, "it is not said twice"
    assert client.server.get("/api/v1/concept?name=workin+memory").json["total"] == 0
    body = client.press(label, {"name": "atention"}, 409)
    assert ">attention</a>" in body, "another name is near another record"
    body = client.press(label, {"name": f"wurking memory of {uuid.uuid4().hex}"})
    assert ("Published." if role == "curator" else "A curator will review it.") in body


def test_renaming_a_record_to_a_similar_name_shows_a_warning(curator: BrowserlessClient) -> None:
    record = create_concept(curator.server)
    curator.open(f"/edit/{record}")
    curator.press("Publish", {"name": "memory, working"}, 409)
    assert "Saved." in curator.press("Publish anyway")
    curator.open(f"/edit/{record}")
    assert "Saved." in curator.press("Publish", {"definition_text": "Its name stays."})
    curator.open(f"/edit/{record}")
    curator.press("Publish", {"name": f"another one {uuid.uuid4().hex}"})


# Editing


def test_an_edit_is_saved_and_undone(curator: BrowserlessClient) -> None:
    record = create_concept(curator.server, definition_text="Before.")
    curator.open(f"/id/{record}")
    assert f'href="/edit/{record}"' in curator.body
    curator.open(f"/edit/{record}")
    body = curator.press("Publish", {"definition_text": "After."})
    assert "Saved." in body
    assert "After." in body
    body = curator.press("Undo")
    assert "Reverted." in body
    assert get_record(curator, f"/id/{record}")["definition_text"] == "Before."
    assert get_record(curator, f"/id/{record}")["version"] == 3
    assert "Saved." not in curator.open(f"/id/{record}?did=2"), "a notice does not outlive what it tells of"


def test_untouched_fields_keep_values_that_a_form_cannot_represent(curator: BrowserlessClient) -> None:
    odd_fields = {
        "name": "odd\nname",
        "definition_text": "a\r\nb\rc\n\nd ",
        "aliases": [{"text": "x | y"}, {"text": " spaced "}],
        "sources": ["one\ntwo", "three"],
    }
    record = create_concept(curator.server, **odd_fields)
    before = get_record(curator, f"/id/{record}")
    curator.open(f"/edit/{record}")
    assert "No changes" in curator.press("Publish")
    curator.open(f"/edit/{record}")
    curator.press("Publish", {"id_concept_class": "ctp_memory"})
    after = get_record(curator, f"/id/{record}")
    assert {name: after[name] for name in odd_fields} == {name: before[name] for name in odd_fields}
    assert after["id_concept_class"] == "ctp_memory"


def test_a_conflicting_edit_of_another_user_is_shown_beside_the_input(curator: BrowserlessClient) -> None:
    record = create_concept(curator.server, definition_text="Base.", aliases=[{"text": "one"}])
    curator.open(f"/edit/{record}")
    other = _sign_in(curator.server, "curator")
    other.open(f"/edit/{record}")
    other.press("Publish", {"definition_text": "Theirs.", "sources": "a book"})
    body = curator.press("Publish", {"definition_text": "Mine.", "aliases": "one\r\ntwo"}, 409)
    assert "This concept was changed while you were editing." in body
    assert '<pre class="wrap" tabindex="0">Theirs.</pre>' in body
    form = next(form for form in parse_forms(body) if "version" in form.fields and "name" in form.fields)
    assert form.fields["definition_text"] == "Mine."
    assert form.fields["aliases"] == "one\r\ntwo"
    assert form.fields["sources"] == "a book", "what one had not touched is as it is now"
    assert get_record(curator, f"/id/{record}")["definition_text"] == "Theirs."
    curator.press("Publish")
    now_is = get_record(curator, f"/id/{record}")
    assert (now_is["definition_text"], now_is["sources"], len(now_is["aliases"])) == ("Mine.", ["a book"], 2)


def test_the_input_is_kept_if_the_record_is_retired_meanwhile(curator: BrowserlessClient) -> None:
    record = create_concept(curator.server)
    curator.open(f"/edit/{record}")
    other = _sign_in(curator.server, "curator")
    other.open(f"/retire/{record}")
    other.press("Retire", status=410)
    curator.press("Publish", {"definition_text": "Written at length."}, 422)
    assert f"{record} is retired." in strip_tags(curator.body)
    assert "Written at length." in curator.body


def test_an_accepted_proposal_is_not_shown_as_withdrawn(
    contributor: BrowserlessClient, curator: BrowserlessClient
) -> None:
    contributor.open("/propose/concept")
    contributor.press("Propose", make_unique({"name": "soon accepted"}))
    page_path = contributor.path
    assert "Proposal submitted." in contributor.body
    proposal = page_path.partition("did=")[2]
    curator.open(f"/review/{proposal}")
    other_curator = _sign_in(curator.server, "curator")
    other_curator.open(f"/review/{proposal}")
    curator.press("Accept")
    text = contributor.open(page_path)
    assert "Proposal withdrawn" not in text
    assert "Proposal submitted." not in text
    assert "Too much like another." in other_curator.press("Reject", {"reason": "Too much like another."}, 422)
    assert "Undone" not in curator.open(f"/review/{proposal}?undone=1")


def test_an_edit_of_a_contributor_is_visible_only_to_curators_and_its_author(
    contributor: BrowserlessClient, curator: BrowserlessClient, visitor: BrowserlessClient
) -> None:
    record = create_concept(curator.server, definition_text="Before.")
    contributor.open(f"/edit/{record}")
    assert "No changes" in contributor.press("Propose", status=422)
    contributor.press("Propose", {"definition_text": "After."})
    assert "<del>Before</del><ins>After</ins>." in contributor.body
    text = "Change proposed"
    assert text in contributor.open(f"/id/{record}")
    body = curator.open(f"/id/{record}")
    assert text in body
    assert re.search(r'href="/review/prp_\w+">Review it', body)
    assert re.search(r'<span class="count">\d+', body), "the menu tells how many wait"
    assert text not in visitor.open(f"/id/{record}")
    assert text not in _sign_in(curator.server, "contributor").open(f"/id/{record}")
    assert get_record(curator, f"/id/{record}")["definition_text"] == "Before."


def test_actions_are_shown_according_to_the_role(
    contributor: BrowserlessClient, curator: BrowserlessClient, visitor: BrowserlessClient
) -> None:
    record = create_concept(curator.server)
    acts = ("/edit/", "/retire/", "/merge/")
    assert [act in visitor.open(f"/id/{record}") for act in acts] == [False, False, False]
    assert [act in contributor.open(f"/id/{record}") for act in acts] == [True, True, False]
    assert [act in curator.open(f"/id/{record}") for act in acts] == [True, True, True]
    assert re.findall(r'class="button plain"[^>]*>([^<]+)<', curator.body) == [
        "Edit",
        "Edit relations",
        "Merge",
        "Retire",
    ]
    contributor.open(f"/id/{record}")
    action_labels = re.findall(r'class="button plain"[^>]*>([^<]+)<', contributor.body)
    assert action_labels == ["Propose a change", "Propose relations", "Propose to retire"]
    assert "<h1>Propose a change of " in contributor.open(f"/edit/{record}")
    assert "Revert to this version" not in contributor.open(f"/id/{WORKING_MEMORY}/history")


def test_a_retired_record_cannot_be_edited(curator: BrowserlessClient) -> None:
    record = create_concept(curator.server)
    curator.open(f"/edit/{record}")
    old_body = curator.body
    _sign_in(curator.server, "curator").send(f"/retire/{record}", {"act": "retire", "version": "1"}, 410)
    for path in (f"/edit/{record}", f"/edit/{record}/relations", f"/retire/{record}", f"/merge/{record}"):
        assert "is retired" in curator.open(path, 410)
    assert "name" in next(form for form in parse_forms(old_body) if "version" in form.fields).fields
    assert "is retired" in curator.send(f"/edit/{record}", {"version": "1", "name": "x"}, 422)
    assert "not found" in curator.open("/edit/trm_nothing", 404)
    assert "Collection" in curator.open("/propose/nothing", 404)


# Relations


def test_a_relation_is_searched_added_undone_and_removed(curator: BrowserlessClient) -> None:
    record = create_concept(curator.server)
    curator.open(f"/edit/{record}/relations")
    body = curator.press("Search records", {"relation": "PARTOF", "q": "working memory"})
    assert f'value="{WORKING_MEMORY}"' in body
    curator.press("Add", {"target": WORKING_MEMORY})
    assert get_record(curator, f"/id/{record}")["relations"] == {"PARTOF": [WORKING_MEMORY]}
    assert "Saved." in curator.body
    curator.press("Undo")
    assert get_record(curator, f"/id/{record}")["relations"] == {}
    curator.open(f"/edit/{record}/relations")
    curator.press("Search records", {"relation": "KINDOF", "q": WORKING_MEMORY})
    curator.press("Add", {"target": WORKING_MEMORY})
    curator.press("Remove")
    assert get_record(curator, f"/id/{record}")["relations"] == {}
    assert "No relations yet." in curator.body


def test_a_cycle_is_reported_beside_the_field(curator: BrowserlessClient) -> None:
    parent = create_concept(curator.server)
    child = create_concept(curator.server, relations={"KINDOF": [parent]})
    curator.open(f"/edit/{parent}/relations")
    curator.press("Search records", {"relation": "KINDOF", "q": child})
    body = curator.press("Add", {"target": child}, 422)
    message = f"Would create a cycle: {child} is already below {parent}."
    assert f'<span class="wrong" id="target-wrong">{message}</span>' in body
    form = next(form for form in parse_forms(body) if "q" in form.fields and form.method == "post")
    assert (form.fields["relation"], form.fields["target"]) == ("KINDOF", child)
    fields = {"act": "add", "relation": "KINDOF", "version": "1"}
    assert "select one" in curator.send(f"/edit/{parent}/relations", fields, 422)


def test_a_mapping_may_be_an_iri_or_a_curie(curator: BrowserlessClient) -> None:
    record = create_concept(curator.server)
    curator.open(f"/edit/{record}/relations")
    fields = {"act": "map", "mapping": "closeMatch", "outside": "nonsense", "version": "1"}
    body = curator.send(f"/edit/{record}/relations", fields, 422)
    assert "Must be an IRI" in body
    assert 'value="nonsense"' in body
    curator.send(f"/edit/{record}/relations", {**fields, "outside": "MESH:D008570"})
    assert get_record(curator, f"/id/{record}")["relations"] == {"closeMatch": ["MESH:D008570"]}


def test_a_contributor_proposes_relations(contributor: BrowserlessClient) -> None:
    record = create_concept(contributor.server, relations={"KINDOF": [WORKING_MEMORY]})
    contributor.open(f"/edit/{record}/relations")
    assert "<del>kind of working memory</del>" in contributor.press("Remove")
    fields = {"act": "add", "relation": "PARTOF", "target": WORKING_MEMORY, "version": "1"}
    assert "<ins>part of working memory</ins>" in contributor.send(f"/edit/{record}/relations", fields)
    assert get_record(contributor, f"/id/{record}")["version"] == 1


# Retiring, merging, reverting


def test_retiring_shows_uses_of_the_record_takes_a_replacement_and_can_be_undone(curator: BrowserlessClient) -> None:
    record = create_concept(curator.server)
    create_concept(curator.server, name="a kind of it", relations={"KINDOF": [record]})
    body = curator.open(f"/retire/{record}")
    assert f"<span>Lexarium {__version__}</span>" in body, "not the version of the record"
    assert "1 record is still related to it." in body
    assert "a kind of it" in body
    curator.press("Search records", {"q": "working memory"})
    body = curator.press("Retire", {"replaced_by": WORKING_MEMORY}, 410)
    assert "Retired." in body
    assert "Replaced by" in body
    curator.press("Undo")
    assert get_record(curator, f"/id/{record}")["state"] == "published"


def test_the_number_of_uses_of_a_record_equals_the_number_of_listed_records(curator: BrowserlessClient) -> None:
    server = curator.server
    record = create_concept(server)
    create_concept(server, name="twice", relations={"KINDOF": [record], "PARTOF": [record]})
    create_concept(server, name="likewise", relations={"RELATED": [record]})
    retired_id = create_concept(server, name="gone by now", relations={"KINDOF": [record]})
    curator.send(f"/retire/{retired_id}", {"act": "retire", "version": "1"}, 410)
    body = curator.open(f"/retire/{record}")
    assert "2 records are still related to it." in body
    list_text = body.partition("still related")[2].partition("<form")[0]
    assert re.findall(r'<a href="/id/[^"]+">([^<]+)</a>', list_text) == ["likewise", "twice"]
    for number in range(30):
        create_concept(server, name=f"many {number:02}", relations={"KINDOF": [record]})
    list_text = curator.open(f"/retire/{record}").partition("still related")[2].partition("<form")[0]
    assert len(re.findall(r'<a href="/id/', list_text)) == 30
    assert "and more" in list_text


def test_a_record_changed_since_the_page_was_opened_is_not_retired_or_merged(curator: BrowserlessClient) -> None:
    record = create_concept(curator.server)
    curator.open(f"/edit/{record}")
    curator.press("Publish", {"definition_text": "Changed."})
    for path, fields in (
        (f"/retire/{record}", {"act": "retire"}),
        (f"/merge/{record}", {"into": WORKING_MEMORY, "survivor": "1"}),
    ):
        body = curator.send(path, {**fields, "version": "1"}, 422)
        assert "The record was changed since you opened this page." in body
        assert "<ins>Changed.</ins>" in body
    assert "Merge" in curator.body, "the survivor is chosen still"
    form_values = {"act": "retire", "version": "2", "replaced_by": "trm_nothing"}
    assert "Must be another published record." in curator.send(f"/retire/{record}", form_values, 422)


def test_changes_of_others_are_shown_while_searching_for_a_replacement(curator: BrowserlessClient) -> None:
    record = create_concept(curator.server)
    curator.open(f"/retire/{record}")
    other = _create_visitor(curator.server, curator.cookies)
    other.open(f"/edit/{record}")
    other.press("Publish", {"definition_text": "Changed."})
    assert "<ins>Changed.</ins>" in curator.press("Search records", {"q": "working memory"})


def test_a_survivor_changed_since_the_page_was_opened_requires_confirmation(curator: BrowserlessClient) -> None:
    merged_id, survivor_id = create_concept(curator.server), create_concept(curator.server)
    curator.open(f"/merge/{merged_id}?into={survivor_id}")
    other = _create_visitor(curator.server, curator.cookies)
    other.open(f"/edit/{survivor_id}")
    other.press("Publish", {"definition_text": "Another thing."})
    body = curator.press("Merge", status=422)
    assert "<ins>Another thing.</ins>" in body
    assert get_record(curator, f"/id/{merged_id}")["state"] == "published"
    curator.press("Merge")
    assert curator.path == f"/id/{survivor_id}?merged={merged_id}"


def test_a_late_undo_shows_later_changes_and_links_to_the_history(
    curator: BrowserlessClient,
) -> None:
    record = create_concept(curator.server, definition_text="Before.")
    curator.open(f"/edit/{record}")
    curator.press("Publish", {"definition_text": "Mine."})
    other = _create_visitor(curator.server, curator.cookies)
    other.open(f"/edit/{record}")
    other.press("Publish", {"definition_text": "Theirs."})
    body = curator.press("Undo", status=409)
    assert "was not reverted" in strip_tags(body)
    assert "Theirs" in strip_tags(body)
    assert f'href="/id/{record}/history"' in body
    assert get_record(curator, f"/id/{record}")["definition_text"] == "Theirs."


def test_publishing_is_undone_by_retiring_and_that_can_be_undone_too(curator: BrowserlessClient) -> None:
    curator.open("/propose/concept")
    assert "Published." in curator.press("Publish", make_unique({"name": "published in haste"}))
    record = curator.path.partition("?")[0].removeprefix("/id/")
    assert "Retired." in curator.press("Undo", status=410)
    curator.press("Undo")
    assert get_record(curator, f"/id/{record}")["state"] == "published"


def test_a_form_rejected_by_the_rate_limit_is_shown_again_with_its_input(new_url: DatabaseUrlFactory) -> None:
    form_values = {"name": 'fear "of" <spiders>', "definition_text": "One.\n\nTwo."}
    with Server(new_url("sqlite"), LEXARIUM_WRITE_RATE="1", LEXARIUM_WRITE_BURST="1") as server:
        person = BrowserlessClient(server)
        person.sign_in("curator")
        headers = {"Accept": "text/html", "Content-Type": "application/x-www-form-urlencoded"}
        headers["Cookie"] = f"lexarium_session={person.cookies['lexarium_session']}"
        with ThreadPoolExecutor(8) as threads:  # so that a slow machine reaches the limit too
            posted = threads.map(
                lambda _: server.request("POST", "/propose/concept", headers, urlencode(form_values)), range(24)
            )
            response = next(response for response in posted if response.status == 429)
        assert int(response.headers["retry-after"]) >= 1
        saved_form = next(form for form in parse_forms(response.body.decode()) if form.buttons[0][0] == "Try again")
        assert (saved_form.action, saved_form.fields) == ("/propose/concept", form_values)


def test_a_contributor_proposes_to_retire(contributor: BrowserlessClient) -> None:
    record = create_concept(contributor.server)
    contributor.open(f"/retire/{record}")
    contributor.press("Propose to retire")
    assert "to be retired" in contributor.body
    assert "Retirement proposed" in contributor.open(f"/id/{record}")


def test_a_merge_is_previewed_done_and_undone(curator: BrowserlessClient) -> None:
    merged_id = create_concept(
        curator.server, name="a double", aliases=[{"text": "twin"}], relations={"KINDOF": [WORKING_MEMORY]}
    )
    survivor_id = create_concept(curator.server, name="the original")
    user = create_concept(curator.server, relations={"PARTOF": [merged_id]})
    curator.open(f"/merge/{merged_id}")
    curator.press("Search records", {"q": survivor_id})
    assert f'href="/merge/{merged_id}?into={survivor_id}"' in curator.body
    body = curator.open(f"/merge/{merged_id}?into={survivor_id}")
    for expected in (
        "<ins>a double</ins>",
        "<ins>twin</ins>",
        "<ins>kind of working memory</ins>",
        "1 other record is",
    ):
        assert expected in body
    body = curator.press("Merge")
    assert curator.path == f"/id/{survivor_id}?merged={merged_id}"
    assert "was merged into this record." in body
    assert get_record(curator, f"/id/{user}")["relations"] == {"PARTOF": [survivor_id]}
    curator.press("Undo")
    assert get_record(curator, f"/id/{merged_id}")["name"] == "a double"
    assert get_record(curator, f"/id/{survivor_id}")["aliases"] == []
    assert get_record(curator, f"/id/{user}")["relations"] == {"PARTOF": [merged_id]}


def test_members_of_a_merged_class_move_to_the_survivor(curator: BrowserlessClient) -> None:
    merged_id, survivor_id = (
        create_record(curator.server, "concept_class", name=name) for name in ("one class", "another class")
    )
    member = create_concept(curator.server, id_concept_class=merged_id)
    assert "1 member of one class will be in another class." in strip_tags(
        curator.open(f"/merge/{merged_id}?into={survivor_id}")
    )
    curator.press("Merge")
    assert get_record(curator, f"/id/{member}")["id_concept_class"] == survivor_id


def test_an_impossible_merge_is_reported(curator: BrowserlessClient) -> None:
    record, task = create_concept(curator.server), create_record(curator.server, "task")
    assert "not found" in curator.open(f"/merge/{record}?into={task}", 422)
    assert "into itself" in curator.open(f"/merge/{record}?into={record}", 422)
    assert "into itself" in curator.send(f"/merge/{record}", {"version": "1", "into": record}, 422)
    fields = {"version": "1", "into": "trm_unheard", "survivor": "1"}
    assert "not found" in curator.send(f"/merge/{record}", fields, 422)
    assert "not found" in curator.open(f"/merge/{record}?into=%00", 422)


def test_a_record_can_be_reverted_to_any_version_in_its_history(curator: BrowserlessClient) -> None:
    record = create_concept(curator.server, definition_text="First.")
    for definition in ("Second.", "Third."):
        curator.open(f"/edit/{record}")
        curator.press("Publish", {"definition_text": definition})
    curator.open(f"/id/{record}/history")
    assert curator.body.count("Revert to this version") == 2 * 2, "each says so, and which version it is"
    first = [form for form in parse_forms(curator.body) if "newest" in form.fields][-1]
    curator.send(first.action, first.fields)
    assert get_record(curator, f"/id/{record}")["definition_text"] == "First."
    assert "has no version" in curator.send(f"/revert/{record}", {"version": "x"}, 400)


def test_a_search_without_results_links_to_a_proposal_form(contributor: BrowserlessClient) -> None:
    contributor.open("/search?q=xyzzyplugh")
    assert 'href="/propose/concept?name=xyzzyplugh"' in contributor.body
    assert 'value="xyzzyplugh"' in contributor.open("/propose/concept?name=xyzzyplugh")


def test_user_input_is_escaped_on_every_page(curator: BrowserlessClient, contributor: BrowserlessClient) -> None:
    hostile = "<script>alert('x')</script>\"&'"
    record = create_concept(
        curator.server, name=hostile, definition_text=hostile, aliases=[{"text": hostile + "b"}], sources=[hostile]
    )
    other = create_concept(curator.server, name=hostile + "c", relations={"KINDOF": [record], "closeMatch": ["x:y'&"]})
    contributor.open(f"/edit/{record}")
    contributor.press("Propose", {"definition_text": hostile + hostile})
    paths = (f"/edit/{record}", f"/edit/{other}/relations", f"/retire/{record}", f"/merge/{record}?into={other}")
    for path in (*paths, f"/merge/{record}?q={quote(hostile)}", f"/propose/concept?name={quote(hostile)}"):
        assert "<script>alert" not in curator.open(path)
    assert "<script>alert" not in contributor.open("/proposals")
    assert "<script>alert" not in curator.send("/preview/concept", {"name": hostile, "definition_text": hostile})


def make_unique(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields with a unique name."""
    return {**fields, "name": f"{fields['name']} {uuid.uuid4().hex[:8]}"}


def create_concept(server: Server, **draft: Any) -> str:
    """Create a concept and return its id."""
    return create_record(server, "concept", **draft)


def create_record(server: Server, collection: str, **draft: Any) -> str:
    """Create a record and return its id."""
    named_draft = {"name": f"made for a test {uuid.uuid4().hex[:8]}", **draft}
    response = server.post_json(f"/api/v1/{collection}", named_draft, _get_token(server))
    assert response.status == 201, response.body
    return str(response.json["id"])


# Token of a curator, by server.
TOKENS: dict[str, str] = {}


def _get_token(server: Server) -> str:
    if server.url not in TOKENS:
        TOKENS[server.url] = server.create_token("curator")
    return TOKENS[server.url]


def get_record(person: BrowserlessClient, path: str) -> Any:
    """Return the v1 record of a page path."""
    record_id = path.partition("?")[0].removeprefix("/id/")
    return person.server.get(f"/api/v1/records/{record_id}").json
