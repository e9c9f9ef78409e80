"""When rows are as they are expected, and what is said where they are not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.replay.cases.books import case, read
from tidegate.engine.replay.cases.differences import Comparer, Comparison
from tidegate.engine.replay.cases.equality import as_written, same
from tidegate.engine.replay.cases.world import Observation, Shown

ZONE = "Europe/Berlin"
NINE = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
STEPS = "[{at: 2026-03-02T07:00:00}]"


def fired(account: int, second: int = 0, **other: Any) -> Shown:
    """A firing of a rule per account."""
    at = NINE.replace(second=second)
    row = {"firing_id": f"{account:032}", "key": {"account_id": account}, "start": NINE, "at": at}
    row |= {"fired_at": at, "constituents": [], "condition": "none", "damped": None, "depth": 0}
    return row | other


def compared(folder: Path, expect: str, seen: Observation, **given: Any) -> Comparison:
    (one,) = read(folder, case(STEPS, expect)).cases
    assert one.expect is not None
    return Comparer(ZONE, **given).compare(one.expect, seen)


def differing(folder: Path, expect: str, seen: Observation) -> list[tuple[str, Any, Any]]:
    found = compared(folder, expect, seen)
    return [(d.path, d.expected, d.got) for m in found.mismatches for d in m.differences]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (7, 7.0),
        (0.1, 0.1 + 1e-10),
        (1e12, 1e12 + 100),
        (float("nan"), float("nan")),
        ("NaN", float("nan")),
        ("Infinity", float("inf")),
        (1.5, Decimal("1.50")),
        (2, Decimal("2.00")),
        ("12345678901234567890.1", Decimal("12345678901234567890.10")),
        ("2026-03-02", date(2026, 3, 2)),
        ("2026-03-02T09:00:00", NINE),
        ("2026-03-02T08:00:00Z", NINE),
        ("2026-03-02T09:00:00", datetime(2026, 3, 2, 9)),
        ("aGk=", b"hi"),
        ([1, 2], [1, 2]),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1, "b": None}, [("b", None), ("a", 1)]),
        ({"1": 2}, [(1, 2)]),
        ([["a", 1]], [("a", 1)]),
        ({}, []),
    ],
)
def test_values_that_are_the_same(written: Any, found: Any) -> None:
    assert same(written, found, ZONE)
    shown = as_written(found, ZONE)
    assert isinstance(shown, Decimal) or same(shown, found, ZONE)


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (None, 0),
        (0, None),
        (1, True),
        (True, 1),
        ("7", 7.5),
        (7, "7"),
        (7, 8),
        (0.1, 0.1 + 1e-8),
        (1.5, Decimal("1.51")),
        ("x", Decimal(1)),
        ("x", 1.0),
        (0.0, float("nan")),
        ("2026-03-03", date(2026, 3, 2)),
        ("2026-03-02T08:00:00", NINE),
        ("2026-03-02T09:00:00Z", datetime(2026, 3, 2, 9)),
        ("soon", NINE),
        (5, NINE),
        ("aGk", b"hi"),
        ([2, 1], [1, 2]),
        ([1], [1, 2]),
        ({"c": 1}, {"a": 1}),
        (1, {"a": 1}),
        ({"a": 1}, [("a", 1), ("b", 2)]),
        ({"a": 2}, [("a", 1)]),
        (["a"], [("a", 1)]),
        ([["a", 1], ["a", 1]], [("a", 1), ("b", 2)]),
        ({"a": 1}, []),
    ],
)
def test_values_that_are_not(written: Any, found: Any) -> None:
    assert not same(written, found, ZONE)


def test_a_repeated_hour_is_written_with_its_offset() -> None:
    first, second = (
        datetime(2026, 10, 25, 0, 30, tzinfo=UTC),
        datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
    )
    shown = [as_written(first, ZONE), as_written(second, ZONE)]
    assert shown == ["2026-10-25T02:30:00", "2026-10-25T02:30:00+01:00"]
    assert [same(shown[0], first, ZONE), same(shown[1], second, ZONE)] == [True, True]


@pytest.mark.parametrize(
    ("expect", "seen"),
    [
        ("[{key: {account_id: 7}}, {key: {account_id: 8}}]", [fired(8), fired(7)]),
        ("[{}, {key: {account_id: 7}}]", [fired(7), fired(8)]),
        ("[{key: {account_id: 7}, at: 2026-03-02T09:00:05}]", [fired(7, 5)]),
        ("[]", []),
        ("[]", [fired(7, condition="failed"), fired(7, damped="cooldown")]),
        ("[{condition: failed}]", [fired(7, condition="failed")]),
        ("[{damped: cooldown}, {}]", [fired(7), fired(7, damped="cooldown")]),
        ("[{fired_at: 2026-03-02T09:00:00}]", [fired(7, fired_at=NINE.replace(microsecond=998))]),
        ("[{constituents: 2}]", [fired(7, constituents=[{"event": "a"}, {"event": "b"}])]),
        (
            "[{constituents: [{event: b, x: 1}, {event: a}]}]",
            [fired(7, constituents=[{"event": "a", "x": 2}, {"event": "b", "x": 1}])],
        ),
    ],
)
def test_firings_as_expected(tmp_path: Path, expect: str, seen: list[Shown]) -> None:
    expect = f"{{firings: {{four: {expect}}}}}"
    assert differing(tmp_path, expect, Observation(firings={"four": seen})) == []


def test_what_differs_is_said_field_by_field(tmp_path: Path) -> None:
    expect = "{firings: {four: [{key: {account_id: 7}, at: 2026-03-02T09:00:05, constituents: 2}]}}"
    seen = Observation(firings={"four": [fired(8, 5), fired(7, 6, constituents=[{"event": "a"}])]})
    found = compared(tmp_path, expect, seen)
    near, extra = found.mismatches
    assert [(d.path, d.expected, d.got) for d in near.differences] == [
        ("expect.firings.four[0].at", "2026-03-02T09:00:05", "2026-03-02T09:00:06"),
        ("expect.firings.four[0].constituents", 2, 1),
    ]
    assert near.got is not None
    assert near.got["key"] == {"account_id": 7}
    (difference,) = extra.differences
    assert (difference.path, difference.expected) == ("expect.firings.four", None)
    assert difference.got["key"] == {"account_id": 8}


def test_columns_that_no_constituent_has_are_named(tmp_path: Path) -> None:
    seen = Observation(firings={"four": [fired(7, constituents=[{"event": "a", "x": 2}])]})
    for expect, said in (("{event: a, y: 1, z: 2}", "and keys, but no y, z"), ("{x: 3}", None)):
        wanted = f"{{firings: {{four: [{{constituents: [{expect}]}}]}}}}"
        (found,) = compared(tmp_path, wanted, seen).mismatches
        assert found.why == said or (said is not None and (found.why or "").endswith(said))


def test_a_firing_that_was_held_back_says_by_what(tmp_path: Path) -> None:
    expect = "{firings: {four: [{key: {account_id: 7}}]}}"
    held = fired(7, condition="failed")
    assert differing(tmp_path, expect, Observation(firings={"four": [held]})) == [
        ("expect.firings.four[0].condition", "held", "failed")
    ]
    held = fired(7, damped="throttle")
    assert differing(tmp_path, expect, Observation(firings={"four": [held]})) == [
        ("expect.firings.four[0].damped", None, "throttle")
    ]


def test_a_missing_firing_shows_the_nearest_and_why_it_did_not_fire(tmp_path: Path) -> None:
    asked: list[Any] = []

    def why_not(rule: str, key: Mapping[str, Any], instant: int | None) -> str:
        asked.append((rule, key, instant))
        return "no withdrawal"

    expect = "{firings: {four: [{key: {account_id: 7}, at: 2026-03-02T09:00:05}, {}]}}"
    seen = Observation(firings={"four": [fired(8, 1), fired(9, 5)]})
    found = compared(tmp_path, expect, seen, why_not=why_not)
    (missing,) = [one for one in found.mismatches if one.expected is not None]
    assert missing.got is None
    assert missing.nearest is not None
    assert missing.nearest["key"] == {"account_id": 9}
    assert missing.why == "no withdrawal"
    assert asked == [("four", {"account_id": 7}, 1_772_438_405_000_000)]


@pytest.mark.parametrize(
    ("expect", "others"),
    [
        ("[{key: {account_id: 7}}]", [fired(8, condition="failed"), fired(9)]),
        (
            "[{key: {account_id: 7}, at: 2026-03-02T09:00:05}]",
            [fired(8, 1), fired(9, 4), fired(6, 8)],
        ),
    ],
)
def test_the_nearest_firing_is_one_that_fired_or_the_nearest_in_time(
    tmp_path: Path, expect: str, others: list[Shown]
) -> None:
    seen = Observation(firings={"four": others})
    (missing, *_) = compared(tmp_path, f"{{firings: {{four: {expect}}}}}", seen).mismatches
    assert missing.nearest is not None
    assert missing.nearest["key"] == {"account_id": 9}


def test_constituents_that_are_listed_are_all(tmp_path: Path) -> None:
    two = [{"event": "a"}, {"event": "b"}]
    seen = Observation(firings={"four": [fired(7, constituents=two)]})
    expect = "{firings: {four: [{key: {account_id: 7}, constituents: [{event: a}]}]}}"
    assert differing(tmp_path, expect, seen) == [
        ("expect.firings.four[0].constituents", [{"event": "a"}], two)
    ]


def test_other_rules_are_told_by_name(tmp_path: Path) -> None:
    rules = ("write", "block", "tell", "seen", "four")
    seen = Observation(firings={rule: [fired(7)] for rule in rules})
    paths = [path for path, _, _ in differing(tmp_path, "{only: true}", seen)]
    assert paths == [f"expect.firings.{rule}" for rule in sorted(rules)]


def test_other_rules_matter_only_where_it_is_said(tmp_path: Path) -> None:
    seen = Observation(firings={"four": [fired(7)], "seen": [fired(1, condition="failed")]})
    assert differing(tmp_path, "{firings: {tell: []}}", seen) == []
    (difference,) = differing(tmp_path, "{only: true, firings: {tell: []}}", seen)
    assert difference[:2] == ("expect.firings.four", None)
    assert differing(tmp_path, "{only: true, firings: {four: [{}]}}", seen) == []


def test_rows_of_tables_are_some_unless_they_are_all(tmp_path: Path) -> None:
    rows = [{"account_id": 7, "blocked": True}, {"account_id": 8, "blocked": None}]
    seen = Observation(tables={"accounts": rows})
    assert differing(tmp_path, "{tables: {accounts: [{account_id: 7}]}}", seen) == []
    assert differing(tmp_path, "{tables: {accounts: [{account_id: 7, blocked: null}]}}", seen) == [
        ("expect.tables.accounts[0].blocked", None, True)
    ]
    exact = "{tables: {accounts: {exact: true, rows: [{account_id: 7}]}}}"
    assert differing(tmp_path, exact, seen) == [("expect.tables.accounts.rows", None, rows[1])]
    exact = "{tables: {accounts: {exact: true, rows: [{account_id: 7, blocked: false}, {}]}}}"
    assert differing(tmp_path, exact, seen) == [
        ("expect.tables.accounts.rows[0].blocked", False, True)
    ]
    assert differing(tmp_path, "{tables: {log: [{account_id: 7}]}}", seen) == [
        ("expect.tables.log[0]", {"account_id": 7}, None)
    ]


def test_signals_webhooks_and_counts(tmp_path: Path) -> None:
    seen = Observation(
        signals={"told": [{"account_id": 7}, {"account_id": 7}]},
        webhooks={"tell": [{"atm": 4}]},
        rejected=[{"event": "a", "reason": "late", "row": {}}],
    )
    fine = "{signals: {told: [{account_id: 7}, {account_id: 7}]}, webhooks: {tell: [{atm: 4}]}}"
    assert differing(tmp_path, fine, seen) == []
    assert differing(tmp_path, "{signals: {told: [{account_id: 7}]}, rejected: 0}", seen) == [
        ("expect.signals.told", None, {"account_id": 7}),
        ("expect.rejected", 0, 1),
    ]
    assert differing(tmp_path, "{webhooks: {tell: [{atm: 5}]}, dead: 1}", seen) == [
        ("expect.webhooks.tell[0]", {"atm": 5}, None),
        ("expect.webhooks.tell", None, {"atm": 4}),
        ("expect.dead", 1, 0),
    ]


def test_what_is_asked_is_answered_and_not_met(tmp_path: Path) -> None:
    seen = Observation(
        firings={"four": [fired(7, constituents=[{}]), fired(8, condition="failed")]},
        signals={"told": [{"account_id": 7}], "empty": []},
        tables={"log": [{"account_id": 7}]},
    )
    found = compared(tmp_path, "?", seen)
    firing = {"key": {"account_id": 7}, "at": "2026-03-02T09:00:00", "constituents": 1}
    assert [answer.value for answer in found.answers] == [
        {"firings": {"four": [firing]}, "only": True, "signals": {"told": [{"account_id": 7}]}}
    ]
    assert [one.asked for one in found.mismatches] == [True]
    keyless = Observation(firings={"seen": [fired(7, key={})]})
    (answer,) = compared(tmp_path, "{firings: {seen: ?}}", keyless).answers
    assert answer.value == [{"at": "2026-03-02T09:00:00", "constituents": 0}]
    found = compared(tmp_path, "{firings: {four: ?, seen: ?}, signals: ?, dead: ?}", seen)
    assert [answer.value for answer in found.answers] == [
        *({"told": [{"account_id": 7}]}, [firing], [], 0),
    ]
