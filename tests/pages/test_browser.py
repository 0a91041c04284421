"""Pages in a real browser, with mouse and keyboard."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from tests.support.browser import NARROW, WIDE, Browser
from tests.support.curated_sample import RETIRED_NAME, WORKING_MEMORY
from tests.support.server import Server

PAGES = {
    "home": "/",
    "browse": "/browse",
    "concepts": "/browse/concept",
    "class": "/browse/concept?class=ctp_memory",
    "tree": "/browse/concept/tree",
    "expanded": "/browse/concept/tree?expand=1",
    "filtered": "/browse/concept/tree?q=memory",
    "vocabulary": "/vocabularies/main",
    "below": f"/browse/concept/tree?at={WORKING_MEMORY}",
    "term": f"/id/{WORKING_MEMORY}",
    "disorder": "/id/dso_17093703",
    "citation": "/id/cit_4f4c964f3ba5b",
    "task": "/id/trm_49ee3f4f0d02e",
    "concept-class": "/id/ctp_memory",
    "history": f"/id/{WORKING_MEMORY}/history",
    "search": "/search",
    "results": "/search?q=work+mem&gone=1",
    "typo": "/search?q=wrking+memry",
    "nothing": "/search?q=xyzzyplugh",
    "annotate": "/annotate",
    "statistics": "/statistics",
    "growth-by-class": "/statistics?by=class",
    "gap": "/statistics/gaps/apart",
    "changes": "/changes",
    "guide": "/guide",
    "docs": "/docs",
    "not-found": "/nothing/here",
}
# Pages that `make test` checks too.
SMOKE = ("home", "term")
TEXT = "Working memory and arousal were measured with the n-back task in schizophrenia."


@pytest.mark.parametrize(
    "name", [name if name in SMOKE else pytest.param(name, marks=pytest.mark.full) for name in PAGES]
)
def test_a_page_is_accessible_has_no_layout_shift_and_fits_narrow_screens(browser: Browser, name: str) -> None:
    browser.open_without_shift(PAGES[name])
    browser.check_appearance(name)


def test_a_term_is_found_by_keyboard_among_suggestions(browser: Browser) -> None:
    browser.open("/")
    box = browser.tab_to("#find")
    browser.insert("working mem")
    browser.find("#find[aria-expanded=true]")
    browser.type(Keys.ARROW_DOWN)
    chosen = browser.find("#find-list [aria-selected=true]")
    assert box.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    assert chosen.text.startswith("working memory")
    assert browser.accessibility_violations() == []
    browser.take_screenshot("suggestions-light")
    browser.type(Keys.ENTER)
    browser.wait(lambda: browser.path == f"/id/{WORKING_MEMORY}")


@pytest.mark.full
def test_escape_closes_suggestions_and_enter_submits_the_typed_text(browser: Browser) -> None:
    browser.open("/browse")
    browser.tab_to("#find")
    browser.insert("memory")
    browser.find("#find[aria-expanded=true]")
    browser.type(Keys.ESCAPE)
    browser.find("#find[aria-expanded=false]")
    assert browser.find("#find").get_attribute("value") == "memory"
    browser.type(Keys.ENTER)
    browser.wait(lambda: browser.path == "/search?q=memory")
    assert "records found for memory" in browser.text


@pytest.mark.full
def test_the_first_tab_stop_skips_to_the_content(browser: Browser) -> None:
    browser.open("/browse")
    browser.type(Keys.TAB)
    assert browser.driver.switch_to.active_element.text == "Skip to the content"
    browser.type(Keys.ENTER)
    browser.wait(lambda: browser.driver.switch_to.active_element.get_attribute("id") == "main")


@pytest.mark.full
def test_the_colour_scheme_is_kept_across_pages(browser: Browser) -> None:
    browser.open("/")
    before = browser.find("body").value_of_css_property("background-color")
    browser.tab_to("[data-theme-switch]")
    browser.type(Keys.ENTER)
    dark = browser.find("body").value_of_css_property("background-color")
    assert dark != before
    browser.open("/guide")
    assert browser.find("body").value_of_css_property("background-color") == dark
    browser.find("[data-theme-switch]").click()
    assert browser.find("body").value_of_css_property("background-color") == before


@pytest.mark.full
def test_a_collection_is_filtered_by_class_and_letter(browser: Browser) -> None:
    browser.open("/browse/concept")
    Select(browser.tab_to("#class")).select_by_visible_text("Emotion")
    browser.tab_to(".filters button")
    browser.type(Keys.ENTER)
    browser.wait(lambda: "in Emotion" in browser.text)
    browser.driver.find_element(By.XPATH, "//*[@class='letters']/a[.='S']").click()
    browser.wait(lambda: "from=s" in browser.path)
    assert "class=" in browser.path
    assert all(row.text.casefold() >= "s" for row in browser.find_all(".rows .name a"))


@pytest.mark.full
def test_the_tree_is_expanded_in_place_by_keyboard(browser: Browser) -> None:
    browser.open("/browse/concept/tree")
    while browser.tab_to(".tree summary").get_attribute("textContent") != "Children of memory":
        browser.type(Keys.TAB)
    browser.type(Keys.ENTER)
    browser.wait(lambda: "working memory" in browser.text)
    assert browser.path == "/browse/concept/tree"
    browser.type(Keys.TAB)
    assert browser.driver.switch_to.active_element.get_attribute("href")
    assert browser.accessibility_violations() == []
    browser.take_screenshot("tree-open-light")


@pytest.mark.full
def test_a_pane_describes_the_record_selected_in_a_tree(browser: Browser) -> None:
    browser.open("/browse/concept/tree?q=working+memory")
    link = browser.find(f".tree a[href='/id/{WORKING_MEMORY}']")
    link.click()
    assert browser.find(".pane h2").text == "working memory"
    assert browser.path.startswith("/browse"), "the tree stays"
    assert browser.accessibility_violations() == []
    browser.take_screenshot("pane-light")
    link.click()
    browser.wait(lambda: browser.path == f"/id/{WORKING_MEMORY}")


@pytest.mark.full
def test_bundled_fonts_are_used(browser: Browser) -> None:
    browser.open("/")
    loaded = "return [...document.fonts].filter(font => font.status === 'loaded').map(font => font.family)"
    browser.wait(lambda: len(browser.driver.execute_script(loaded)) >= 2, "fonts")
    assert {name.strip('"') for name in browser.driver.execute_script(loaded)} == {"Source Sans 3", "Source Serif 4"}


@pytest.mark.full
@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_same_text_and_links_without_scripts(browser: Browser, name: str) -> None:
    read = "return [document.querySelector('main').textContent, document.querySelectorAll('main a').length]"
    browser.open(PAGES[name])
    scripted = browser.driver.execute_script(read)
    with browser.without_scripts():
        browser.open(PAGES[name])
        html = browser.driver.page_source
        browser.console_errors()  # That of a page with an error status is expected.
    browser.open("/guide")
    parse = "const page = new DOMParser().parseFromString(arguments[0], 'text/html');" + read.replace(
        "document.", "page."
    )
    text, links = browser.driver.execute_script(parse, html)
    assert ("".join(text.split()), links) == ("".join(scripted[0].split()), scripted[1])


@pytest.mark.full
def test_an_identifier_is_copied_to_the_clipboard(browser: Browser) -> None:
    browser.open(f"/id/{WORKING_MEMORY}")
    browser.press_copy("[data-copy='#identifier']")


@pytest.mark.full
def test_a_retired_term_links_to_its_replacement(browser: Browser) -> None:
    browser.open("/browse/concept?state=retired")
    browser.find(".rows .name a").click()
    browser.wait(lambda: browser.path.startswith("/id/"))
    assert "Replaced by: working memory" in browser.text
    assert browser.accessibility_violations() == []
    browser.take_screenshot("retired-light")
    browser.resize(*NARROW)
    browser.take_screenshot("retired-narrow")
    assert browser.find("h1").text == RETIRED_NAME


@pytest.mark.full
def test_a_text_is_annotated_by_keyboard(browser: Browser) -> None:
    browser.open("/annotate")
    browser.tab_to("#text")
    browser.type(TEXT, Keys.TAB, Keys.ENTER)
    browser.find(".marked")
    assert [element.text for element in browser.find_all(".marked a")] == [
        "Working memory",
        "arousal2",
        "n-back task",
        "schizophrenia",
    ]
    browser.check_appearance("annotated")


@pytest.mark.full
def test_search_hierarchy_and_annotation_work_without_scripts(browser: Browser) -> None:
    with browser.without_scripts():
        browser.open("/")
        browser.find("#find").send_keys("wm", Keys.ENTER)
        browser.wait(lambda: browser.path.startswith("/search?q=wm"))
        assert "also called WM" in browser.text
        browser.open("/browse/concept/tree")
        browser.find(".tree summary").click()
        browser.find(".tree details[open] a").click()
        browser.wait(lambda: "?at=" in browser.path)
        assert "› concepts › Full hierarchy" in browser.text
        browser.open("/annotate")
        browser.find("#text").send_keys(TEXT)
        browser.find("form[method=post] button").click()
        assert browser.find(".marked").text.startswith("Working memory and arousal")


@pytest.mark.full
def test_the_reference_is_filtered_and_opens_the_linked_operation(browser: Browser) -> None:
    browser.open("/docs#annotate")
    browser.find("#annotate[open]")
    browser.find("#filter").send_keys("suggest")
    browser.wait(lambda: len([element for element in browser.find_all(".operation") if element.is_displayed()]) == 1)
    browser.open("/docs#search")  # The same page, which stays filtered.
    browser.wait(browser.find("#search").is_displayed)
    assert browser.find("#filter").get_attribute("value") == ""


@pytest.mark.full
def test_a_request_is_sent_from_the_reference(browser: Browser, curated_server: Server) -> None:
    browser.open("/docs#search")
    field = browser.find("#search .try input")
    field.clear()
    field.send_keys("working memory", Keys.ENTER)
    browser.wait(lambda: WORKING_MEMORY in browser.find("#search .response").text)
    assert browser.accessibility_violations() == []
    browser.take_screenshot("try-light")
    browser.open("/docs#me")
    browser.find("#me .try button").click()
    browser.wait(lambda: browser.find("#me .response").text.startswith("401"))
    browser.console_errors()
    browser.find("#token").send_keys(curated_server.create_token("curator"))
    browser.find("#me .try button").click()
    browser.wait(lambda: browser.find("#me .response").text.startswith("200"))
    stored = "return JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    assert "lex" not in browser.driver.execute_script(stored).lower()
    browser.driver.refresh()
    assert browser.find("#token").get_attribute("value") == ""


@pytest.mark.full
def test_pages_can_be_printed(browser: Browser) -> None:
    browser.open(f"/id/{WORKING_MEMORY}")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not browser.find("header.top").is_displayed()
    assert browser.find(".definition").is_displayed()
    browser.take_screenshot("term-print")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    browser.resize(*WIDE)


@pytest.mark.full
def test_the_tree_beside_a_term_keeps_its_state_across_pages(browser: Browser) -> None:
    browser.open(f"/id/{WORKING_MEMORY}")
    summary = browser.find(".beside-term details[data-level] > summary")
    level = summary.find_element("xpath", "..").get_attribute("data-level")
    summary.click()
    child = browser.find(f".beside-term details[data-level='{level}'] > ul a")
    child.click()
    browser.wait(lambda: browser.path != f"/id/{WORKING_MEMORY}")
    browser.driver.back()
    browser.find(f".beside-term details[data-level='{level}'][open] > ul a")
    assert browser.accessibility_violations() == []
    assert browser.console_errors() == []


@pytest.mark.full
def test_the_graph_is_expanded_moved_and_zoomed_by_keyboard(browser: Browser) -> None:
    browser.open(f"/id/{WORKING_MEMORY}")
    graph = browser.find(".graph.live svg")
    node_count = len(browser.find_all(".graph .expander"))
    before = graph.get_dom_attribute("viewBox")
    browser.driver.execute_script("arguments[0].focus()", graph)
    browser.type("+")
    zoomed = graph.get_dom_attribute("viewBox")
    browser.type(Keys.ARROW_LEFT)
    assert len({before, zoomed, graph.get_dom_attribute("viewBox")}) == 3
    browser.type("0")
    assert graph.get_dom_attribute("viewBox") == before
    name = browser.tab_to(".graph .expander").get_attribute("data-node")
    browser.type(Keys.ENTER)
    browser.wait(lambda: len(browser.find_all(".graph .expander")) > node_count, "related records")
    expanded = browser.driver.switch_to.active_element
    assert (expanded.get_attribute("data-node"), expanded.get_attribute("aria-expanded")) == (name, "true")
    assert browser.accessibility_violations() == []
    browser.take_screenshot("graph-expanded-light")
    browser.type(Keys.ENTER)
    browser.wait(lambda: len(browser.find_all(".graph .expander")) == node_count, "the graph as it was")
    assert browser.console_errors() == []
