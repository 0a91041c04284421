"""Curating on the pages, over HTTP and without a script, on both engines."""

import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from lexarium import __version__
from lexarium.domain.accounts import Role
from lexarium.domain.collections import COLLECTIONS
from lexarium.domain.drafts import draft_model
from lexarium.domain.stamps import now
from lexarium.service.access import create_token
from lexarium.service.accounts import change, named
from lexarium.service.accounts import token as find_token
from lexarium.store.database import Database
from tests.curator import WORKING_MEMORY
from tests.databases import ENGINES, NewUrl
from tests.person import PASSWORD, Person, account, forms, text
from tests.routes import every_address
from tests.server import Server


@pytest.fixture(scope="module", params=ENGINES)
def sample(request: pytest.FixtureRequest, new_url: NewUrl) -> Iterator[Server]:
    told = {"LEXARIUM_SIGN_IN_RATE": "1000", "LEXARIUM_TRUSTED_PROXIES": "127.0.0.1"}
    with Server(new_url(request.param), "--sample", **told) as server:
        yield server


@pytest.fixture
def visitor(sample: Server) -> Person:
    return Person(sample)


@pytest.fixture(scope="module")
def cookies(sample: Server) -> dict[str, dict[str, str]]:
    """Of someone of each role who is signed in: to look at a password takes long."""
    return {role: _signed_in(sample, role).cookies for role in ("contributor", "curator")}


@pytest.fixture
def contributor(sample: Server, cookies: dict[str, dict[str, str]]) -> Person:
    return _with(sample, cookies["contributor"])


@pytest.fixture
def curator(sample: Server, cookies: dict[str, dict[str, str]]) -> Person:
    return _with(sample, cookies["curator"])


def _with(server: Server, cookies: Mapping[str, str]) -> Person:
    person = Person(server)
    person.cookies = dict(cookies)
    return person


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
    for path in ("/", "/browse/concept", "/id/trm_606958d85e21c", "/docs", "/nothing/here"):
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


def test_under_https_the_cookie_can_come_from_this_very_host_alone(sample: Server) -> None:
    name, visitor = account(sample, "contributor"), Person(sample)
    visitor.send("/sign-in", {"name": name, "password": PASSWORD}, 303, X_Forwarded_Proto="https")
    cookie, *marks = visitor.answer.headers["set-cookie"].split("; ")
    assert {"Secure", "Path=/"} <= set(marks)
    assert not any(each.startswith("Domain") for each in marks)
    assert cookie.startswith("__Host-lexarium_session=")

    def seen(cookie: str) -> bool:
        answer = sample.get("/", Cookie=cookie, X_Forwarded_Proto="https", Accept="text/html")
        return name.encode() in answer.body

    assert seen(cookie)
    assert not seen(cookie.removeprefix("__Host-")), "what a neighbouring host may have set counts for nothing"


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


def test_who_only_reads_is_known_while_something_long_is_written(sample: Server) -> None:
    name, visitor, database = account(sample, "curator"), Person(sample), Database(sample.url)
    _, visitor.cookies["lexarium_session"] = create_token(database, name)
    token, secret = create_token(database, name)
    with database.write():
        for path in ("/", "/import"):
            assert name in visitor.open(path), path
        assert sample.get("/api/v1/proposals", Authorization=f"Bearer {secret}").status == 200
        with database.read() as snapshot:
            assert find_token(snapshot, token.id).used is None
    while True:  # noted by and by
        with database.read() as snapshot:
            if find_token(snapshot, token.id).used is not None:
                break
    database.close()


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
    offered = {"contributor": {"/propose", "/proposals", "/account"}}
    offered["curator"] = offered["contributor"] | {"/review", "/import"}
    offered["admin"] = offered["curator"] | {"/admin"}
    for role, expected in offered.items():
        menu = re.search(r'<details class="account".*?</details>', _signed_in(sample, role).open("/"), re.DOTALL)
        assert menu is not None
        assert set(re.findall(r'href="([^"]+)"', menu.group())) == expected
    assert text(Person(sample).open("/")).count("Sign in") == 1


def test_a_page_that_needs_someone_comes_after_signing_in(sample: Server) -> None:
    name, visitor = account(sample, "contributor"), Person(sample)
    visitor.open("/propose/concept?name=x", 303)
    assert visitor.answer.headers["location"] == "/sign-in?next=%2Fpropose%2Fconcept%3Fname%3Dx"
    visitor.open("/propose/concept?name=x")
    visitor.press("Sign in", {"name": name, "password": PASSWORD})
    assert visitor.path == "/propose/concept?name=x"
    assert visitor.open("/sign-in?next=/browse")
    assert visitor.path == "/browse", "whoever is signed in already is sent on"


