"""What is said of results: to people, to programs, and to CI."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from tests.replay.cases.books import case, read
from tests.replay.cases.fakes import ScriptedWorld
from tests.replay.cases.test_differences import STEPS, fired
from tidegate.engine.replay.cases.driver import CaseResult, Driver
from tidegate.engine.replay.cases.report import as_json, case_line, count_line, failure_lines, junit
from tidegate.engine.replay.cases.runner import Refused
from tidegate.engine.replay.cases.world import Observation
from tidegate.rules.errors import InputError, Place, Problem

PLACE = Place("b.test.yaml", 3, 1)
PASSED = CaseResult(Path("b.test.yaml"), "one", PLACE, "passed", "fast", 0.25)
SKIPPED = CaseResult(Path("b.test.yaml"), "two", PLACE, "skipped", "spark", reason="r writes t")
EXPECT = """
    firings:
      four:
      - {key: {account_id: 7}, at: 2026-03-02T09:00:05, constituents: 2}
      - {key: {account_id: 8}}
    dead: 1
"""
SEEN = Observation(
    firings={"four": [fired(7, 6, constituents=[{"event": "a"}]), fired(9, damped="cooldown")]}
)


def failed(folder: Path, expect: str = EXPECT, seen: Observation = SEEN) -> CaseResult:
    cases = read(folder, case(STEPS, expect))
    world = ScriptedWorld([seen], why_not=lambda *_: "no withdrawal of account 8")
    return Driver(cases, lambda _: world, strict=False).run_fast(cases.cases[0])


def test_a_line_a_case() -> None:
    assert case_line(PASSED) == "  passed  one"
    assert case_line(SKIPPED) == "  skipped two (spark: r writes t)"
    told = CaseResult(Path("a"), "n", PLACE, "passed", "spark", unlisted={"tell": 1, "seen": 2_000})
    line = "  passed  n (spark); not listed, but fired: tell (1), seen (2,000)"
    assert case_line(told) == line


def test_a_failure_in_full(tmp_path: Path) -> None:
    text = "\n".join(failure_lines(failed(tmp_path), 90)).replace(f"{tmp_path}/", "")
    expected = """
FAILED bank.test.yaml:7: a
    bank.test.yaml:12: firings.four differs
                        expected             got
          key           account_id=7         account_id=7
        ! at            2026-03-02T09:00:05  2026-03-02T09:00:06
        ! constituents  2                    1
    bank.test.yaml:13: firings.four is missing
               expected      nearest
          key  account_id=8  account_id=7
        why not: no withdrawal of account 8
    bank.test.yaml:14: dead
        expected 1, got 0"""
    assert text == expected


def test_the_nearest_firing_says_what_held_it_back(tmp_path: Path) -> None:
    seen = Observation(firings={"four": [fired(9, damped="cooldown", condition="held")]})
    found = failed(tmp_path, "{firings: {four: [{key: {account_id: 8}}]}}", seen)
    lines = [line.split() for line in failure_lines(found, 90)]
    assert lines[4:6] == [
        ["key", "account_id=8", "account_id=9"],
        ["damped", "-", "cooldown"],
    ]


def test_a_firing_of_which_nothing_is_said_has_no_table(tmp_path: Path) -> None:
    found = failed(tmp_path, "{firings: {four: [{}]}}", Observation())
    assert [line.strip() for line in failure_lines(found, 90)][3:] == [
        "why not: no withdrawal of account 8"
    ]


def test_what_went_wrong_often_is_said_once() -> None:
    wrong = replace(
        PASSED, outcome="failed", beside=("rejected: a: b", "dead: r", "rejected: a: b")
    )
    lines = [*failure_lines(wrong, 90)]
    assert lines[2:] == ["    rejected: a: b (2 times)", "    dead: r"]


def test_a_firing_whose_condition_failed_was_to_hold(tmp_path: Path) -> None:
    seen = Observation(firings={"four": [fired(7, condition="failed")]})
    found = failed(tmp_path, "{firings: {four: [{key: {account_id: 7}}]}}", seen)
    lines = [line.split() for line in failure_lines(found, 90)]
    assert lines[4:] == [
        ["key", "account_id=7", "account_id=7"],
        ["!", "condition", "held", "failed"],
    ]


def test_a_firing_that_nobody_expected(tmp_path: Path) -> None:
    seen = Observation(firings={"four": [fired(7)]})
    lines = [*failure_lines(failed(tmp_path, "{firings: {four: []}}", seen), 90)]
    assert [line.split() for line in lines[3:]] == [
        ["expected", "got"],
        ["key", "-", "account_id=7"],
        ["at", "-", "2026-03-02T09:00:00"],
        ["constituents", "-", "none"],
        ["condition", "-", "none"],
    ]


def test_counts() -> None:
    refused = Refused(Path("x"), InputError([]))
    assert count_line([PASSED, PASSED], 0.04) == "2 passed in 0.0 s"
    line = "1 passed, 1 skipped, 1 file refused in 2.0 s"
    assert count_line([PASSED, SKIPPED, refused], 2) == line


def test_json_lines(tmp_path: Path) -> None:
    assert as_json(PASSED) == {
        "file": "b.test.yaml",
        "name": "one",
        "outcome": "passed",
        "mode": "fast",
        "seconds": 0.25,
        "differences": [],
    }
    found = as_json(failed(tmp_path))["differences"]
    assert found[0] == {
        "path": "expect.firings.four[0].at",
        "expected": "2026-03-02T09:00:05",
        "got": "2026-03-02T09:00:06",
    }
    ended = CaseResult(Path("a"), "n", PLACE, "failed", "fast", error="it stopped")
    assert as_json(ended)["differences"] == [
        {"path": "error", "expected": None, "got": "it stopped"}
    ]


def test_junit(tmp_path: Path) -> None:
    problem = Problem("file", "there is no such file", Place("x"))
    refused = Refused(Path("x.test.yaml"), InputError([problem]))
    odd = CaseResult(Path("b.test.yaml"), "a\x01<&>", PLACE, "failed", "fast", error="\x1b[0m")
    top = ElementTree.fromstring(junit([PASSED, SKIPPED, failed(tmp_path), odd, refused]))
    suites = {suite.get("name"): suite for suite in top}
    first = suites["b.test.yaml"]
    counts = [first.get(name) for name in ("tests", "failures", "skipped", "errors", "time")]
    assert counts == ["3", "1", "1", "0", "0.250000"]
    assert [case.get("name") for case in first] == ["one", "two", "a\ufffd<&>"]
    assert first[1][0].tag == "skipped"
    assert first[1][0].get("message") == "needs Spark: r writes t"
    failure = suites[str(tmp_path / "bank.test.yaml")][0][0]
    assert failure.tag == "failure"
    assert (failure.get("message") or "").endswith(":12: firings.four differs")
    assert "why not: no withdrawal" in (failure.text or "")
    error = suites["x.test.yaml"][0][0]
    assert (error.tag, suites["x.test.yaml"].get("errors")) == ("error", "1")
    assert "there is no such file" in (error.text or "")
