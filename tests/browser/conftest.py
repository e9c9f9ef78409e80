"""A console on a socket, and Chromium before it. Debian's packages, nothing that is downloaded."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.browser.programs import BY_HAND, found, missing
from tests.connectors.http import conftest as http
from tests.connectors.http.console.conftest import ADA, POLICY, SECRETS
from tidegate import rules
from tidegate.connectors.http import Inbox, parse_address
from tidegate.engine.app.serve import console_of
from tidegate.engine.core.policy import Policy
from tidegate.engine.store import SqlStore

AXE = (Path(__file__).parent / "axe.min.js").read_text(encoding="utf-8")
ZONE = "America/New_York"  # of the viewer
EVIL = "evil.example"
WIDE, NARROW = (1280, 900), (390, 844)
SECONDS_MAX = 20
store, url = http.store, http.url  # fixtures
QUALITY = 55  # of a picture, of 100
Serve = Callable[..., Inbox]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith("tests/browser/"):
            item.add_marker("browser")


class Browser:
    """Chromium, at the console of an inbox."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        self.address = ""

    def open(self, path: str) -> None:
        self.driver.get(f"{self.address}/console/{path}")

    def one(self, css: str) -> WebElement:
        """The first element that a selector finds, as soon as it is there."""
        wait = WebDriverWait(self.driver, SECONDS_MAX)
        return wait.until(lambda driver: driver.find_element(By.CSS_SELECTOR, css), css)

    def all(self, css: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def texts(self, css: str) -> list[str]:
        """The texts of what a selector finds, at one instant."""
        script = "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText.trim())"
        found: list[str] = self.run(script, css)
        return found

    def press(self, css: str) -> None:
        """Press what a selector finds, which may be changed for another one meanwhile."""
        self.until(lambda: self.one(css).click() or True)

    def until(self, true: Callable[[], Any], seconds_max: float = SECONDS_MAX) -> None:
        """Until something is true. The page may change while it is looked at."""
        wait = WebDriverWait(self.driver, seconds_max, ignored_exceptions=(Exception,))
        wait.until(lambda _: true())

    def run(self, script: str, *given: Any) -> Any:
        return self.driver.execute_script(script, *given)

    def log_in(self, name: str = "ada", secret: str = ADA) -> None:
        self.open("login")
        self.one("[name=name]").send_keys(name)
        self.one("[name=secret]").send_keys(secret)
        self.one("main button").click()
        self.until(lambda: not self.path.startswith("login"))

    @property
    def path(self) -> str:
        return self.driver.current_url.removeprefix(f"{self.address}/console/")

    def said(self) -> str:
        """The text of the page."""
        return self.one("main").text

    def complaints(self) -> list[str]:
        """What the browser has logged since: errors, and what the Content-Security-Policy has
        refused."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def size(self, size: tuple[int, int]) -> None:
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def colours(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def axe(self) -> list[str]:
        """What axe finds wrong on the page. It comes beside the page's policy, as tests may."""
        self.run(AXE)
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run().then(found => done(found.violations))"
        )
        return [
            f"{one['id']}: {node['html'][:150]} ({node['failureSummary'][:200]})"
            for one in found
            for node in one["nodes"]
        ]

    def picture(self, name: str) -> None:
        """Keep a picture of the page, where a folder for them is named."""
        if folder := os.environ.get("PICTURES"):
            shown = {"format": "webp", "quality": QUALITY}
            found = self.driver.execute_cdp_cmd("Page.captureScreenshot", shown)
            Path(folder).mkdir(parents=True, exist_ok=True)
            (Path(folder) / f"{name}.webp").write_bytes(base64.b64decode(found["data"]))


@pytest.fixture(scope="session")
def driver() -> Iterator[webdriver.Chrome]:
    if missing():
        pytest.fail(f"the tests in a browser need {' and '.join(missing())}: {BY_HAND}")
    programs = found()
    options = webdriver.ChromeOptions()
    options.binary_location = str(programs["chromium"])
    for argument in (
        "headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu",
        f"host-resolver-rules=MAP {EVIL} 127.0.0.1",
    ):  # fmt: skip
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = Service(str(programs["chromedriver"]), env={**os.environ, "TZ": ZONE})
    made = webdriver.Chrome(options, service)
    made.set_page_load_timeout(SECONDS_MAX)
    yield made
    made.quit()


@pytest.fixture
def browser(driver: webdriver.Chrome) -> Iterator[Browser]:
    """With no cookie of another test."""
    made = Browser(driver)
    made.size(WIDE)
    made.colours("light")
    yield made
    driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    driver.get("about:blank")
    made.complaints()


@pytest.fixture
def serve(
    store: SqlStore,
    url: str,
    browser: Browser,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Serve]:
    """Begins the inbox, with keys unless it is `open`, before which the browser stands."""
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    with ExitStack() as stack:

        def begun(
            *,
            open_: bool = False,
            port: int = 0,
            reports: Path | None = None,
            text: str = http.BOOK,
        ) -> Inbox:
            store.of("shop").versions.register(text, None)
            shown = console_of(reports)
            policy = Policy() if open_ else POLICY
            inbox = Inbox(parse_address(f"127.0.0.1:{port}"), policy, shown)
            stack.callback(inbox.close)
            browser.address = f"http://{inbox.address}"
            return inbox.begin(url, None, rules.load(text).settings)

        yield begun
