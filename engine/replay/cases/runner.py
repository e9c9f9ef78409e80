"""Runs the cases of several test files: first those without Spark, then the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate.engine.replay.cases.driver import CaseResult, Driver, Mode, Worlds, without_world
from tidegate.engine.replay.cases.model import Case, CaseFile
from tidegate.engine.replay.cases.reader import read_cases
from tidegate.engine.replay.cases.schemas import LogSchema
from tidegate.rules.errors import InputError, Place, Problem, TidegateError

log = logging.getLogger("tidegate")

Makers = Callable[[CaseFile], Worlds]
"""Makes the worlds of a file. Raises InputError."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A test file that cannot be run."""

    file: Path
    error: InputError


class Runner:
    """Runs the cases of `files` whose name or file holds `like`.

    `fast`, `spark`: the makers of worlds. `mode`: `fast` leaves out what needs Spark, `spark` runs
    every case with it.
    """

    def __init__(
        self,
        files: Sequence[Path],
        fast: Makers,
        spark: Makers,
        *,
        log_schema: LogSchema | None = None,
        mode: str = "",
        like: str = "",
        strict: bool = False,
    ) -> None:
        self.fast = fast
        self.spark = spark
        self.mode = mode
        self.strict = strict
        self.files: list[CaseFile] = []
        self.refused: list[Refused] = []
        for file in files:
            try:
                self.files.append(read_cases(file, log_schema))
            except InputError as error:
                self.refused.append(Refused(file, error))
        self.chosen = {
            each.file: [case for case in each.cases if _is_like(each.file, case, like)]
            for each in self.files
        }

    @property
    def count(self) -> int:
        """How many cases there are to run."""
        return sum(map(len, self.chosen.values()))

    def run(self) -> Iterator[CaseResult | Refused]:
        """The results, as they come."""
        yield from self.refused
        later: list[tuple[CaseFile, list[tuple[Case, str | None]]]] = []
        for file in self.files:
            cases = self.chosen[file.file]
            if not cases:
                continue
            if self.mode == "spark":
                later.append((file, [(case, None) for case in cases]))
                continue
            left: list[tuple[Case, str | None]] = []
            try:
                driver = Driver(file, self.fast(file), strict=self.strict)
            except InputError as error:
                yield Refused(file.file, error)
                continue
            except TidegateError:
                raise
            except Exception as error:
                yield from _unforeseen(file, cases, "fast", error)
                continue
            for case in cases:
                result = driver.run_fast(case)
                if result.outcome == "skipped" and self.mode != "fast":
                    left.append((case, result.reason))
                else:
                    yield result
            later.append((file, left))
        for file, left in later:
            if left:
                yield from self._with_spark(file, left)

    def _with_spark(
        self, file: CaseFile, cases: Sequence[tuple[Case, str | None]]
    ) -> Iterator[CaseResult | Refused]:
        try:
            _check_known(file)
            driver = Driver(file, self.spark(file), strict=self.strict)
        except InputError as error:
            yield Refused(file.file, error)
            return
        except TidegateError:
            raise
        except Exception as error:
            yield from _unforeseen(file, [case for case, _ in cases], "spark", error)
            return
        for case, why in cases:
            yield driver.run_spark(case, why)


def _unforeseen(
    file: CaseFile, cases: Iterable[Case], mode: Mode, error: Exception
) -> Iterator[CaseResult]:
    """All cases fail of a file whose worlds cannot be made. The other files go on."""
    log.debug("unforeseen, in %s", file.file, exc_info=True)
    for case in cases:
        yield without_world(file.file, case, mode, error)


def _check_known(file: CaseFile) -> None:
    """Refuse a file with tables that have no columns: Spark reads statements that write them."""
    problems = [
        Problem(
            "unknown-schema",
            f"the columns of the table {name!r} are not known, and with Spark they must be",
            Place(str(file.file), path="schemas"),
            f'declare them: schemas: {{{name}: "id BIGINT, ..."}}',
        )
        for name, schema in file.schemas.items()
        if not schema.names
    ]
    if problems:
        raise InputError(problems)


def _is_like(file: Path, case: Case, like: str) -> bool:
    return like.lower() in f"{file.name}: {case.name}".lower()
