"""A broadcast that some keys lack counts for each of the others, known or not."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.broadcast import Repeated


@shown(
    """
    all keys but one | ((open ; close) - w) ; a | open@1 w@2(k=1) close@3 a@4(k=1) a@4(k=2)
        | k=2 [1,4] {open@1 close@3 a@4(k=2)}
    a key known before | ((open ; close) - w) ; a | a@0(k=2) open@1 w@1(k=1) close@3 a@4(k=2)
        | k=2 [1,4] {open@1 close@3 a@4(k=2)}
    taken away from all | ((open ; close) - w) ; a | open@1 w@3(k=1) w@3(k=2) close@3 a@4(k=2) |
    """
)
def test_repeated(row: Shown) -> None:
    check(row, Repeated)