def test_a_form_that_is_sent_too_late_is_sent_after_signing_in_with_nothing_lost(sample: Server) -> None:
    visitor = Person(sample)
    name, odd = visitor.sign_in("contributor"), 'fear "of" <spiders> & ünïcode'
    visitor.open("/propose/concept")
    visitor.cookies["lexarium_session"] = "ended"
    visitor.press("Propose", {"name": odd, "definition_text": "One.\r\n\r\n  Two."}, 401)
    assert "What you wrote is kept" in visitor.body
    visitor.press("Sign in", {"name": name, "password": "wrong"}, 401)
    visitor.press("Sign in", {"name": name, "password": PASSWORD})
    assert "What you wrote has not been sent yet." in visitor.body
    body = visitor.press("Send it now")
    assert odd in text(body)
    assert "<ins>One.\n\n  Two.</ins>" in body


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/account/password", "/account"),
        ("/admin/people/x/password", "/admin/people/x"),
        ("/account/tokens", "/account"),
    ],
)
def test_a_password_that_is_sent_too_late_is_on_no_page(sample: Server, path: str, there: str) -> None:
    visitor = Person(sample)
    body = visitor.send(path, {"old_password": "an old secret", "password": "a new secret", "label": "x"}, 401)
    assert "secret" not in body
    assert f'name="next" value="{there}"' in body


def test_no_page_that_names_someone_may_be_kept(visitor: Person) -> None:
    parts = {"id": WORKING_MEMORY, "collection": "concept", "kind": "definition", "ticket": "x", "name": "x"}
    name, found = visitor.sign_in("admin"), 0
    cookie = f"lexarium_session={visitor.cookies['lexarium_session']}"
    for address in every_address(visitor.server.url):
        if "GET" not in address.methods or address.path.startswith("/api/"):
            continue
        path = address.filled(**parts, rest="x", path="style.css", version="1")
        answer = visitor.server.get(path, Accept="text/html", Cookie=cookie)
        if name.encode() in answer.body:
            found += 1
            assert answer.headers["cache-control"] == "private, no-store", path
    assert found > 20


def test_what_no_browser_sends_is_refused_kindly(curator: Person) -> None:
    curator.open(f"/id/{WORKING_MEMORY}/history?before={'9' * 5_000}")
    curator.send("/propose/concept", {"name": "x"}, 403, Origin="http://[x")


def test_a_page_above_ones_role_says_so_kindly(contributor: Person) -> None:
    record = concept(contributor.server)
    told = "This is for people with the role curator, and you have the role contributor."
    assert told in contributor.open(f"/merge/{record}", 403)
    for path in (f"/merge/{record}", f"/revert/{record}"):
        assert told in contributor.send(path, {"into": WORKING_MEMORY, "version": "1", "newest": "1"}, 403)


@pytest.mark.parametrize(
    "path",
    ["/propose/concept", "/preview/concept", "/edit/x", "/edit/x/relations", "/retire/x", "/merge/x", "/revert/x"],
)
def test_a_form_of_another_site_changes_nothing(curator: Person, path: str) -> None:
    curator.send(path, {"name": "x"}, 403, Sec_Fetch_Site="cross-site")
    curator.send(path, {"name": "x"}, 403, Sec_Fetch_Site="same-site")


# A new record.

FILLED = {
    "name": "mental time travel",
    "aliases": "chronesthesia\r\nviaje mental | es | related",
    "definition_text": "Living through another time.\r\n\r\nIn the mind.",
    "sources": "Tulving, 1985",
    "id_concept_class": "ctp_memory",
}


def test_a_curator_s_record_is_published_at_once(curator: Person) -> None:
    curator.open("/propose/concept")
    body = curator.press("Publish", unique(FILLED))
    assert "Published." in body
    made = api(curator, curator.path)
    assert made["aliases"] == [
        {"text": "chronesthesia", "lang": "en", "scope": "exact"},
        {"text": "viaje mental", "lang": "es", "scope": "related"},
    ]
    assert made["definition_text"] == "Living through another time.\n\nIn the mind."
    assert made["sources"] == ["Tulving, 1985"]
    assert made["id_concept_class"] == "ctp_memory"


