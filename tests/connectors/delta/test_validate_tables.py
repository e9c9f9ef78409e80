"""`validate --tables`: one run names all that is wrong."""

from __future__ import annotations

import pytest

from tests.support.lake import Lake
from tidegate import rules
from tidegate.engine.app.tables import check_tables
from tidegate.rules.checks.gaps import SIMULATED
from tidegate.rules.errors import InputError

BOOK = """
rulebook: b
tables:
  t: {{path: "{folder}/t", key: [nope]}}
  quiet: {{path: "{folder}/quiet"}}
  out: {{path: "{folder}/out"}}
  gone: {{path: "{folder}/gone"}}
events:
  odd: {{on: insert, table: t, where: upper(nome) = 'X'}}
  still: {{on: insert, table: quiet}}
  lost: {{on: insert, table: gone}}
  load: {{on: transaction, table: t, where: version + 1}}
  picked: {{on: insert, table: t, columns: [nope as x]}}
  s: {{signal: {{id: bigint, by: string}}, where: id + 1}}
rules:
  r:
    on: odd ; still
    if: summ(id) > 1
    do:
      - sql: INSERT INTO out (id) SELECT nope FROM event
      - sql: INSERT INTO out (id) SELECT id FROM event
      - sql: INSERT INTO gone SELECT id FROM event
      - signal: {{s: {{id: no1, by: no2}}}}
  of_lost: {{on: lost ; still, do: INSERT INTO out (id) SELECT id FROM event}}
  of_that: {{on: of_lost, do: INSERT INTO out (id) SELECT id FROM event}}
  of_load: {{on: load}}
  of_picked: {{on: picked, do: INSERT INTO out (id) SELECT x FROM event}}
  of_ticks: {{on: "P(at(08:00), [5 s]: level, [1 min])"}}
  of_others: {{on: "P(at(09:00), [5 s]: level, [1 min])"}}
samples:
  level: SELECT max(nope) FROM t
"""
WRONG = [
    (4, "tables.t.key", "the table has no column `nope`"),
    (5, "tables.quiet", "table `quiet`: the change data feed is off"),
    (7, "tables.gone", "table gone: no Delta table at"),
    (9, "events.odd.where", "[UNRESOLVED_COLUMN"),
    (12, "events.load.where", "`where` is bigint, not boolean"),
    (13, "events.picked.columns", "the table has no column `nope`"),
    (14, "events.s.where", "`where` is bigint, not boolean"),
    (18, "rules.r.if", "there is no function summ"),
    (20, "rules.r.do[0].sql", "[UNRESOLVED_COLUMN"),
    (23, "rules.r.do[3].signal", "[UNRESOLVED_COLUMN"),
    (23, "rules.r.do[3].signal", "[UNRESOLVED_COLUMN"),
    (31, "samples.level", "[UNRESOLVED_COLUMN"),
]


def test_every_kind_of_problem_is_named_in_one_run(lake: Lake) -> None:
    """Wrong columns, filters, conditions and actions, tables that are gone or have no feed; not
    what only follows from one of these."""
    lake.create("t", "id BIGINT, name STRING")
    lake.create("quiet", "id BIGINT", enableChangeDataFeed="false")
    lake.create("out", "id BIGINT")
    with pytest.raises(InputError) as refused:
        check_tables(rules.load(BOOK.format(folder=lake.folder), features=SIMULATED), spark_conf={})
    problems = refused.value.problems
    found = [(p.place.line, p.place.path, p.message) for p in problems]
    assert [(line, path) for line, path, _ in found] == [(line, path) for line, path, _ in WRONG]
    for (_, _, message), (_, _, begins) in zip(found, WRONG, strict=True):
        assert message.startswith(begins)
    assert problems[-1].hint.endswith("without `event`")


@pytest.mark.usefixtures("spark")
def test_an_instant_has_no_row_of_what_it_follows() -> None:
    book = """
        rulebook: b
        events: {paid: {signal: {amount: bigint}}}
        rules: {r: {on: "paid + [2 s]", if: sum(amount) > 1}}
    """
    with pytest.raises(InputError) as refused:
        check_tables(rules.load(book, features=SIMULATED), spark_conf={})
    (problem,) = refused.value.problems
    assert problem.hint == (
        "paid + [2 s] is an instant, without the row of paid; paid ; [2 s] fires then and has it"
    )
    check_tables(rules.load(book.replace("+ [2", "; [2"), features=SIMULATED), spark_conf={})


def test_key_columns_that_may_be_null_are_warned_of(lake: Lake) -> None:
    lake.create("t", "id BIGINT, sure BIGINT NOT NULL, name STRING")
    book = f"""
rulebook: b
tables: {{t: {{path: "{lake.folder}/t"}}}}
events:
  a: {{on: insert, table: t}}
  b: {{on: insert, table: t, columns: [id as k, sure]}}
  c: {{on: insert, table: t, where: name = 'x' AND `ID` is not  null}}
  d: {{on: insert, table: t, where: sure IS NOT NULL}}
  s: {{signal: {{id: bigint}}}}
rules:
  r: {{on: a, per: id}}
  q: {{on: a ; a, per: id}}
  t: {{on: b, per: [k, sure]}}
  u: {{on: c or s, per: id}}
  v: {{on: d, per: id}}
  w: {{on: a, per: sure}}
"""
    warnings = check_tables(rules.load(book), spark_conf={}).warnings
    found = [(w.code, w.place.line, w.message) for w in warnings]
    said = "id may be null, and rows where it is are all of one key"
    assert found == [("null-key", line, said) for line in (5, 6, 8)]
    assert warnings[0].hint.startswith("leave them out, where: id IS NOT NULL")
