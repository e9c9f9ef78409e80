"""What why-not says where the past is kept in parts, was edited, or holds something else now."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.replay.why_not.stored import Stored, told
from tests.support.make import BEGIN, SECOND
from tidegate.engine.act.run import Runner
from tidegate.engine.core.ports import ReadRequest, TableHead
from tidegate.engine.core.values import Cursor, TableRange
from tidegate.engine.replay.memory.clock import VirtualClock
from tidegate.engine.replay.memory.feed import MemoryFeed
from tidegate.engine.replay.memory.tables import MemoryTable
from tidegate.engine.replay.why_not.keys import typed_key
from tidegate.engine.store import SqlStore, open_store
from tidegate.rules.errors import EngineError, InputError
from tidegate.rules.model import Table

HEAD = """\
rulebook: shop
timezone: UTC
tables: {items: {path: /items, key: [id]}, out: {path: /out}}
events:
  new: {on: insert, table: items}
  told: {signal: {k: bigint}}
  closed: {signal: {k: bigint}}
rules:
"""
PAIR = HEAD + "  r: {per: {new: id, told: k}, on: new ; told}\n"
YEAR = 366 * 86_400


@pytest.fixture
def store(empty_store: Path, tmp_path: Path) -> Iterator[SqlStore]:
    file = shutil.copy(empty_store, tmp_path / "why.db")
    with open_store(f"sqlite:///{file}", create=False) as opened:
        yield opened


def item(run: Stored, seconds: float, id: int, amount: int = 1) -> Stored:
    return run.insert(seconds, {"id": id, "amount": amount}).at(seconds + 0.5)


class Cleaned(MemoryFeed):
    """Versions before `first` cannot be read any more."""

    def __init__(self, tables: dict[str, MemoryTable], first: int) -> None:
        super().__init__(tables)
        self.first, self.reads = first, 0

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        self.reads += 1
        if span.first < self.first:
            raise EngineError("version-gone", f"version {span.first} was vacuumed")
        return super().read(table, span, request)


def test_what_came_before_versions_that_are_gone_is_not_told(store: SqlStore) -> None:
    run = Stored(store, PAIR)
    for n in range(1, 9):
        item(run, 10 * n, n)
    run.signal(100, "told", k=2).signal(101, "told", k=7).at(110)
    run.feed = Cleaned(run.tables, 5)
    answer = run.why_not("r", {"id": 9})
    assert answer.notes == ("`items`, versions 1 to 4: version 1 was vacuumed",)
    assert "between 09:00:40.001 and" in told(answer)[1] or "after 09:00:40" in told(answer)[1]
    run.feed = Cleaned(run.tables, 99)
    answer = run.why_not("r", {"id": 9})
    assert told(answer)[0] == "occurrences"
    assert "cannot be told: `items`, versions 1 to 8: version 1 was vacuumed" in told(answer)[1]
    assert run.why_not("r", {"id": 7}).fired is not None  # the store alone tells


class Anew(MemoryFeed):
    """Its tables are others than those that were read."""

    def head(self, table: Table, after: Cursor | None) -> TableHead:  # noqa: ARG002
        said = f"table `{table.name}`: from version 0 on its metadata id is 5f3a, the cursor's 77b0"
        raise EngineError("table-replaced", said)


def test_a_table_that_was_created_anew_is_told_in_words(store: SqlStore) -> None:
    run = Stored(store, PAIR)
    item(run, 10, 7)
    run.feed = Anew(run.tables)
    answer = run.why_not("r", {"id": 7})
    assert told(answer) == (
        "occurrences",
        "What came for id 7 cannot be told: table `items` was replaced or created anew since, and"
        " what it held is gone.",
    )
    assert "5f3a" not in str(answer)
    assert "5f3a, the cursor's 77b0" in answer.rungs[-1].evidence["errors"]["items"]


def test_a_table_that_holds_something_else_now_is_no_firing(store: SqlStore) -> None:
    run = Stored(store, PAIR)
    item(run, 10, 8)
    run.signal(20, "told", k=7).at(21)
    others = Stored(store, PAIR.replace("rulebook: shop", "rulebook: other"))
    item(others, 10, 7)
    run.feed = MemoryFeed(others.tables)
    answer = run.why_not("r", {"id": 7})
    assert (told(answer)[0], answer.fired) == ("fired", None)
    assert "no such firing is stored: it did not fire" in told(answer)[1]


def test_a_firing_that_is_forgotten_is_not_denied(store: SqlStore) -> None:
    run = Stored(store, HEAD.replace("rules:", "settings: {firings_retention_days: 1}\nrules:")
                 + "  r: {per: id, on: new}\n")  # fmt: skip
    item(run, 10, 7)
    assert run.why_not("r", {"id": 7}, 20).fired is not None
    item(run.at(3 * 86_400), 3 * 86_400 + 5, 8)
    run.ledger.retention.purge(run.clock.at - 86_400 * SECOND, 0, 1_000)
    answer = run.why_not("r", {"id": 7}, 20)
    assert told(answer)[0] == "fired"
    assert "whether it fired cannot be told" in told(answer)[1]


def test_history_that_is_forgotten_is_said(store: SqlStore) -> None:
    run = Stored(store, PAIR)
    item(run, 10, 7)
    item(run.at(YEAR), YEAR + 5, 8)
    item(run, YEAR + 50, 9)
    day_ago = run.clock.at - 86_400 * SECOND
    run.ledger.retention.purge(day_ago, day_ago, 1_000)
    answer = run.why_not("r", {"id": 7}, 10)
    assert "cannot be told: what was before 09:00:10.501 is not kept any more" in told(answer)[1]
    answer = run.why_not("r", {"id": 7})
    assert any("is not kept any more" in note for note in answer.notes)
    assert "active since 2026-03-02 09:00:00" in answer.rungs[0].sentence
    for kind in ("disable", "enable"):
        run.ledger.controls.ask(kind, "r")
        run.at((run.clock.at - BEGIN) // SECOND + 60)
    answer = run.why_not("r", {"id": 7}, 10)
    assert told(answer)[0] == "active"
    assert "is not kept any more (history_retention_days)" in told(answer)[1]


def test_an_edit_is_said(store: SqlStore) -> None:
    run = Stored(store, HEAD + "  r: {per: {new: id, closed: k}, on: new ; closed}\n")
    item(run, 10, 7)
    run.at(30).again(PAIR)
    item(run, 40, 8)
    run.signal(50, "told", k=7).signal(51, "told", k=8).at(60)
    answer = run.why_not("r", {"id": 7})
    assert told(answer)[0] == "occurrences"
    assert "was edited at 09:00:10.501 (version 2)" in answer.notes[0]
    assert run.why_not("r", {"id": 8}).fired is not None
    before = run.why_not("r", {"id": 7}, 10)
    assert "`closed`" in told(before)[1]
    assert "rule r was edited since: its `on` is `new ; told` now" in before.notes


def test_a_rule_that_is_gone_is_answered_by_the_text_that_ran(store: SqlStore) -> None:
    run = Stored(store, PAIR + "  s: {on: closed}\n")
    item(run, 10, 7)
    run.at(30).again(HEAD + "  s: {on: closed}\n")
    run.signal(40, "closed", k=1).at(50)
    answer = run.why_not("r", {"id": 7}, 10)
    assert "No `told` came" in told(answer)[1]
    assert answer.notes == ("rule r is not in the rulebook any more",)
    with pytest.raises(InputError, match="unknown rule"):
        run.why_not("r", {"id": 7})


def test_no_more_rows_are_read_than_a_bucket_may_hold(store: SqlStore) -> None:
    text = PAIR.replace("rules:", "settings: {bucket_rows_max: 3}\nrules:")
    run = Stored(store, text)
    for n in range(1, 9):
        item(run, 10 * n, n)
    answer = run.why_not("r", {"id": 2})
    assert "more than 3 rows (bucket_rows_max)" in answer.notes[0]
    assert (
        "at least since" in answer.rungs[0].sentence
        or "was active since" in answer.rungs[0].sentence
    )


def test_what_came_after_the_instant_does_not_crowd_out_what_came_before(store: SqlStore) -> None:
    text = PAIR.replace("rules:", "settings: {bucket_rows_max: 6}\nrules:")
    run = Stored(store, text)
    item(run, 10, 7)
    for n in range(2, 20):
        item(run, 10 * n, n)
    answer = run.why_not("r", {"id": 7}, 15)
    assert told(answer)[1].startswith("No `told` came for id 7")
    assert answer.notes == ()


def test_what_was_begun_before_the_time_that_is_asked_for_counts(store: SqlStore) -> None:
    rule = "  r: {per: {new: id, told: k}, on: new ; told within 5 min, disabled_for: [7]}\n"
    run = Stored(store, HEAD + rule)
    item(run, 10, 7)
    run.signal(200, "told", k=7).at(210)
    assert told(run.why_not("r", {"id": 7}, 205, 195))[0] == "disabled_for"
    item(run, 4_000, 8)
    before = run.why_not(
        "r", {"id": 7}, 4_000.2, 3_999
    )  # it remembers 5 min: read is 50 min before
    assert "No `new` or `told` came for id 7 between 09:16:39 and" in told(before)[1]


def test_what_was_not_read_is_not_taken_for_absent(store: SqlStore) -> None:
    run = Stored(store, HEAD + '  r: {per: {new: id, told: k}, on: "not(told)[new, [3 h]]"}\n')
    item(run, 10, 7)
    for minutes in range(1, 200, 10):
        item(run, 60 * minutes, 8)
    run.signal(9_000, "told", k=7).at(20_000)
    said = told(run.why_not("r", {"id": 7}, 20))[1]
    assert "is due for id 7 at 12:00:10" in said
    assert "detected later" not in said


def test_the_firing_that_damps_another_is_told_however_long_ago(store: SqlStore) -> None:
    run = Stored(store, HEAD + "  r: {per: k, on: told, cooldown: 2 h}\n")
    for seconds in (10, 3_000, 5_000, 7_000):
        run.signal(seconds, "told", k=7).at(seconds + 0.5)
    said = told(run.why_not("r", {"k": 7}, 7_000.2, 6_999))[1]
    assert "it fired at 09:00:10, so `cooldown` drops until 11:00:10" in said


def test_only_the_key_and_the_values_that_failed_are_shown(store: SqlStore) -> None:
    text = HEAD.replace("table: items}", "table: items, where: amount > 5}")
    run = Stored(store, text + "  r: {per: id, on: new}\n")
    run.insert(10, {"id": 7, "amount": 1, "note": "hunter2"}).at(11)
    answer = run.why_not("r", {"id": 7})
    assert answer.rungs[-1].evidence["row"] == {"id": 7}
    assert answer.rungs[-1].evidence["values"] == {"amount": 1}
    assert "hunter2" not in str(answer.as_json())


def test_before_the_first_bucket_nothing_is_seen(store: SqlStore) -> None:
    store.of("shop").versions.register(PAIR, None)
    run = Stored.__new__(Stored)
    run.store, run.name, run.feed = store, "shop", MemoryFeed({})
    run.clock = VirtualClock(BEGIN)
    assert told(run.why_not("r", {"id": 7})) == ("active", "Rule r was never active.")


SCRIPT = HEAD.replace(
    "rules:\n",
    """\
