"""Ten planted troubles: each is named on the first page, without a click and without scrolling."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.browser.conftest import Browser
from tests.control.planted import Planted
from tests.control.plants import TEN
from tidegate.connectors.http import Inbox, parse_address
from tidegate.engine.app.serve import console_of
from tidegate.engine.core.policy import Policy
from tidegate.engine.store import open_store

SEEN = """return [...document.querySelectorAll('.troubles li')].filter(li => {
  const at = li.getBoundingClientRect();
  return at.top >= 0 && at.bottom <= window.innerHeight && li.checkVisibility();
}).map(li => li.innerText)"""


@pytest.mark.parametrize("name", TEN)
def test_a_planted_trouble_is_seen_with_its_way_past(
    browser: Browser, empty_store: Path, tmp_path: Path, name: str
) -> None:
    trouble = TEN[name]
    url = f"sqlite:///{shutil.copy(empty_store, tmp_path / 'bank.db')}"
    with (
        open_store(url, create=False) as store,
        Inbox(parse_address("127.0.0.1:0"), Policy(), console_of(None)) as inbox,
    ):
        planted = Planted(store, tmp_path / "lake", trouble.settings)
        trouble.plant(planted)
        browser.address = f"http://{inbox.begin(url).address}"
        browser.driver.get(f"{browser.address}/console")
        browser.until(lambda: browser.path == "overview")
        first, *_ = browser.run(SEEN)
        said, _, way = first.partition("Way past it:")
        assert trouble.said in said
        assert trouble.way in way
        assert browser.complaints() == []
