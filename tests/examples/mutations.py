"""Which test of an example finds which mutant of its rulebook: a table.

    python -m tests.examples.mutations [FILE..] [--spark]

Mutants are what `mutants.py` makes of each line. A mutant is found by the first case that fails, or
by `validate`. One that changes nothing that a case could see stands in `EQUIVALENT`, with a reason.
"""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.examples.cases import EXAMPLES, FILES, MISSING
from tests.examples.equivalent import EQUIVALENT
from tests.examples.mutants import Mutant, mutants
from tidegate.engine.replay.cases.driver import Driver, Worlds
from tidegate.engine.replay.cases.model import Case, CaseFile
from tidegate.engine.replay.cases.reader import read_cases
from tidegate.engine.replay.memory.worlds import MemoryWorlds
from tidegate.rules.errors import InputError

Makers = Callable[[CaseFile], Worlds]
REFUSED = "validate"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`found`: the case that finds the mutant, or `validate`; None: nothing does. `left`: cases
    that need Spark. `reason`: why nobody can find it."""

    source: Path
    mutant: Mutant
    found: str | None
    left: int = 0
    reason: str | None = None

    @property
    def kind(self) -> str:
        """found | validate | equivalent | needs spark | survived."""
        if self.found is not None:
            return "validate" if self.found == REFUSED else "found"
        if self.reason is not None:
            return "equivalent"
        return "needs spark" if self.left else "survived"


def sources(file: Path) -> list[Path]:
    """The rulebook of a test file, and its scripts."""
    book = file.with_name(file.name.replace(".test.yaml", ".yaml"))
    return [book, *sorted(book.parent.glob("*.es"))]


def verdicts(file: Path, spark: Makers | None = None) -> Iterator[Verdict]:
    """Of each mutant of an example. `spark`: runs the cases that need it, where no other fails."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "example"
        shutil.copytree(file.parent, copy)
        for source in sources(file):
            text = source.read_text()
            for mutant in mutants(text):
                (copy / source.name).write_text(mutant.text)
                found, left = _found(copy / file.name, spark)
                said = mutant.after.strip() or mutant.before.strip()
                reason = EQUIVALENT.get((source.name, said))
                yield Verdict(source, mutant, found, left, reason if found is None else None)
            (copy / source.name).write_text(text)


def _found(file: Path, spark: Makers | None) -> tuple[str | None, int]:
    try:
        cases = read_cases(file)
        driver = Driver(cases, _fast(cases), strict=False)
    except InputError:
        return REFUSED, 0
    left: list[Case] = []
    for case in cases.cases:
        if case.name in MISSING:
            continue
        result = driver.run_fast(case)
        if result.outcome == "failed":
            return case.name, 0
        if result.outcome == "skipped":
            left.append(case)
    if left and spark is not None:
        try:
            driver = Driver(cases, spark(cases), strict=False)
        except InputError:
            return REFUSED, 0
        for case in sorted(left, key=_looks_at_tables, reverse=True):
            if driver.run_spark(case, None).outcome == "failed":
                return f"{case.name} (Spark)", 0
        left = []
    return None, len(left)


def _looks_at_tables(case: Case) -> bool:
    return any(each.tables for each in case.expectations)


def _fast(cases: CaseFile) -> Worlds:
    worlds = MemoryWorlds(cases.book, cases.schemas, cases.defaults)
    return lambda _: worlds.world()


def line(one: Verdict) -> str:
    """A mutant, and below it what finds it."""
    mutant, name = one.mutant, one.source.relative_to(EXAMPLES).as_posix()
    change = f"{mutant.before.strip()}  =>  {mutant.after.strip() or '(left out)'}"
    said = {"found": one.found, "validate": one.found, "equivalent": f"equivalent: {one.reason}"}
    return f"{name}:{mutant.line}: {change}\n        {said.get(one.kind, one.kind.upper())}"


def main(arguments: Sequence[str]) -> int:
    logging.disable(logging.CRITICAL)
    asked = [each for each in arguments if not each.startswith("--")]
    with ExitStack() as stack:
        return _print(asked, _spark(stack) if "--spark" in arguments else None)


def _spark(stack: ExitStack) -> Makers:
    """Worlds with Spark, which end with the stack."""
    from tidegate.engine.app import spark_worlds

    made = stack.enter_context(spark_worlds())

    def worlds(cases: CaseFile) -> Worlds:
        of_file = made(cases)
        return lambda _: of_file.world()

    return worlds


def _print(asked: Sequence[str], spark: Makers | None) -> int:
    counts: Counter[str] = Counter()
    for file in FILES:
        if asked and not any(file.name.startswith(each) for each in asked):
            continue
        for one in verdicts(file, spark):
            print(line(one), flush=True)
            counts[one.kind] += 1
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    return 1 if counts["survived"] else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
