"""Curation in a real browser, with scripts, mouse and keyboard."""

from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.support.browser import Browser
from tests.support.browserless_client import PASSWORD, BrowserlessClient, create_account
from tests.support.curated_sample import WORKING_MEMORY
from tests.support.databases import DatabaseUrlFactory
from tests.support.server import Server
from tests.support.v1_client import V1Client

pytestmark = pytest.mark.full

TARGET = "attention"


@pytest.fixture(scope="module")
def sample_server(sample_url: DatabaseUrlFactory) -> Iterator[Server]:
    with Server(sample_url("sqlite"), LEXARIUM_SIGN_IN_RATE="1000") as server:
        yield server


@pytest.fixture
def browser(shared_browser: Browser, sample_server: Server) -> Iterator[Browser]:
    """Fresh browser; fails the test if its console shows an error."""
    shared_browser.base_url = f"http://127.0.0.1:{sample_server.port}"
    shared_browser.reset()
    yield shared_browser
    # Error statuses of rejected forms and retired records are expected.
    expected_statuses = ("a status of 409", "a status of 410", "a status of 422")
    assert [
        message
        for message in shared_browser.console_errors()
        if not any(status in message for status in expected_statuses)
    ] == []


def test_a_term_is_added_by_keyboard_only(browser: Browser, sample_server: Server) -> None:
    name = create_account(sample_server, "curator")
    browser.open("/")
    browser.tab_to("a.account")
    browser.type(Keys.ENTER)
    browser.wait(lambda: browser.path == "/sign-in?next=%2F")
    browser.check_appearance("sign-in")
    browser.tab_to("#name")
    browser.type(name, Keys.TAB, PASSWORD, Keys.ENTER)
    browser.wait(lambda: browser.path == "/")
    browser.tab_to(".account summary")
    browser.type(Keys.ENTER)
    assert browser.find(".account a").is_displayed()
    browser.check_appearance("menu")
    browser.type(Keys.ESCAPE)
    assert not browser.find(".account a").is_displayed()
    browser.type(Keys.ENTER, Keys.TAB, Keys.ENTER)
    browser.wait(lambda: browser.path == "/propose")
    browser.check_appearance("propose")
    browser.tab_to("a[href='/propose/concept']")
    browser.type(Keys.ENTER)
    browser.wait(lambda: browser.path == "/propose/concept")
    browser.tab_to("#name")
    browser.type("mental time travel", Keys.TAB, "chronesthesia")
    browser.tab_to("#definition_text")
    browser.type("Living through another time.")
    browser.wait(lambda: "Living through another time." in browser.find("[data-preview]").text)
    Select(browser.tab_to("#id_concept_class")).select_by_visible_text("Learning and memory")
    browser.tab_to("form.draft button[type=submit]")
    browser.type(Keys.ENTER)
    browser.wait(lambda: browser.path.startswith("/id/trm_"))
    assert "Published." in browser.text
    assert "chronesthesia" in browser.text


def test_a_similar_name_is_reported_while_typing(browser: Browser, sample_server: Server) -> None:
    browser.sign_in(sample_server, "contributor", "/propose/concept")
    browser.find("#name").send_keys("wroking memory")
    browser.wait(lambda: "a similar name" in browser.find("[data-preview] [role=status]").text)
    assert browser.find_all(f"[data-preview] a[href='/id/{WORKING_MEMORY}']")
    browser.find("#definition_text").send_keys("One.\n\nTwo.")
    browser.wait(lambda: len(browser.find_all("[data-preview] .definition p")) == 2)
    browser.check_appearance("draft")
    browser.press("Propose")
    browser.press("Propose anyway")
    browser.wait(lambda: browser.path.startswith("/proposals?did="))
    browser.check_appearance("proposals")
    browser.press("Withdraw")
    browser.wait(lambda: "Proposal withdrawn" in browser.text)


