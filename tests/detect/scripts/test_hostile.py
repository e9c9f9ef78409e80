"""Scripts that nobody would write, validated and simulated: each is refused, or parked within the
limits, or runs; none hangs."""

from __future__ import annotations

import io
import json
import resource
from pathlib import Path
from typing import Any

import pytest

from tidegate import rules
from tidegate.engine.detect.scripts.doubts import looked_through
from tidegate.engine.replay.simulate import simulate
from tidegate.rules.checks.gaps import all_features
from tidegate.rules.errors import InputError

A = "in {} A, {} B\nout string Z\n"
EVENTS = [("A", 1), ("B", 2), ("A", 3)]
MEMORY_MAX = 2 << 20  # KiB


def run(folder: Path, text: str, settings: str = "{}") -> list[Any]:
    """What a script emits, for an A, a B and an A."""
    file, trace, out = folder / "book.yaml", folder / "trace.jsonl", io.BytesIO()
    indented = "".join(f"      {line}\n" for line in text.splitlines())
    file.write_text(f"rulebook: b\nsettings: {settings}\nscripts:\n  s:\n    text: |\n{indented}")
    trace.write_text("".join(json.dumps({"event": e, "time": t}) + "\n" for e, t in EVENTS))
    looked_through(rules.load(file, features=all_features()))
    simulate(file, trace, out=out)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < MEMORY_MAX
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param("while (true) { }", "statements", marks=pytest.mark.long),
        ("while (true) n = n + 1;", "statements"),
        ("for (i: 1, 9223372036854775807) { }", "statements"),
        ("for (i: 1, 400000) { !> Z(s); !> Z(s); !> Z(s); }", "statements"),
        ('s = "0123456789"; while (true) s = concat(s, s);', "bytes"),
        ('s = "0123456789"; while (true) s = s + s;', "bytes"),
        ('s = "0123456789"; while (length(s) < 60000) s = s + "0123456789";'
         " for (i: 1, 300000) !> Z(s);", "statements"),
        ("a = new long[1000000000000];", "bytes"),
        ("c = new long[][100]; for (i: 0, 99) c[i] = new long[8000];", "bytes"),
    ],
)  # fmt: skip
def test_a_block_that_runs_away_is_parked(tmp_path: Path, body: str, said: str) -> None:
    found = run(tmp_path, f'{A}(A() {{ n = 1; s = "x"; {body} }} | B())*')
    errors = [each["value"] for each in found if each["event"] == "$error"]
    assert said in errors[0]["message"] or errors[0]["kind"] == said
    if errors[0]["kind"] == "runaway":
        assert len(found) == 1, "a parked script takes nothing more"


@pytest.mark.parametrize(
    ("regex", "said"),
    [
        ("(" * 200 + "A()" + ")*" * 200, "nested deeper than 100"),
        (".{100001}", "100001 markers and blocks, counts expanded; at most 100000"),
        ("((A(){300}){300}){300}", "27000000 markers and blocks"),
        ("((A())?){50000}", "follow each other in 1249975000 ways; at most 1000000"),
        ("(({ n = 1; })?){50000} A()", "follow each other in 1250025000 ways"),
        ("(" + " | ".join(["A()"] * 2_000) + ")*", "follow each other in 4000000 ways"),
    ],
)
def test_texts_that_are_refused(tmp_path: Path, regex: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        run(tmp_path, A + regex)
    assert said in str(caught.value)


@pytest.mark.parametrize("states", [1_000, pytest.param(5_000, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "regex",
    [
        ".{99999}",
        pytest.param("A(){0,99999}", marks=pytest.mark.long),
        pytest.param(".* A() .{16}", marks=pytest.mark.long),
        ".* A() .{20000}",
        pytest.param("((A())?){500} B()", marks=pytest.mark.long),
        pytest.param("((A())?){1000} B()", marks=pytest.mark.long),
        pytest.param("(({ n = 1; })?){1000} A()", marks=pytest.mark.long),
        "(.* A() .{12} & .* B() .{12}) - (.* A() B() .{12})",
        pytest.param("((.* A() .{8} & .* B() .{9})* - .{40})*", marks=pytest.mark.long),
        " & ".join(f"(A(){{{count}}})+" for count in (2, 3, 5, 7, 11, 13, 17, 19, 23)),
        "(" * 40 + "A()" + " - B())*" * 40,
        pytest.param("(" * 30 + "A()" + " & B() . & .*)*" * 30, marks=pytest.mark.long),
        pytest.param(
            "(" + " | ".join(f"elapse[{n} seconds]()" for n in range(1, 500)) + " | A() | B())*",
            marks=pytest.mark.long,
        ),
        "(" + " | ".join(f"elapse[n + {n} seconds]()" for n in range(1, 50)) + " | A() | B())*",
    ],
    ids=lambda regex: regex[:30],
)
def test_automata_that_are_large(tmp_path: Path, regex: str, states: int) -> None:
    settings = f"{{script_states_max: {states}}}"
    found = run(tmp_path, f"{A}{{ n = 1; }} ({regex})", settings)
    assert all(each["event"] == "$error" for each in found)


def test_more_paths_than_allowed_are_parked(tmp_path: Path) -> None:
    regex = "((A())?){40} B()"
    (found,) = run(tmp_path, A + regex, settings="{script_paths_max: 10}")
    assert found["value"]["message"] == "more than 10 paths (setting script_paths_max)"


def test_what_fails_again_and_again_is_said_each_time(tmp_path: Path) -> None:
    text = f"{A}(A() {{ n = 0; for (i: 1, 5000) n = 1 / n; }} | B())*"
    assert len(run(tmp_path, text)) == 10_000


def test_times_that_no_calendar_has(tmp_path: Path) -> None:
    text = (
        "in {} A, {} B out time Z\n(A() { !> Z(now() + 9000000000000000000 microseconds); } | B())*"
    )
    values = [each["value"] for each in run(tmp_path, text)]
    assert values == [9000000000001, 9000000000003]
