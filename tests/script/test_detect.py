"""`tidegate.detect` with event scripts: rules over what they emit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tidegate import detect
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
