"""Chromium driven by Selenium, with axe-core for accessibility checks."""

import base64
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import selenium_axe_python
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.support.browserless_client import PASSWORD, create_account
from tests.support.polling import DEADLINE_SECONDS, wait_until
from tests.support.server import Server

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
# Folder for screenshots, which `make screenshots` names. Without it none are taken, which saves time.
SCREENSHOTS = os.environ.get("LEXARIUM_SCREENSHOTS", "")
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
]
_AXE_SCRIPT = (Path(selenium_axe_python.__file__).parent / "axe-core" / "axe.min.js").read_text()
_ALL_RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
_COLOR_RULES = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
_RUN_AXE_SCRIPT = """
const done = arguments[arguments.length - 1];
axe.run(document, {runOnly: arguments[0], resultTypes: ["violations"]}).then(results => done(results.violations));
"""
# A button shows for a moment that it has copied.
_RECORD_TEXTS_SCRIPT = """
const [button] = arguments;
button.recordedTexts = [];
new MutationObserver(() => button.recordedTexts.push(button.textContent)).observe(button, {childList: true});
"""
_LAYOUT_SHIFT_SCRIPT = """
const done = arguments[0];
let sum = 0;
new PerformanceObserver(list => { for (const entry of list.getEntries()) sum += entry.value; })
  .observe({type: "layout-shift", buffered: true});
setTimeout(() => done(sum), 20);
"""
WIDE, NARROW = (1280, 860), (375, 720)
# Half of what browsers call good: a busy machine may draw a page before its scripts have run.
MAX_SHIFT = 0.05


def is_browser_available() -> bool:
    return all(Path(path).exists() for path in (CHROMIUM, DRIVER))


