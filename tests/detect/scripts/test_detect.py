"""`tidegate.detect` with event scripts: rules over what they emit."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidegate import detect
from tidegate.engine.replay.simulate import simulate
from tidegate.rules.errors import InputError

BOOK = """
rulebook: bank
events:
  paid: {signal: {account: bigint, amount: double}}
  alarm: {signal: {account: bigint}}
scripts:
  large:
    text: |
      in {long account; double amount;} paid group(paid.account)
      out double sum
      (paid(x) {s = s + x.amount; !> sum(s);} elapse[5 seconds]()? {s = s;})*
  twice:
    text: "in double sum out {} high (sum(x) {x > 10 ? !> high();})*"
    in: {sum: {event: sum, value: value}}
rules:
  sums: {on: sum, per: account}
  after: {on: high ; alarm}
"""


def occurrences(*rows: tuple[str, int, int, float | None]) -> pa.Table:
    names = ("event", "time", "account", "amount")
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def shown(found: pa.Table) -> list[tuple[Any, ...]]:
    return [
        (row["rule"], row["account"], row["constituents"], [t["event"] for t in row["ticks"]])
        for row in found.to_pylist()
    ]


def simulated(
    tmp_path: Path, book: str, given: Iterable[tuple[str, int, int]], until: str | None = None
) -> list[dict[str, Any]]:
    """The lines of `simulate` over occurrences with an instant in seconds and a key `k`."""
    (tmp_path / "book.yaml").write_text(book)
    lines = [json.dumps({"event": e, "time": at, "k": k}) for e, at, k in given]
    (tmp_path / "trace.jsonl").write_text("\n".join(lines))
    out = io.BytesIO()
    simulate(tmp_path / "book.yaml", tmp_path / "trace.jsonl", until=until, out=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_rules_see_what_scripts_emit_and_it_stands_among_the_ticks() -> None:
    given = occurrences(
        ("alarm", 3, 7, None), ("paid", 1, 7, 9.0), ("paid", 2, 7, 2.0), ("paid", 2, 8, 1.0)
    )
    assert shown(detect(BOOK, given)) == [
        ("sums", 7, [], ["sum"]),
        ("sums", 7, [], ["sum"]),
        ("sums", 8, [], ["sum"]),
        ("after", None, [0], ["high"]),
    ]


def test_what_a_script_emits_cannot_be_given() -> None:
    with pytest.raises(InputError, match="sum cannot be given as an occurrence"):
        detect(BOOK, occurrences(("sum", 1, 7, 9.0)))


TAKES_RULE = """
rulebook: pairs
events:
  a: {signal: {k: bigint}}
  b: {signal: {k: bigint}}
scripts:
  count:
    text: |
      in {long k; time started_at; time detected_at;} met group(met.k)
      out {long n; time from; time to;} counted
      (met(x) {n = n + 1; !> counted({n: n, from: x.started_at, to: x.detected_at});})*
  late: {text: "in {long k;} quiet out long silent (quiet(x) {!> silent(x.k);})*"}
rules:
  met: {on: a ; b, per: k, context: chronicle}
  quiet: {on: "b + [10 s]", per: k}
  told: {on: counted, per: k}
  after: {on: silent}
"""
TOOK = [("a", 1, 7), ("a", 2, 8), ("b", 3, 7), ("a", 4, 7), ("b", 4, 8), ("b", 6, 7)]


def test_a_script_takes_what_a_rule_detects_as_in_simulate(tmp_path: Path) -> None:
    """Also what the rule detects after the last occurrence."""
    times = [at * 1_000_000 for _, at, _ in TOOK]
    given = pa.table({"event": [e for e, _, _ in TOOK], "time": times, "k": [k for *_, k in TOOK]})
    found = [
        (row["rule"], row["k"], int(row["end"].timestamp()))
        for row in detect(TAKES_RULE, given).to_pylist()
        if row["rule"] in ("told", "after")
    ]
    assert found == [("told", 7, 3), ("told", 8, 4), ("told", 7, 6)] + [
        ("after", None, at) for at in (13, 14, 16)
    ]
    said = simulated(tmp_path, TAKES_RULE, TOOK)
    assert found == [
        (line["rule"], line["key"].get("k"), line["end"])
        for line in said
        if line.get("rule") in ("told", "after")
    ]


LAST = """
rulebook: last
events: {a: {signal: {k: bigint}}, b: {signal: {k: bigint}}}
scripts:
  order:
    text: |
      in INPUTS
      out {} ok, {} other, {} late
      ((met() b() {!> ok();} | b() met() {!> other();}) elapse[5 seconds]() {!> late();})*
rules:
  met: {on: a ; b, per: k}
  oks: {on: ok}
  others: {on: other}
  lates: {on: late}