def test_a_contributor_s_record_is_a_proposal_that_can_be_withdrawn(contributor: Person) -> None:
    assert "Propose a concept" in text(contributor.open("/propose"))
    contributor.open("/propose/concept")
    sent = unique(FILLED)
    body = contributor.press("Propose", sent)
    assert contributor.path.startswith("/proposals?did=prp_")
    assert "A curator looks at it before it is published." in body
    assert sent["name"] in text(body)
    assert sent["name"] not in text(contributor.open(f"/browse/concept?from={sent['name'].replace(' ', '+')}"))
    contributor.open("/proposals")
    assert "Withdrawn" in contributor.press("Withdraw")
    assert "withdrawn" in contributor.open("/proposals")


def test_every_field_that_people_write_is_in_the_form_of_its_collection(curator: Person) -> None:
    for collection in COLLECTIONS.values():
        form = next(each for each in forms(curator.open(f"/propose/{collection.name}")) if "key" in each.fields)
        expected = set(draft_model(collection.name).model_fields) - {"relations"}
        assert set(form.fields) == expected | {"key"}
    curator.press("Publish", {"name": "a class", "description": "It holds."})
    assert api(curator, curator.path)["description"] == "It holds."
    curator.open("/propose/disorder")
    curator.press("Publish", {"name": "a disorder", "id_protocol": "DOID", "flag_for_curator": "1"})
    assert api(curator, curator.path)["flag_for_curator"] == 1


def test_all_mistakes_are_told_at_once_each_beside_its_field_and_what_was_typed_stays(curator: Person) -> None:
    curator.open("/propose/disorder")
    typed = {
        "name": " ",
        "definition": "kept <b>",
        "id_protocol": "x" * 51,
        "flag_for_curator": "soon",
        "aliases": "good\r\nbad | not a tag",
    }
    body = curator.press("Publish", typed, 422)
    for field, wrong in {
        "name": "Must not be empty.",
        "id_protocol": "Must have at most 50 characters.",
        "flag_for_curator": "Should be a whole number.",
        "aliases": "Line 2, its lang, should be the tag of a language, such as en or pt-BR.",
    }.items():
        assert f'<span class="wrong" id="{field}-wrong">{wrong}</span>' in body
        assert re.search(rf'id="{field}"[^>]* aria-invalid="true" aria-describedby="[^"]*{field}-wrong"', body)
        assert f'<a href="#{field}">' in body, "the summary leads to the field"
    form = next(each for each in forms(body) if "key" in each.fields)
    assert {name: form.fields[name] for name in typed} == typed
    assert "<title>Not saved" in body


def test_a_preview_shows_the_draft_and_what_is_called_alike_and_saves_nothing(curator: Person) -> None:
    curator.open("/propose/concept")
    typed = {**unique(FILLED), "name": "wroking memory", "aliases": "attention"}
    body = curator.press("Preview", typed)
    assert "<p>Living through another time.</p><p>In the mind.</p>" in re.sub(r"\n\s*", "", body)
    alike = re.search(r'<div role="status" class="alike">.*?</div>', body, re.DOTALL)
    assert alike is not None
    assert f'href="/id/{WORKING_MEMORY}"' in alike.group()
    assert ">attention</a>" in alike.group()
    assert next(each for each in forms(body) if "key" in each.fields).fields["name"] == "wroking memory"
    assert curator.server.get("/api/v1/concept?name=wroking+memory").json["total"] == 0
    piece = curator.send("/preview/concept", typed)
    assert alike.group() in piece
    assert "<html" not in piece


def test_a_preview_tells_what_is_wrong_so_far(curator: Person) -> None:
    piece = text(curator.send("/preview/concept", {"name": "", "aliases": "fine\r\nmine | nonsense tag | sideways"}))
    assert "Aliases : Line 2, its lang, should be the tag of a language" in piece.replace("Aliases:", "Aliases :")
    assert "Line 2, its scope, should be one of" in piece
    assert "Name" not in piece.partition("Preview")[0], "it is still to be typed"
    assert "Not right yet" not in curator.send("/preview/concept", {"name": "x", "aliases": "memoria | es | narrow"})
    assert "Not right yet" not in curator.open("/propose/concept")
    curator.press("Preview", {"name": "x" * 501, "aliases": "a | !"})
    assert "Name: Must have at most 500 characters." in text(curator.body)


