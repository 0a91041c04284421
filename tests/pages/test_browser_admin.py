"""Review, import and administration in a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from lexarium.store.database import Database
from tests.support.browser import MAX_SHIFT, WIDE, Browser
from tests.support.browserless_client import PASSWORD, create_account
from tests.support.databases import DatabaseUrlFactory
from tests.support.server import Server

pytestmark = pytest.mark.full

WORKING_MEMORY = "trm_606958d85e21c"


class PopulatedServer:
    """Server with content for all pages."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.admin = create_account(server, "admin")
        self.contributor = server.create_token("contributor")
        self.curator = server.create_token("curator")
        definitions = "A store for what is in use.", "A store for what is in use, and small."
        path = f"concept/{WORKING_MEMORY}"
        self.conflict = self.send_write(
            self.contributor, "PATCH", path, {"definition_text": definitions[1], "sources": ["Lore"]}
        )
        self.send_write(self.curator, "PATCH", path, {"definition_text": definitions[0]})
        draft = {"name": "working memry", "definition_text": "What is held in mind.", "aliases": [{"text": "wm"}]}
        self.new = self.send_write(self.contributor, "POST", "concept", draft)
        self.retirement = self.send_write(self.contributor, "DELETE", "disorder/dso_17093703")
        token = server.get("/api/v1/tokens", Authorization=f"Bearer {server.create_token('admin')}").json["items"][0]
        self.token, self.owner = token["id"], self.find_user_id(token["account"])
        hook = {"url": "http://127.0.0.1:9/hook", "collections": ["concept"], "actions": ["create"]}
        response = server.post_json("/api/v1/webhooks", hook, server.create_token("admin"))
        self.webhook = response.json["id"]
        self.send_write(self.curator, "POST", "concept", {"name": "never delivered"})

    def find_user_id(self, name: str) -> str:
        response = self.server.get("/api/v1/users", Authorization=f"Bearer {self.server.create_token('admin')}")
        return str(next(user["id"] for user in response.json["items"] if user["name"] == name))

    def send_write(self, token: str, method: str, path: str, body: object = None) -> str:
        return str(self.server.send_write(token, method, path, body)["id"])


@pytest.fixture(scope="module")
def populated_server(sample_url: DatabaseUrlFactory) -> Iterator[PopulatedServer]:
    variables = {
        "LEXARIUM_WEBHOOKS_PRIVATE": "yes",
        "LEXARIUM_SIGN_IN_RATE": "1000",
        "LEXARIUM_TEST_LOCK_SECONDS": "200",
    }
    with Server(sample_url("sqlite"), **variables) as server:
        yield PopulatedServer(server)


@pytest.fixture
def browser(shared_browser: Browser, populated_server: PopulatedServer) -> Iterator[Browser]:
    """Browser with a signed-in admin; fails the test if its console shows an error."""
    shared_browser.base_url = f"http://127.0.0.1:{populated_server.server.port}"
    shared_browser.reset()
    shared_browser.driver.delete_all_cookies()
    shared_browser.open("/sign-in")
    shared_browser.find("#name").send_keys(populated_server.admin)
    shared_browser.find("#password").send_keys(PASSWORD, Keys.ENTER)
    shared_browser.find("details.account")
    yield shared_browser
    assert shared_browser.console_errors() == []


