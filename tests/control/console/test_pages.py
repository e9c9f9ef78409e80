"""The values of the console's pages: what is listed, in which order, page by page."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.control.planted import BOOK, DAY, HOUR, MINUTE, Planted
from tests.support import make
from tests.support.make import SECOND
from tidegate.engine.control.console import (
    audit,
    firings,
    listing,
    overview,
    rule,
    rules,
    sources,
    stuck,
)
from tidegate.engine.control.console.rule import rule_text
from tidegate.engine.core.keeping import FILES, Keeping
from tidegate.engine.core.state import Parked
from tidegate.engine.core.values import Load, Rejected
from tidegate.engine.store import KeptRulebook
from tidegate.rules.errors import EngineError, InputError

TWO = {"transactions": 2, "accounts": 1}  # tables, with so many versions


def of(planted: Planted, module: Any, **filters: str) -> Any:
    """A page's value, now."""
    return module.page(planted.store, {"bank": planted.book}, planted.store.wall(), **filters)


def fired(planted: Planted, *names: str, count: int = 2) -> Any:
    """A bucket in which these rules fired; its entries."""
    bucket = planted.buckets + 1
    some = [make.firings(name, count, bucket=bucket) for name in names]
    return planted.commit(fired=some, entries=[make.entry(name) for name in names])


def test_rules_are_listed_with_what_became_of_their_detections(planted: Planted) -> None:
    fired(planted, "pay", "block")
    fired(planted, "pay", count=3)
    planted.commit(parked=[Parked("block", "too many", "fewer", planted.now)])
    found = of(planted, rules, sort="-fired")
    assert [(row["rule"], row["state"], row["fired"], row["pending"]) for row in found["rows"]] == [
        ("pay", "active", 5, 2),
        ("block", "parked", 2, 1),
        ("report", "active", 0, 0),
    ]
    assert [row["hours"] for row in found["rows"]] == [
        [0] * 23 + [5], [0] * 23 + [2], [0] * 24,
    ]  # fmt: skip
    assert found["rows"][0]["sentence"].startswith("Fires ")
    assert found["zones"] == {"bank": "UTC"}


def test_rules_are_filtered_and_an_unknown_column_is_refused(planted: Planted) -> None:
    planted.commit(parked=[Parked("block", "too many", "fewer", planted.now)])

    def names(**filters: str) -> list[str]:
        return [row["rule"] for row in of(planted, rules, **filters)["rows"]]

    assert names() == ["block", "pay", "report"]
    assert names(state="parked") == ["block"]
    assert names(find="p") == ["pay", "report"]
    assert names(sort="-rule") == ["report", "pay", "block"]
    with pytest.raises(InputError, match="nothing is sorted by `fird`"):
        names(sort="fird")


@pytest.mark.parametrize(
    ("page", "first", "at"), [(None, 0, 1), ("2", 100, 2), ("3", 200, 3), ("9", 200, 3)]
)
def test_a_page_has_a_hundred_rows(page: str | None, first: int, at: int) -> None:
    rows = [{"n": n} for n in range(250)]
    place = listing.place(len(rows), page)
    assert listing.paged(rows, place) == rows[first : first + listing.PAGE_ROWS]
    assert place == {"page": at, "pages": 3, "found": 250}


@pytest.mark.parametrize("page", ["0", "-1", "x", "", "²"])
def test_what_is_no_page_is_refused(page: str) -> None:
    with pytest.raises(InputError, match="is no page"):
        listing.number(page)


def test_what_is_not_known_stands_last_in_both_directions() -> None:
    rows = [{"a": None}, {"a": 2}, {"a": 1}]
    assert [row["a"] for row in listing.in_order(rows, "a", ["a"])] == [1, 2, None]
    assert [row["a"] for row in listing.in_order(rows, "-a", ["a"])] == [2, 1, None]


def test_a_rule_is_shown_with_its_versions_and_sizes(planted: Planted) -> None:
    planted.commit(loads={"block": Load(12, 3)})
    text = planted.book.text.replace("on: withdrawal ; atm_empty", "on: atm_empty ; withdrawal")
    assert planted.store.of("bank").versions.register(text, None) == 2
    other = text.replace("report: {on: closing}", "report: {on: closing, priority: 2}")
    assert planted.store.of("bank").versions.register(other, None) == 3
    found = of(planted, rule, rulebook="bank", rule="block")
    assert [(one["version"], one["runs"]) for one in found["versions"]] == [(2, False), (1, False)]
    newest = found["versions"][0]["difference"]
    assert [line[:36] for line in newest if line[0] in "+-"] == [
        "-  block: {on: withdrawal ; atm_empt", "+  block: {on: atm_empty ; withdrawa",
    ]  # fmt: skip
    assert [one["instances"] for one in found["sizes"]] == [12]
    assert (found["reason"], found["next_timers"], found["disabled_for"]) == (None, [], [])
    assert found["totals"] == {
        "fired": 0, "condition_failed": 0, "damped": 0, "dead": 0, "damped_by": {},
    }  # fmt: skip
    with pytest.raises(InputError, match="no rule `blok`"):
        of(planted, rule, rulebook="bank", rule="blok")


