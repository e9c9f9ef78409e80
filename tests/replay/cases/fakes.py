"""A world in which a script says what has happened, and which notes what it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidegate.engine.replay.cases.model import Fail, Row, TableChange
from tidegate.engine.replay.cases.world import Observation


class ScriptedWorld:
    """`seen`: the observations, one after the other; the last one stays. `raising`: by call, the
    error that it raises."""

    def __init__(
        self,
        seen: Sequence[Observation] = (Observation(),),
        raising: Mapping[str, Exception] | None = None,
        why_not: Callable[..., str | None] | None = None,
    ) -> None:
        self.seen = [*seen]
        self.raising = raising or {}
        self.calls: list[tuple[Any, ...]] = []
        if why_not is not None:
            self.why_not = why_not

    def _note(self, call: str, *given: Any) -> None:
        self.calls.append((call, *given))
        if call in self.raising:
            raise self.raising[call]

    def begin(self, instant: int, tables: Mapping[str, Sequence[Row]]) -> None:
        self._note("begin", instant, {name: len(rows) for name, rows in tables.items()})

    def advance(self, instant: int) -> None:
        self._note("advance", instant)

    def commit(self, tables: Mapping[str, TableChange]) -> None:
        self._note("commit", [*tables])

    def signal(self, event: str, fields: Row) -> None:
        self._note("signal", event, {name: one.value for name, one in fields.items()})

    def fail(self, fail: Fail) -> None:
        self._note("fail", fail.rule, fail.times)

    def drain(self) -> None:
        self._note("drain")

    def observe(self) -> Observation:
        self._note("observe")
        return self.seen.pop(0) if len(self.seen) > 1 else self.seen[0]

    def close(self) -> None:
        self._note("close")