scripts:
  second:
    text: |
      in {long k;} told group(told.k)
      out {long k;} twice
      (told() told(x) {!> twice({k: x.k});})*
rules:
  r: {per: k, on: twice ; closed}
""",
)


def test_what_scripts_emit_is_emitted_again(store: SqlStore) -> None:
    run = Stored(store, SCRIPT)
    for seconds, key in ((1, 7), (2, 7), (3, 8)):
        run.signal(seconds, "told", k=key).at(seconds + 0.5)
    run.signal(10, "closed", k=8).at(11)
    assert told(run.why_not("r", {"k": 8}))[1].startswith("No `twice` came for k 8")
    assert told(run.why_not("r", {"k": 7}))[1].startswith("No `closed` came for k 7")
    run.signal(12, "closed", k=7).at(13)
    assert run.why_not("r", {"k": 7}).fired is not None


def test_a_rule_that_does_not_see_its_own_rows(store: SqlStore) -> None:
    text = HEAD + "  r: {per: id, on: new, ignore_own: true}\n"
    run = Stored(store, text)
    item(run, 10, 7)
    assert run.why_not("r", {"id": 7}).fired is not None
    assert told(run.why_not("r", {"id": 8}))[1].startswith("No `new` came for id 8")


def test_ends_of_actions_and_clocks(store: SqlStore) -> None:
    text = HEAD + (
        "  pay: {per: id, on: new, do: [{sql: INSERT INTO out SELECT id FROM event}]}\n"
        "  r: {per: {pay: id, told: k}, on: end_of pay ; told}\n"
        "  nightly: {per: id, on: 'new ; at <(09:30:00)03/02/2026>'}\n"
    )
    run = Stored(store, text)
    item(run, 10, 7)
    run.at(20)
    assert "No `told` came for" in told(run.why_not("r", {"id": 7}))[1]
    assert "The clock did not reach" in told(run.why_not("nightly", {"id": 7}))[1]
    item(run.at(3_000), 3_010, 8)
    assert run.why_not("nightly", {"id": 7}).fired is not None


def test_a_condition_that_is_not_asked_yet_is_no_firing(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = HEAD + (
        "  r: {per: id, on: new, coupling: detached, if: sum(amount) > 5,"
        " do: [{sql: INSERT INTO out SELECT id FROM event}]}\n"
    )
    run = Stored(store, text)
    run.insert(10, {"id": 7, "amount": 9})
    run.clock.later(BEGIN + 11 * SECOND)
    monkeypatch.setattr(Runner, "work", lambda *_, **__: 0)
    run.loop.bucket()
    answer = run.why_not("r", {"id": 7})
    assert (told(answer)[0], answer.fired) == ("held", None)
    assert "condition was not asked yet" in told(answer)[1]


TYPES = pa.schema(
    [
        ("b", pa.bool_()),
        ("d", pa.decimal128(12, 2)),
        ("f", pa.float64()),
        ("i", pa.int64()),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("raw", pa.binary()),
    ]
)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("b", "true", True),
        ("d", "2.5", Decimal("2.50")),
        ("f", "2.5", 2.5),
        ("i", "7", 7),
        ("i", 7, 7),
        ("i", "null", None),
        ("i", None, None),
        ("s", "7", "7"),
        ("s", 7, "7"),
        ("s", "null", "null"),
        ("s", None, None),
        ("day", "2026-03-02", date(2026, 3, 2)),
        ("day", date(2026, 3, 2), date(2026, 3, 2)),
        ("t", "2026-03-02T09:00:00", datetime(2026, 3, 2, 8, tzinfo=UTC)),
        ("t", "2026-03-02T09:00:00Z", datetime(2026, 3, 2, 9, tzinfo=UTC)),
        ("local", "2026-03-02T09:00:00", datetime(2026, 3, 2, 9)),
        ("raw", "aGk=", b"hi"),
        ("unknown", "x", "x"),
    ],
)
def test_keys_are_read_in_their_types(name: str, text: Any, value: Any) -> None:
    assert typed_key({name: text}, TYPES, "Europe/Berlin") == {name: value}


@pytest.mark.parametrize(
    ("name", "text"),
    [("i", "seven"), ("i", "7.5"), ("i", str(2**64)), ("day", "soon"), ("t", "soon"), ("raw", "?"),
     ("d", "1.234"), ("b", "maybe"), ("i", 7.5)],
)  # fmt: skip
def test_keys_of_other_types_are_refused(name: str, text: Any) -> None:
    with pytest.raises(InputError, match=f"the values of {name} are"):
        typed_key({name: text}, TYPES, "UTC")
