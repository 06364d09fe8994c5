"""A real browser without a window, and a hand on the keyboard of the review page."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

BROWSER, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
PATIENCE_S = 30


class Page:
    """What one person sees."""

    def __init__(self, browser: Chrome) -> None:
        self.browser = browser

    def see(self, script: str) -> Any:
        """Return the value of a script's expression in the page."""
        return self.browser.execute_script(f"return {script}")

    def text(self, selector: str) -> str:
        """Return the text of the first such element, empty if there is none."""
        return str(self.see(f"document.querySelector('{selector}')?.innerText ?? ''"))

    def log(self, kind: str) -> list[str]:
        """Return what the browser has noted of a kind (browser: its console, performance) since this was asked last."""
        return [entry["message"] for entry in self.browser.get_log(kind)]  # type: ignore[no-untyped-call]

    def text_of(self, selector: str) -> str:
        """Return the text of the first element of a selector once it is there; needs no script."""
        waiting = WebDriverWait(self.browser, PATIENCE_S, poll_frequency=0.02)
        waiting.until(lambda browser: browser.find_elements("css selector", selector), selector)
        return str(self.browser.find_element("css selector", selector).text)

    def wait(self, script: str) -> None:
        """Wait until a script's expression is true."""
        WebDriverWait(self.browser, PATIENCE_S, poll_frequency=0.02).until(lambda _: self.see(script), script)

    def keys(self, *pressed: str) -> None:
        """Press keys wherever the focus is."""
        ActionChains(self.browser).send_keys(*pressed).perform()

    def control(self, key: str) -> None:
        """Press a key while Control is down."""
        ActionChains(self.browser).key_down(Keys.CONTROL).send_keys(key).key_up(Keys.CONTROL).perform()

    def press(self, key: str) -> None:
        """Press a key that leads to another page, and wait for that page."""
        before = self.see("document.querySelector('form').dataset.seen = 'yes'")
        assert before
        self.keys(key)
        self.wait("document.querySelector('form')?.dataset.seen === undefined")

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        """Make the page as large as a screen."""
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


@contextmanager
def browsing(profile: Path) -> Iterator[Page]:
    """Open a browser with a profile of its own until the block ends."""
    options = ChromeOptions()
    quiet = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"]
    quiet += ["--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}"]
    for argument in quiet:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield Page(browser)
    finally:
        browser.quit()
