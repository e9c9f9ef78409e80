"""What is kept just long enough and chosen among equals: small histories, every instant a step."""

from __future__ import annotations

import json

import pytest

from tests.support.shown import Seen, found
from tidegate.rules.model import Context


@pytest.mark.parametrize(
    ("on", "context", "seen", "starts"),
    [
        ("(a ; c) - b", "restricted", [("a", 1), ("b", 1), ("c", 2)], []),
        ("(a and c) - b", "restricted", [("b", 1), ("a", 1), ("c", 2)], []),
        ("b ; (a ; c within 3)", "restricted", [("b", 1), ("a", 2), ("b", 4), ("c", 5)], [1]),
        ("b ; (a and c within 3)", "restricted", [("b", 1), ("a", 2), ("b", 4), ("c", 5)], [1]),
        ("not(b)[a, c]", "restricted", [("a", 1), ("c", 2), ("b", 2)], []),
        ("not(b)[a, c]", "restricted", [("a", 1), ("b", 1), ("c", 2)], [1]),
        ("a + [2] or b", "restricted", [("a", 1), ("b", 3)], [3]),
        ("(a ; [2]) or (b ; [1])", "cumulative", [("a", 1), ("b", 2)], [1]),
        ("A(a, b, [2])", "restricted", [("a", 1), ("b", 2), ("b", 3)], [2, 3]),
        ("A*(a, b, [2])", "restricted", [("a", 1), ("b", 2), ("b", 3)], [1]),
        ("A*(a, b, [2])", "cumulative", [("a", 1), ("b", 2), ("b", 3)], [1]),
        ("A*(a, b, c) within 2", "recent", [("a", 1), ("b", 2), ("c", 3)], [1]),
        ("not(b)[a, [2]]", "restricted", [("a", 1), ("c", 2), ("b", 3)], []),
        ("not(b)[a, [2]]", "chronicle", [("a", 1), ("a", 2), ("b", 4)], [1]),
        ("P(a, [1], [2])", "restricted", [("a", 1), ("a", 2), ("c", 9)], [2, 3, 4]),
        ("P*(a, [1], [2])", "restricted", [("a", 1), ("a", 2), ("c", 9)], [1, 2]),
        ("a ; b within 2", "recent", [("a", 1), ("c", 2), ("b", 3)], [1]),
        *(
            ("a ; b ; c within 2", context, [("a", 1), ("b", 2), ("c", 3)], [1])
            for context in ("restricted", "recent", "chronicle", "continuous", "cumulative")
        ),
    ],
)
def test_at_the_edge(on: str, context: str, seen: Seen, starts: list[int]) -> None:
    detected = found(on, Context(context), seen)
    assert [json.loads(line)["start"] for line in detected] == starts


@pytest.mark.parametrize("first", [1, 2])
def test_s05_of_what_differs_in_ticks_alone_the_one_whose_last_ticks_are_later_is_shown(
    first: int,
) -> None:
    on = f"P*(a, [{first} s], [4 s]) or P*(a, [{3 - first} s], [4 s])"
    (line,) = found(on, Context.UNRESTRICTED, [("a", 0)])
    assert [tick["time"] for tick in json.loads(line)["constituents"]] == [2, 4]