def test_what_is_merely_related_is_not_called_alike(curator: Person) -> None:
    body = curator.send("/preview/concept", {"name": "memory of a kind that nobody has named"})
    assert "nearly the same name" not in body
    assert "nearly the same name" not in curator.send("/preview/concept", {"name": "", "aliases": "\x00"})
    own = curator.send("/preview/concept", {"name": "working memory", "record": WORKING_MEMORY})
    assert "nearly the same name" not in own


def test_a_form_that_is_sent_twice_is_done_once(curator: Person) -> None:
    curator.open("/propose/concept")
    form = next(each for each in forms(curator.body) if "key" in each.fields)
    sent = {**form.fields, **unique(FILLED)}
    curator.send("/propose/concept", sent)
    first = curator.path
    curator.send("/propose/concept", sent)
    assert curator.path == first
    curator.send("/propose/concept", {**sent, "definition_text": "Another."})
    assert curator.path != first, "what was changed meanwhile is another record"


# Editing.


def test_an_edit_is_saved_and_undone(curator: Person) -> None:
    record = concept(curator.server, definition_text="Before.")
    curator.open(f"/id/{record}")
    assert f'href="/edit/{record}"' in curator.body
    curator.open(f"/edit/{record}")
    body = curator.press("Publish", {"definition_text": "After."})
    assert "Saved." in body
    assert "After." in body
    body = curator.press("Undo")
    assert "Set back to what it was." in body
    assert api(curator, f"/id/{record}")["definition_text"] == "Before."
    assert api(curator, f"/id/{record}")["version"] == 3
    assert "Saved." not in curator.open(f"/id/{record}?did=2"), "a notice does not outlive what it tells of"


def test_what_nobody_touched_stays_as_it_is_whatever_a_form_makes_of_it(curator: Person) -> None:
    odd = {
        "name": "odd\nname",
        "definition_text": "a\r\nb\rc\n\nd ",
        "aliases": [{"text": "x | y"}, {"text": " spaced "}],
        "sources": ["one\ntwo", "three"],
    }
    record = concept(curator.server, **odd)
    before = api(curator, f"/id/{record}")
    curator.open(f"/edit/{record}")
    assert "Nothing was changed" in curator.press("Publish")
    curator.open(f"/edit/{record}")
    curator.press("Publish", {"id_concept_class": "ctp_memory"})
    after = api(curator, f"/id/{record}")
    assert {name: after[name] for name in odd} == {name: before[name] for name in odd}
    assert after["id_concept_class"] == "ctp_memory"


def test_who_changed_the_same_meanwhile_is_shown_beside_what_one_wrote(curator: Person) -> None:
    record = concept(curator.server, definition_text="Base.", aliases=[{"text": "one"}])
    curator.open(f"/edit/{record}")
    other = _signed_in(curator.server, "curator")
    other.open(f"/edit/{record}")
    other.press("Publish", {"definition_text": "Theirs.", "sources": "a book"})
    body = curator.press("Publish", {"definition_text": "Mine.", "aliases": "one\r\ntwo"}, 409)
    assert "Someone changed this concept while you were writing." in body
    assert '<pre class="wrap" tabindex="0">Theirs.</pre>' in body
    form = next(each for each in forms(body) if "version" in each.fields and "name" in each.fields)
    assert form.fields["definition_text"] == "Mine."
    assert form.fields["aliases"] == "one\r\ntwo"
    assert form.fields["sources"] == "a book", "what one had not touched is as it is now"
    assert api(curator, f"/id/{record}")["definition_text"] == "Theirs."
    curator.press("Publish")
    now_is = api(curator, f"/id/{record}")
    assert (now_is["definition_text"], now_is["sources"], len(now_is["aliases"])) == ("Mine.", ["a book"], 2)


def test_what_someone_wrote_stays_when_the_record_goes_meanwhile(curator: Person) -> None:
    record = concept(curator.server)
    curator.open(f"/edit/{record}")
    other = _signed_in(curator.server, "curator")
    other.open(f"/retire/{record}")
    other.press("Retire it", status=410)
    curator.press("Publish", {"definition_text": "Written at length."}, 422)
    assert f"{record} is retired." in text(curator.body)
    assert "Written at length." in curator.body


