"""`simulate --if`: the `if` of each rule, asked without Spark (`language.md` 4, G30)."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import cases
from tests.replay.traces import simulated, write
from tests.support.rulebooks import HERE
from tidegate.engine.replay.conditions import Conditions
from tidegate.engine.replay.simulate import run, simulate
from tidegate.engine.replay.trace import read
from tidegate.rules.errors import InputError
from tidegate.rules.model import Condition

BOOK = """
rulebook: bank
tables: {{accounts: {{path: /a, key: [account]}}, notes: {{path: /n}}}}
events:
  paid: {{signal: {{account: bigint, amount: "decimal(12,2)", kind: string}}}}
  jumped: {{on: update, table: accounts}}
  changed: {{on: transaction, table: notes}}
  noted: {{on: insert, table: notes, columns: [account, note as said, other]}}
rules:
  r: {{{rule}}}
  pay: {{on: paid ; paid ; paid, per: account, enabled: false, do: [{{disable: r}}]}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("conditions")


def conditions(
    folder: Path, rule: str, trace: Sequence[Mapping[str, Any]], **options: Any
) -> list[str | None]:
    """What stands beside each detection: its condition, and what drops it."""
    file, lines = folder / "bank.yaml", folder / "trace.jsonl"
    file.write_text(BOOK.format(rule=rule))
    lines.write_text("".join(json.dumps(line) + "\n" for line in trace))
    out = io.BytesIO()
    simulate(file, lines, out=out, conditions=True, **options)
    found = map(json.loads, out.getvalue().splitlines())
    return [" ".join(filter(None, map(each.get, ("condition", "damped")))) for each in found]


def paid(time: int, amount: float | str | None, account: int = 1, **more: Any) -> dict[str, Any]:
    return {"event": "paid", "time": time, "account": account, "amount": amount, **more}


def jumped(time: int, before: Any, after: Any, account: Any = 1) -> dict[str, Any]:
    old = {"account": account, "balance": before}
    return {"event": "jumped", "time": time, "account": account, "balance": after, "old": old}


@pytest.mark.parametrize("bucket", [None, 1])
def test_g30_each_detection_says_whether_its_condition_held(
    tmp_path: Path, bucket: int | None
) -> None:
    rule = "on: paid ; paid, per: account, if: sum(amount) > 1000 and count(*) = 2"
    trace = [paid(1, 700.10), paid(2, 100, 2), paid(3, "400"), paid(4, 900, 2), paid(5, 0.01, 2)]
    found = conditions(tmp_path, rule, trace, bucket=bucket)
    assert found == ["held", "failed", "failed"]
    exact = "on: paid, if: max(amount) * 3 = 0.30"  # as decimals, not as doubles
    assert conditions(tmp_path, exact, [paid(1, 0.10)], bucket=bucket) == ["held"]


@pytest.mark.parametrize(
    ("text", "trace", "found"),
    [
        (
            "max(balance - old.balance) > 10",
            [jumped(1, 3, 100.5), jumped(2, None, 9)],
            "held failed",
        ),
        ("max(balance / 2) = 1.5", [jumped(1, 0, 3)], "held"),  # integers are divided as doubles
        ("max(balance) = 3 and max(account) = 'x'", [jumped(1, 0, 3, "x")], "held"),
        ("count(balance) = 1", [jumped(1, 0, 2**70), jumped(2, 0, None)], "held failed"),
        ("min(event_type) = 'jumped' and count(old.balance) = 1", [jumped(1, 0, 1)], "held"),
        ("max(detected_at) > TIMESTAMP '1970-01-01 00:00:01Z'", [jumped(1, 0, 1)], "failed"),
    ],
)
def test_columns_of_tables_have_the_types_of_their_values(
    tmp_path: Path, text: str, trace: list[dict[str, Any]], found: str
) -> None:
    assert conditions(tmp_path, f'on: jumped, if: "{text}"', trace) == found.split()


def test_columns_may_have_other_names_and_be_missing(tmp_path: Path) -> None:
    trace = [{"event": "noted", "time": 1, "account": 7, "said": "a"}]
    rule = "on: noted, if: max(said) = 'a' and count(other) = 0, per: account"
    assert conditions(tmp_path, rule, trace) == ["held"]


def test_g25_a_firing_on_which_spark_would_raise_is_dead_alone(tmp_path: Path) -> None:
    rule = "on: paid, if: 1000 / max(amount) > 5"
    trace = [paid(1, 100), paid(2, 0), paid(3, 300), paid(4, None)]
    assert conditions(tmp_path, rule, trace) == ["held", "dead", "failed", "failed"]


def test_what_only_spark_can_tell_is_left_unasked(tmp_path: Path) -> None:
    rule = "on: paid, if: max(lower(kind)) = 'a'"
    trace = [paid(1, 1, kind="A"), paid(2, 1, kind="É"), paid(3, 1, kind="b")]
    assert conditions(tmp_path, rule, trace) == ["held", "unasked", "failed"]


def test_damping_counts_what_held(tmp_path: Path) -> None:
    rule = "on: paid, if: max(amount) > 10, cooldown: 10 s"
    trace = [paid(1, 5), paid(2, 20), paid(3, 5), paid(4, 20), paid(12, 20)]
    said = ["failed", "held", "failed", "held cooldown", "held"]
    assert conditions(tmp_path, rule, trace) == said


@pytest.mark.parametrize(
    "text",
    ["stddev(amount) > 1", "{sql: SELECT firing_id FROM event}", "max(kind || kind) = 'aa'"],
)
def test_a_condition_that_needs_spark_is_refused_at_its_place(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as caught:
        conditions(tmp_path, f"on: paid, if: {text}", [paid(1, 1)])
    (problem,) = caught.value.problems
    assert problem.code == "needs-spark"
    assert problem.message == "the condition of rule r needs Spark"
    assert problem.place.line == 10
    assert problem.place.path.startswith("rules.r.if")


def test_a_column_of_values_of_several_kinds_is_of_no_type(tmp_path: Path) -> None:
    trace = [jumped(1, 0, 3), jumped(2, 0, "x")]
    assert conditions(tmp_path, "on: jumped, if: count(*) = 1", trace) == ["held", "held"]
    with pytest.raises(InputError):
        conditions(tmp_path, "on: jumped, if: max(balance) > 1", trace)


def test_a_rule_without_a_condition_says_nothing(tmp_path: Path) -> None:
    assert conditions(tmp_path, "on: paid", [paid(1, 1)]) == [""]
    assert conditions(tmp_path, "on: paid, if: count(*) > 1", []) == []


@detecting
@given(data=st.data(), bucket=st.sampled_from([None, 1, 2]))
@example_count(60)
def test_g30_every_detection_of_any_expression_is_asked_of_its_own_rows(
    data: st.DataObject, bucket: int | None, folder: Path
) -> None:
    """A condition that is true of detections with two rows, or more."""
    drawn, history = data.draw(cases(rules_max=2, depth=2))
    plain = simulated(drawn, history, folder, bucket)
    asked = Condition("count(*) >= 2 and min(started_at) <= max(detected_at)", False, HERE)
    book = replace(
        drawn, rules={n: replace(rule, condition=asked) for n, rule in drawn.rules.items()}
    )
    out, trace = io.BytesIO(), read(write(history, folder / "asked.jsonl"), book, None, folder)
    run(book, trace, bucket, out, asked=Conditions(book, trace))
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    for line in saw(found):
        rows = len(line["constituents"])
        assert line.pop("condition") == ("held" if rows >= 2 else "failed")
    assert found == plain


def test_edges_of_commits_and_actions_are_rows_too(tmp_path: Path) -> None:
    rule = "on: begin_of changed ; end_of changed, if: count(*) = 2 and max(version) = 3"
    trace = [{"event": "changed", "time": 5, "version": 3}]
    assert conditions(tmp_path, rule, trace) == ["held"]
    rule = "on: end_of pay, per: account, if: max(account) = 7"
    trace = [{"event": "end_of pay", "time": 5, "account": 7}]
    assert conditions(tmp_path, rule, trace) == ["held"]
