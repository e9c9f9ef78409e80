"""The console as people use it, in Chromium."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import NARROW, WIDE, Browser, Serve
from tests.connectors.http.conftest import BOOK
from tests.connectors.http.console.conftest import fill
from tests.connectors.http.console.test_pages import addresses
from tests.support import make
from tests.support.hostile_texts import HOSTILE
from tidegate.engine.store import SqlStore

BERLIN = f"timezone: Europe/Berlin\n{BOOK}"
ERRORS = ("CHECK constraint small (amount < 90) violated", "table log is not there")
FRESH_SECONDS_MAX = 2.0
NARROW_SHOWN = ("overview", "rules/shop/noticed")  # pictures of a telephone, dark


def asked(store: SqlStore) -> list[tuple[str, str]]:
    return [(c.kind, c.subject) for c in store.of("shop").controls.pending()]


def pages(firing: str) -> list[str]:
    of_console = [address.removeprefix("/console/") for address in addresses(firing)]
    return [*of_console, "entries/shop/1/redrive", "rules/shop/noticed/disable", "nowhere"]


def picture_of(path: str, firing: str) -> str:
    """The name of a page's picture: `console-firing`."""
    for of, name in (
        (firing, "firing"),
        ("why-not", "why-not"),
        ("noticed/disable", "disable"),
        ("noticed", "rule"),
        ("redrive", "redrive"),
    ):
        if of in path:
            return f"console-{name}"
    return f"console-{path}"


def test_each_page_is_whole_in_both_widths_and_colours(
    browser: Browser, serve: Serve, store: SqlStore
) -> None:
    """Axe finds nothing, the browser has refused nothing, and nothing is wider than the screen."""
    firing, _ = fill(store, ERRORS)
    serve(text=BERLIN)
    browser.log_in()
    for path in pages(firing):
        browser.open(path)
        browser.one("h1")
        complaints = [said for said in browser.complaints() if "404 (Not Found)" not in said]
        assert complaints == [], path
        for size, scheme in ((WIDE, "light"), (NARROW, "dark")):
            browser.size(size)
            browser.colours(scheme)
            assert browser.axe() == [], (path, scheme)
            assert browser.run("return document.documentElement.scrollWidth") <= size[0], path
            if size == WIDE:
                browser.picture(picture_of(path, firing))
            elif path in NARROW_SHOWN:
                browser.picture(f"{picture_of(path, firing)}-narrow")
        browser.size(WIDE)
        browser.colours("light")


def test_the_login_is_whole_and_lets_nobody_in_without_a_key(
    browser: Browser, serve: Serve, store: SqlStore
) -> None:
    fill(store)
    serve()
    browser.open("rules")
    assert browser.path == "login?next=%2Fconsole%2Frules"
    assert browser.axe() == []
    browser.one("[name=name]").send_keys("ada")
    browser.one("[name=secret]").send_keys("w" * 20)
    browser.one("main button").click()
    browser.until(lambda: "No key has this secret." in browser.said())
    assert browser.axe() == []
    browser.one("[name=name]").send_keys("ada")
    browser.one("[name=secret]").send_keys("a" * 20)
    browser.one("main button").click()
    browser.until(lambda: browser.path == "rules")
    assert browser.run("return document.cookie") == ""
    browser.one(".who button").click()
    browser.until(lambda: browser.path == "login")
    browser.open("rules")
    assert browser.path.startswith("login")