def test_a_proposal_that_was_accepted_is_not_called_withdrawn(contributor: Person, curator: Person) -> None:
    contributor.open("/propose/concept")
    contributor.press("Propose", unique({"name": "soon accepted"}))
    there = contributor.path
    assert "Your proposal is sent." in contributor.body
    proposal = there.partition("did=")[2]
    curator.open(f"/review/{proposal}")
    late = _signed_in(curator.server, "curator")
    late.open(f"/review/{proposal}")
    curator.press("Accept")
    told = contributor.open(there)
    assert "Withdrawn" not in told
    assert "Your proposal is sent." not in told
    assert "Too much like another." in late.press("Reject", {"reason": "Too much like another."}, 422)
    assert "Undone" not in curator.open(f"/review/{proposal}?undone=1")


def test_a_contributor_s_edit_waits_and_is_seen_by_curators_and_its_author_alone(
    contributor: Person, curator: Person, visitor: Person
) -> None:
    record = concept(curator.server, definition_text="Before.")
    contributor.open(f"/edit/{record}")
    assert "This changes nothing" in contributor.press("Propose", status=422)
    contributor.press("Propose", {"definition_text": "After."})
    assert "<del>Before</del><ins>After</ins>." in contributor.body
    told = "A change is proposed"
    assert told in contributor.open(f"/id/{record}")
    body = curator.open(f"/id/{record}")
    assert told in body
    assert re.search(r'href="/review/prp_\w+">Review it', body)
    assert re.search(r'<span class="count">\d+', body), "the menu tells how many wait"
    assert told not in visitor.open(f"/id/{record}")
    assert told not in _signed_in(curator.server, "contributor").open(f"/id/{record}")
    assert api(curator, f"/id/{record}")["definition_text"] == "Before."


def test_actions_are_shown_to_those_who_may(contributor: Person, curator: Person, visitor: Person) -> None:
    record = concept(curator.server)
    acts = ("/edit/", "/retire/", "/merge/")
    assert [act in visitor.open(f"/id/{record}") for act in acts] == [False, False, False]
    assert [act in contributor.open(f"/id/{record}") for act in acts] == [True, True, False]
    assert [act in curator.open(f"/id/{record}") for act in acts] == [True, True, True]
    assert re.findall(r'class="button plain"[^>]*>([^<]+)<', curator.body) == ["Edit", "Relate", "Merge", "Retire"]
    contributor.open(f"/id/{record}")
    offered = re.findall(r'class="button plain"[^>]*>([^<]+)<', contributor.body)
    assert offered == ["Propose a change", "Propose relations", "Propose to retire"]
    assert "<h1>Propose a change of " in contributor.open(f"/edit/{record}")
    assert "Revert to this" not in contributor.open(f"/id/{WORKING_MEMORY}/history")


def test_what_is_gone_cannot_be_edited(curator: Person) -> None:
    record = concept(curator.server)
    curator.open(f"/edit/{record}")
    stale = curator.body
    _signed_in(curator.server, "curator").send(f"/retire/{record}", {"act": "retire", "version": "1"}, 410)
    for path in (f"/edit/{record}", f"/edit/{record}/relations", f"/retire/{record}", f"/merge/{record}"):
        assert "is retired" in curator.open(path, 410)
    assert "name" in next(each for each in forms(stale) if "version" in each.fields).fields
    assert "is retired" in curator.send(f"/edit/{record}", {"version": "1", "name": "x"}, 422)
    assert "There is no record" in curator.open("/edit/trm_nothing", 404)
    assert "There is no collection" in curator.open("/propose/nothing", 404)


# Relations.


def test_a_relation_is_looked_for_added_undone_and_removed(curator: Person) -> None:
    record = concept(curator.server)
    curator.open(f"/edit/{record}/relations")
    body = curator.press("Look", {"relation": "PARTOF", "q": "working memory"})
    assert f'value="{WORKING_MEMORY}"' in body
    curator.press("Add", {"target": WORKING_MEMORY})
    assert api(curator, f"/id/{record}")["relations"] == {"PARTOF": [WORKING_MEMORY]}
    assert "Saved." in curator.body
    curator.press("Undo")
    assert api(curator, f"/id/{record}")["relations"] == {}
    curator.open(f"/edit/{record}/relations")
    curator.press("Look", {"relation": "KINDOF", "q": WORKING_MEMORY})
    curator.press("Add", {"target": WORKING_MEMORY})
    curator.press("Remove")
    assert api(curator, f"/id/{record}")["relations"] == {}
    assert "It has none of its own yet." in curator.body


