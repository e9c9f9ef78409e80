"""Records of a test file -> cases: names are looked up in the rulebook, times become instants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from tidegate.engine.core.text.times import of_text
from tidegate.engine.replay.cases.form import PARTS
from tidegate.engine.replay.cases.model import (
    Case,
    Delete,
    Expectation,
    ExpectedRows,
    Fail,
    RaisedSignal,
    Step,
    TableChange,
    Update,
)
from tidegate.rules.errors import Place
from tidegate.rules.model import Rulebook, ScriptEvent, SignalEvent, Webhook
from tidegate.rules.yaml.kinds import Record, Report
from tidegate.rules.yaml.reader import Fields

_MILLISECOND = 1_000
_NONE = "there is none in this rulebook: leave this out"


def shape(form: Record, book: Rulebook, report: Report) -> tuple[Case, ...]:
    """The cases of a file. What is wrong is reported, and left out."""
    shaper = _Shaper(book, report)
    for part in ("schemas", "defaults"):
        node = form.node.entries.get(part)
        shaper.known(node.keys if isinstance(node, Fields) else {}, book.tables, "table")
    names: dict[str, Place] = {}
    cases = []
    for record in form.get("tests", ()):
        if not isinstance(record, Record):
            continue
        name = record.get("name", "")
        if name in names:
            hint = f"rename one: the first is at line {names[name].line}"
            report.add("name", f"two tests are named {name!r}", record.place("name"), hint)
        names.setdefault(name, record.place("name"))
        cases.append(shaper.case(name, record))
    return tuple(cases)


class _Shaper:
    def __init__(self, book: Rulebook, report: Report) -> None:
        self.book = book
        self.report = report
        self.signals = {n for n, e in book.events.items() if isinstance(e, SignalEvent)}
        self.emitted = {n for n, e in book.events.items() if isinstance(e, ScriptEvent)}
        self.acting = {n for n, rule in book.rules.items() if rule.reaction.every}
        self.posting = {
            name
            for name, rule in book.rules.items()
            if any(isinstance(action, Webhook) for action in rule.reaction.every)
        }

    def known(self, keys: Mapping[str, Place], names: Iterable[str], what: str) -> set[str]:
        """The keys that are names of something; the others are reported."""
        found = set(keys) & set(names)
        for name in keys:
            if name not in found:
                self._unknown(name, keys[name], names, what)
        return found

    def _unknown(self, name: str, place: Place, names: Iterable[str], what: str) -> None:
        message = f"the rulebook has no {what} {name!r}"
        hint = self.report.did_you_mean(name, names)
        if what == "table":
            hint = hint or f"declare it there: tables: {{{name}: {{path: ..}}}}"
        elif not [*names]:
            hint = _NONE
        self.report.add(f"unknown-{what.split()[0]}", message, place, hint)

    def case(self, name: str, record: Record) -> Case:
        tables = record.get("tables", {})
        node = record.node.entries.get("tables")
        keys = node.keys if isinstance(node, Fields) else {}
        known = self.known(keys, self.book.tables, "table")
        steps = tuple(self._steps(record.get("steps", ())))
        expect = self._expectation(record)
        kept = {table: rows for table, rows in tables.items() if table in known}
        return Case(name, record.node.place, kept, steps, expect)

    def _steps(self, records: Iterable[Any]) -> Iterator[Step]:
        """The steps, each at its instant. After one without a readable time, the next that names an
        instant is the first that has one."""
        instant: int | None = None
        first = True
        taken: int | None = None  # when a step happened that commits or raises something
        for record in records:
            if not isinstance(record, Record):
                continue
            instant = self._instant(record, instant, first=first)
            first = False
            tables, signals = self._changes(record), tuple(self._raised(record))
            happens: list[TableChange | RaisedSignal] = [*tables.values(), *signals]
            if happens and instant is not None:
                if taken == instant:
                    message = "a step before happens at this instant, and has been taken already"
                    hint = "one step has all of an instant: join them, or write after: 1 ms"
                    self.report.add("one-instant", message, happens[0].place, hint)
                taken = instant
            yield Step(
                record.node.place,
                instant or 0,
                tables,
                signals,
                self._fail(record),
                self._expectation(record),
            )

    def _instant(self, record: Record, before: int | None, *, first: bool) -> int | None:
        times = [key for key in ("at", "after", "until") if record.has(key)]
        if len(times) > 1:
            message = f"a step has only one of at, after, until, not {' and '.join(times)}"
            self.report.add("time", message, record.place(times[1]), "make it two steps")
            return None
        if not times or (times[0] != "at" and first):
            if first:
                message = "the first step says when it is: the rulebook is active from then on"
                hint = "write at: 2026-03-02T07:00:00"
                self.report.add("time", message, record.place(*times), hint)
                return None
            return before
        (key,) = times
        if key not in record.values:
            return None
        if key == "after":
            instant = None if before is None else before + int(record.get("after"))
        else:
            instant = of_text(record.get(key), self.book.timezone)
        if instant is None:
            return None
        if instant % _MILLISECOND:
            message = "this is no whole millisecond, and no commit stands at another time"
            hint = "write at most three digits after the second"
            self.report.add("time", message, record.place(key), hint)
            instant -= instant % _MILLISECOND
        if before is not None and instant < before:
            message = "time goes back: this is before the step before"
            hint = "put the steps in the order of their times"
            self.report.add("time", message, record.place(key), hint)
        return instant

    def _changes(self, record: Record) -> dict[str, TableChange]:
        places: dict[str, Place] = {}
        parts: dict[str, dict[str, tuple[Any, ...]]] = {}
        for key in ("insert", "update", "delete", "alter"):
            if key not in record.values:
                continue
            found, node = record.get(key)
            known = self.known(node.keys, self.book.tables, "table")
            for table, listed in found.items():
                if table in known:
                    places.setdefault(table, node.keys[table])
                    parts.setdefault(table, {})[key] = listed
        for table, some in parts.items():
            if "alter" in some and len(some) > 1:
                message = f"this step adds columns to {table}, and changes its rows"
                hint = "a step is one commit for each table: make it two, with after: 1 ms"
                self.report.add("one-commit", message, places[table], hint)
        return {
            table: TableChange(
                place,
                _of(Mapping, parts[table].get("insert", ())),
                _of(Update, parts[table].get("update", ())),
                _of(Delete, parts[table].get("delete", ())),
                parts[table].get("alter", pa.schema([])),
            )
            for table, place in places.items()
        }

    def _raised(self, record: Record) -> Iterator[RaisedSignal]:
        if "signal" not in record.values:
            return
        found, node = record.get("signal")
        known = self.known(node.keys, self.signals, "signal")
        for event, listed in found.items():
            for fields in listed:
                if event in known:
                    yield RaisedSignal(event, fields, node.keys[event])

    def _fail(self, record: Record) -> Fail | None:
        found = record.get("fail")
        if not isinstance(found, Record) or "rule" not in found.values:
            return None
        name = found.get("rule")
        if name not in self.book.rules:
            self._unknown(name, found.place("rule"), self.book.rules, "rule")
        elif name not in self.acting:
            message = f"the rule {name!r} has no actions that could fail"
            hint = self._one_of(name, self.acting, "name a rule with a do:")
            self.report.add("no-action", message, found.place("rule"), hint)
        return Fail(name, found.get("times", 1), found.node.place)

    def _expectation(self, record: Record) -> Expectation | None:
        found = record.get("expect")
        if isinstance(found, Place):
            return Expectation(found, asked={"": found})
        if not isinstance(found, Record):
            return None
        whats = {
            "firings": ("rule", self.book.rules),
            "tables": ("table", self.book.tables),
            "signals": ("signal", self.signals),
            "webhooks": ("rule", self.book.rules),
            "emissions": ("event of a script", self.emitted),
        }
        parts: dict[str, Any] = {}
        asked = {}
        for part in PARTS:
            if part not in found.values:
                continue
            value = found.get(part)
            if isinstance(value, Place):
                asked[part] = value
                continue
            rows, node = value
            what, names = whats[part]
            known = self.known(node.keys, names, what)
            parts[part] = {name: each for name, each in rows.items() if name in known}
        self._check_posting(parts.get("webhooks", {}))
        counts = found.given("rejected", "dead")
        return Expectation(
            found.node.place, only=found.get("only", False), asked=asked, **parts, **counts
        )

    def _check_posting(self, webhooks: Mapping[str, ExpectedRows]) -> None:
        for name, wanted in webhooks.items():
            if name not in self.posting:
                message = f"the rule {name!r} sends no webhook"
                hint = self._one_of(name, self.posting, "name a rule that does")
                self.report.add("no-webhook", message, wanted.place, hint)

    def _one_of(self, name: str, names: Iterable[str], otherwise: str) -> str:
        """The remedy for a name that is none of these."""
        if not [*names]:
            return _NONE
        return self.report.did_you_mean(name, names) or otherwise


def _of(kind: type, listed: Iterable[Any]) -> tuple[Any, ...]:
    """The items that could be read."""
    return tuple(item for item in listed if isinstance(item, kind))
