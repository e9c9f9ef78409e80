"""A case runs step by step, in the world that it needs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.replay.cases.books import BANK, SCHEMAS, case, read, written
from tests.replay.cases.fakes import ScriptedWorld
from tests.replay.cases.test_differences import STEPS, fired
from tidegate.engine.replay.cases.driver import CaseResult, Driver, Worlds
from tidegate.engine.replay.cases.model import CaseFile
from tidegate.engine.replay.cases.reader import read_cases
from tidegate.engine.replay.cases.runner import Refused, Runner
from tidegate.engine.replay.cases.world import Observation
from tidegate.rules.errors import EngineError, InputError, Place, Problem

BEGIN = 1_772_431_200_000_000
NEEDS = EngineError("needs-spark", "the condition of rule four needs Spark")


COUNTING = """\
scripts:
  counting:
    text: |
      in {long account_id;} logged out {long n;} counted
      (logged(x) { !> counted({n: x.account_id}); })*
"""


def ran(cases: CaseFile, world: ScriptedWorld, *, strict: bool = False) -> CaseResult:
    return Driver(cases, lambda _: world, strict=strict).run_fast(cases.cases[0])


def test_the_order_within_a_step(tmp_path: Path) -> None:
    steps = """
  - at: 2026-03-02T07:00:00
    insert: {transactions: {amount: 1}, log: {account_id: 1}}
    signal: {told: [{account_id: 1}, {account_id: 2}]}
    fail: {rule: tell, times: 2}
    expect: {firings: {seen: []}}
  - {after: 1 min}