def test_a_circle_is_told_beside_the_field(curator: Person) -> None:
    parent = concept(curator.server)
    child = concept(curator.server, relations={"KINDOF": [parent]})
    curator.open(f"/edit/{parent}/relations")
    curator.press("Look", {"relation": "KINDOF", "q": child})
    body = curator.press("Add", {"target": child}, 422)
    wrong = f"Would close a circle: {child} is below {parent} already."
    assert f'<span class="wrong" id="target-wrong">{wrong}</span>' in body
    form = next(each for each in forms(body) if "q" in each.fields and each.method == "post")
    assert (form.fields["relation"], form.fields["target"]) == ("KINDOF", child)
    fields = {"act": "add", "relation": "KINDOF", "version": "1"}
    assert "choose one" in curator.send(f"/edit/{parent}/relations", fields, 422)


def test_a_mapping_is_an_iri_or_a_curie(curator: Person) -> None:
    record = concept(curator.server)
    curator.open(f"/edit/{record}/relations")
    fields = {"act": "map", "mapping": "closeMatch", "outside": "nonsense", "version": "1"}
    body = curator.send(f"/edit/{record}/relations", fields, 422)
    assert "Is neither an IRI" in body
    assert 'value="nonsense"' in body
    curator.send(f"/edit/{record}/relations", {**fields, "outside": "MESH:D008570"})
    assert api(curator, f"/id/{record}")["relations"] == {"closeMatch": ["MESH:D008570"]}


def test_a_contributor_proposes_relations(contributor: Person) -> None:
    record = concept(contributor.server, relations={"KINDOF": [WORKING_MEMORY]})
    contributor.open(f"/edit/{record}/relations")
    assert "<del>kind of working memory</del>" in contributor.press("Remove")
    fields = {"act": "add", "relation": "PARTOF", "target": WORKING_MEMORY, "version": "1"}
    assert "<ins>part of working memory</ins>" in contributor.send(f"/edit/{record}/relations", fields)
    assert api(contributor, f"/id/{record}")["version"] == 1


# Retiring, merging, and the way back.


def test_retiring_tells_what_uses_a_record_names_another_and_is_undone(curator: Person) -> None:
    record = concept(curator.server)
    concept(curator.server, name="a kind of it", relations={"KINDOF": [record]})
    body = curator.open(f"/retire/{record}")
    assert f"<span>Lexarium {__version__}</span>" in body, "not the version of the record"
    assert "1 record is still related to it." in body
    assert "a kind of it" in body
    curator.press("Look", {"q": "working memory"})
    body = curator.press("Retire it", {"replaced_by": WORKING_MEMORY}, 410)
    assert "Retired." in body
    assert "In its place" in body
    curator.press("Undo")
    assert api(curator, f"/id/{record}")["state"] == "published"


def test_as_many_records_are_named_as_are_told_to_use_one_that_is_to_be_retired(curator: Person) -> None:
    server = curator.server
    record = concept(server)
    concept(server, name="twice", relations={"KINDOF": [record], "PARTOF": [record]})
    concept(server, name="likewise", relations={"RELATED": [record]})
    gone = concept(server, name="gone by now", relations={"KINDOF": [record]})
    curator.send(f"/retire/{gone}", {"act": "retire", "version": "1"}, 410)
    body = curator.open(f"/retire/{record}")
    assert "2 records are still related to it." in body
    listed = body.partition("still related")[2].partition("<form")[0]
    assert re.findall(r'<a href="/id/[^"]+">([^<]+)</a>', listed) == ["likewise", "twice"]
    for number in range(30):
        concept(server, name=f"many {number:02}", relations={"KINDOF": [record]})
    listed = curator.open(f"/retire/{record}").partition("still related")[2].partition("<form")[0]
    assert len(re.findall(r'<a href="/id/', listed)) == 30
    assert "and more" in listed


def test_a_record_that_has_changed_since_one_looked_is_not_retired_or_merged(curator: Person) -> None:
    record = concept(curator.server)
    curator.open(f"/edit/{record}")
    curator.press("Publish", {"definition_text": "Changed."})
    for path, fields in (
        (f"/retire/{record}", {"act": "retire"}),
        (f"/merge/{record}", {"into": WORKING_MEMORY, "survivor": "1"}),
    ):
        body = curator.send(path, {**fields, "version": "1"}, 422)
        assert "Someone has changed it since you opened this page." in body
        assert "<ins>Changed.</ins>" in body
    assert "Merge them" in curator.body, "the survivor is chosen still"
    bad = {"act": "retire", "version": "2", "replaced_by": "trm_nothing"}
    assert "Names no other published record." in curator.send(f"/retire/{record}", bad, 422)


