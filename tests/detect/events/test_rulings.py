"""Rulings of the fine print that one history shows, whatever the order of lines and the cut."""

from __future__ import annotations

from itertools import permutations

from tests.golden.compare import agree
from tests.golden.load import read
from tests.reference.cuts import everywhere
from tests.support.history import run


def test_s02_the_lowest_in_rank_of_several_at_the_start_initiates_once() -> None:
    for order in permutations(["a@1(v=1)", "a@1(v=2)", "b@1"]):
        case = read(
            "title: x\non: any(2, a, b) ; c\ncontext: continuous\n"
            f"history: {' '.join(order)} c@2 c@3\n"
            "expect: [1,2] {a@1(v=1) b@1 c@2} [1,2] {a@1(v=2) b@1 c@2}"
        )
        agree(run(case.rulebook, case.history), case)
        for cut in everywhere(case.rulebook, case.history):
            agree(run(case.rulebook, case.history, cut), case)
