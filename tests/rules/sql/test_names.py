"""Columns of events under other names, in a `where`."""

from __future__ import annotations

import pytest

from tidegate import rules
from tidegate.rules.errors import InputError
from tidegate.rules.model import TableEvent
from tidegate.rules.sql.statement import with_names


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("date > DATE '2026-03-02'", "`placed` > DATE '2026-03-02'"),
        ("old.Date < new.date", "old.`placed` < new.`placed`"),
        ("cast(ts as date) = date and date(date) = t.date",
         "cast(ts as date) = `placed` and date(`placed`) = t.date"),
        ("ts > date + INTERVAL 3 day", "ts > `placed` + INTERVAL 3 day"),
        ("extract(day from ts) = day", "extract(day from ts) = `d ay`"),
        ("`date` = 1", "`placed` = 1"),
        ("total + total(total) > x.total", "`amount` + total(`amount`) > x.total"),
        ("= date total", "= `placed` `amount`"),  # which Spark refuses
    ],
)  # fmt: skip
def test_new_names_stand_for_columns_only(text: str, found: str) -> None:
    assert with_names(text, {"date": "placed", "day": "d ay", "total": "amount"}) == found


EVENT = """
rulebook: r
tables: {{t: {{path: /t, key: [id]}}}}
events: {{e: {{on: update, table: t, of: [Total], time: AT, columns: [{}]}}}}
rules: {{r: {{on: e}}}}
"""


def test_sql_does_not_tell_case() -> None:
    event = rules.load(EVENT.format('"*", amount as total, ts as at')).events["e"]
    assert isinstance(event, TableEvent)
    assert (event.of, event.time) == (("amount",), "ts")
    assert event.clashes(["amount", "ts", "At", "TOTAL"]) == ["total", "at"]
    assert event.clashes(["amount", "ts", "note"]) == []
    capital = rules.load(EVENT.format('"*", amount as Sum')).events["e"]
    assert isinstance(capital, TableEvent)
    assert capital.clashes(["amount", "sum"]) == ["Sum"]
    with pytest.raises(InputError, match="two columns are named 'Total'"):
        rules.load(EVENT.format('"*", amount as total, ts as Total'))
