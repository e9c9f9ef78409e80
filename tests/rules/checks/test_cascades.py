"""What actions do to each other: what a statement writes and reads, who triggers whom, which pairs
of rules commute."""

from __future__ import annotations

import sqlite3
from itertools import combinations, product

import pytest

from tidegate import rules
from tidegate.rules.analysis.triggers import Triggers
from tidegate.rules.checks.gaps import all_features
from tidegate.rules.model import Rulebook
from tidegate.rules.sql.statement import statement
from tidegate.rules.sql.writes import Writes

HEAD = """\
rulebook: b
tables: {t: {path: /t, key: [k]}, Log: {path: /l}}
events:
  go: {signal: {k: bigint}}
  ping: {signal: {}}
  jumped: {on: update, of: [balance], table: t}
  flagged: {on: update, of: [Blocked], table: t}
  touched: {on: update, table: t}
  came: {on: insert, table: t}
  left: {on: delete, table: t}
  load: {on: transaction, table: t}
  landed: {on: commit, table: t}
rules:
"""


def book(lines: str) -> Rulebook:
    return rules.load(HEAD + lines, features=all_features())


def written(text: str) -> tuple[Writes, ...]:
    read = statement(text)
    assert read is not None
    return read.writes


def by_code(lines: str, code: str) -> list[str]:
    return [w.message for w in book(lines).warnings if w.code == code]


@pytest.mark.parametrize(
    ("text", "table", "changes", "sets"),
    [
        ("UPDATE t SET x = 1, `Y` = k + 1 WHERE z = 2", "t", "update", {"x": "1", "y": ""}),
        ("update T as a set a.x = 'it, is', x.y = 3", "t", "update", {"x": ""}),
        ("UPDATE t SET x = CASE WHEN a THEN 1 END, y = f(a, b), z = true WHERE x = 1", "t",
         "update", {"x": "", "y": "", "z": "true"}),
        ("MERGE INTO t a USING event e ON a.k = e.k WHEN MATCHED AND e.x = 1 THEN UPDATE SET "
         "a.x = 1, y = e.y WHEN NOT MATCHED THEN INSERT (k) VALUES (e.k)", "t", "insert update",
         {"x": "1", "y": ""}),
        ("MERGE INTO t USING event e ON t.k = e.k WHEN MATCHED AND e.d THEN DELETE WHEN MATCHED "
         "THEN UPDATE SET t.x = 1 WHEN MATCHED THEN UPDATE SET x = 2", "t", "delete update",
         {"x": ""}),
        ("MERGE INTO t USING event e ON t.k = e.k WHEN MATCHED THEN UPDATE SET *", "t", "update",
         None),
        ("INSERT INTO t (update, delete) SELECT 1, 2", "t", "insert", {}),
        ("INSERT INTO TABLE t REPLACE WHERE k = 1 SELECT * FROM event", "t", "insert delete", {}),
    ],
)  # fmt: skip
def test_what_a_statement_writes(
    text: str, table: str, changes: str, sets: dict[str, str] | None
) -> None:
    (found,) = written(text)
    assert (found.table, " ".join(sorted(found.changes)), found.sets) == (
        table,
        " ".join(sorted(changes.split())),
        sets,
    )


@pytest.mark.parametrize(
    ("statement", "triggered"),
    [
        ("UPDATE t SET blocked = true WHERE balance < 0", ["flagged", "touched", "load", "landed"]),
        ("UPDATE t SET Balance = 0, note = 'x'", ["jumped", "touched", "load", "landed"]),
        ("MERGE INTO t USING event e ON t.k = e.k WHEN MATCHED THEN UPDATE SET *",
         ["jumped", "flagged", "touched", "load", "landed"]),
        ("MERGE INTO t USING event e ON t.k = e.k WHEN MATCHED AND balance > 0 THEN UPDATE SET "
         "note = balance WHEN NOT MATCHED THEN INSERT (k) VALUES (e.k)",
         ["touched", "came", "load", "landed"]),
        ("INSERT INTO t (k, balance) SELECT k, 1 FROM event", ["came", "load", "landed"]),
        ("MERGE INTO t USING event e ON t.k = e.k WHEN MATCHED THEN DELETE",
         ["left", "load", "landed"]),
    ],
)  # fmt: skip
def test_g22_an_action_triggers_by_the_columns_that_it_sets(
    statement: str, triggered: list[str]
) -> None:
    events = ("jumped", "flagged", "touched", "came", "left", "load", "landed")
    lines = "".join(f"  on_{event}: {{on: {event}}}\n" for event in events)
    found = book(f"{lines}  w:\n    on: go\n    do:\n      - sql: >\n          {statement}\n")
    edges, more = Triggers(found).edges("w")
    assert ([edge.triggers for edge in edges], more) == ([f"on_{e}" for e in triggered], 0)


