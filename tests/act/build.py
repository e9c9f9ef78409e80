"""Firings, entries and a fake sink."""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from tidegate.engine.entries import Entry, Fate, Outcome
from tidegate.engine.ports import SinkError
from tidegate.engine.values import Firings
from tidegate.rules.errors import Place
from tidegate.rules.expression import Name
from tidegate.rules.model import Context, Retry, Rule, Rulebook

INSTANT = pa.timestamp("us", "UTC")
HERE = Place("bank.yaml", 3, 5)


def firings(
    rule: str,
    conditions: Sequence[str],
    *,
    depths: Sequence[int] | None = None,
    accounts: Sequence[int] | None = None,
) -> Firings:
    """Firings 0, 1, .. of a rule per account, each with two constituents."""
    n = len(conditions)
    ids = [bytes([i] * 16) for i in range(n)]
    accounts = accounts or range(n)
    table = pa.table(
        {
            "firing_id": pa.array(ids, pa.binary(16)),
            "account": pa.array(accounts, pa.int64()),
            "started_at": pa.array(range(n), INSTANT),
            "detected_at": pa.array(range(n), INSTANT),
            "depth": pa.array(depths or [1] * n, pa.int32()),
            "condition": list(conditions),
            "constituents": pa.array([2] * n, pa.int32()),
        }
    )
    rows = [
        {"firing_id": one.hex(), "account": account, "amount": 10 * account + n}
        for one, account in zip(ids, accounts, strict=True)
        for n in range(2)
    ]
    return Firings(rule, table, pa.Table.from_pylist(rows))


def hex_id(number: int) -> str:
    return bytes([number] * 16).hex()


def rule(name: str, **more: object) -> Rule:
    on = Name("moved")
    return Rule(name, HERE, on, "moved", Context.UNRESTRICTED, **more)  # type: ignore[arg-type]


def rulebook(*rules: Rule) -> Rulebook:
    return Rulebook("bank", None, "", "UTC", {}, {}, {r.name: r for r in rules})


def retry(attempts: int) -> Retry:
    return Retry(attempts, backoff_min_micros=1_000_000, backoff_max_micros=3_000_000)


def entry(number: int, rule: str, text: str = "INSERT", **more: object) -> Entry:
    entry = Entry(rule, "sql", text, "alerts", order=number, number=number, bucket=9)
    app_id = f"tidegate/store/bank/{rule}"
    return replace(entry, place=number, app_id=app_id, target_version=0, **more)  # type: ignore[arg-type]


class FakeSink:
    """Commits everything but the entries in `failing`, as often as that says."""

    def __init__(self, failing: dict[int, int] | None = None, landed: Sequence[int] = ()) -> None:
        self.failing = dict(failing or {})
        self.committed: list[int] = []
        self.seen: list[Firings] = []
        self.landed_before = set(landed)
        self.asked: list[int] = []

    def run(self, entry: Entry, firings: Firings) -> None:
        if self.failing.get(entry.number, 0) > 0:
            self.failing[entry.number] -= 1
            raise SinkError("[DIVIDE_BY_ZERO] Division by zero.")
        self.committed.append(entry.number)
        self.seen.append(firings)

    def fate(self, entry: Entry, firings: Firings) -> Fate:
        self.asked.append(entry.number)
        landed = {*self.landed_before, *self.committed}
        return Fate.EFFECT if entry.number in landed else Fate.ABSENT

    def seal(self, entry: Entry) -> None:
        raise AssertionError

    def fields(self, entry: Entry, firings: Firings) -> pa.Table:
        if self.failing.get(entry.number, 0) > 0:
            self.failing[entry.number] -= 1
            raise SinkError("[CAST_INVALID_INPUT] no number")
        sums = firings.relation.group_by("firing_id").aggregate([("amount", "sum")])
        rows = [{"firing_id": r["firing_id"], "total": r["amount_sum"]} for r in sums.to_pylist()]
        return pa.Table.from_pylist(rows[::-1])


class FakeOutbox:
    """What was settled, in order. Every entry is for `firings`."""

    def __init__(self, firings: Firings) -> None:
        self.outcomes: list[Outcome] = []
        self._firings = firings

    def settle(self, outcome: Outcome) -> tuple[Entry, ...]:
        self.outcomes.append(outcome)
        return ()

    def answer(self, control: int, text: str) -> None:
        raise AssertionError

    def entry(self, number: int) -> Entry | None:
        raise AssertionError

    def firings(self, entry: Entry) -> Firings:
        return self._firings


class Unasked:
    """Nothing is asked of the rules of now."""

    def entries(self, entry: Entry, firings: Firings) -> tuple[tuple[Entry, ...], Firings]:
        raise AssertionError

    def renewed(self, entry: Entry) -> Entry | str:
        raise AssertionError
