"""Lines that are changes of tables: they go through `on`, `of`, `where` and `time`."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidegate.engine.core.parameters import INSTANT
from tidegate.engine.replay.simulate import simulate
from tidegate.rules.errors import InputError
from tidegate.rules.model import Table

BOOK = """
rulebook: bank
tables:
  transactions: {path: /t, key: [id]}
  accounts: {path: /a, key: [id], on_unpaired: delete_insert}
  log: {path: /l}
events:
  withdrawal: {on: insert, table: transactions, where: kind = 'withdraw'}
  high: {on: insert, table: transactions, where: 100 / amount < 2, columns: [id as number]}
  upper: {on: insert, table: transactions, where: upper(word) = 'A'}
  marked: {on: update, table: transactions}
  gone: {on: delete, table: accounts}
  jumped: {on: update, of: [balance], table: accounts, where: new.balance > 2 * old.balance}
  fell: {on: update, table: accounts, where: old.balance > 5}
  renamed: {on: update, of: [name], table: accounts}
  any_change: {on: change, table: accounts}
  entry: {on: insert, table: log, time: at, lateness: 10 s, ahead: 5 s}
  committed: {on: commit, table: transactions}
rules:
  withdrawals: {on: withdrawal, per: id}
"""


SCRIPT = """\
scripts:
  counting:
    text: |
      in {long id;} gone out {long n;} counted
      (gone(x) { !> counted({n: x.id}); })*