def test_g22_a_rule_that_ignores_its_own_writing_does_not_trigger_itself() -> None:
    lines = f"  r: {{on: jumped or ping, {UPDATE.format('balance = 0')}}}\n  s: {{on: jumped}}\n"
    assert [e.triggers for e in Triggers(book(lines)).edges()[0]] == ["r", "s"]
    ignoring = book(lines.replace("{on: jumped or", "{ignore_own: true, on: jumped or"))
    assert [e.triggers for e in Triggers(ignoring).edges()[0]] == ["s"]


def test_g22_the_edges_of_an_action_trigger() -> None:
    found = book(
        "  pay: {on: ping, do: {signal: ping}}\n"
        "  late: {on: 'not(end_of pay)[begin_of pay, [5 min]]', do: {signal: ping}}\n"
        '  lost: {on: failed pay or failed lost, do: "INSERT INTO Log (k) SELECT 1 FROM event"}\n'
    )
    edges, _ = Triggers(found).edges()
    assert {(e.rule, e.kind, e.through, e.triggers) for e in edges} == {
        ("pay", "signal", "ping", "pay"),
        ("late", "signal", "ping", "pay"),
        ("pay", "action", "begin_of pay", "late"),
        ("pay", "action", "end_of pay", "late"),
        ("pay", "action", "failed pay", "lost"),
        ("lost", "action", "failed lost", "lost"),
    }
    loops = [(loop.rules, loop.through) for loop in Triggers(found).loops()]
    assert loops == [
        (("late", "pay"), ("begin_of pay", "end_of pay", "signal ping")),
        (("lost",), ("failed lost",)),
    ]


UPDATE = 'do: "UPDATE t SET {} WHERE k IN (SELECT k FROM event)"'


def test_g22_what_may_go_on_without_end_is_warned_of() -> None:
    lines = f"  r: {{on: jumped, {UPDATE.format('balance = 0')}}}\n"
    assert by_code(lines, "termination") == [
        "r may trigger itself through table t, on and on: max_cascade_depth (16) ends it"
    ]
    assert not by_code(lines.replace("on:", "ignore_own: true, on:"), "termination")
    assert not by_code(lines.replace("jumped", "flagged"), "termination")
    lines += f"  s: {{on: flagged ; go, {UPDATE.format('balance = 1')}, ignore_own: true}}\n"
    lines += f"  q: {{on: jumped ; go, {UPDATE.format('blocked = true')}, ignore_own: true}}\n"
    assert by_code(lines.replace("r: {on: jumped", "r: {on: go"), "termination") == [
        "q and s trigger each other through table t, on and on: max_cascade_depth (16) ends it"
    ]
    many = "".join(f"  r{n}: {{on: ping, do: {{signal: ping}}}}\n" for n in range(9))
    (all_of_them,) = by_code(many, "termination")
    assert all_of_them.startswith("r0, r1, r2, r3, r4, r5 and 3 more trigger each other")
    signals = "".join(f"  q{n}: {{on: end_of q{n}, do: {{signal: ping}}}}\n" for n in range(7))
    *_, last = by_code(signals, "termination")
    assert last == "and 2 more of these cycles"