PAGES = {
    "admin": "/admin",
    "people": "/admin/people",
    "person": "/admin/people/{owner}",
    "erase": "/admin/people/{owner}/erase",
    "tokens": "/admin/tokens",
    "revoke": "/admin/tokens/{token}/revoke",
    "webhooks": "/admin/webhooks",
    "webhook": "/admin/webhooks/{webhook}",
    "webhook-delete": "/admin/webhooks/{webhook}/delete",
    "account": "/account",
    "review": "/review",
    "review-new": "/review/{new}",
    "review-conflict": "/review/{conflict}",
    "review-retirement": "/review/{retirement}",
    "import": "/import",
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_has_no_layout_shift_and_fits_narrow_screens(
    browser: Browser, populated_server: PopulatedServer, name: str
) -> None:
    browser.open_without_shift(PAGES[name].format(**vars(populated_server)))
    browser.check_appearance(name)


def check_appearance(browser: Browser, name: str) -> None:
    assert browser.layout_shift() < MAX_SHIFT
    browser.check_appearance(name)


@pytest.mark.parametrize("width", [400, WIDE[0]])
def test_no_table_overflows(browser: Browser, width: int) -> None:
    browser.resize(width, WIDE[1])
    for path in ("/admin/tokens", "/admin/people", "/admin/webhooks", "/review", "/account"):
        browser.open(path)
        assert browser.find("main table").is_displayed()
        wider = "return [...document.querySelectorAll('main .scroll')].map(each => each.scrollWidth - each.clientWidth)"
        assert max(browser.driver.execute_script(wider)) == 0, path


def propose_contrast(populated_server: PopulatedServer, **draft: object) -> str:
    return populated_server.send_write(populated_server.contributor, "POST", "contrast", draft)


def test_a_proposal_is_accepted_by_keyboard_and_undone(browser: Browser, populated_server: PopulatedServer) -> None:
    proposal = propose_contrast(populated_server, name="by keyboard")
    browser.open(f"/review/{proposal}?collection=contrast")
    browser.tab_to("details.otherwise summary")
    browser.type(Keys.ENTER)
    browser.tab_to("main [name=name]")
    browser.type(Keys.END, " alone")
    browser.tab_to("form[action*=accept] button")
    browser.type(Keys.ENTER)
    browser.wait(lambda: "decided=" in browser.path)
    assert "Accepted: by keyboard alone." in browser.text
    check_appearance(browser, "review-decided")
    browser.tab_to("form[action$=undo] button")
    browser.type(Keys.ENTER)
    browser.wait(lambda: "undone" in browser.path)
    assert "Undone" in browser.text


def test_a_conflict_is_resolved_field_by_field(browser: Browser, populated_server: PopulatedServer) -> None:
    browser.open(f"/review/{populated_server.conflict}")
    browser.press("Accept")
    assert "Resolve this conflict." in browser.text
    assert browser.console_errors() == []
    check_appearance(browser, "review-unsettled")
    browser.find("input[name=choice-definition_text][value=theirs]").click()
    browser.press("Accept")
    assert "Accepted: working memory." in browser.text


def test_files_are_previewed_and_imported(browser: Browser, populated_server: PopulatedServer, tmp_path: Path) -> None:
    file = tmp_path / "concept.csv"
    file.write_text("id,name,definition_text\ntrm_seen1,seen in a browser,Told.\ntrm_seen2,,\n")
    browser.open("/import")
    browser.find("#files").send_keys(str(file))
    browser.press("Preview import")
    browser.find("form[action$=discard]")
    check_appearance(browser, "import-previewed")
    browser.press("Import")
    browser.find("a[href^='/changes?since='].button")
    assert "Import complete." in browser.text
    check_appearance(browser, "import-done")
    browser.find("a[href^='/changes?since='].button").click()
    browser.wait(lambda: browser.path.startswith("/changes?"))
    check_appearance(browser, "import-changes")
    browser.press("Undo import")
    assert "Import undone" in browser.text
    check_appearance(browser, "import-undone")
    invalid_file = tmp_path / "concept.json"
    invalid_file.write_text('[{"id": "trm_seen3",\n "name" "seen"}]')
    browser.open("/import")
    browser.find("#files").send_keys(str(invalid_file))
    browser.press("Preview import")
    browser.find("form[action$=discard]")
    assert "Nothing was imported" in browser.text
    check_appearance(browser, "import-rejected")


# Lets the next request of the page's script wait, so that it does not reload the page meanwhile.
HOLD_REQUEST = """
const fetch = window.fetch;
window.fetch = (...request) => new Promise(resolve => {
  window.sendHeldRequest = () => { window.fetch = fetch; resolve(fetch(...request)); };
});
"""


def test_a_slow_import_shows_its_progress_and_continues_automatically(
    browser: Browser, populated_server: PopulatedServer, tmp_path: Path
) -> None:
    file = tmp_path / "concept.json"
    file.write_text('[{"id": "trm_slow", "name": "slow"}]')
    browser.open("/import")
    browser.find("#files").send_keys(str(file))
    writer = Database(populated_server.server.url)
    with writer.write():  # every other writer waits for this
        browser.press("Preview import")
        assert "Preparing preview" in browser.text
        browser.driver.execute_script(HOLD_REQUEST)
        browser.wait(lambda: browser.driver.execute_script("return Boolean(window.sendHeldRequest)"))
    writer.close()
    check_appearance(browser, "import-busy")
    browser.driver.execute_script("window.sendHeldRequest()")
    browser.find("form[action$=discard]")
    assert "Import preview" in browser.text
    browser.press("Discard files")
    assert browser.path == "/import"


def test_an_account_is_created_and_erased(browser: Browser, populated_server: PopulatedServer) -> None:
    browser.open("/admin/people")
    browser.find("#name").send_keys(populated_server.admin)
    Select(browser.find("#role")).select_by_value("curator")
    browser.press("Add")
    assert "already" in browser.find("#name-wrong").text
    assert browser.console_errors() == []
    check_appearance(browser, "people-wrong")
    browser.find("#name").clear()
    browser.find("#name").send_keys("Grace Hopper")
    browser.press("Add")
    assert browser.find("h1").text == "Grace Hopper"
    check_appearance(browser, "person-added")
    browser.find("a[href$=erase]").click()
    browser.press("Erase account")
    assert "Account erased" in browser.text


def test_a_token_is_created_and_copied(browser: Browser) -> None:
    browser.open("/account")
    browser.find("#label").send_keys("a notebook")
    browser.find("#old_password").send_keys(PASSWORD)
    browser.press("Create token")
    assert re.match(r"lex_\S+$", browser.find("#secret").text)
    browser.press_copy("[data-copy='#secret']")
    check_appearance(browser, "token-made")


def test_a_webhook_is_added_tested_and_paused_without_scripts(browser: Browser) -> None:
    with browser.without_scripts():
        browser.open("/admin/webhooks")
        browser.find("#url").send_keys("http://127.0.0.1:9/other")
        browser.find("[name=collections-task]").click()
        browser.press("Add")
        browser.find("main a.button").click()
        browser.wait(lambda: "/admin/webhooks/whk_" in browser.path)
        browser.press("Send test")
        assert "no response" in browser.text
        browser.press("Pause")
        assert "paused since" in browser.text
    check_appearance(browser, "webhook-paused")