"""


@pytest.mark.parametrize("inputs", ["{} met, {} b", "{} b, {} met"])
def test_what_ends_with_the_last_occurrence_meets_it_in_a_script(
    tmp_path: Path, inputs: str
) -> None:
    """And the script goes on after it, as in `simulate`."""
    book = LAST.replace("INPUTS", inputs)
    given = [("a", 1), ("b", 2)]
    times = [at * 1_000_000 for _, at in given]
    table = pa.table({"event": [e for e, _ in given], "time": times, "k": [7, 7]})
    found = [(r["rule"], int(r["end"].timestamp())) for r in detect(book, table).to_pylist()]
    said = simulated(tmp_path, book, [(e, at, 7) for e, at in given])
    assert sorted(found) == sorted((s["rule"], s["end"]) for s in said if "rule" in s)
    assert ("lates", 7) in found


def test_a_script_that_ran_away_does_nothing_after_the_last_occurrence() -> None:
    book = """
rulebook: runaway
settings: {script_steps_max: 50}
events: {a: {signal: {k: bigint}}}
scripts:
  waits:
    text: |
      in {long k;} a group(a.k)
      out {} late
      a(x) {x.k == 2 ? while (true) {n = n + 1;}} elapse[5 seconds]() {!> late();}
rules:
  lates: {on: late}
"""
    given = [pa.table({"event": ["a"] * n, "time": [10**6, 2 * 10**6][:n], "k": [1, 2][:n]})
             for n in (1, 2)]  # fmt: skip
    assert [detect(book, table).num_rows for table in given] == [1, 0]


def test_rules_see_an_object_as_text() -> None:
    book = """
rulebook: objects
events:
  paid: {signal: {account: bigint, amount: double}}
scripts:
  both:
    text: |
      in {long account; double amount;} paid
      out {long account; {object o;} in;} one
      (paid(x) {!> one({account: x.account, in: {o: x.amount}});
       !> one({account: x.account, in: {o: x.account}}); })*
rules:
  ones: {on: one and paid, per: account}
"""
    found = detect(book, occurrences(("paid", 1, 7, 9.0), ("paid", 2, 8, 1.5)))
    assert [each[:2] for each in shown(found)] == [("ones", 7), ("ones", 8)]


def test_outputs_of_one_script_reach_the_next_as_they_were_emitted() -> None:
    book = """
rulebook: two
events: {n: {signal: {value: bigint}}}
scripts:
  one: {text: "in long n out {} o, {} e (n() { !> o(); !> e(); })*"}
  two: {text: "in {} e, {} o out {} good (o() e() { !> good(); })*"}
rules:
  told: {on: good}
"""
    given = pa.table({"event": ["n"] * 3, "time": [1, 2, 3], "value": [0, 0, 0]})
    ends = detect(book, given).column("end").cast(pa.int64()).to_pylist()
    assert ends == [1, 2, 3]


WAITS = """
rulebook: waits
events: {a: {signal: {k: bigint}}, stop: {signal: {k: bigint}}}
scripts:
  wait:
    text: |
      in {long k;} a group(a.k)
      out {} late
      a() elapse[5 seconds]() {!> late();}
rules:
  ticking: {on: "P(late, [1 s], stop)"}
  later: {on: "late + [3 s]"}
"""


@pytest.mark.parametrize("until", [None, "11"])
def test_what_a_script_opens_after_the_last_occurrence_ticks_no_more(
    tmp_path: Path, until: str | None
) -> None:
    """The script is late at 6 s and at 9 s, after the last line."""
    given = [("a", 1, 7), ("a", 4, 8)]
    said = simulated(tmp_path, WAITS, given, until)
    ends = [(each["rule"], each["end"]) for each in said if "rule" in each]
    if until is None:
        assert ends == [("later", 9), ("later", 12)]
        times = [at * 1_000_000 for _, at, _ in given]
        table = pa.table({"event": [e for e, *_ in given], "time": times, "k": [7, 8]})
        found = [(r["rule"], int(r["end"].timestamp())) for r in detect(WAITS, table).to_pylist()]
        assert found == ends
    else:
        ticks = [("ticking", at) for at in (7, 8, 9, 10, 11)]
        assert ends == sorted([*ticks, ("later", 9)], key=lambda each: (each[1], each[0]))


def test_a_script_sees_a_transaction_with_which_a_history_ends() -> None:
    """Its end is a microsecond after its instant."""
    book = """
rulebook: loads
tables: {t: {path: /t, key: [k]}}
events: {load: {on: transaction, table: t}}
scripts: {s: {text: "in {} load out {} seen (load() {!> seen();})*"}}
rules: {told: {on: seen}}
"""
    found = detect(book, pa.table({"event": ["load"] * 2, "time": [1_000_000, 2_000_000]}))
    assert found.column("end").cast(pa.int64()).to_pylist() == [1_000_001, 2_000_001]


STRATA = """
rulebook: strata
events: {a: {signal: {k: bigint}}}
scripts:
  s: {text: "in {long k;} r out {long k;} up (r(x) {!> up({k: x.k});})*"}
rules:
  q: {on: up and r}
  r: {on: a, per: k}
"""


def test_what_rules_before_and_after_a_script_detect_is_told_once() -> None:
    """r is stepped with q, too, which uses it."""
    found = detect(STRATA, pa.table({"event": ["a"], "time": [1_000_000], "k": [7]}))
    assert found.column("rule").to_pylist() == ["q", "r"]