def test_what_others_changed_is_told_also_while_one_looks_for_a_stand_in(curator: Person) -> None:
    record = concept(curator.server)
    curator.open(f"/retire/{record}")
    other = _with(curator.server, curator.cookies)
    other.open(f"/edit/{record}")
    other.press("Publish", {"definition_text": "Changed."})
    assert "<ins>Changed.</ins>" in curator.press("Look", {"q": "working memory"})


def test_a_survivor_that_has_changed_since_one_looked_is_looked_at_again(curator: Person) -> None:
    gone, kept = concept(curator.server), concept(curator.server)
    curator.open(f"/merge/{gone}?into={kept}")
    other = _with(curator.server, curator.cookies)
    other.open(f"/edit/{kept}")
    other.press("Publish", {"definition_text": "Another thing."})
    body = curator.press("Merge them", status=422)
    assert "<ins>Another thing.</ins>" in body
    assert api(curator, f"/id/{gone}")["state"] == "published"
    curator.press("Merge them")
    assert curator.path == f"/id/{kept}?merged={gone}"


def test_who_comes_too_late_to_undo_is_shown_what_was_done_since_and_where_the_way_back_is(curator: Person) -> None:
    record = concept(curator.server, definition_text="Before.")
    curator.open(f"/edit/{record}")
    curator.press("Publish", {"definition_text": "Mine."})
    other = _with(curator.server, curator.cookies)
    other.open(f"/edit/{record}")
    other.press("Publish", {"definition_text": "Theirs."})
    body = curator.press("Undo", status=409)
    assert "was not set back" in text(body)
    assert "Theirs" in text(body)
    assert f'href="/id/{record}/history"' in body
    assert api(curator, f"/id/{record}")["definition_text"] == "Theirs."


def test_publishing_is_undone_by_retiring_and_that_too(curator: Person) -> None:
    curator.open("/propose/concept")
    assert "Published." in curator.press("Publish", unique({"name": "published in haste"}))
    record = curator.path.partition("?")[0].removeprefix("/id/")
    assert "Retired." in curator.press("Undo", status=410)
    curator.press("Undo")
    assert api(curator, f"/id/{record}")["state"] == "published"


def test_a_form_that_cannot_be_taken_now_is_kept_to_be_sent_again(new_url: NewUrl) -> None:
    written = {"name": 'fear "of" <spiders>', "definition_text": "One.\n\nTwo."}
    with Server(new_url("sqlite"), LEXARIUM_WRITE_RATE="1", LEXARIUM_WRITE_BURST="1") as server:
        person = Person(server)
        person.sign_in("curator")
        headers = {"Accept": "text/html", "Content-Type": "application/x-www-form-urlencoded"}
        headers["Cookie"] = f"lexarium_session={person.cookies['lexarium_session']}"
        answer = server.request("POST", "/propose/concept", headers, urlencode(written))
        while answer.status != 429:
            answer = server.request("POST", "/propose/concept", headers, urlencode(written))
        assert int(answer.headers["retry-after"]) >= 1
        kept = next(each for each in forms(answer.body.decode()) if each.buttons[0][0] == "Send it again")
        assert (kept.action, kept.fields) == ("/propose/concept", written)


def test_a_contributor_proposes_to_retire(contributor: Person) -> None:
    record = concept(contributor.server)
    contributor.open(f"/retire/{record}")
    contributor.press("Propose to retire it")
    assert "to be retired" in contributor.body
    assert "It is proposed to retire this" in contributor.open(f"/id/{record}")


def test_a_merge_is_looked_at_done_and_undone(curator: Person) -> None:
    gone = concept(curator.server, name="a double", aliases=[{"text": "twin"}], relations={"KINDOF": [WORKING_MEMORY]})
    kept = concept(curator.server, name="the original")
    user = concept(curator.server, relations={"PARTOF": [gone]})
    curator.open(f"/merge/{gone}")
    curator.press("Look", {"q": kept})
    assert f'href="/merge/{gone}?into={kept}"' in curator.body
    body = curator.open(f"/merge/{gone}?into={kept}")
    for told in ("<ins>a double</ins>", "<ins>twin</ins>", "<ins>kind of working memory</ins>", "1 other record is"):
        assert told in body
    body = curator.press("Merge them")
    assert curator.path == f"/id/{kept}?merged={gone}"
    assert "is merged into this." in body
    assert api(curator, f"/id/{user}")["relations"] == {"PARTOF": [kept]}
    curator.press("Undo")
    assert api(curator, f"/id/{gone}")["name"] == "a double"
    assert api(curator, f"/id/{kept}")["aliases"] == []
    assert api(curator, f"/id/{user}")["relations"] == {"PARTOF": [gone]}


