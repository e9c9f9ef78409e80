"""Runs a case in a world, step by step."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tidegate.engine.replay.cases.differences import (
    Answer,
    Comparer,
    Difference,
    Mismatch,
    WhyNot,
    fired,
)
from tidegate.engine.replay.cases.mode import NEEDS_SPARK, Needs
from tidegate.engine.replay.cases.model import Case, CaseFile, Expectation
from tidegate.engine.replay.cases.world import Observation, World
from tidegate.rules.errors import EngineError, Place, TidegateError

log = logging.getLogger("tidegate")
Outcome = Literal["passed", "failed", "skipped"]
Mode = Literal["fast", "spark"]
Worlds = Callable[[Case], World]
"""Makes the world of a case. There is one for each test file."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What became of a case. `reason`: why it needs Spark. `error`: what ended it. `unlisted`: by
    rule that no expectation lists, how often it fired. `rejected`, `dead`: those that happened,
    where it failed."""

    file: Path
    name: str
    place: Place
    outcome: Outcome
    mode: Mode
    seconds: float = 0.0
    mismatches: tuple[Mismatch, ...] = ()
    answers: tuple[Answer, ...] = ()
    reason: str | None = None
    error: str | None = None
    unlisted: Mapping[str, int] | None = None
    beside: tuple[str, ...] = ()

    @property
    def differences(self) -> tuple[Difference, ...]:
        """All values that differ."""
        return tuple(each for one in self.mismatches for each in one.differences)


class Driver:
    """Runs the cases of a file in the worlds that `worlds` makes. `strict`: rules that no
    expectation lists may not fire."""

    def __init__(self, cases: CaseFile, worlds: Worlds, *, strict: bool) -> None:
        self.cases = cases
        self.worlds = worlds
        self.strict = strict
        self._needs = Needs(cases.book)

    def run_fast(self, case: Case) -> CaseResult:
        """Run a case without Spark. What needs Spark after all is `skipped`, with the reason."""
        found = self._needs.before(case)
        if found is not None:
            return self._skipped(case, found)
        began = time.perf_counter()
        try:
            ran = _run(case, self.worlds, self.cases.book.timezone)
        except EngineError as error:
            if error.code != NEEDS_SPARK:
                raise
            return self._skipped(case, error.message)
        if (late := self._needs.after(ran.fired)) is not None:
            return self._skipped(case, late)
        return self._result(case, ran, "fast", None, time.perf_counter() - began)

    def run_spark(self, case: Case, why: str | None) -> CaseResult:
        """Run a case with Spark. `why`: for what it needs it."""
        began = time.perf_counter()
        ran = _run(case, self.worlds, self.cases.book.timezone)
        return self._result(case, ran, "spark", why, time.perf_counter() - began)

    def _skipped(self, case: Case, why: str | None) -> CaseResult:
        return CaseResult(self.cases.file, case.name, case.place, "skipped", "spark", reason=why)

    def _result(
        self, case: Case, ran: _Run, mode: Mode, why: str | None, seconds: float
    ) -> CaseResult:
        mismatches = [*ran.mismatches]
        listed = {rule for each in case.expectations for rule in each.firings}
        if self.strict and ran.seen is not None and not (case.expect and case.expect.only):
            place = case.expect.place if case.expect else case.place
            mismatches += ran.comparer.unlisted(place, listed, ran.seen)
        failed = bool(mismatches or ran.error)
        unlisted = {rule: count for rule, count in ran.fired.items() if rule not in listed}
        return CaseResult(
            self.cases.file,
            case.name,
            case.place,
            "failed" if failed else "passed",
            mode,
            seconds,
            tuple(mismatches),
            tuple(ran.answers),
            why,
            ran.error,
            unlisted,
            tuple(_beside(ran.seen)) if failed and ran.seen else (),
        )


@dataclass(slots=True)
class _Run:
    """A run of a case so far. `seen`: what has happened at its end; None where it did not get
    there. `place`: of the last step."""

    comparer: Comparer
    mismatches: list[Mismatch]
    answers: list[Answer]
    seen: Observation | None = None
    error: str | None = None
    place: Place | None = None

    @property
    def fired(self) -> dict[str, int]:
        """By rule that fired, how often."""
        return {r: len(rows) for r, rows in fired(self.seen).items()} if self.seen else {}

    def compare(self, expect: Expectation | None, seen: Observation) -> None:
        if expect is not None:
            found = self.comparer.compare(expect, seen)
            self.mismatches += found.mismatches
            self.answers += found.answers


def _run(case: Case, worlds: Worlds, zone: str) -> _Run:
    """Run a case. What the engine or the input refuse is the case's outcome, and so is what nobody
    foresaw. What needs Spark is raised."""
    run = _Run(Comparer(zone), [], [])
    try:
        with closing(worlds(case)) as world:
            run.comparer.why_not = _why_not(world)
            _step_through(case, world, run)
    except EngineError as error:
        if error.code == NEEDS_SPARK:
            raise
        run.error = f"{run.place or case.place}: {error}"
    except TidegateError as error:
        run.error = str(error)
    except Exception as error:
        log.debug("unforeseen, in the test %r", case.name, exc_info=True)
        run.error = _unforeseen(error)
    return run


def _unforeseen(error: Exception) -> str:
    hint = "an error nobody foresaw: tidegate -v test shows where it comes from"
    return f"{type(error).__name__}: {error}\n    {hint}"


def without_world(file: Path, case: Case, mode: Mode, error: Exception) -> CaseResult:
    """The result of a case in whose file nothing can happen: its worlds could not be made, and
    nobody foresaw that."""
    said = _unforeseen(error)
    return CaseResult(file, case.name, case.place, "failed", mode, error=said)


def _step_through(case: Case, world: World, run: _Run) -> None:
    world.begin(case.steps[0].instant, case.tables)
    for step in case.steps:
        run.place = step.place
        world.advance(step.instant)
        if step.fail is not None:
            world.fail(step.fail)
        if step.tables:
            world.commit(step.tables)
        for signal in step.signals:
            world.signal(signal.event, signal.fields)
        world.drain()
        if step.expect is not None:
            run.compare(step.expect, world.observe())
    run.seen = world.observe()
    run.compare(case.expect, run.seen)


def _why_not(world: World) -> WhyNot | None:
    """The world's own answer to why a rule did not fire, if it has one."""
    known: WhyNot | None = getattr(world, "why_not", None)
    return known


def _beside(seen: Observation) -> list[str]:
    """What went wrong in a case beside what it expects."""
    rejected = [f"rejected: {row['event']}: {row['reason']}" for row in seen.rejected]
    return rejected + [f"dead: {row['rule']} ({row['kind']}): {row['error']}" for row in seen.dead]