STATEMENTS = (
    "INSERT INTO t (k, x, y) SELECT k, 1, 1 FROM event",
    "INSERT INTO t (k, x, y) SELECT k + 10, x, 5 FROM t WHERE k = 1",
    "INSERT INTO t (k, x, y) SELECT 20 + count(*), 0, 0 FROM t",
    "INSERT INTO Log (k, x) SELECT k, x FROM t",
    "INSERT INTO Log (k, x) SELECT k, 1 FROM event",
    "INSERT INTO Log SELECT k, x FROM (SELECT * FROM t)",
    "INSERT INTO Log (k, x) SELECT count(*), 7 FROM t WHERE k < 3",
    "UPDATE t SET x = 1",
    "UPDATE t SET x = 2 WHERE k = 1",
    "UPDATE t SET x = 1 WHERE k = 2",
    "UPDATE t SET y = 4 WHERE k = 2",
    "UPDATE t SET y = 4 WHERE x = 2",
    "UPDATE t SET y = x + 1",
    "UPDATE t SET x = CASE WHEN y = 1 THEN 7 ELSE 8 END, k = k",
    "UPDATE Log SET x = (SELECT max(x) FROM t)",
    "UPDATE Log SET x = 2 WHERE k = 1",
)
DIFFER = {
    (STATEMENTS[0], STATEMENTS[13]),
    (STATEMENTS[0], STATEMENTS[2]),
    (STATEMENTS[1], STATEMENTS[8]),
    (STATEMENTS[3], STATEMENTS[7]),
    (STATEMENTS[4], STATEMENTS[15]),
    (STATEMENTS[5], STATEMENTS[8]),
    (STATEMENTS[7], STATEMENTS[8]),
    (STATEMENTS[8], STATEMENTS[11]),
    (STATEMENTS[7], STATEMENTS[12]),
    (STATEMENTS[10], STATEMENTS[12]),
    (STATEMENTS[13], STATEMENTS[14]),
    (STATEMENTS[12], STATEMENTS[13]),
}


def left_by(*statements: str) -> list[list[tuple[int, ...]]]:
    """The rows of all tables once these have run, one after the other; of several beginnings."""
    found = []
    for x, y in product((1, 2), (1, 3)):
        database = sqlite3.connect(":memory:")
        database.executescript(
            "CREATE TABLE t (k, x, y); CREATE TABLE Log (k, x); CREATE TABLE event (k);"
            f"INSERT INTO t VALUES (1, {x}, {y}), (2, 2, 1); INSERT INTO Log VALUES (1, 9);"
            "INSERT INTO event VALUES (1), (5);"
        )
        for each in statements:
            database.execute(each)
        found += [sorted(database.execute(f"SELECT * FROM {name}")) for name in ("t", "Log")]
        database.close()
    return found


def test_g22_statements_that_are_not_said_to_disturb_each_other_commute() -> None:
    warned, alike = set(), 0
    for one, two in combinations(STATEMENTS, 2):
        (first,), (second,) = written(one), written(two)
        if first.disturbs(second) or second.disturbs(first):
            warned.add((one, two))
        else:
            alike += 1
            assert left_by(one, two) == left_by(two, one), (one, two)
    assert warned >= DIFFER
    assert [pair for pair in DIFFER if left_by(*pair) == left_by(*reversed(pair))] == []
    assert alike > 35


CLASH = "".join(
    f"  {name}: {{on: go, {UPDATE.format(f'x = {n}')}{{}}}}\n" for n, name in enumerate("ab")
)


@pytest.mark.parametrize(
    ("one", "two", "hint"),
    [
        ("", "", "say it: precedes: b in a, or priority"),
        (", priority: 1", "", None),
        (", precedes: c", ", follows: c", None),
        (", enabled: false", "", None),
        (", coupling: immediate", "", None),
        (", coupling: immediate", ", coupling: immediate", "say it: precedes: b in a, or priority"),
        (", coupling: {action: detached, condition: deferred}, priority: 1", "",
         "detached actions have no order; firm is on: end_of a in b"),
    ],
)  # fmt: skip
def test_g22_a_pair_whose_order_matters_is_warned_of_unless_it_is_said(
    one: str, two: str, hint: str | None
) -> None:
    found = book("  c: {on: go}\n" + CLASH.replace("{}", one, 1).replace("{}", two, 1))
    warned = [(w.message, w.hint) for w in found.warnings if w.code == "confluence"]
    message = (
        "a and b may act in either order, and t may differ by it: both write it, or one reads what"
        " the other writes"
    )
    assert warned == ([(message, hint)] if hint else [])


def test_g22_of_many_pairs_a_few_are_shown_and_the_others_counted() -> None:
    lines = "".join(f"  r{n}: {{on: go, {UPDATE.format(f'x = {n}')}}}\n" for n in range(6))
    *shown, last = by_code(lines, "confluence")
    assert len(shown) == 5
    assert last == "and 10 more of these pairs"
    inserts = "".join(
        f'  r{n}: {{on: go, do: "INSERT INTO t (k) SELECT {n} FROM event"}}\n' for n in range(6)
    )
    reader = '  log: {on: go, do: "INSERT INTO Log (k) SELECT k FROM T JOIN event USING (k)"}\n'
    assert by_code(inserts, "confluence") == []
    assert [m.split(" may")[0] for m in by_code(inserts + reader, "confluence")] == [
        *(f"r{n} and log" for n in range(5)),
        "and 1 more of these pairs",
    ]
