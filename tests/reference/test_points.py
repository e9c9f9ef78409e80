"""What `instant(x)` means, in examples; of composite x it is a constituent here only."""

from __future__ import annotations

import pytest

from tests.golden.compare import agree
from tests.golden.load import read
from tests.reference.evaluate import reference

EXAMPLES = """\
title: Ode prior: a ends before b does, whatever b begins with
on: prior(a, (b ; c))
history: b@1 a@2 c@3
expect *: [2,3] {b@1 a@2 c@3}

title: of a composite the greatest of each instant
on: instant(a ; b)
history: a@1 a@2 b@3
expect restricted, unrestricted, chronicle: [3,3] {a@2 b@3}

title: within counts from the point
on: (instant(a ; b) ; c) within 1
history: a@1 b@5 c@6
expect *: [5,6] {a@1 b@5 c@6}

title: what is compared is the point, not what it is made of
on: instant(a ; b) and c
history: c@1 a@2 b@4 a@3 b@5
expect restricted: [1,4] {c@1 a@3 b@4} [1,5] {c@1 a@3 b@5}

title: among what is not consumed
on: instant(a ; b) ; c
history: a@1 a@2 b@3 b@4 c@5 c@6 c@7
expect chronicle: [3,5] {a@2 b@3 c@5} [4,6] {a@1 b@4 c@6}

title: in continuous the point is its own initiator
on: instant(a ; b) ; c
history: a@1 b@2 b@3 c@4 c@5
expect continuous: [2,4] {a@1 b@2 c@4} [3,4] {a@1 b@3 c@4}
"""


@pytest.mark.parametrize("text", EXAMPLES.split("\n\n"))
def test_instant(text: str) -> None:
    case = read(text)
    for context in case.expected:
        found = reference(case.rulebook, case.history, until=case.until, context=context)
        agree(found, case, context)