def test_each_button_asks_and_is_then_seen_in_the_audit(
    browser: Browser, serve: Serve, store: SqlStore, tmp_path: Path
) -> None:
    fill(store, ("one", "two", "three"))
    epoch = store.of("shop").lease.acquire("one", 60)
    active = dict.fromkeys(("noticed", "quiet"), make.BEGIN)
    plan = make.plan(2, rulebook="shop", activations=active, now=store.wall())
    make.commit(store, epoch, plan, digests=dict.fromkeys(active, "d"))
    plan = make.plan(3, rulebook="shop", disabled=frozenset({"quiet"}), now=store.wall())
    make.commit(store, epoch, plan, digests=dict.fromkeys(active, "d"))
    file = tmp_path / "shop.yaml"
    file.write_text(BOOK)
    serve()
    store.of("shop").versions.register(BOOK, str(file))
    browser.log_in()
    for page, button, wanted in (
        ("stuck", "#Skip-entry-1", ("skip", "1")),
        ("stuck", "#Redrive-entry-2", ("redrive", "2")),
        ("rules/shop/noticed", "#Disable-noticed", ("disable", "noticed")),
        ("stuck", "#Enable-quiet", ("enable", "quiet")),
        ("rules/shop/noticed", "#Reload-shop", ("reload", "3")),
    ):
        if wanted[0] == "reload":
            file.write_text(BOOK.replace("quiet", "silent"))
        before = asked(store)
        browser.open(page)
        browser.press(button)
        browser.until(lambda: browser.one("h1").text.endswith("?"))
        if wanted[0] == "reload":
            assert "New: silent." in browser.said()
        assert asked(store) == before
        browser.press("button.act")
        browser.until(lambda: browser.path.startswith("audit"))
        assert asked(store) == [*before, wanted]
        said = browser.said()
        assert "console key ada" in said
        assert "waits for the engine" in said
    assert browser.complaints() == []


def test_all_that_is_stuck_of_a_rule_is_redriven_by_one_button(
    browser: Browser, serve: Serve, store: SqlStore
) -> None:
    fill(store, ("one", "two", "three"))
    serve()
    browser.log_in()
    browser.open("stuck")
    assert browser.one("#Redrive-all-noticed").text == "Redrive all 3"
    browser.press("#Redrive-all-noticed")
    browser.until(lambda: browser.one("h1").text == "Redrive 3 entries of rule noticed?")
    assert browser.axe() == []
    assert asked(store) == []
    browser.press("button.act")
    browser.until(lambda: browser.path.startswith("audit"))
    assert asked(store) == [("redrive", number) for number in "123"]
    assert browser.texts("tbody th") == ["console key ada"] * 3
    assert browser.complaints() == []


def test_a_firing_is_on_the_page_within_two_seconds_of_its_bucket(
    browser: Browser, serve: Serve, store: SqlStore
) -> None:
    fill(store)
    serve(open_=True)
    browser.open("firings")
    browser.until(lambda: browser.one("#live-mark").get_attribute("data-state") == "on")
    rows = len(browser.all("tbody tr"))
    browser.run("window.stayed = true")  # it is not loaded anew
    epoch = store.of("shop").lease.acquire("one", 60)
    taken = []
    for bucket in (2, 3, 4):
        plan = make.plan(bucket, rulebook="shop", now=store.wall())
        make.commit(store, epoch, plan, fired=[make.firings("noticed", 3, bucket)])
        begun = time.monotonic()
        browser.until(lambda wanted=rows + 3: len(browser.all("tbody tr")) == wanted)
        taken.append(time.monotonic() - begun)
        rows += 3
    print("on the page after its bucket:", ", ".join(f"{one:.2f} s" for one in taken))
    assert sorted(taken)[1] < FRESH_SECONDS_MAX  # the machine may do something else meanwhile
    assert browser.run("return window.stayed") is True
    assert browser.complaints() == []


def test_a_lost_connection_is_marked_and_comes_back(
    browser: Browser, serve: Serve, store: SqlStore
) -> None:
    fill(store)
    inbox = serve(open_=True)
    browser.open("overview")
    mark = browser.one("#live-mark")
    browser.until(lambda: mark.get_attribute("data-state") == "on")
    inbox.close()
    browser.until(lambda: mark.get_attribute("data-state") == "lost")
    assert mark.text.endswith("connection lost")
    assert browser.axe() == []
    serve(open_=True, port=inbox.address.port)
    browser.until(lambda: mark.get_attribute("data-state") == "on")