"""
    text = case(steps).replace("  steps:", "  tables: {accounts: [{}, {}]}\n  steps:")
    world = ScriptedWorld()
    assert ran(read(tmp_path, text), world).outcome == "passed"
    assert world.calls == [
        ("begin", BEGIN, {"accounts": 2}),
        ("advance", BEGIN),
        ("fail", "tell", 2),
        ("commit", ["transactions", "log"]),
        ("signal", "told", {"account_id": 1}),
        ("signal", "told", {"account_id": 2}),
        ("drain",),
        ("observe",),
        ("advance", BEGIN + 60_000_000),
        ("drain",),
        ("observe",),
        ("close",),
    ]


def test_expectations_midway_and_at_the_end(tmp_path: Path) -> None:
    steps = STEPS.replace("}]", ", expect: {firings: {seen: []}}}]")
    cases = read(tmp_path, case(steps, "{firings: {seen: [{}]}}"))
    before, after = Observation(), Observation(firings={"seen": [fired(7)]})
    assert ran(cases, ScriptedWorld([before, after])).outcome == "passed"
    result = ran(cases, ScriptedWorld([after, before]))
    assert result.outcome == "failed"
    paths = [one.path for one in result.differences]
    assert paths == ["steps[0].expect.firings.seen", "expect.firings.seen[0]"]


def test_what_the_engine_or_the_input_refuse_fails_the_case(tmp_path: Path) -> None:
    cases = read(tmp_path, case(STEPS))
    problem = Problem("column-type", "no number", Place("a", 3, 4))
    lost = EngineError("lost", "the engine stopped", "see to it")
    for call, error, said in (
        ("drain", lost, f"{cases.cases[0].steps[0].place}: {lost}"),
        ("begin", lost, f"{cases.cases[0].place}: {lost}"),
        ("begin", InputError([problem]), "a:3:4: no number"),
    ):
        world = ScriptedWorld(raising={call: error})
        result = ran(cases, world)
        assert (result.outcome, result.error) == ("failed", said)
        assert world.calls[-1] == ("close",)


def test_what_nobody_foresaw_fails_the_case(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cases = read(tmp_path, case(STEPS))
    world = ScriptedWorld(raising={"drain": ZeroDivisionError("by zero")})
    with caplog.at_level("DEBUG", "tidegate"):
        result = ran(cases, world)
    said = "ZeroDivisionError: by zero\n    an error nobody foresaw: tidegate -v test shows where"
    assert (result.outcome, world.calls[-1]) == ("failed", ("close",))
    assert (result.error or "").startswith(said)
    [told] = [one for one in caplog.records if "unforeseen, in the test 'a'" in one.message]
    assert told.exc_info is not None
    assert told.exc_info[0] is ZeroDivisionError


def test_a_case_that_needs_spark_says_why(tmp_path: Path) -> None:
    said = "block writes accounts"
    cases = read(tmp_path, case(STEPS, "{tables: {accounts: []}}"))
    world = ScriptedWorld()
    result = ran(cases, world)
    assert (result.outcome, result.mode, result.reason) == ("skipped", "spark", said)
    assert world.calls == []
    assert ran(read(tmp_path, case(STEPS, "{tables: ?}")), world).reason == said
    assert ran(read(tmp_path, case(STEPS, "{tables: {transactions: []}}")), world).mode == "fast"
    world = ScriptedWorld(raising={"drain": NEEDS})
    result = ran(read(tmp_path, case(STEPS)), world)
    assert (result.outcome, result.reason) == ("skipped", NEEDS.message)
    assert world.calls[-1] == ("close",)


def test_what_fires_and_writes_events_needs_spark(tmp_path: Path) -> None:
    cases = read(tmp_path, case(STEPS))
    result = ran(cases, ScriptedWorld([Observation(firings={"block": [fired(7)]})]))
    assert result.reason == "what block writes to accounts is an event of write"
    held = fired(7, condition="failed")
    result = ran(cases, ScriptedWorld([Observation(firings={"block": [held]})]))
    assert result.outcome == "passed"
    written(tmp_path, case(STEPS))
    dry = BANK.replace("  block:\n", "  block:\n    mode: dry\n")
    cases = read(tmp_path, case(STEPS))
    (tmp_path / "bank.yaml").write_text(dry)
    cases = Runner([cases.file], lambda _: lambda _: ScriptedWorld(), _none).files[0]
    result = ran(cases, ScriptedWorld([Observation(firings={"block": [fired(7)]})]))
    assert result.outcome == "passed"


def test_what_fires_and_writes_the_input_of_a_script_needs_spark(tmp_path: Path) -> None:
    book = BANK.replace("  write:\n", "  note: {on: counted}\n  write:\n").replace(
        "  blocked: {on: update", "  logged: {on: insert, table: log}\n  blocked: {on: update"
    )
    file = written(tmp_path, case(STEPS))
    (tmp_path / "bank.yaml").write_text(book.replace("rules:\n", f"{COUNTING}rules:\n"))
    result = ran(read_cases(file), ScriptedWorld([Observation(firings={"write": [fired(7)]})]))
    assert result.reason == "what write writes to log is an event of counting"


def test_what_nobody_listed_is_told_and_strictly_fails(tmp_path: Path) -> None:
    cases = read(tmp_path, case(STEPS, "{firings: {four: [{}]}}"))
    seen = Observation(firings={"four": [fired(7)], "seen": [fired(1), fired(2)]})
    result = ran(cases, ScriptedWorld([seen]))
    assert (result.outcome, result.unlisted) == ("passed", {"seen": 2})
    result = ran(cases, ScriptedWorld([seen]), strict=True)
    assert result.outcome == "failed"
    assert [one.path for one in result.differences] == ["expect.firings.seen"] * 2
    only = read(tmp_path, case(STEPS, "{only: true, firings: {four: [{}]}}"))
    result = ran(only, ScriptedWorld([seen]), strict=True)
    assert len(result.differences) == 2  # each is told once
    midway = STEPS.replace("}]", ", expect: {firings: {seen: [{}, {}]}}}]")
    cases = read(tmp_path, case(midway, "{firings: {four: [{}]}}"))
    result = ran(cases, ScriptedWorld([seen]), strict=True)
    assert (result.outcome, result.unlisted) == ("passed", {})


def test_why_not_is_asked_of_the_world(tmp_path: Path) -> None:
    cases = read(tmp_path, case(STEPS, "{firings: {four: [{}]}}"))
    result = ran(cases, ScriptedWorld(why_not=lambda *_: "nothing came"))
    assert [one.why for one in result.mismatches] == ["nothing came"]


def test_what_went_wrong_beside_is_told_of_a_failure(tmp_path: Path) -> None:
    rejected = {"event": "withdrawal", "reason": "late", "row": {}}
    dead = {"rule": "tell", "kind": "webhook", "error": "no", "attempts": 3}
    seen = Observation(rejected=[rejected], dead=[dead])
    assert ran(read(tmp_path, case(STEPS)), ScriptedWorld([seen])).beside == ()
    result = ran(read(tmp_path, case(STEPS, "{dead: 0}")), ScriptedWorld([seen]))
    assert result.beside == ("rejected: withdrawal: late", "dead: tell (webhook): no")


SOME = f"""{SCHEMAS}tests:
- {{name: quick, steps: {STEPS}}}
- {{name: slow, steps: {STEPS}, expect: {{tables: {{accounts: []}}}}}}
- {{name: other, steps: {STEPS}}}
"""


def _none(_: CaseFile) -> None:  # type: ignore[return]
    raise AssertionError


def outcomes(file: Path, mode: str = "", like: str = "") -> list[tuple[str, str, str]]:
    worlds = lambda _: lambda _: ScriptedWorld()  # noqa: E731
    runner = Runner([file], worlds, worlds, mode=mode, like=like)
    results = [*runner.run()]
    assert runner.count == len(results)
    return [(r.name, r.outcome, r.mode) for r in results if isinstance(r, CaseResult)]


def test_cases_that_need_spark_come_last(tmp_path: Path) -> None:
    file = written(tmp_path, SOME)
    assert outcomes(file) == [
        ("quick", "passed", "fast"),
        ("other", "passed", "fast"),
        ("slow", "passed", "spark"),
    ]
    assert outcomes(file, "fast")[1] == ("slow", "skipped", "spark")
    assert [mode for _, _, mode in outcomes(file, "spark")] == ["spark"] * 3


def test_cases_are_chosen_by_their_name_and_file(tmp_path: Path) -> None:
    file = written(tmp_path, SOME)
    assert [name for name, _, _ in outcomes(file, like="OTHER")] == ["other"]
    assert len(outcomes(file, like="bank.test")) == 3
    assert outcomes(file, like="nothing") == []


def test_a_file_that_is_refused_keeps_the_others_from_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, SOME)
    bad = tmp_path / "bad.test.yaml"
    bad.write_text("tests: []")
    worlds = lambda _: lambda _: ScriptedWorld()  # noqa: E731
    first, *others = Runner([bad, file], worlds, worlds).run()
    assert isinstance(first, Refused)
    assert first.file == bad
    assert len(others) == 3


def test_tables_without_columns_are_refused_with_spark_alone(tmp_path: Path) -> None:
    file = written(tmp_path, SOME.replace("  log: account_id BIGINT\n", ""))
    worlds = lambda _: lambda _: ScriptedWorld()  # noqa: E731
    first, second, refused = Runner([file], worlds, worlds).run()
    assert [getattr(one, "outcome", None) for one in (first, second)] == ["passed"] * 2
    assert isinstance(refused, Refused)
    assert "the columns of the table 'log' are not known" in str(refused.error)


def test_a_rulebook_that_the_world_refuses_is_refused_with_its_file(tmp_path: Path) -> None:
    file = written(tmp_path, SOME)
    error = InputError([Problem("unknown-column", "no such column", Place())])

    def refusing(_: CaseFile) -> None:  # type: ignore[return]
        raise error

    assert [*Runner([file], refusing, _none).run()] == [Refused(file, error)]  # type: ignore[arg-type]
    spark = [*Runner([file], _none, refusing, mode="spark").run()]  # type: ignore[arg-type]
    assert spark == [Refused(file, error)]


@pytest.mark.parametrize("mode", ["", "spark"])
def test_where_a_world_cannot_be_made_its_file_s_cases_fail_and_others_go_on(
    tmp_path: Path, mode: str
) -> None:
    (tmp_path / "b").mkdir()
    files = [written(tmp_path, SOME), written(tmp_path / "b", SOME)]

    def made(cases: CaseFile) -> Worlds:
        if cases.file == files[0]:
            raise KeyError("a column")
        return lambda _: ScriptedWorld()

    results = [*Runner(files, made, made, mode=mode).run()]
    found = [(r.file, r.outcome) for r in results if isinstance(r, CaseResult)]
    assert Counter(found) == {(files[0], "failed"): 3, (files[1], "passed"): 3}
    (error,) = {r.error for r in results if isinstance(r, CaseResult) and r.outcome == "failed"}
    assert error is not None
    assert error.startswith("KeyError: 'a column'\n    an error nobody foresaw: tidegate -v test")


def test_a_result_without_its_questions(tmp_path: Path) -> None:
    from tidegate.engine.replay.cases.accept import accepted

    asked = ran(read(tmp_path, case(STEPS, "{dead: ?}")), ScriptedWorld())
    assert (asked.outcome, accepted(asked).outcome) == ("failed", "passed")
    wrong = ran(read(tmp_path, case(STEPS, "{dead: ?, rejected: 1}")), ScriptedWorld())
    assert (accepted(wrong).outcome, len(accepted(wrong).mismatches)) == ("failed", 1)
    ended = replace(asked, error="it stopped")
    assert accepted(ended).outcome == "failed"
