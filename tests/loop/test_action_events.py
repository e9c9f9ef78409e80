"""The beginning, end and failure of actions as events of other rules (G23)."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.bench import Bench
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.values import Firings
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import InputError

BOOK = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}}
rules:
  pay:
    on: row
    per: id
    for_each: firing
    do: [{sql: INSERT INTO out SELECT id FROM event}, {sql: INSERT INTO out SELECT id FROM event}]
  begun: {on: begin_of pay, per: id}
  ended: {on: end_of pay, per: id, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  broke: {on: failed pay, per: id}
  whole: {on: begin_of pay ; end_of pay, per: id}
"""


def fired(bench: Bench) -> Counter[tuple[str, tuple[int, ...]]]:
    """The rules but `pay` that fired, with the ids of their constituents."""
    return Counter(
        (f["rule"], tuple(c["id"] for c in f["constituents"]))
        for f in bench.store.of("loop").firings.listed()
        if f["rule"] != "pay"
    )


def settle(bench: Bench) -> None:
    for _ in range(5):
        bench.drain()
        bench.clock.later(100)


def test_g23_an_action_begins_once_ends_after_its_last_statement_or_fails(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second statement of row 1 fails once, that of row 2 for good."""
    bench = Bench(store, commits=3, text=BOOK)
    left = Counter({1: 1, 2: 99})

    run = bench.sink.run

    def failing(entry: Entry, firings: Firings) -> None:
        (n,) = firings.relation["id"].to_pylist()
        if (entry.rule, entry.statement.action) == ("pay", 1) and left[n]:
            left[n] -= 1
            raise SinkError("[NO] no")
        run(entry, firings)

    monkeypatch.setattr(bench.sink, "run", failing)
    settle(bench)
    expected = {("begun", (n,)): 1 for n in (0, 1, 2)}
    expected |= {("ended", (n,)): 1 for n in (0, 1)} | {("broke", (2,)): 1}
    expected |= {("whole", (n, n)): 1 for n in (0, 1)}
    assert fired(bench) == expected
    depths = {f["rule"]: f["depth"] for f in store.of("loop").firings.listed()}
    assert (depths["pay"], depths["begun"], depths["whole"]) == (1, 2, 2)
    assert bench.sink.effects["ended", 0] == 1
    dead = next(number for number, state in bench.states() if state == "dead")
    left.clear()
    store.of("loop").controls.ask("redrive", str(dead))
    settle(bench)
    assert fired(bench) == {**expected, ("ended", (2,)): 1, ("whole", (2, 2)): 1}
    bench.restart()
    settle(bench)
    assert sum(fired(bench).values()) == 10


def test_g23_keys_that_come_from_each_other_have_no_type(store: SqlStore) -> None:
    text = BOOK[: BOOK.index("  pay:")] + (
        "  a: {on: end_of b, per: id, do: [{sql: INSERT INTO out SELECT 1}]}\n"
        "  b: {on: end_of a, per: id, do: [{sql: INSERT INTO out SELECT 1}]}\n"
    )
    with pytest.raises(InputError, match="come from each other"):
        Bench(store, commits=0, text=text)


@pytest.mark.parametrize(
    ("kind", "told"), [("landed", "ended"), ("skip", "broke"), ("purge", "broke")]
)
def test_g23_what_operators_bring_about_is_told_too(store: SqlStore, kind: str, told: str) -> None:
    """A skip may find that the statement has landed. What is purged is dead."""
    do = "on_dead: hold, do: [{sql: INSERT INTO out SELECT id FROM event}]"
    text = BOOK[: BOOK.index("  pay:")] + (
        f"  pay: {{on: row, per: id, {do}}}\n"
        "  ended: {on: end_of pay, per: id}\n"
        "  broke: {on: failed pay, per: id}\n"
    )
    bench = Bench(store, commits=1, text=text)
    failing = "lost" if kind == "landed" else "fails"
    setattr(bench.sink, failing, lambda _: SinkError("[NO] no"))
    bench.drain()
    setattr(bench.sink, failing, lambda _: None)
    if kind != "purge":
        store.of("loop").controls.ask("skip", "1")
    else:
        store.of("loop").controls.ask("disable", "pay", option="purge")
    settle(bench)
    assert fired(bench) == {(told, (0,)): 1}
