"""The documentation site as a reader opens it from files: at 390 pixels and by keyboard."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from docs.site.__main__ import build
from tests.browser.conftest import NARROW, Browser

pytestmark = pytest.mark.skipif(find_spec("zensical") is None, reason="zensical: make install")
STOPS_MAX = 40  # of the key Tab, before what is looked for
FOCUS = "return document.activeElement"
LABEL = "document.activeElement.nextElementSibling"
FOUND = """return [...document.querySelectorAll("*")]
    .map(each => each.shadowRoot?.textContent ?? "").join("")"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "site"


def press(browser: Browser, key: str) -> None:
    ActionChains(browser.driver).send_keys(key).perform()


def test_a_page_that_is_not_there_has_its_style_and_its_links(browser: Browser, site: Path) -> None:
    browser.driver.get((site / "404.html").as_uri())
    style = "return getComputedStyle(document.querySelector('.md-header')).position"
    browser.until(lambda: browser.run(style) == "sticky")
    assert browser.one(".md-logo").get_attribute("href") == (site / "index.html").as_uri()


def test_the_switch_of_colours_shows_that_the_keyboard_is_on_it(
    browser: Browser, site: Path
) -> None:
    browser.driver.get((site / "index.html").as_uri())
    browser.run("localStorage.clear()")
    browser.driver.refresh()
    browser.one(".md-option + label:not([hidden])")
    for _ in range(STOPS_MAX):
        press(browser, Keys.TAB)
        if browser.run(f"{FOCUS}.name") == "__palette":
            break
    assert "solid" in browser.run(f"return getComputedStyle({LABEL}).outline")
    press(browser, Keys.ARROW_RIGHT)
    browser.until(lambda: browser.run("return document.body.dataset.mdColorScheme") == "slate")
    assert browser.run(f"return {LABEL}.hidden") is False
    assert "solid" in browser.run(f"return getComputedStyle({LABEL}).outline")


def test_no_page_is_wider_than_a_telephone(browser: Browser, site: Path) -> None:
    browser.size(NARROW)
    for page in ("index", "errors", "language", "settings", "why", "cookbook/index", "404"):
        browser.driver.get((site / f"{page}.html").as_uri())
        browser.one("h1")
        assert browser.run("return document.documentElement.scrollWidth") <= NARROW[0], page


def test_a_page_is_found_and_opened_by_the_keyboard_alone(browser: Browser, site: Path) -> None:
    browser.driver.get((site / "index.html").as_uri())
    browser.one("[data-md-component=search]")
    press(browser, "/")
    press(browser, "not firing")
    browser.until(lambda: "Why a rule is not firing" in browser.run(FOUND))
    press(browser, Keys.ENTER)
    browser.until(lambda: "why-a-rule-is-not-firing" in browser.driver.current_url)
