"""What the page on event scripts shows in its examples is what scripts emit: by the reference, the
interpreter and the compiler."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from tests.detect.scripts.compared import SECOND, emissions
from tests.detect.scripts.test_reference import ALL_INTERPRETED
from tests.docs.pages import blocks
from tests.reference.eventscript.evaluate import Event, run
from tests.reference.eventscript.reading import program
from tidegate.engine.detect.scripts import run as engine

_WORD = re.compile(r'([$\w]+)@([\d.]+)(?:=(\{[^}]*\}|"[^"]*"|\[[^\]]*\]|\S+))?')


class Shown(NamedTuple):
    """A block: a script, the events that come, what it emits; `name@second=value`."""

    text: str
    events: list[tuple[str, int, Any]]
    emitted: list[tuple[str, int, Any]]


def shown(block: str) -> Shown:
    text, came, emitted = block.split("---\n")
    return Shown(text, words(came), words(emitted))


def words(text: str) -> list[tuple[str, int, Any]]:
    found = [
        (name, round(float(second) * SECOND), json.loads(value) if value else {})
        for name, second, value in _WORD.findall(text)
    ]
    assert _WORD.sub("", text).split() == []
    return found


CASES = [(place, shown(text)) for place, text in blocks("script")]


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[place for place, _ in CASES])
def test_an_example_emits_what_is_shown(case: Shown) -> None:
    history = [Event(time, name, value) for name, time, value in case.events]
    last = max(time for _, time, _ in case.events + case.emitted)
    found = run(program(case.text), history, until=last)
    assert [of(each.output, each.time, each.value) for each in found] == case.emitted
    for least in (0, ALL_INTERPRETED):
        with patch.object(engine, "COMPILED_MIN", least):
            out = emissions(case.text, history, until=last)
        assert [of(each.output, each.time, each.value) for each in out] == case.emitted


def of(output: str, time: int, value: Any) -> tuple[str, int, Any]:
    """As it is shown: arrays as lists; of a fault its kind."""
    if output == "$error":
        return output, time, value["kind"]
    return output, time, json.loads(json.dumps(value))


def test_there_are_examples() -> None:
    assert len(CASES) >= 10