"""


def change(table: str, kind: str, time: Any, row: Any, old: Any = None) -> dict[str, Any]:
    line = {"table": table, "change": kind, "time": time, "row": row}
    return line if old is None else {**line, "old": old}


def insert(at_time: Any = 1, table: str = "transactions", /, **row: Any) -> dict[str, Any]:
    return change(table, "insert", at_time, row)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def found(tmp_path: Path, told: list[str]) -> Any:
    """What is printed for lines, by rules that are each an expression."""

    def run(
        lines: list[Any], rules: dict[str, str], book: str | None = None, **options: Any
    ) -> list[dict[str, Any]]:
        said = "".join(f"  {name}: {{{text}}}\n" for name, text in rules.items())
        (tmp_path / "bank.yaml").write_text((book or BOOK).split("  withdrawals:")[0] + said)
        texts = [one if isinstance(one, str) else json.dumps(one) for one in lines]
        (tmp_path / "trace.jsonl").write_text("".join(f"{text}\n" for text in texts))
        out = io.BytesIO()
        paths = tmp_path / "bank.yaml", tmp_path / "trace.jsonl"
        simulate(*paths, out=out, tell=told.append, **options)
        return [json.loads(line, parse_float=Decimal) for line in out.getvalue().splitlines()]

    return run


@pytest.fixture
def refused(found: Any) -> Any:
    def run(lines: list[Any], **rules: str) -> list[str]:
        with pytest.raises(InputError) as error:
            found(lines, rules or {"r": "on: withdrawal"})
        return [str(problem).split("/")[-1] for problem in error.value.problems]

    return run


def rows(detections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for each in detections for row in each["constituents"]]


def test_a_where_chooses_among_inserts(found: Any) -> None:
    lines = [
        insert(3, id=1, kind="withdraw", amount=5),
        insert(1, id=2, kind="deposit", amount=5),
        {"event": "withdrawal", "time": 2, "id": 3},
        change("transactions", "delete", 4, {"id": 1, "kind": "withdraw"}),
    ]
    assert rows(found(lines, {"r": "on: withdrawal"})) == [
        {"event": "withdrawal", "time": 2, "id": 3},
        {"event": "withdrawal", "time": 3, "id": 1, "kind": "withdraw", "amount": 5},
    ]


STAR = "  starred: {on: update, of: [sum], table: accounts, columns: ['*', balance as sum], "


def test_a_star_takes_the_columns_that_are_not_renamed(
    found: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = "where: new.sum > 2 * old.sum and `sum` < 90 and name <> 'sum'}\n"
    given = BOOK.replace("  committed:", STAR + where + "  committed:")
    monkeypatch.setitem(globals(), "BOOK", given)
    before, after = {"id": 7, "balance": 10, "name": "a"}, {"id": 7, "balance": 50, "name": "b"}
    lines = [
        change("accounts", "update", 1, after, before),
        change("accounts", "update", 2, {**after, "balance": 120}, after),
        {"event": "starred", "time": 3, "id": 8, "sum": 4},
    ]
    detections = found(lines, {"r": "on: starred, per: sum"})
    assert rows(detections) == [
        {"event": "starred", "time": 1, "id": 7, "sum": 50, "name": "b", "old": before},
        {"event": "starred", "time": 3, "id": 8, "sum": 4},
    ]
    assert [each["key"] for each in detections] == [{"sum": 50}, {"sum": 4}]


def test_an_update_is_an_occurrence_with_old(found: Any) -> None:
    before, after = {"id": 7, "balance": 10, "name": "a"}, {"id": 7, "balance": 50, "name": "a"}
    lines = [
        change("accounts", "update", 1, after, before),
        change("accounts", "update", 2, {**after, "name": "b"}, after),  # of: [balance]
        change("accounts", "update", 3, {**after, "balance": 60}, after),  # where
        change("accounts", "update", 4, after, after),  # no update at all
    ]
    assert rows(found(lines, {"r": "on: jumped"})) == [
        {"event": "jumped", "time": 1, **after, "old": before}
    ]
    kinds = [row["_change_type"] for row in rows(found(lines, {"r": "on: any_change"}))]
    assert kinds == ["update"] * 3


def test_of_leaves_out_updates_of_other_columns(found: Any) -> None:
    row = {"id": 7, "balance": 10, "name": "a"}
    lines = [
        change("accounts", "update", 1, {**row, "balance": 11}, row),
        change("accounts", "update", 2, {**row, "name": "b"}, row),
    ]
    assert [row["time"] for row in rows(found(lines, {"r": "on: renamed"}))] == [2]


def test_a_column_that_only_the_row_before_has_counts(found: Any) -> None:
    line = change("accounts", "update", 1, {"id": 7}, {"id": 7, "balance": 10})
    assert len(found([line], {"r": "on: any_change"})) == 1
    line = change("accounts", "update", 1, {"id": 7, "balance": None}, {"id": 7, "balance": 10})
    assert len(found([line], {"r": "on: fell"})) == 1


def test_the_inputs_of_scripts_are_made(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.BOOK", BOOK.replace("rules:", f"{SCRIPT}rules:"))
    lines = [change("accounts", "delete", n, {"id": n}) for n in (7, 8)]
    said = [one for one in found(lines, {"r": "on: counted"}) if "constituents" in one]
    assert [row["n"] for row in rows(said)] == [7, 8]


def test_the_beginning_of_an_update_has_the_values_from_before(found: Any) -> None:
    line = change("accounts", "update", 1, {"id": 7, "balance": 50}, {"id": 7, "balance": 10})
    (said,) = rows(found([line], {"r": "on: begin_of jumped, per: {jumped: balance}"}))
    assert said == {"event": "jumped", "time": 1, "id": 7, "balance": 10}


def test_an_update_of_the_key_is_a_delete_and_an_insert(found: Any) -> None:
    line = change("accounts", "update", 1, {"id": 8, "balance": 1}, {"id": 7, "balance": 2})
    said = rows(found([line], {"r": "on: any_change", "s": "on: gone or jumped"}))
    assert [(row["event"], row["id"], row.get("_change_type")) for row in said] == [
        ("any_change", 7, "delete"),
        ("any_change", 8, "insert"),
        ("gone", 7, None),
    ]


def test_an_update_of_the_key_is_refused_if_the_table_says_so(refused: Any) -> None:
    line = change("transactions", "update", 1, {"id": 8}, {"id": 7})
    (problem,) = refused([insert(id=1), line], r="on: marked")
    assert problem.startswith("trace.jsonl:2:1: the update changes the key of transactions (id)")


def test_columns_rename(found: Any) -> None:
    lines = [insert(id=1, amount=400.50), insert(id=2, amount=10)]
    assert rows(found(lines, {"r": "on: high, per: {high: number}"})) == [
        {"event": "high", "time": 1, "number": 1}
    ]


def test_rows_on_which_a_where_raises_are_rejected(found: Any, told: list[str]) -> None:
    lines = [insert(id=n, amount=n) for n in (0, 0, 60)]
    assert len(found(lines, {"r": "on: high"})) == 1
    assert "warning: 2 rows rejected for high: `where: 100 / amount < 2` fails" in told


def test_numbers_print_as_they_are_written(found: Any) -> None:
    text = '{"table": "transactions", "change": "insert", "time": 1, "row": {"kind": "withdraw", '
    text += '"a": 12.50, "b": 123456789012345678901234567890, "c": 1e3, "d": [0.10]}}'
    (row,) = rows(found([text], {"r": "on: withdrawal"}))
    assert (str(row["a"]), row["b"]) == ("12.50", 123456789012345678901234567890)
    assert (str(row["c"]), str(row["d"][0])) == ("1E+3", "0.10")


def test_g05_event_time(found: Any, told: list[str]) -> None:
    lines = [
        insert(f"2026-03-01T10:00:{second:02}", "log", n=n, at=at)
        for n, second, at in [
            (1, 0, "2026-03-01T09:59:55"),
            (2, 1, None),
            (3, 2, "2026-03-01T09:00:00"),
            (4, 3, "2026-03-01T10:00:30"),
        ]
    ]
    (row,) = rows(found(lines, {"r": "on: entry"}))
    assert (row["n"], row["time"]) == (1, "2026-03-01T09:59:55Z")
    assert [said.split(" rejected")[0] for said in told] == ["warning: 1 row"] * 3


def test_a_commit_is_none_unless_a_line_says_so(found: Any) -> None:
    lines = [insert(id=1, kind="withdraw"), {"event": "committed", "time": 2}]
    assert [row["time"] for row in rows(found(lines, {"r": "on: committed"}))] == [
        Decimal("2.000001")
    ]


def test_an_if_is_asked_over_changes(found: Any) -> None:
    lines = [insert(n, id=n, kind="withdraw", amount=n) for n in (1, 2, 3)]
    said = found(lines, {"r": "on: withdrawal, if: sum(amount) > 1.5"}, conditions=True)
    assert [each["condition"] for each in said] == ["failed", "held", "held"]


def test_the_schema_of_a_table_is_asked_for(found: Any) -> None:
    def schemas(table: Table) -> pa.Schema | None:
        kinds = {"transactions": [("id", pa.int64()), ("kind", pa.string()), ("amount", NUMERIC)]}
        return pa.schema(kinds[table.name]) if table.name in kinds else None

    lines = [insert(id=1, amount="66.67"), insert(id=2, amount="10.00")]
    assert [row["number"] for row in rows(found(lines, {"r": "on: high"}, schemas=schemas))] == [1]
    for wrong, said in [
        ({"id": "x"}, "`id`"),
        ({"idd": 1}, "`idd`"),
        ({"amount": 1.234}, "amount"),
    ]:
        with pytest.raises(InputError) as error:
            found([insert(**wrong)], {"r": "on: high"}, schemas=schemas)
        (problem,) = error.value.problems
        assert said in str(problem)
        assert "trace.jsonl:1" in str(problem)


def test_a_value_of_the_schema_s_type_becomes_null_and_comes_back(found: Any) -> None:
    kinds = {"id": pa.int64(), "balance": NUMERIC, "name": pa.string(), "at": INSTANT}
    values = [5, 5.0, 5.5, None, "5.5", None]
    lines = [
        change("accounts", "update", n, {"id": 1, "balance": new}, {"id": 1, "balance": old})
        for n, (old, new) in enumerate(pairwise(values))
    ]
    schema = pa.schema(kinds)
    for zone in ("UTC", "Europe/Berlin"):
        moved = BOOK.replace("of: [name]", "of: [balance]").replace(
            "rulebook: bank", f"rulebook: bank\ntimezone: {zone}"
        )
        said = found(lines, {"r": "on: renamed"}, book=moved, schemas=lambda _: schema)
        assert [row["time"] for row in rows(said)] == [1, 2, 3, 4]


def test_a_timestamp_of_a_table_without_offset_is_in_the_rulebook_s_zone(found: Any) -> None:
    schema = pa.schema({"id": pa.int64(), "at": INSTANT})
    book = BOOK.replace("rulebook: bank", "rulebook: bank\ntimezone: Europe/Berlin")
    late = "at >= TIMESTAMP '2026-03-02T08:00:00Z'"
    book = book.replace("100 / amount < 2, columns: [id as number]", late)
    at = ["2026-03-02T08:59:59", "2026-03-02T09:00:00", "2026-03-02T08:00:00Z", "2026-03-02T10:00"]
    texts = [insert("2026-03-02T10:00:00", id=n, at=text) for n, text in enumerate(at)]
    options = {"book": book, "schemas": lambda _: schema}
    shown = [row["at"] for row in rows(found(texts, {"r": "on: high"}, **options))]
    assert shown == sorted(at[1:])
    logged = [insert("2026-03-02T09:00:05", "log", at=text) for text in at[:3]]
    said = found(logged, {"r": "on: entry"}, **options)
    assert [each["end"] for each in said] == [
        "2026-03-02T07:59:59Z", "2026-03-02T08:00:00Z", "2026-03-02T08:00:00Z"
    ]  # fmt: skip
    asked = "on: high, if: min(at) >= TIMESTAMP '2026-03-02T08:00:01Z'"
    said = found(texts, {"r": asked}, conditions=True, **options)
    assert [each["condition"] for each in said] == ["failed", "failed", "held"]


LOGGED = pa.schema({"id": pa.int64(), "kind": pa.string(), "amount": pa.float64()})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"id": "x"}, "trace.jsonl:2:1: field `id` of `withdrawal` is to be bigint, but is 'x'"),
        ({"amount": "much"}, "trace.jsonl:2:1: field `amount` of `withdrawal` is to be double"),
    ],
)
@pytest.mark.parametrize("first", [insert(id=1, kind="withdraw", amount=5), ""])
def test_a_line_of_an_event_type_has_the_types_of_its_table(
    found: Any, wrong: dict[str, Any], said: str, first: Any
) -> None:
    lines = [first, {"event": "withdrawal", "time": 2, "more": [1], **wrong}]
    with pytest.raises(InputError) as error:
        found(lines, {"r": "on: withdrawal"}, schemas=lambda _: LOGGED)
    (problem,) = error.value.problems
    assert said in str(problem)
    lines[1] = {"event": "withdrawal", "time": 2, "more": [1], "amount": 7}
    shown = found(lines, {"r": "on: withdrawal, if: max(amount) > 6"}, schemas=lambda _: LOGGED)
    assert shown[-1]["constituents"][0]["more"] == [1], "what is not declared is kept"


@pytest.mark.parametrize("line", [insert(id=1), {"event": "high", "time": 2, "number": 3}])
def test_an_event_type_that_picks_what_its_table_has_not_is_refused(found: Any, line: Any) -> None:
    schema = pa.schema({"idd": pa.int64(), "kind": pa.string(), "amount": pa.float64()})
    line = json.loads(json.dumps(line).replace('"id"', '"idd"'))
    with pytest.raises(InputError) as error:
        found([line], {"r": "on: withdrawal, if: count(*) > 0"}, conditions=True,
              schemas=lambda table: schema if table.name == "transactions" else None)  # fmt: skip
    (problem,) = error.value.problems
    assert "bank.yaml:9:3: table transactions has no column id" in str(problem)
    assert problem.hint == "did you mean 'idd'?"


def test_an_if_sees_the_types_of_the_schema(found: Any) -> None:
    schema = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("amount", NUMERIC)])
    lines = [insert(id=n, kind="withdraw", amount=n / 10) for n in (1, 2)]
    rules = {"r": "on: 'any(2, withdrawal*)', if: sum(amount) = 0.30"}  # the sum of doubles is not
    for schemas, said in [(lambda _: schema, "held"), (lambda _: None, "failed")]:
        (one,) = found(lines, rules, conditions=True, schemas=schemas)
        assert one["condition"] == said


NUMERIC = pa.decimal128(12, 2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"table": "transaction", "change": "insert", "time": 1, "row": {}}, "unknown table"),
        ({"table": "transactions", "change": "inserted", "time": 1, "row": {}}, "unknown change"),
        ({"table": "transactions", "time": 1, "row": {}}, "the line has no change"),
        ({"change": "insert", "time": 1, "row": {}}, "the line has no table"),
        ({"table": 7, "change": "insert", "time": 1, "row": {}}, "the line has no table"),
        ({"table": "transactions", "change": [], "time": 1, "row": {}}, "the line has no change"),
        (change("transactions", "insert", 1, None), "the insert has no row"),
        (change("transactions", "update", 1, {}), "the update has no old"),
        (change("transactions", "delete", 1, {}, {}), "the delete has an old"),
        ({"table": "transactions", "change": "insert", "row": {}}, "no time"),
        (change("transactions", "insert", "x", {}), "either numbers or ISO"),
        ({**insert(), "rows": []}, "a change has no 'rows'"),
        ('{"table": "log", "change": "insert", "time": 1, "row": {"a": 1, "a": 2}}', "twice"),
        (insert(1, "log", at="no time"), "at is no instant"),
    ],
)
def test_wrong_lines_have_a_place(refused: Any, line: Any, said: str) -> None:
    right = insert(id=1, kind="withdraw", amount=1)
    (problem,) = refused([right, "", line, right], r="on: withdrawal", s="on: entry")
    assert problem.startswith("trace.jsonl:3")
    assert said in problem


@pytest.mark.parametrize(
    ("where", "row", "said"),
    [
        ("kind rlike 'a'", {"kind": "a"}, "the `where` of e needs Spark: tidegate test --spark"),
        ("kind = 'a'", {"kin": "a"}, "no row of t has a column kind"),
        ("n > 5", {"n": "a"}, "the `where` of e needs Spark"),
        ("n > 5 and kind = 'a'", {"n": [5], "kind": "a"}, "the values of n are of several types"),
    ],
)
def test_a_where_that_arrow_cannot_decide_is_refused_at_its_place(
    tmp_path: Path, where: str, row: dict[str, Any], said: str
) -> None:
    book, trace = tmp_path / "book.yaml", tmp_path / "trace.jsonl"
    book.write_text(
        "rulebook: b\ntables: {t: {path: /t}}\nevents:\n"
        f'  e: {{on: insert, table: t, where: "{where}"}}\nrules: {{r: {{on: e}}}}\n'
    )
    trace.write_text(json.dumps(insert(1, "t", **row)))
    with pytest.raises(InputError) as error:
        simulate(book, trace, out=io.BytesIO())
    (problem,) = error.value.problems
    assert said in str(problem)
    assert "book.yaml:4:37" in str(problem)


def test_what_only_spark_can_tell_of_a_row_has_the_place_of_the_line(refused: Any) -> None:
    lines = [insert(id=1, word="a", kind="b"), insert(id=2, word="é", kind="b")]
    (problem,) = refused(lines, r="on: upper")
    assert problem.startswith(
        "trace.jsonl:2:1: only Spark can tell the `where` of upper of this row"
    )


def test_a_column_that_is_null_throughout_has_any_type(found: Any) -> None:
    assert found([insert(id=1, amount=None)], {"r": "on: high"}) == []
    assert found([insert(id=1, kind=None)], {"r": "on: withdrawal"}) == []


def test_columns_that_no_occurrence_shows_are_told(found: Any, told: list[str]) -> None:
    lines = [insert(id=1, kind="withdraw", time=7)]
    assert rows(found(lines, {"r": "on: withdrawal"})) == [
        {"event": "withdrawal", "time": 1, "id": 1, "kind": "withdraw"}
    ]
    assert told == [
        "warning: no occurrence shows time of transactions: columns: [time as ..] renames it"
    ]
    told.clear()
    assert len(found([insert(id=1, amount=400.5, time=7)], {"r": "on: high"})) == 1
    assert told == []  # it shows no column under its own name


def test_what_names_are_meant(refused: Any) -> None:
    (problem,) = refused([{**insert(), "table": "transaction"}])
    assert "did you mean 'transactions'?" in problem
    (problem,) = refused([{**insert(), "change": "inser"}])
    assert "did you mean 'insert'?" in problem


@pytest.mark.parametrize("bucket", [1, 2, 3])
def test_the_output_does_not_depend_on_buckets(found: Any, bucket: int) -> None:
    lines: list[Any] = [insert(n, id=n % 3, kind="withdraw", amount=n) for n in range(9)]
    lines += [change("accounts", "delete", n, {"id": n % 3}) for n in range(0, 9, 2)]
    lines += [{"event": "withdrawal", "time": n, "id": 1} for n in range(4)]
    rules = {"r": "on: withdrawal ; gone, per: id, context: chronicle"}
    assert found(lines, rules, bucket=bucket) == found(lines, rules)
    assert found(lines[::-1], rules) == found(lines, rules)
