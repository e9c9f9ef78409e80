"""A rule's name: its detections are occurrences with their intervals."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.detection import Detection


@shown(
    """
    it begins with its first occurrence | rule p: a ; b / rule r: c ; p | a@1 c@2 b@3 a@4 b@5
        | p [1,3] {a@1 b@3} p [4,5] {a@4 b@5} r [2,5] {c@2 a@4 b@5}
    two that touch are not in sequence | rule p: a ; b / rule r: p ; p | a@1 b@2 a@2 b@3 a@4 b@5
        | p [1,2] {a@1 b@2} p [2,3] {a@2 b@3} p [4,5] {a@4 b@5} r [2,5] {a@2 b@3 a@4 b@5}
    by its key | rule p: a / per p: k / rule r: p ; c | a@1(k=1) c@2(k=1) c@2(k=2)
        | p k=1 [1,1] {a@1(k=1)} r k=1 [1,2] {a@1(k=1) c@2(k=1)}
    """
)
def test_detection(row: Shown) -> None:
    check(row, Detection)