@pytest.mark.parametrize(
    ("text", "added", "expected"),
    [
        (
            "rules:\n  a: {on: x}\n  b:\n    on: y\n\n    if: z\n  c: {on: x}\n", {},
            "  b:\n    on: y\n\n    if: z",
        ),
        ("rules:\n  b:\n    on: y\nevents:\n  b: {signal: {}}\n", {}, "  b:\n    on: y"),
        ("events:\n  b: {signal: {}}\nrules:\n  'b': {on: y}", {}, "  'b': {on: y}"),
        ("rules: {b: {on: y}, c: {on: x}}\n", {}, "rules: {b: {on: y}, c: {on: x}}\n"),
        ("rules:\n  a: {on: x}\n", {}, ""),
        ("rules:\n  a: {on: x}\n", {"b": "{on: y}"}, "b: {on: y}"),
    ],
)  # fmt: skip
def test_a_rules_text_is_its_lines(text: str, added: dict[str, str], expected: str) -> None:
    assert rule_text(KeptRulebook(text, None, added), "b") == expected


def test_firings_are_those_of_the_command_newest_first(planted: Planted) -> None:
    for n in range(8):
        fired(planted, *(["pay", "block"] if n % 2 else ["pay"]), count=7)
    listed = [*planted.store.of("bank").firings.listed()]
    first = of(planted, firings)
    assert [row["firing_id"] for row in first["rows"]] == [
        one["firing_id"] for one in listed[::-1][:50]
    ]
    older = of(planted, firings, before=first["before"])
    assert [row["firing_id"] for row in older["rows"]] == [
        one["firing_id"] for one in listed[::-1][50:]
    ]
    assert (older["before"], older["looked_until"]) == (None, None)
    assert {row["rulebook"] for row in first["rows"]} == {"bank"}


@pytest.mark.parametrize("filters", [{}, {"key": "account_id=9"}, {"rule": "block"}])
def test_where_time_is_short_the_next_page_looks_on(
    planted: Planted, monkeypatch: pytest.MonkeyPatch, filters: dict[str, str]
) -> None:
    """Each page looks into one bucket; together they show what one page would."""
    for _ in range(6):
        fired(planted, "block", "pay", count=3)
    expected = [row["firing_id"] for row in of(planted, firings, **filters)["rows"]]
    assert len(expected) in (12, 18, 36)
    monkeypatch.setattr(firings, "LOOK_SECONDS", 0.0)
    found: list[str] = []
    before: dict[str, str] = {}
    for _ in range(9):
        one = of(planted, firings, **filters, **before)
        found += [row["firing_id"] for row in one["rows"]]
        if one["before"] is None:
            break
        assert one["looked_until"] is not None
        before = {"before": one["before"]}
    assert found == expected


def test_a_filter_of_firings_that_is_wrong_is_refused(planted: Planted) -> None:
    with pytest.raises(InputError, match="is no COLUMN=VALUE"):
        of(planted, firings, key="account_id")
    with pytest.raises(InputError, match="no such rule has the key column"):
        of(planted, firings, key="nope=7")
    with pytest.raises(InputError, match="has no rule"):
        of(planted, firings, rule="nope")
    assert firings.pairs("a=1, b = 2,,c==") == {"a": "1", "b": "2", "c": "="}


def test_what_is_stuck_is_listed_with_the_ways_past(planted: Planted) -> None:
    entries = fired(planted, "pay", "block")
    ledger = planted.store.of("bank", planted.epoch)
    ledger.outbox.settle([make.outcome(entries[0], "held", 3, "DENIED")])
    ledger.outbox.settle([make.outcome(entries[1], "dead", 3, "WRONG", fate="unknown")])
    rows = [Rejected("withdrawal", "transactions", f"reason {n}", {"id": n}) for n in range(60)]
    planted.commit(
        rejected=rows,
        parked=[Parked("block", "too many", "fewer", planted.now)],
    )
    found = of(planted, stuck)
    assert [(one["state"], one["may"], one["error"]) for one in found["entries"]] == [
        ("held", ["redrive", "skip"], "DENIED"), ("dead", ["redrive", "skip"], "WRONG"),
    ]  # fmt: skip
    assert found["entries"][1]["commands"][1].endswith("--unsealed")
    assert [one["rule"] for one in found["parked"]] == ["block"]
    assert [one["reason"] for one in found["rejected"][:2]] == ["reason 59", "reason 58"]
    assert found["rules"] == []  # one entry each
    assert found["more"] == {"rules": 0, "entries": 0, "rejected": 10}