def test_errors_are_shown_beside_their_fields_and_on_top(browser: Browser, sample_server: Server) -> None:
    browser.sign_in(sample_server, "curator", "/propose/disorder")
    browser.find("#flag_for_curator").send_keys("soon")
    browser.find("#aliases input").send_keys("one")
    browser.find("#aliases input.short").clear()
    browser.find("#aliases input.short").send_keys("not a tag")
    browser.press("Publish")
    browser.find("#name-wrong")
    assert browser.driver.switch_to.active_element.get_attribute("role") == "alert"
    browser.check_appearance("mistakes")
    browser.find("[role=alert] a[href='#aliases']").click()
    browser.wait(lambda: browser.find("#aliases input.short").get_attribute("value") == "not a tag")


def test_aliases_are_edited_in_rows(browser: Browser, sample_server: Server) -> None:
    curator = V1Client(sample_server, "curator")
    aliases = [{"text": "a|b"}, {"text": "ein Zweig", "lang": "de", "scope": "narrow"}]
    record = curator.create(name="a term in rows", aliases=aliases)
    browser.sign_in(sample_server, "curator", f"/edit/{record['id']}")
    browser.find("#aliases .pair:last-child input").send_keys("fresh")
    Select(browser.find("#aliases .pair:nth-child(2) select")).select_by_value("broad")
    browser.check_appearance("alias-rows")
    browser.find("#record-form").submit()
    browser.wait(lambda: browser.path.startswith("/id/"))
    saved = curator.send("GET", f"concept/{record['id']}").json["aliases"]
    assert {(item["text"], item["lang"], item["scope"]) for item in saved} == {
        ("a|b", "en", "exact"),
        ("fresh", "en", "broad"),
        ("ein Zweig", "de", "narrow"),
    }


def test_concurrent_edits_of_a_term_show_the_changes_of_the_other_user(browser: Browser, sample_server: Server) -> None:
    name = browser.sign_in(sample_server, "curator", f"/edit/{WORKING_MEMORY}")
    other = BrowserlessClient(sample_server)
    other.sign_in("curator")
    other.open(f"/edit/{WORKING_MEMORY}")
    other.press("Publish", {"definition_text": "What others wrote.", "sources": "a book"})
    box = browser.find("#definition_text")
    box.clear()
    box.send_keys("What I wrote.")
    browser.press("Publish")
    browser.wait(lambda: "while you were editing" in browser.text)
    assert "What others wrote." in browser.text
    assert browser.find("#definition_text").get_attribute("value") == "What I wrote."
    browser.check_appearance("conflict")
    browser.press("Publish")
    browser.wait(lambda: "Saved." in browser.text)
    assert "What I wrote." in browser.text
    assert name in browser.find(".account").text
    browser.check_appearance("saved")
    browser.press("Undo")
    browser.wait(lambda: "Reverted." in browser.text)
    assert "What others wrote." in browser.text


def test_a_relation_is_added_by_keyboard_from_suggestions(browser: Browser, sample_server: Server) -> None:
    browser.sign_in(sample_server, "curator", f"/edit/{WORKING_MEMORY}/relations")
    Select(browser.tab_to("#relation")).select_by_value("PARTOF")
    box = browser.tab_to("#target")
    browser.insert(TARGET)
    browser.find("#target[aria-expanded=true]")
    browser.type(Keys.ARROW_DOWN)
    option = browser.find("#target-list [aria-selected=true]")
    assert box.get_attribute("aria-activedescendant") == option.get_attribute("id")
    assert browser.accessibility_violations() == []
    chosen = option.get_attribute("data-name")
    browser.type(Keys.ENTER)
    browser.wait(lambda: browser.find_all("#target-choices input:checked"))
    assert chosen is not None
    assert chosen in browser.find("#target-choices").text
    browser.check_appearance("relations")
    browser.tab_to("button[value=add]")
    browser.type(Keys.ENTER)
    browser.wait(lambda: "Saved." in browser.text)
    assert f"part of {chosen}" in browser.find(".edges").text
    browser.find(f".edges button[aria-label='Remove: part of {chosen}']").click()
    browser.wait(lambda: chosen not in browser.find("main").text.partition("Add a relation")[0])


