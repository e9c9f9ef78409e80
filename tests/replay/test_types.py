"""A value of another type than declared is refused, as the inbox does."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tidegate.connectors.http.body import read_signals
from tidegate.connectors.http.refusal import Refusal
from tidegate.engine.replay.lines import PROBLEMS_MAX
from tidegate.engine.replay.simulate import simulate
from tidegate.rules import load
from tidegate.rules.errors import InputError

BOOK = """
rulebook: typed
tables: {t: {path: /t}}
events:
  paid: {signal: {k: bigint, amount: "decimal(5,2)", rate: double, at: timestamp, note: string,
    exact: "decimal(38,20)", parts: "struct<a: array<struct<b: decimal(5,2)>>>"}}
  left: {on: insert, table: t}
  loaded: {on: transaction, table: t}
  seen: {on: commit, table: t}
rules:
  each: {on: paid or left or loaded or seen}
  pair: {on: paid ; paid, per: rate, context: recent}
  same: {on: paid ; paid, per: exact, context: recent}
"""
FIELDS = {"k": "7", "amount": "1.25", "rate": "0.5", "at": '"2026-01-01T00:00:00Z"', "note": '"x"'}
FIELDS |= {"exact": "0", "parts": "null"}


def simulated(folder: Path, *lines: str) -> list[dict[str, Any]]:
    rulebook, trace, out = folder / "book.yaml", folder / "trace.jsonl", io.BytesIO()
    rulebook.write_text(BOOK)
    trace.write_text("".join(f"{line}\n" for line in lines))
    simulate(rulebook, trace, out=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def line(event: str = "paid", **fields: str) -> str:
    written = {"event": f'"{event}"', "time": "1"} | fields
    return "{" + ", ".join(f'"{name}": {value}' for name, value in written.items()) + "}"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("k", '"7"'),
        ("k", "7.0"),
        ("k", "true"),
        ("k", "9223372036854775808"),
        ("k", "99999999999999999999"),
        ("amount", "1.255"),
        ("amount", "1.2550"),
        ("amount", "1000"),
        ("amount", "1.25000000000000000001"),
        ("amount", "1e-400"),
        ("amount", '"1.25000000000000000001"'),
        ("parts", '{"a": [{"b": 1.00000000000000000001}]}'),
        ("rate", '"much"'),
        ("rate", "[0.5]"),
        ("at", "1767225600"),
        ("at", '"today"'),
        ("note", "1"),
    ],
)
def test_what_the_inbox_refuses_is_refused_with_its_line(
    tmp_path: Path, field: str, value: str
) -> None:
    written = FIELDS | {field: value}
    with pytest.raises(InputError) as error:
        simulated(tmp_path, line(), line("left", k='"7"'), line(**written), line(k="[]"))
    wrong, also = error.value.problems
    place, code = f"{tmp_path}/trace.jsonl:3:1", "signal-field"
    assert (str(wrong.place), wrong.code, also.place.line, also.code) == (place, code, 4, code)

    declared = {"typed": load(tmp_path / "book.yaml").events["paid"]}
    body = ", ".join(f'"{name}": {text}' for name, text in written.items())
    with pytest.raises(Refusal) as refused:
        read_signals(declared, f"{{{body}}}".encode(), 1, ids_needed=False)  # type: ignore[arg-type]
    assert (wrong.message, wrong.hint) == (refused.value.message, refused.value.hint)


def test_all_that_is_wrong_with_a_line_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        simulated(tmp_path, line(k="true", note="{}", nte="1"))
    assert [problem.message for problem in error.value.problems] == [
        "field `k` of `paid` is to be bigint, but is true",
        "field `note` of `paid` is to be string, but is an object of 0",
    ]


def test_of_many_problems_the_first_are_said_however_many_a_line_has(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        simulated(tmp_path, *[line(k="true", note="{}", at="1")] * 30)
    assert len(error.value.problems) == PROBLEMS_MAX
    assert [problem.place.line for problem in error.value.problems[-2:]] == [7, 7]


@pytest.mark.parametrize("event", ["loaded", "seen"])
def test_columns_of_a_commit_have_their_types(tmp_path: Path, event: str) -> None:
    metrics = '{"numOutputRows": "3"}'
    written = line(event, version="3", operation='"WRITE"', operation_metrics=metrics)
    assert len(simulated(tmp_path, written)) == 1
    with pytest.raises(InputError, match=rf"field `version` of `{event}` is to be bigint, but is"):
        simulated(tmp_path, line(event, version='"3"'))
    with pytest.raises(InputError, match=rf"field `operation` of `{event}` is to be string"):
        simulated(tmp_path, line(event, operation="[1]"))


def test_a_number_that_is_written_as_text_is_the_number(tmp_path: Path) -> None:
    """The inbox takes "0.5" for a double, and NaN, for which JSON has no number."""
    lines = [line(rate='"0.5"'), line(time="2", rate="0.50"), line(rate='"NaN"')]
    found = [each for each in simulated(tmp_path, *lines) if each["rule"] == "pair"]
    assert [(each["key"], each["end"]) for each in found] == [({"rate": 0.5}, 2)]
    assert [each["rate"] for each in found[0]["constituents"]] == ["0.5", 0.5]


def test_what_is_no_number_is_one_key_however_it_is_written(tmp_path: Path) -> None:
    for written, shown in ((("NaN", "nan"), "NaN"), (("-inf", "-Infinity"), "-Infinity")):
        lines = [line(time=str(n), rate=f'"{each}"') for n, each in enumerate(written)]
        (found,) = [each for each in simulated(tmp_path, *lines) if each["rule"] == "pair"]
        assert found["key"] == {"rate": shown}


@pytest.mark.parametrize("name", ["event", "time"])
def test_a_field_that_is_called_like_a_part_of_the_line_is_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    declared = BOOK.replace("note: string", f"note: string, {name}: boolean")
    monkeypatch.setattr(f"{__name__}.BOOK", declared)
    assert len(simulated(tmp_path, line())) == 1


def test_a_missing_value_is_null_and_any_column_of_a_table_is_taken(tmp_path: Path) -> None:
    lines = [line(k="null"), line("left", k="[]"), line("left", k='"7"')]
    assert len(simulated(tmp_path, *lines)) == 3


@pytest.mark.parametrize("value", ["0.12345678901234567890", '"0.12345678901234567890"'])
def test_a_decimal_key_that_another_would_be_one_with_is_refused(
    tmp_path: Path, value: str
) -> None:
    with pytest.raises(InputError) as error:
        simulated(tmp_path, line(exact="0.1234567890123456"), line(exact=value))
    (problem,) = error.value.problems
    assert problem.place.line == 2
    assert problem.message == (
        "exact: 0.12345678901234567890 has more digits than keys are compared by here"
    )
    assert problem.hint == "give it 15 digits, or fewer"