def test_the_keyboard_alone_gets_past_what_is_stuck(
    browser: Browser, serve: Serve, store: SqlStore
) -> None:
    """From the login to the audit: tabs and Enter, with the focus to be seen at each step."""
    fill(store)
    serve()
    browser.open("stuck")

    def focused() -> str:
        found = browser.run(
            "const e = document.activeElement; return e.id || e.name || e.textContent"
        )
        return str(found).strip()

    def reach(wanted: str) -> None:
        for _ in range(60):
            if focused() == wanted:
                break
            press(Keys.TAB)
        assert focused() == wanted
        outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"

    def press(*keys: str) -> None:
        ActionChains(browser.driver).send_keys(*keys).perform()

    reach("name")
    press("ada", Keys.TAB, "a" * 20, Keys.ENTER)
    browser.until(lambda: browser.path == "stuck")
    press(Keys.TAB)
    assert focused() == "Skip to the page"
    press(Keys.ENTER)
    reach("Skip-entry-1")
    browser.until(lambda: browser.one("#live-mark").get_attribute("data-state") == "on")
    time.sleep(1.5)  # the page has been refreshed, and the focus is where it was
    assert focused() == "Skip-entry-1"
    press(Keys.ENTER)
    browser.until(lambda: browser.one("h1").text.startswith("Skip entry 1"))
    reach("Skip")
    press(Keys.ENTER)
    browser.until(lambda: browser.path.startswith("audit"))
    assert asked(store) == [("skip", "1")]


def test_times_are_the_viewers_with_the_rulebooks_beside(
    browser: Browser, serve: Serve, store: SqlStore
) -> None:
    fill(store)
    serve(open_=True, text=BERLIN)
    browser.open("firings")
    browser.until(lambda: not browser.all("time[data-local]"))
    said = browser.texts("td time")
    assert "2026-03-02 04:01:00\n2026-03-02 10:01:00 Europe/Berlin" in said


def test_tables_sort_and_filter_by_the_address(
    browser: Browser, serve: Serve, store: SqlStore
) -> None:
    fill(store)
    serve(open_=True)
    browser.open("rules")
    browser.one("[name=find]").send_keys("not", Keys.ENTER)
    browser.until(lambda: "find=not" in browser.path)
    assert len(browser.all("tbody tr")) == 1
    browser.open("rules?sort=rule")
    assert browser.texts("tbody th a") == ["noticed", "quiet"]
    browser.press("thead th a")
    browser.until(lambda: "sort=-rule" in browser.path)
    assert browser.texts("tbody th a") == ["quiet", "noticed"]
    browser.driver.back()
    browser.until(lambda: browser.path == "rules?sort=rule")


def test_thirty_hostile_values_run_nothing(browser: Browser, serve: Serve, store: SqlStore) -> None:
    firings = fill(store, HOSTILE)
    serve(open_=True)
    for path in (*pages(firings[0])[:-3], *(f"firings/{firing}" for firing in firings)):
        browser.open(path)
        assert browser.one("h1")
        assert browser.driver.title.endswith("· tidegate")
        assert not browser.all("main img, main iframe, main script, main style, main b")
        assert browser.complaints() == [], path
    with pytest.raises(Exception, match="no such alert"):
        browser.driver.switch_to.alert.accept()


def test_a_rule_that_was_edited_is_shown_with_its_versions(
    browser: Browser, serve: Serve, store: SqlStore
) -> None:
    fill(store)
    serve(open_=True)
    assert replace(make.plan(), bucket=2).bucket == 2
    browser.open("rules/shop/noticed")
    assert browser.all("main svg .box.rule")
    fill_of = "return getComputedStyle(document.querySelector('svg .box rect')).fill"
    light = browser.run(fill_of)
    browser.colours("dark")
    assert browser.run(fill_of) != light