def test_the_members_of_a_class_go_with_it_at_a_merge(curator: Person) -> None:
    gone, kept = (record_of(curator.server, "concept_class", name=name) for name in ("one class", "another class"))
    member = concept(curator.server, id_concept_class=gone)
    assert "1 member of one class will be in another class." in text(curator.open(f"/merge/{gone}?into={kept}"))
    curator.press("Merge them")
    assert api(curator, f"/id/{member}")["id_concept_class"] == kept


def test_a_merge_that_cannot_be_is_told(curator: Person) -> None:
    record, task = concept(curator.server), record_of(curator.server, "task")
    assert "There is no concept with the id" in curator.open(f"/merge/{record}?into={task}", 422)
    assert "into itself" in curator.open(f"/merge/{record}?into={record}", 422)
    assert "into itself" in curator.send(f"/merge/{record}", {"version": "1", "into": record}, 422)
    fields = {"version": "1", "into": "trm_unheard", "survivor": "1"}
    assert "There is no concept" in curator.send(f"/merge/{record}", fields, 422)
    assert "There is no concept" in curator.open(f"/merge/{record}?into=%00", 422)


def test_any_version_in_the_history_is_gone_back_to(curator: Person) -> None:
    record = concept(curator.server, definition_text="First.")
    for definition in ("Second.", "Third."):
        curator.open(f"/edit/{record}")
        curator.press("Publish", {"definition_text": definition})
    curator.open(f"/id/{record}/history")
    assert curator.body.count("Revert to this") == 2 * 2, "each says so, and which version it is"
    first = [form for form in forms(curator.body) if "newest" in form.fields][-1]
    curator.send(first.action, first.fields)
    assert api(curator, f"/id/{record}")["definition_text"] == "First."
    assert "does not say which version" in curator.send(f"/revert/{record}", {"version": "x"}, 400)


def test_a_missing_name_can_be_proposed_from_a_search(contributor: Person) -> None:
    contributor.open("/search?q=xyzzyplugh")
    assert 'href="/propose/concept?name=xyzzyplugh"' in contributor.body
    assert 'value="xyzzyplugh"' in contributor.open("/propose/concept?name=xyzzyplugh")


def test_what_people_write_is_escaped_everywhere(curator: Person, contributor: Person) -> None:
    mean = "<script>alert('x')</script>\"&'"
    record = concept(curator.server, name=mean, definition_text=mean, aliases=[{"text": mean + "b"}], sources=[mean])
    other = concept(curator.server, name=mean + "c", relations={"KINDOF": [record], "closeMatch": ["x:y'&"]})
    contributor.open(f"/edit/{record}")
    contributor.press("Propose", {"definition_text": mean + mean})
    paths = (f"/edit/{record}", f"/edit/{other}/relations", f"/retire/{record}", f"/merge/{record}?into={other}")
    for path in (*paths, f"/merge/{record}?q={quote(mean)}", f"/propose/concept?name={quote(mean)}"):
        assert "<script>alert" not in curator.open(path)
    assert "<script>alert" not in contributor.open("/proposals")
    assert "<script>alert" not in curator.send("/preview/concept", {"name": mean, "definition_text": mean})


def unique(fields: Mapping[str, str]) -> dict[str, str]:
    """These fields with a name that no other has."""
    return {**fields, "name": f"{fields['name']} {uuid.uuid4().hex[:8]}"}


def concept(server: Server, **draft: Any) -> str:
    """A new concept; its id."""
    return record_of(server, "concept", **draft)


def record_of(server: Server, collection: str, **draft: Any) -> str:
    """A new record; its id."""
    named_so = {"name": f"made for a test {uuid.uuid4().hex[:8]}", **draft}
    made = server.post_json(f"/api/v1/{collection}", named_so, _token(server))
    assert made.status == 201, made.body
    return str(made.json["id"])


TOKENS: dict[str, str] = {}
"""A curator's, by server."""


def _token(server: Server) -> str:
    if server.url not in TOKENS:
        TOKENS[server.url] = server.token("curator")
    return TOKENS[server.url]


def api(person: Person, path: str) -> Any:
    """A record at whose page someone is, as programs see it."""
    identifier = path.partition("?")[0].removeprefix("/id/")
    return person.server.get(f"/api/v1/records/{identifier}").json
