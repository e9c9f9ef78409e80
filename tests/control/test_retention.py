"""How long until a table's past is gone that somebody needs: on a store, and on logs of this
machine or elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.control.planted import BOOK, DAY, MINUTE, Planted
from tests.support import make
from tidegate import rules
from tidegate.connectors.http.metrics import Metrics
from tidegate.connectors.http.rulebooks import Source
from tidegate.engine.cli.screens import status_lines
from tidegate.engine.control.retention import short
from tidegate.engine.control.status import status_of, whole_status
from tidegate.engine.core.keeping import FILES, LOG, Keeping
from tidegate.engine.store.outbox import DONE

KEPT = Keeping("transactions", 30 * DAY, 7 * DAY), Keeping("accounts", 30 * DAY, 7 * DAY)
ASKS = """\
  asks:
    on: withdrawal
    if: {sql: SELECT firing_id FROM event JOIN accounts USING (id)}
    coupling: COUPLING
"""


def told(planted: Planted, *kept: Keeping) -> None:
    planted.store.of("bank", planted.epoch).keepings.tell(kept or KEPT)


def read(planted: Planted, table: str, *ages: int, read: int) -> None:
    """A table whose versions are so old, microseconds, of which the first so many are read."""
    instants = [planted.now - age for age in ages]
    planted.log(table, instants)
    planted.commit(
        planted.plan(ranges=(planted.span(table, dict(enumerate(instants[:read]))),)),
    )


def deadlines(planted: Planted) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = status_of(planted.store, planted.book)["retention"]["deadlines"]
    return found


def test_what_is_not_read_is_kept_so_long(planted: Planted) -> None:
    told(planted)
    read(planted, "transactions", 9 * DAY, 8 * DAY, 5 * DAY, 1 * DAY, read=2)
    [one] = deadlines(planted)
    assert (one["need"], one["table"], one["version"], one["by"]) == (
        "cursor", "transactions", 2, FILES,
    )  # fmt: skip
    assert (one["gone"], one["exact"]) == (False, True)
    assert one["left_seconds"] == pytest.approx(2 * 86_400, abs=60)
    assert "commits of table transactions that are not read may be gone in 47 h" in one["said"]


def test_nothing_is_needed_of_what_is_read(planted: Planted) -> None:
    told(planted)
    read(planted, "transactions", 90 * DAY, 80 * DAY, read=2)
    assert deadlines(planted) == []


def test_a_log_that_begins_behind_the_cursor_is_gone_already(planted: Planted) -> None:
    told(planted)
    read(planted, "transactions", *(n * MINUTE for n in range(9, 3, -1)), read=2)
    for version in range(4):
        (planted.lake / f"transactions/_delta_log/{version:020}.json").unlink()
    [one] = deadlines(planted)
    assert (one["version"], one["by"], one["gone"]) == (2, LOG, True)


def test_a_table_elsewhere_is_safe_from_the_last_look_on(planted: Planted) -> None:
    """Of a log on another machine this one sees nothing. What was committed came after the last
    look of the engine, which has stopped."""
    told(planted)
    span = planted.span("transactions", {0: planted.now - 9 * DAY})
    planted.commit(planted.plan(ranges=(span,)))
    assert deadlines(planted) == []  # it runs, and nothing is behind
    planted.say("idle", seen_until=planted.now - 5 * DAY, looked_at=planted.now - 5 * DAY)
    planted.commit(planted.plan(watermark=planted.now - 5 * DAY))
    planted.store.of("bank", planted.epoch).lease.release()
    [one] = deadlines(planted)
    assert (one["version"], one["exact"]) == (None, False)
    assert one["left_seconds"] == pytest.approx(2 * 86_400, abs=60)
    assert ", at the earliest" in one["said"]


@pytest.mark.parametrize(
    ("coupling", "ages", "expected"),
    [
        ("immediate", (40 * DAY, 6 * DAY, 2 * DAY), ["cursor", "condition"]),
        ("immediate", (40 * DAY, 6 * DAY), ["cursor"]),  # its last version is never gone
        ("deferred", (40 * DAY, 6 * DAY, 2 * DAY), ["cursor"]),  # it sees the last one
    ],
)
def test_an_immediate_condition_needs_a_table_as_of_what_waits(
    planted: Planted, coupling: str, ages: tuple[int, ...], expected: list[str]
) -> None:
    told(planted)
    asks = ASKS.replace("COUPLING", coupling)
    planted.book = rules.load(BOOK.format(lake=planted.lake) + asks)
    planted.log("accounts", [planted.now - age for age in ages])
    read(planted, "transactions", 9 * DAY, 5 * DAY, read=1)
    found = {one["need"]: one for one in deadlines(planted)}
    assert sorted(found) == sorted(expected)
    if "condition" in expected:  # version 1 of accounts, replaced 2 days ago
        one = found["condition"]
        assert (one["table"], one["of"], one["version"]) == ("accounts", "asks", 1)
        assert one["left_seconds"] == pytest.approx(5 * 86_400, abs=60)


def test_the_head_of_a_queue_needs_the_commits_since_it_was_stored(planted: Planted) -> None:
    told(planted)
    entries = planted.commit(
        fired=[make.firings("pay", 2)],
        entries=[make.entry("pay", target="accounts", target_version=1) for _ in "ab"],
    )
    planted.log("accounts", [planted.now - age * DAY for age in (50, 40)])
    assert deadlines(planted) == []  # nothing was committed since
    planted.log("accounts", [planted.now - age * DAY for age in (50, 40, 29, 1)])
    [one] = deadlines(planted)
    assert (one["need"], one["of"], one["version"], one["by"]) == ("queue", "pay", 2, LOG)
    assert 0 < one["left_seconds"] <= 2 * 86_400
    ledger = planted.store.of("bank", planted.epoch)
    ledger.outbox.settle([make.outcome(entry, DONE, 1) for entry in entries])
    assert deadlines(planted) == []


def test_what_is_nearly_gone_is_a_trouble(planted: Planted) -> None:
    told(planted)
    read(planted, "transactions", 9 * DAY, 6 * DAY - MINUTE, read=1)
    assert "retention" not in planted.troubles()
    read(planted, "transactions", 9 * DAY, 6 * DAY + MINUTE, read=1)
    [trouble] = planted.troubles()["retention"]
    assert (trouble["gravity"], trouble["subject"]) == ("warning", "transactions")
    assert trouble["ways"][1] == f"raise {FILES}"


def test_expired_retention_is_named_on_the_first_page(planted: Planted) -> None:
    told(planted)
    read(planted, "transactions", 9 * DAY, 8 * DAY, read=1)
    [trouble] = planted.troubles()["retention"]
    assert trouble["gravity"] == "stuck"
    assert "that are not read may be gone since 24 h" in trouble["said"]


def test_screen_and_monitor_say_what_may_be_gone(planted: Planted) -> None:
    told(planted)
    read(planted, "transactions", 9 * DAY, 5 * DAY, read=1)
    status = whole_status(planted.store, planted.book)
    lines = list(status_lines(status, 200))
    assert any("commits of table transactions that are not read may be gone" in x for x in lines)
    figures = Metrics(Source(planted.store)).text({"bank": {**status, "stage_seconds": {}}})
    left = 'tidegate_retention_left_seconds{need="cursor",rulebook="bank",table="transactions"}'
    assert left in figures.decode()
    kept = 'tidegate_table_kept_seconds{rulebook="bank",table="transactions"} 604800.0'
    assert kept in figures.decode()


def test_a_table_that_keeps_too_little_is_warned_of(tmp_path: Path) -> None:
    book = rules.load(BOOK.format(lake=tmp_path))
    kept = [Keeping("transactions", 30 * DAY, DAY - 1), Keeping("accounts", DAY - 1, DAY)]
    [problem] = short(book, kept)  # rows of accounts are no events
    assert problem.code == "short-retention"
    assert FILES in problem.message
    assert [*short(book, [Keeping("transactions", None, DAY)])] == []


def test_tables_nobody_has_looked_at_are_listed(planted: Planted) -> None:
    told(planted, Keeping("accounts", None, DAY))
    retention = status_of(planted.store, planted.book)["retention"]
    assert retention["unknown"] == ["transactions"]
    [row] = retention["tables"]
    assert (row["table"], row["stands_seconds"], row["by"]) == ("accounts", 86_400, FILES)
    told(planted, KEPT[0])
    assert [*planted.store.of("bank").keepings.known()] == ["transactions"]
