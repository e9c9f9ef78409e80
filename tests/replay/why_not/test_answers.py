"""What a newcomer reads: answers that name the fact, and what to type next."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
import sqlalchemy as sa

from tests.replay.why_not.misses import book, line
from tests.replay.why_not.runs import at, run
from tests.replay.why_not.stored import Stored, told
from tests.replay.why_not.stored_misses import OTHER, acting, opened, pair, visit
from tests.replay.why_not.test_past import Cleaned
from tests.support.make import BEGIN, SECOND
from tidegate.engine.replay.why_not.ladder import ladder
from tidegate.engine.replay.why_not.page import page
from tidegate.engine.store import SqlStore
from tidegate.engine.store import tables as t

HEAD = """\
rulebook: shop
timezone: UTC
tables: {items: {path: /items, key: [id]}, out: {path: /out}}
events:
  new: {on: insert, table: items}
  told: {signal: {k: bigint}}
  closed: {signal: {day: date, k: bigint}}
"""


def test_each_rung_of_an_answer_is_of_one_firing(store: SqlStore) -> None:
    run = Stored(store, HEAD + "rules:\n  r: {per: k, on: told, cooldown: 1 h}\n")
    for seconds in (10, 50):
        run.signal(seconds, "told", k=7).at(seconds + 5)
    answer = run.why_not("r", {"k": 7})
    assert "It fired for k 7 at 09:00:10" in told(answer)[1]
    assert answer.rungs[2].sentence.startswith("It was detected for k 7 at 09:00:10")
    assert answer.rungs[2].evidence["firing_id"] == answer.fired


def test_a_firing_of_a_dry_rule_says_that_nothing_was_done(store: SqlStore) -> None:
    run = Stored(store, HEAD + "rules:\n  r: {per: k, on: told, mode: dry, do: [{enable: r}]}\n")
    said = told(run.signal(10, "told", k=7).at(20).why_not("r", {"k": 7}))[1]
    assert "It fired for k 7 at 09:00:10" in said
    assert said.endswith("The rule is dry (mode: dry): none of its actions ran.")


def test_a_query_that_did_not_hold_is_told_with_the_command_that_asks_it_again(
    store: SqlStore,
) -> None:
    text = HEAD + "rules:\n  r: {per: k, on: told, if: count(*) > 5}\n"
    run = Stored(store, text).signal(10, "told", k=7).at(20)
    answer = run.why_not("r", {"k": 7})
    firing = answer.rungs[-1].evidence["firing_id"]
    assert [*answer.lines()][-1] == f"    tidegate why {firing}"
    query = "SELECT e.firing_id FROM event e  JOIN items i ON i.id = e.k"
    asks = sa.update(t.rulebooks).values(text=text.replace("count(*) > 5", f'{{sql: "{query}"}}'))
    with store.database.write() as connection:
        connection.execute(asks)
    answer = run.why_not("r", {"k": 7})
    assert told(answer)[0] == "if"
    assert told(answer)[1].endswith(
        "its query `SELECT e.firing_id FROM event e JOIN items i ON i.id = e.k` did not hold."
    )
    assert [*answer.lines()][-1] == f"    tidegate why {firing} --spark"
    assert f"tidegate why {firing} --spark" in page(answer)
    assert answer.rungs[-1].evidence["firing_id"] == firing


def test_a_begin_after_all_that_is_seen_is_not_seen(store: SqlStore) -> None:
    run = Stored(store, HEAD + "rules:\n  r: {per: k, on: told}\n")
    run.signal(10, "told", k=7).at(50)
    rung, said = told(run.why_not("r", {"k": 7}, None, 90))
    assert rung == "seen"
    assert said.endswith("is seen by rule r; 2026-03-02 09:01:30 is later.")


def test_a_dead_entry_says_what_runs_it_again(store: SqlStore) -> None:
    run = opened(store, "shop", acting().replace("attempts: 2", "attempts: 1"))
    run.actions.failing["r"] = 9
    pair(run, 10, 20)
    said = told(run.at(900).why_not("r", {"k": 7}))[1]
    assert "is dead after 1 attempt: " in said
    assert said.endswith("`tidegate redrive 1` runs it again.")


@pytest.mark.parametrize(
    ("on", "says"),
    [
        ("not(b)[a, c]", "`b` came for k 7 at 09:00:20, after `a` at 09:00:10 and not later than"
         " 09:00:30: `not(b)[a, c]` allows none there."),
        ("(a ; c) without b", "`b` came for k 7 at 09:00:20, inside `a ; c`, between 09:00:10 and"
         " 09:00:30: `(a ; c) without b` allows none there."),
    ],
)  # fmt: skip
def test_what_must_be_absent_says_who_forbids_it(on: str, says: str) -> None:
    evidence = run(book(on), [line("a", 10), line("b", 20), line("c", 30)], 900)
    assert ladder(evidence, "r", {"k": 7}, at(100))[-1].sentence == says


def test_rows_that_became_none_are_told_where_nothing_else_came(store: SqlStore) -> None:
    text = HEAD.replace("table: items}", "table: items, where: amount > 5}")
    run = Stored(store, text + "rules:\n  r: {per: {new: id}, on: new}\n")
    run.insert(10, {"id": 7, "amount": 1}).at(15)
    answer = run.why_not("r", {"id": 7})
    said = "0 `new` came for id 7. Rows for `new` became no occurrences."
    assert answer.rungs[2].sentence == said
    assert told(answer)[0] == "where"


# -- late rows, event time ------------------------------------------------------------------------


def test_of_a_rejected_row_the_key_and_what_the_reason_names_are_told(store: SqlStore) -> None:
    run = opened(store, "shop", "  r: {per: k, on: timed, if: max(owner) <> ''}")
    stamp = datetime.fromtimestamp(BEGIN // SECOND + 100, UTC)
    row = {"k": 7, "at": stamp, "owner": "Ada Lovelace"}
    run.at(5).insert(900, row, table="visits").at(3_000)
    (kept,) = run.ledger.past.rejected(["timed"], 1, 999)
    assert kept.fields["owner"] == "Ada Lovelace"
    answer = run.why_not("r", {"k": 7})
    assert told(answer)[0] == "rejected"
    assert answer.rungs[-1].evidence["row"].keys() == {"k", "at"}
    assert "Ada" not in page(answer)


def test_a_late_row_stands_at_its_event_time(store: SqlStore) -> None:
    run = opened(store, "shop", "  r: {per: k, on: timed}")
    run.at(5)
    visit(run, 900, 100)
    visit(run.at(1_000), 1_100, 1_090, OTHER)
    answer = run.at(3_000).why_not("r", {"k": 7})
    assert told(answer)[1].startswith("A `timed` for k 7 at 09:01:40 was rejected: late")
    assert answer.rungs[-1].evidence["instant"] == BEGIN + 100 * SECOND
    before = run.why_not("r", {"k": 7}, 90)  # it came later, and would have stood later
    assert told(before)[0] == "occurrences"
    assert "was rejected" not in told(before)[1]


def test_a_row_from_before_the_rule_was_active_is_told_as_rejected(store: SqlStore) -> None:
    run = opened(store, "shop", "  r: {per: k, on: timed}")
    run.at(5)
    visit(run, 20, -7_200)
    said = told(run.at(2_000).why_not("r", {"k": 7}))
    assert said[0] == "occurrences"
    assert "A row for `timed` of 07:00:00 was rejected: late" in said[1]


def test_a_rule_that_runs_behind_is_answered_up_to_its_own_time(store: SqlStore) -> None:
    run = opened(store, "shop", "  r: {per: k, on: timed ; timed}")
    visit(run, 100, 90)
    visit(run.at(105), 200, 190)
    run.at(1_000)
    answer = run.why_not("r", {"k": 7})
    assert answer.fired is not None
    assert answer.at <= BEGIN + 400 * SECOND + 999_999
    assert answer.at > BEGIN + 390 * SECOND
    assert "it runs 10 min behind for late rows" in answer.rungs[1].sentence
    one = run.why_not("r", {"k": 7}, 150)
    assert told(one)[0] == "parts"
    assert "the same instant" in told(one)[1] or "`timed` was last" in told(one)[1]


def test_an_edit_of_a_rule_that_runs_behind_is_told_in_its_own_time(store: SqlStore) -> None:
    run = opened(store, "shop", "  r: {per: k, on: timed ; a}")
    run.signal(1_000, "a", k=OTHER).at(1_001)
    text = run.ledger.versions.version(1)
    assert text is not None
    run.again(text.text.replace("on: timed ; a", "on: timed ; b"))
    run.signal(1_010, "b", k=OTHER).at(2_000)
    note = run.why_not("r", {"k": 7}).notes[0]
    assert "was edited at 09:06:41" in note  # ten minutes before 9:16:41


def test_an_edit_counts_before_its_first_bucket(store: SqlStore) -> None:
    run = Stored(store, HEAD + "rules:\n  r: {per: k, on: told ; told}\n")
    run.signal(10, "told", k=7).at(15)
    run.again(HEAD + "rules:\n  r: {per: k, on: told ; closed}\n").at(50)
    answer = run.why_not("r", {"k": 7})
    assert told(answer)[1].startswith("No `told` or `closed` came for k 7 ")
    assert "was edited at 09:00:1" in answer.notes[0]
    assert "`on` is" not in " ".join(answer.notes)
    assert "No `told` came for k 7 after" not in told(run.why_not("r", {"k": 7}, 10))[1]


# -- keys, scripts --------------------------------------------------------------------------------


def test_a_date_is_the_key_of_a_rejected_row(store: SqlStore) -> None:
    run = Stored(store, HEAD + "rules:\n  r: {per: day, on: closed}\n")
    run.signal(10, "closed", day="2026-03-02", k="many").at(20)
    for day in ("2026-03-02", date(2026, 3, 2)):
        rung, said = told(run.why_not("r", {"day": day}))
        assert (rung, "was rejected" in said) == ("rejected", True), said
    assert told(run.why_not("r", {"day": "2026-03-03"}))[0] == "occurrences"


def test_what_scripts_emit_is_counted_from_where_versions_can_be_read(store: SqlStore) -> None:
    script = """\
scripts:
  second:
    text: |
      in {long k;} told group(told.k)
      out {long k;} twice
      (told() told(x) {!> twice({k: x.k});})*
rules:
  r: {per: {twice: k, new: id}, on: twice ; new}
"""
    run = Stored(store, HEAD + script)
    run.signal(5, "told", k=7).at(6)
    for n in range(1, 6):
        run.insert(10 * n, {"id": 8, "amount": 1}).at(10 * n + 0.5)
    run.signal(60, "told", k=7).at(70)
    assert run.why_not("r", {"k": 7}).rungs[2].evidence["counts"] == {"twice": 1, "new": 0}
    run.feed = Cleaned(run.tables, 4)
    lost = run.why_not("r", {"k": 7})
    assert lost.notes == ("`items`, versions 1 to 3: version 1 was vacuumed",)
    assert lost.rungs[2].evidence["counts"] == {"twice": 0, "new": 0}