def test_a_cycle_is_reported_beside_the_search_field(browser: Browser, sample_server: Server) -> None:
    record = sample_server.get(f"/api/v1/concept/{WORKING_MEMORY}/relations").json["items"]
    part = next(related for related in record if related["relation"] == "PARTOF" and related["direction"] != "out")
    browser.sign_in(sample_server, "curator", f"/edit/{WORKING_MEMORY}/relations")
    Select(browser.find("#relation")).select_by_value("PARTOF")
    browser.find("#target").click()
    browser.insert(part["name"])
    browser.find("#target-list [role=option]").click()
    browser.find("#target-choices input:checked")
    browser.find("button[value=add]").click()
    assert "would create a cycle" in browser.find("#target-wrong").text.lower()
    browser.check_appearance("circle")


def test_a_term_is_retired_and_restored(browser: Browser, sample_server: Server) -> None:
    token = sample_server.create_token("curator")
    record_id = sample_server.post_json("/api/v1/concept", {"name": "to be retired"}, token).json["id"]
    sample_server.post_json("/api/v1/concept", {"name": "which uses it", "relations": {"KINDOF": [record_id]}}, token)
    browser.sign_in(sample_server, "curator", f"/id/{record_id}")
    browser.check_appearance("actions")
    browser.find(f"a[href='/retire/{record_id}']").click()
    browser.find("#replaced_by").click()
    browser.insert("working memory")
    browser.find("#replaced_by-list [role=option]").click()
    browser.find("#replaced_by-choices input:checked")
    browser.check_appearance("retire")
    browser.press("Retire")
    browser.wait(lambda: "Replaced by" in browser.text)
    browser.check_appearance("retired-notice")
    browser.press("Undo")
    browser.wait(lambda: "Reverted." in browser.text)


def test_a_term_is_merged_and_the_merge_undone(browser: Browser, sample_server: Server) -> None:
    draft = {"name": "a double", "aliases": [{"text": "twin"}], "relations": {"KINDOF": [WORKING_MEMORY]}}
    record_id = sample_server.post_json("/api/v1/concept", draft, sample_server.create_token("curator")).json["id"]
    browser.sign_in(sample_server, "curator", f"/merge/{record_id}")
    browser.check_appearance("merge")
    browser.tab_to("#into")
    browser.insert("attention")
    browser.find("#into[aria-expanded=true]")
    browser.type(Keys.ARROW_DOWN, Keys.ENTER)
    browser.wait(lambda: "?into=" in browser.path)
    assert "twin" in browser.text
    browser.check_appearance("merge-preview")
    browser.press("Merge")
    browser.wait(lambda: "was merged into this record." in browser.text)
    browser.check_appearance("merged")
    browser.press("Undo")
    browser.wait(lambda: browser.path.startswith(f"/id/{record_id}"))
    browser.open(f"/id/{record_id}/history")
    assert browser.find(".versions form button").text == "Revert to this version"
    browser.check_appearance("revertible")


def test_terms_are_added_edited_and_retired_without_scripts(browser: Browser, sample_server: Server) -> None:
    record_id = sample_server.post_json(
        "/api/v1/concept", {"name": "plain"}, sample_server.create_token("curator")
    ).json["id"]
    with browser.without_scripts():
        browser.sign_in(sample_server, "curator", "/propose/concept")
        browser.find("#name").send_keys("working memry")
        browser.press("Preview")
        assert "a similar name" in browser.find("[data-preview]").text
        browser.open(f"/edit/{record_id}/relations")
        browser.find("#target").send_keys("working memory", Keys.ENTER)
        browser.find(f"input[value='{WORKING_MEMORY}']").click()
        browser.find("button[value=add]").click()
        assert "kind of working memory" in browser.find(".edges").text
        browser.find(".account summary").click()
        browser.find(".account button").click()
        browser.find("a.account")


def test_forms_have_no_layout_shift(browser: Browser, sample_server: Server) -> None:
    browser.sign_in(sample_server, "admin", "/propose/concept")
    for path in ("/propose/concept", f"/edit/{WORKING_MEMORY}", f"/id/{WORKING_MEMORY}", "/proposals"):
        browser.open_without_shift(path)
