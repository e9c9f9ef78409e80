"""The buttons: they ask, then they ask the engine, and the request names who has pressed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.connectors.http.conftest import BOOK
from tests.connectors.http.console.conftest import Consoles, Visitor, fill, log_in
from tests.support import make
from tests.support.parsed_page import Page
from tidegate import rules
from tidegate.connectors.http.console import operations
from tidegate.engine.control.rulebooks import Rules, changed_text
from tidegate.engine.core.suspect import Strikes, Suspect
from tidegate.engine.quarantine.rulebook_texts import texts_of
from tidegate.engine.store import KeptRulebook, SqlStore
from tidegate.rules.model import Rulebook


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


def test_all_that_is_stuck_of_a_rule_is_redriven_at_once(ada: Visitor, store: SqlStore) -> None:
    """One button says how many; one request each names who has pressed. What dies later is not
    among them, nor is what was asked for already."""
    fill(store, ("one", "two", "three"))
    bucket = make.plan(2, rulebook="shop", now=store.wall())
    epoch = store.of("shop").lease.acquire("one", 60)
    (late,) = make.commit(store, epoch, bucket, entries=[make.entry("noticed")])
    store.of("shop").controls.ask("redrive", "2", asked_by="bob@m1")
    path = "rules/shop/noticed/redrive"
    stuck = Page(ada.client.get("/console/stuck").text)
    (button,) = [a for a in stuck.attributes("a") if a["href"] == f"/console/{path}"]
    assert button["aria-label"] == "Redrive all 3 noticed"
    question = Page(ada.client.get(f"/console/{path}").text)
    assert question.text("h1") == "Redrive 2 entries of rule noticed?"
    assert "Of them are 2 dead." in question.text("main")
    (last,) = [str(a["value"]) for a in question.attributes("input") if a["name"] == "last"]
    store.of("shop", epoch).outbox.settle([make.outcome(late, "dead", 3, "no")])
    before = asked(store)
    status, leads = ada.press(path, last=last)
    assert (status, leads) == (303, "/console/audit?rulebook=shop&kind=redrive&by=console+key+ada")
    assert asked(store) == [*before, ("redrive", "1", None, BY), ("redrive", "3", None, BY)]
    audit = Page(ada.client.get(leads).text)
    assert [*audit.texts("td")].count("waits for the engine") == 2
    assert [ada.press(path, last=text)[0] for text in (last, "", "x")] == [409] * 3
    assert ada.press(path, last=str(late.number), **{"may-double": "yes"})[0] == 303
    assert [one[1:3] for one in asked(store)[-4:]] == [(n, "may-double") for n in "1234"]


def test_a_rule_is_disabled_and_enabled_for_a_key(consoles: Consoles, store: SqlStore) -> None:
    """Each is a version of the rulebook that the engine is asked to take over."""
    of_key = BOOK.replace('{on: "atm_empty ; rung"}', "{on: atm_empty, per: atm_id}")
    store.of("shop").versions.register(of_key, None)
    ada, rule = log_in(consoles(guarded=True)), "/console/rules/shop/noticed"
    page = Page(ada.client.get(rule).text)
    assert f"{rule}/disable-for" in [form.get("action") for form in page.attributes("form")]
    path, key = "rules/shop/noticed/disable-for", {"key.atm_id": "7"}
    question = Page(ada.client.get(f"/console/{path}", params=key).text)
    assert question.text("h1") == "Disable rule noticed for atm_id=7?"
    assert "--key atm_id=7" in question.text("code")
    fields = {str(a["name"]): a["value"] for a in question.attributes("input")}
    assert fields["key.atm_id"] == "7"
    assert asked(store) == []
    status, leads = ada.press(path, **key)
    assert (status, leads) == (303, "/console/audit?rulebook=shop&kind=reload&subject=3")
    assert asked(store) == [("reload", "3", "disable noticed for atm_id=7", BY)]
    audit = Page(ada.client.get(leads).text)
    assert audit.texts("td")[1:3] == ["disable noticed for atm_id=7", "version 3 shop"]
    newest = store.of("shop").versions.newest().known()
    assert newest.rules["noticed"].disabled_for == ({"atm_id": "7"},)
    for other, said in (
        ({"key.atm_id": "7"}, "is disabled for this key"),
        ({"key.atm_id": "x"}, "the values of atm_id are bigint"),
        ({}, "the key columns of rule `noticed` are atm_id"),
        ({"key.atm_id": "7" * 301}, "`key.atm_id` is given is longer than 300 characters"),
        ({"key.atm_id": "7\0"}, "`key.atm_id` is given holds a NUL"),
    ):
        found = ada.client.get(f"/console/{path}", params=other)
        assert (found.status_code, said in Page(found.text).text("main")) == (400, True), other
        refused = ada.press(path, **other)
        assert (refused[0], said in Page(refused[1]).text("main")) == (400, True), other
    assert len(asked(store)) == 1
    store.of("shop").versions.register(of_key, None, newest.added)  # the engine has taken it
    ada = log_in(consoles(guarded=True))
    page = Page(ada.client.get(rule).text)
    again = "enable-for?key.atm_id=7"
    assert f"{rule}/{again}" in [one.get("href") for one in page.attributes("a")]
    assert ada.press("rules/shop/noticed/enable-for", **key)[0] == 303
    assert store.of("shop").versions.newest().known().rules["noticed"].disabled_for == ()
    found = ada.client.get("/console/audit.json?kind=enable&subject=noticed").json()["rows"]
    assert [(row["said"], row["asked_by"]) for row in found] == [
        ("enable noticed for atm_id=7", BY)
    ]


def test_a_text_in_quarantine_is_released_by_its_rule(consoles: Consoles, store: SqlStore) -> None:
    do = '{on: "atm_empty ; rung", do: [{sql: INSERT INTO orders SELECT 1}]}'
    text = BOOK.replace('{on: "atm_empty ; rung"}', do)
    store.of("shop").versions.register(text, None)
    [key] = [key for key in texts_of(rules.load(text)) if key[0] == "action"]
    struck = Strikes(Suspect(*key, "1", told="action 1 of rule noticed"), deaths=2, reason="why")
    epoch = store.of("shop").lease.acquire("one", 60)
    ada, path = log_in(consoles(guarded=True)), "rules/shop/noticed/enable"
    assert ada.client.get(f"/console/{path}").status_code == 400
    store.of("shop", epoch).suspects.strike([struck], [])
    stuck = Page(ada.client.get("/console/stuck").text)
    assert f"/console/{path}" in [one["href"] for one in stuck.attributes("a")]
    assert "action 1 of rule noticed shop" in stuck.texts("th")
    assert ada.press(path)[0] == 303
    assert asked(store) == [("enable", "noticed", None, BY)]


def test_nothing_stuck_of_a_rule_is_no_redrive(ada: Visitor, store: SqlStore) -> None:
    fill(store)
    found = ada.client.get("/console/rules/shop/quiet/redrive")
    assert found.status_code == 400
    assert "no entry of rule quiet is dead or held" in Page(found.text).text("main")
    assert ada.press("rules/shop/quiet/redrive", last="9")[0] == 409


def test_a_reload_compares_what_is_included_and_shows_no_variable(
    ada: Visitor, store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_VAR_LAKE", "/of-this-machine")
    file, more = tmp_path / "shop.yaml", tmp_path / "more.yaml"
    included = f"{BOOK}include: [more.yaml]\n"
    file.write_text(included.replace("path: /orders", 'path: "${TIDEGATE_VAR_LAKE}/orders"'))
    more.write_text("rules: {more: {on: rung}}")
    book = rules.load(file)
    store.of("shop").versions.register(book.text, book.file, files=book.files)
    file.write_text(included)
    more.write_text("rules: {more: {on: moved}}")
    path = "rulebooks/shop/reload"
    page = Page(ada.client.get(f"/console/{path}").text)
    assert {"-rules: {more: {on: rung}}", "+rules: {more: {on: moved}}"} <= {*page.texts("span")}
    assert "of-this-machine" not in "".join(page.every_text)
    (shown,) = [str(a["value"]) for a in page.attributes("input") if a["name"] == "shown"]
    more.write_text("rules: {more: {on: ordered}}")
    assert ada.press(path, shown=shown)[0] == 409


def test_the_file_that_was_compared_is_taken_over(
    ada: Visitor, store: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changes between the comparison and the request; and another version comes in between."""
    file = tmp_path / "shop.yaml"
    file.write_text(BOOK + "# changed\n")
    store.of("shop").versions.register(BOOK, str(file))
    path = "rulebooks/shop/reload"

    def shown() -> str:
        page = Page(ada.client.get(f"/console/{path}").text)
        return next(str(a["value"]) for a in page.attributes("input") if a["name"] == "shown")

    def meanwhile(text: str) -> Callable[..., tuple[KeptRulebook, KeptRulebook]]:
        def read(of: SqlStore, book: Rulebook) -> tuple[KeptRulebook, KeptRulebook]:
            found = changed_text(of, book)
            file.write_text(text)
            if text != BOOK:
                Rules(of, book.name).put("late", "{on: rung}")
            return found

        return read

    one = shown()
    monkeypatch.setattr(operations, "changed_text", meanwhile(BOOK))
    assert ada.press(path, shown=one)[0] == 303
    assert store.of("shop").versions.newest().text == BOOK + "# changed\n"
    monkeypatch.undo()
    other = shown()
    monkeypatch.setattr(operations, "changed_text", meanwhile("rulebook: shop"))
    assert ada.press(path, shown=other)[0] == 409
    assert store.of("shop").versions.newest().text == BOOK + "# changed\n"


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
    status, told = ada.press(path, shown=shown)  # the difference is from another version now
    assert (status, "has changed since" in told, len(asked(store))) == (409, True, 1)
    assert (kind, by) == ("reload", BY)
    proposed = store.of("shop").versions.version(int(version))
    assert proposed is not None
    assert proposed.text == changed
    file.write_text("rulebook: [")
    wrong = ada.client.get(f"/console/{path}")
    assert wrong.status_code == 400