def test_sources_say_how_far_they_are_and_how_long_they_are_kept(planted: Planted) -> None:
    planted.store.of("bank", planted.epoch).keepings.tell([Keeping("transactions", None, 7 * DAY)])
    begin = planted.now - 2 * HOUR
    instants = {n: begin + n * MINUTE for n in range(5)}
    planted.log("transactions", [*instants.values(), planted.now - HOUR])
    planted.commit(planted.plan(ranges=(planted.span("transactions", instants),)))
    planted.store.of("bank").signals.raise_signal(make.signal("k1", planted.now - SECOND))
    found = of(planted, sources)
    rows = {row["table"]: row for row in found["tables"]}
    table = rows["transactions"]
    assert (table["version"], table["commits_behind"], table["events"]) == (4, 1, ["withdrawal"])
    assert (table["kept_seconds"], table["kept_by"]) == (7 * 86_400, FILES)
    assert table["left_seconds"] == pytest.approx(7 * 86_400 - 3_600, abs=60)
    assert table["quiet_seconds"] is None  # it is behind, so it is not quiet
    assert (rows["accounts"]["version"], rows["accounts"]["events"]) == (None, [])
    [signal] = found["signals"]
    assert (signal["event"], signal["waiting"], signal["declared"]) == ("atm_empty", 1, True)
    assert re.match(r"20\d\d-", signal["last_received"])


def test_who_asked_is_listed_newest_first(planted: Planted) -> None:
    ledger = planted.store.of("bank", planted.epoch)
    for n in range(120):
        ledger.controls.ask("disable", f"r{n}", asked_by=f"ada{n % 2}@m1")
    first = of(planted, audit)
    assert [row["subject"] for row in first["rows"]] == [f"r{n}" for n in range(119, 19, -1)]
    assert (first["page"], first["pages"], first["found"]) == (1, 2, 120)
    for page in ("2", "9"):  # the last one instead of any behind it
        assert [row["subject"] for row in of(planted, audit, page=page)["rows"]][-1] == "r0"
    mine = of(planted, audit, by="ada1@m1", subject="r7")
    assert [(row["kind"], row["answer"]) for row in mine["rows"]] == [("disable", None)]
    [asked] = (one for one in ledger.controls.pending() if one.subject == "r7")
    ledger.controls.answer(asked.id, "it is off")
    assert of(planted, audit, subject="r7")["rows"][0]["answer"] == "it is off"
    assert of(planted, audit, kind="skip")["rows"] == []


def test_pages_are_of_several_rulebooks(planted: Planted) -> None:
    from tidegate import rules as texts

    other = texts.load(BOOK.format(lake=planted.lake).replace("rulebook: bank", "rulebook: shop"))
    planted.store.of("shop").versions.register(other.text, None)
    fired(planted, "pay")
    books = {"bank": planted.book, "shop": other}
    now = planted.store.wall()
    assert len(rules.page(planted.store, books, now)["rows"]) == 6
    assert len(rules.page(planted.store, books, now, rulebook="shop")["rows"]) == 3
    listed = firings.page(planted.store, books, now)
    assert (len(listed["rows"]), listed["before"]) == (2, None)
    with pytest.raises(InputError, match="several are listed"):
        firings.page(planted.store, books, now, before=listed["rows"][0]["firing_id"])


def test_tables_are_sorted(planted: Planted) -> None:
    spans = tuple(planted.span(t, dict.fromkeys(range(n), planted.now)) for t, n in TWO.items())
    planted.commit(planted.plan(ranges=spans))

    def tables(sort: str) -> list[str]:
        return [row["table"] for row in of(planted, sources, sort=sort)["tables"]]

    assert (tables("version"), tables("-version")) == (["accounts", "transactions"], [*TWO])
    with pytest.raises(InputError, match="nothing is sorted by `path`"):
        tables("path")


@pytest.mark.parametrize("module", [overview, rules, firings, stuck, sources, audit])
def test_each_page_refuses_a_rulebook_that_is_not_there(planted: Planted, module: Any) -> None:
    with pytest.raises(EngineError, match="no rulebook `bnk`"):
        of(planted, module, rulebook="bnk")
