"""The next timers, as people read them: of open windows."""

from __future__ import annotations

from tests.support.history import batches
from tests.support.rulebooks import loaded
from tidegate.engine.core.values import Carried
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.next_timers import upcoming

SECOND = 1_000_000


def test_an_open_window_has_one_timer_a_key() -> None:
    book = loaded(
        "ab",
        r="on: {window: 5 s, of: [a, b]}, per: k",
        s="on: {session: 3 s, of: a}, per: k",
    )
    lines = [("a", n * SECOND, {"k": k, "v": 0}) for n, k in ((1, 1), (3, 1), (4, 2), (6, 1))]
    activations = {"r": 0, "s": 0}
    _, carried, _ = Detector(book, activations).step(Carried(), batches(book, lines), 6 * SECOND)
    found = upcoming(book, activations, carried.tables.items(), 10)
    assert [(t.at // SECOND, t.rules, t.key["k"]) for t in found] == [
        (7, ("s",), 2),
        (9, ("s",), 1),
        (10, ("r",), 1),
    ]