class Browser:
    """Browser that opens pages of one site."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver
        self.base_url = ""

    def open(self, path: str) -> None:
        """Open a path of the site."""
        self.driver.get(self.base_url + path)

    def reset(self) -> None:
        """Clear all site data; return to a light color scheme and a wide window."""
        self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": self.base_url, "storageTypes": "all"})
        self.set_color_scheme("light")
        self.resize(*WIDE)
        self.console_errors()

    def set_color_scheme(self, scheme: str) -> None:
        """Emulate a light or dark color scheme, with reduced motion."""
        preferences = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in preferences.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    @contextmanager
    def without_scripts(self) -> Iterator[None]:
        """Disable the scripts of pages inside the block."""
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    def find(self, selector: str) -> WebElement:
        """Wait for the first element that matches a CSS selector and return it."""
        element: WebElement = self.wait(lambda: next(iter(self.find_all(selector)), None), selector)
        return element

    def find_all(self, selector: str) -> list[WebElement]:
        """Return the elements that match a CSS selector now."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def wait(self, condition: Any, description: str = "") -> Any:
        """Wait until a condition returns something true and return that."""

        def poll_condition() -> Any:
            try:
                return condition()
            except WebDriverException as error:
                if _is_between_pages(error):
                    return None
                raise

        return wait_until(poll_condition, describe=lambda: f"{description} at {self.driver.current_url}")

    def type(self, *keys: str) -> None:
        """Type into the focused element."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def insert(self, text: str) -> None:
        """Enter a text into the focused element by one input event, so that suggestions are requested once."""
        self.driver.execute_cdp_cmd("Input.insertText", {"text": text})

    def press_copy(self, selector: str) -> None:
        """Press a button that copies, and wait until it says so."""
        button = self.find(selector)
        self.driver.execute_script(_RECORD_TEXTS_SCRIPT, button)
        button.click()
        texts = "return arguments[0].recordedTexts"
        self.wait(lambda: {"Copied", "Selected"} & {*self.driver.execute_script(texts, button)}, selector)

    def tab_to(self, selector: str, max_steps: int = 60) -> WebElement:
        """Press Tab until a matching element has the focus; return it."""
        for _ in range(max_steps):
            focused = self.driver.switch_to.active_element
            if focused in self.find_all(selector):
                return focused
            focused.send_keys(Keys.TAB)
        raise AssertionError(f"{selector} is not reached by the keyboard")

    def press(self, label: str) -> None:
        """Press a button of the page's main part and wait for the next page."""
        before = self.find("html")
        self.driver.find_element(By.XPATH, f"//main//button[normalize-space()='{label}']").click()
        self.wait(lambda: _is_stale(before), f"the page after {label}")

    def sign_in(self, server: Server, role: str, path: str = "/") -> str:
        """Sign in by the form with a new account and return its name."""
        name = create_account(server, role)
        self.open(f"/sign-in?next={path}")
        self.find("#name").send_keys(name)
        self.find("#password").send_keys(PASSWORD, Keys.ENTER)
        self.wait(lambda: self.path == path, path)
        return name

    def check_appearance(self, name: str) -> None:
        """Check accessibility in each color scheme, and that the page fits a narrow window."""
        assert self.accessibility_violations() == []
        self.take_screenshot(f"{name}-light")
        self.set_color_scheme("dark")
        assert self.accessibility_violations(_COLOR_RULES) == []  # Nothing else differs.
        self.take_screenshot(f"{name}-dark")
        self.set_color_scheme("light")
        self.resize(*NARROW)
        assert self.horizontal_overflow() == 0
        self.take_screenshot(f"{name}-narrow")
        self.resize(*WIDE)

    @property
    def path(self) -> str:
        """Path of the open page."""
        return self.driver.current_url.removeprefix(self.base_url)

    @property
    def text(self) -> str:
        """Visible text of the page's main part."""
        texts: list[str] = self.wait(lambda: [element.text for element in self.find_all("main")], "main")
        return texts[0]

    def console_errors(self) -> list[str]:
        """Return the errors and warnings logged since the last call."""
        entries: list[dict[str, Any]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        messages = [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]
        # The entry that a page with an error status causes itself is expected. A busy browser uses fonts late.
        return [
            entry
            for entry in messages
            if not entry.startswith(f"{self.driver.current_url} - Failed to load resource")
            and "was preloaded using link preload but not used" not in entry
        ]

    def accessibility_violations(self, rules: Mapping[str, object] = _ALL_RULES) -> list[str]:
        """Run axe on the page and return what it reports."""
        if not self.driver.execute_script("return 'axe' in window"):
            self.driver.execute_script(_AXE_SCRIPT)
        violations = self.driver.execute_async_script(_RUN_AXE_SCRIPT, rules)
        return [
            f"{violation['id']}: {violation['help']} at {[node['target'] for node in violation['nodes']]} "
            f"{json.dumps([check['message'] for node in violation['nodes'] for check in node['any']][:3])}"
            for violation in violations
        ]

    def horizontal_overflow(self) -> int:
        """Return by how many pixels the page is wider than the window."""
        width: int = self.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
        return width

    def layout_shift(self) -> float:
        """Return the page's cumulative layout shift, rounded to four digits.

        A growing progress bar adds about 0.0002.
        """
        total_shift: float = self.driver.execute_async_script(_LAYOUT_SHIFT_SCRIPT)
        return round(total_shift, 4)

    def open_without_shift(self, path: str) -> None:
        """Open a path, up to three times until its layout does not shift: a busy browser may draw it too early."""
        shifts: list[float] = []
        while len(shifts) < 3 and min(shifts, default=1) >= MAX_SHIFT:
            self.open(path)
            shifts.append(self.layout_shift())
        assert min(shifts) < MAX_SHIFT, shifts

    def take_screenshot(self, name: str) -> None:
        """Save a screenshot of the whole page, where they are wanted."""
        if not SCREENSHOTS:
            return
        height = self.driver.execute_script("return document.documentElement.scrollHeight")
        width = self.driver.execute_script("return innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 4000), "scale": 1}
        screenshot = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip}
        )
        Path(SCREENSHOTS, f"{name}.png").write_bytes(base64.b64decode(screenshot["data"]))


def _is_stale(element: WebElement) -> bool:
    try:
        return not element.is_enabled()
    except WebDriverException as error:
        if _is_between_pages(error):
            return True
        raise


def _is_between_pages(error: WebDriverException) -> bool:
    """Return whether an element went away with its page.

    While a page unloads, Chromium may use a message of its own instead of the standard error.
    """
    return isinstance(error, StaleElementReferenceException) or "does not belong to the document" in (error.msg or "")


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start a browser with an empty profile."""
    with TemporaryDirectory(prefix="lexarium-browser-") as folder:
        options = ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*_FLAGS, f"--user-data-dir={folder}/profile"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = Chrome(options=options, service=ChromeService(DRIVER))
        driver.set_script_timeout(DEADLINE_SECONDS)
        try:
            yield Browser(driver)
        finally:
            driver.quit()
            shutil.rmtree(f"{folder}/profile", ignore_errors=True)
