"""An operator shown by histories: what the detector finds, however the history is cut."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.golden.compare import agree
from tests.golden.load import Case, read
from tests.reference.cuts import everywhere
from tests.reference.evaluate import reference
from tests.reference.strategies import expected
from tests.support.history import node_by_node, run
from tests.support.make import SECOND
from tests.support.rulebooks import over_signals
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.model import Context

Seen = Sequence[tuple[str, int]]  # event type, second


@dataclass(frozen=True)
class Shown:
    """An expression, or some lines of a golden block; a history; what is detected in each rule's
    own context. Where the history has a column k, r is keyed by it."""

    title: str
    on: str
    history: str
    found: str = ""
    until: str = ""

    def __str__(self) -> str:
        return self.title

    def case(self) -> Case:
        lines = [f"title: {self.title}", f"history: {self.history}", f"expect: {self.found}"]
        lines += [self.on.replace(" / ", "\n") if ": " in self.on else f"on: {self.on}"]
        lines += ["per: k"] * ("k=" in self.history)
        lines += [f"until: {self.until}"] * bool(self.until)
        return read("\n".join(lines))


def shown(table: str) -> pytest.MarkDecorator:
    """Parametrizes `row`, one a line: title | expression | history | detections | until, if it
    counts. ` / ` is a new line of a golden block; a line that begins with `|` goes on."""
    lines = re.sub(r"\n\s*\|", " |", table).strip().splitlines()
    rows = [Shown(*(field.strip() for field in line.split("|"))) for line in lines]
    return pytest.mark.parametrize("row", rows, ids=str)


def check(row: Shown, operator: type) -> None:
    """The graph has a node of the operator. In one bucket, and with buckets that end
    everywhere, or between all seconds, it detects what is expected; so does the reference, and so
    do the operators themselves where they are usually stepped as a chain."""
    __tracebackhide__ = True
    case = row.case()
    nodes = Detector(case.rulebook, dict.fromkeys(case.rulebook.rules, 0)).graph.nodes.values()
    assert any(isinstance(node.shape, operator) for node in nodes)
    history = sorted(case.history, key=lambda line: line[1])
    between = range(history[0][1] + SECOND // 2, case.until or history[-1][1], SECOND)
    agree(reference(case.rulebook, history, until=case.until), case, how="by the reference")
    agree(run(case.rulebook, history, until=case.until), case, how="in one bucket")
    for cut in (*everywhere(case.rulebook, history), between):
        agree(run(case.rulebook, history, cut, case.until), case, how="in many buckets")
        with node_by_node():
            agree(run(case.rulebook, history, cut, case.until), case, how="node by node")


def found(on: str, context: Context, seen: Seen) -> list[str]:
    """What the detector finds over signals without keys, in one bucket and with buckets
    that end everywhere: what the reference finds."""
    rulebook = over_signals(on, context)
    history = [(name, second * SECOND, {"v": 0}) for name, second in seen]
    answer = expected(rulebook, history)
    assert run(rulebook, history) == answer
    for cut in everywhere(rulebook, history):
        assert run(rulebook, history, cut) == answer
    return answer
