"""The buttons: they ask, then they ask the engine, and the request names who has pressed."""

from __future__ import annotations

from pathlib import Path

from tests.connectors.http.conftest import BOOK
from tests.connectors.http.console.conftest import Visitor, fill
from tests.support import make
from tests.support.parsed_page import Page
from tidegate.engine.store import SqlStore


def asked(store: SqlStore) -> list[tuple[str, str, str | None, str]]:
    pending = store.of("shop").controls.pending()
    return [(c.kind, c.subject, c.option, str(c.asked_by)) for c in pending]


BY = "console key ada"


def test_each_button_asks_and_then_leaves_a_request_with_a_name(
    ada: Visitor, store: SqlStore
) -> None:
    fill(store)
    for path, option, wanted in (
        ("entries/shop/1/skip", "", ("skip", "1", None, BY)),
        ("entries/shop/1/skip", "unsealed", ("skip", "1", "unsealed", BY)),
        ("entries/shop/1/redrive", "", ("redrive", "1", None, BY)),
        ("entries/shop/2/redrive", "may-double", ("redrive", "2", "may-double", BY)),
        ("rules/shop/noticed/disable", "purge", ("disable", "noticed", "purge", BY)),
        ("rules/shop/noticed/enable", "", ("enable", "noticed", None, BY)),
    ):
        before = asked(store)
        question = Page(ada.client.get(f"/console/{path}").text)
        assert question.text("h1").endswith("?")
        (sends,) = [f for f in question.attributes("form") if f["action"] != "/console/logout"]
        assert sends == {"method": "post", "action": f"/console/{path}", "class": "tall"}
        ticks = {str(a["name"]) for a in question.attributes("input") if a["type"] == "checkbox"}
        assert {option} - {""} <= ticks
        assert asked(store) == before
        status, leads = ada.press(path, **({option: "yes"} if option else {}))
        assert (status, leads.startswith("/console/audit?rulebook=shop&kind=")) == (303, True)
        assert asked(store) == [*before, wanted]
        audit = Page(ada.client.get(leads).text).text("main")
        assert BY in audit
        assert "waits for the engine" in audit


def test_a_refused_action_says_why(ada: Visitor, store: SqlStore) -> None:
    fill(store)
    for path, status, said in (
        ("entries/shop/99/skip", 404, "there is no entry 99"),
        ("entries/shop/x/skip", 404, "no entry's number"),
        ("entries/shup/1/skip", 404, "there is no rulebook `shup`"),
        ("rules/shop/noticed/enable", 400, "is not parked, and not disabled"),
        ("rules/shop/nobody/disable", 404, "has no rule `nobody`"),
        ("rulebooks/shop/reload", 404, "came from no file"),
    ):
        page = ada.client.get(f"/console/{path}")
        assert (page.status_code, said in Page(page.text).text("main")) == (status, True), path
        refused = ada.press(path)
        assert (refused[0], said in Page(refused[1]).text("main")) == (status, True), path
    assert asked(store) == []
    epoch = store.of("shop").lease.acquire("one", 60)
    entry = store.of("shop").outbox.entry(1)
    assert entry is not None
    store.of("shop", epoch).outbox.settle([make.outcome(entry, "skipped", 3)])
    assert "skipped already" in ada.press("entries/shop/1/redrive")[1]


def test_reload_shows_the_difference_and_takes_only_that(
    ada: Visitor, store: SqlStore, tmp_path: Path
) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(BOOK)
    store.of("shop").versions.register(BOOK, str(file))
    path = "rulebooks/shop/reload"
    assert "says what version" in ada.client.get(f"/console/{path}").text
    changed = BOOK.replace("atm_empty ; rung", "rung ; atm_empty").replace("quiet", "silent")
    file.write_text(changed)
    page = Page(ada.client.get(f"/console/{path}").text)
    said = page.text("main")
    for part in ("New: silent.", "Gone: quiet.", "Changed: noticed."):
        assert part in said
    assert [line[:1] for line in page.texts("span") if "rung ;" in line or "; rung" in line] == [
        "-",
        "+",
    ]
    (shown,) = [str(a["value"]) for a in page.attributes("input") if a["name"] == "shown"]
    file.write_text(changed + "# more\n")
    status, told = ada.press(path, shown=shown)
    assert (status, "has changed since" in told) == (409, True)
    assert asked(store) == []
    file.write_text(changed)
    assert ada.press(path, shown=shown)[0] == 303
    ((kind, version, _, by),) = asked(store)
    assert (kind, by) == ("reload", BY)
    proposed = store.of("shop").versions.version(int(version))
    assert proposed is not None
    assert proposed.text == changed
    file.write_text("rulebook: [")
    wrong = ada.client.get(f"/console/{path}")
    assert wrong.status_code == 400
