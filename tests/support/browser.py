"""A real browser: Debian's Chromium, driven by Selenium, and axe-core in it."""

import base64
import json
import shutil
from collections.abc import Iterator
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
from selenium.webdriver.support.ui import WebDriverWait

from tests.support.polling import DEADLINE_SECONDS

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
SCREENSHOTS = Path(__file__).parents[2] / ".screenshots"
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
_AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RUN_AXE_SCRIPT = """
const done = arguments[arguments.length - 1];
axe.run(document, {runOnly: arguments[0], resultTypes: ["violations"]}).then(found => done(found.violations));
"""
_LAYOUT_SHIFT_SCRIPT = """
const done = arguments[0];
let sum = 0;
new PerformanceObserver(list => { for (const each of list.getEntries()) sum += each.value; })
  .observe({type: "layout-shift", buffered: true});
setTimeout(() => done(sum), 20);
"""
WIDE, NARROW = (1280, 860), (375, 720)
MAX_SHIFT = 0.01
"""A tenth of what browsers call good. A busy machine draws a page before its scripts have run: a little may move."""


def is_browser_available() -> bool:
    """Whether there is a browser here."""
    return all(Path(path).exists() for path in (CHROMIUM, DRIVER))


class Browser:
    """One browser, in which pages are opened one after the other."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver
        self.base_url = ""

    def open(self, path: str) -> None:
        """Open a page of the site."""
        self.driver.get(self.base_url + path)

    def reset(self) -> None:
        """Be as one who has never been here: nothing kept, light, wide."""
        self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": self.base_url, "storageTypes": "all"})
        self.set_color_scheme("light")
        self.resize(*WIDE)
        self.console_errors()

    def set_color_scheme(self, scheme: str) -> None:
        """Have a system of light or dark colours, and one where nothing moves."""
        preferences = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in preferences.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def resize(self, width: int, height: int) -> None:
        """Have a window of this size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    @contextmanager
    def without_scripts(self) -> Iterator[None]:
        """Run no script of the page meanwhile."""
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    def find(self, selector: str) -> WebElement:
        """The first element that a CSS selector names, once it is there."""
        element: WebElement = self.wait(lambda: next(iter(self.find_all(selector)), None), selector)
        return element

    def find_all(self, selector: str) -> list[WebElement]:
        """All that are there now."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def wait(self, condition: Any, description: str = "") -> Any:
        """What a condition gives, once it gives something."""

        def poll_condition(_: Any) -> Any:
            try:
                return condition()
            except WebDriverException as error:
                if _is_between_pages(error):
                    return None
                raise

        waiter = WebDriverWait(self.driver, DEADLINE_SECONDS, poll_frequency=0.02)
        return waiter.until(poll_condition, f"waited in vain for {description} at {self.driver.current_url}")

    def type(self, *keys: str) -> None:
        """Type on the keyboard, wherever the focus is."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def tab_to(self, selector: str, max_steps: int = 60) -> WebElement:
        """Go to an element as people do who have no mouse."""
        for _ in range(max_steps):
            focused = self.driver.switch_to.active_element
            if focused in self.find_all(selector):
                return focused
            focused.send_keys(Keys.TAB)
        raise AssertionError(f"{selector} is not reached by the keyboard")

    def press(self, label: str) -> None:
        """Press a button of the page's own, and wait for the page after it."""
        before = self.find("html")
        self.driver.find_element(By.XPATH, f"//main//button[normalize-space()='{label}']").click()
        self.wait(lambda: _is_stale(before), f"the page after {label}")

    @property
    def path(self) -> str:
        """Where it is."""
        return self.driver.current_url.removeprefix(self.base_url)

    @property
    def text(self) -> str:
        """What the page says."""
        texts: list[str] = self.wait(lambda: [element.text for element in self.find_all("main")], "main")
        return texts[0]

    def console_errors(self) -> list[str]:
        """What the console says that is wrong, since it was last asked."""
        entries: list[dict[str, Any]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        messages = [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]
        # That a page is one of an error is no mistake of the page.
        return [
            entry for entry in messages if not entry.startswith(f"{self.driver.current_url} - Failed to load resource")
        ]

    def accessibility_violations(self) -> list[str]:
        """What axe finds wrong with the page."""
        self.driver.execute_script(_AXE_SCRIPT)
        violations = self.driver.execute_async_script(_RUN_AXE_SCRIPT, _AXE_TAGS)
        return [
            f"{violation['id']}: {violation['help']} at {[node['target'] for node in violation['nodes']]} "
            f"{json.dumps([check['message'] for node in violation['nodes'] for check in node['any']][:3])}"
            for violation in violations
        ]

    def horizontal_overflow(self) -> int:
        """By how much the page is wider than the window."""
        width: int = self.driver.execute_script("return document.documentElement.scrollWidth - innerWidth")
        return width

    def layout_shift(self) -> float:
        """How much of the page has moved since it was first drawn, as browsers measure it, to a ten-thousandth.

        A bar of progress that grows counts for a fiftieth of that.
        """
        total_shift: float = self.driver.execute_async_script(_LAYOUT_SHIFT_SCRIPT)
        return round(total_shift, 4)

    def take_screenshot(self, name: str) -> None:
        """Write a picture of the whole page."""
        SCREENSHOTS.mkdir(exist_ok=True)
        height = self.driver.execute_script("return document.documentElement.scrollHeight")
        width = self.driver.execute_script("return innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 4000), "scale": 1}
        screenshot = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip}
        )
        (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(screenshot["data"]))


def _is_stale(element: WebElement) -> bool:
    try:
        return not element.is_enabled()
    except WebDriverException as error:
        if _is_between_pages(error):
            return True
        raise


def _is_between_pages(error: WebDriverException) -> bool:
    """Whether what was there when it was asked for has gone with its page when it was looked at.

    While a page goes, Chromium may say so in words of its own instead of the standard's.
    """
    return isinstance(error, StaleElementReferenceException) or "does not belong to the document" in (error.msg or "")


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A new browser that knows nothing."""
    with TemporaryDirectory(prefix="lexarium-browser-") as folder:
        options = ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*_FLAGS, f"--user-data-dir={folder}/profile"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = Chrome(options=options, service=ChromeService(DRIVER))
        try:
            yield Browser(driver)
        finally:
            driver.quit()
            shutil.rmtree(f"{folder}/profile", ignore_errors=True)
