"""What `instant(x)` means, in examples: the reference's answers. The detector's are compared in
`tests/detect/events/test_points.py`."""

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

title: of two initiators the point is the lower, and it begins once
on: instant(a and b) and c
history: c@1 a@1 b@1 c@2 a@1 a@2
expect continuous: [1,1] {a@1 b@1 c@1} [2,2] {b@1 a@2 c@2} [1,2] {b@1 c@1 a@2}

title: a point that has begun something is known after a restart
on: instant((a or a) and (a and b)) and a
history: a@0 a@1 b@1 a@2
expect continuous: [0,1] {a@0 a@1 b@1} [1,1] {a@1 b@1} [1,2] {a@1 b@1 a@2} [2,2] {b@1 a@2}

title: of points that are alike what they hold decides, whatever operand they fill
on: instant(a and b) or instant(a and c)
history: a@1 c@2 b@2
expect restricted, recent: [2,2] {a@1 c@2}
expect chronicle: [2,2] {a@1 b@2}

title: a point of points is ranked by what it is compared by
on: instant(instant(a + [1 s]) ; c) and b
history: a@0 b@2 c@2 c@3
expect continuous: [2,2] {b@2 c@2} [2,3] {b@2 c@3}

title: a point without occurrences is detected once, and hides nothing
on: instant(a + [1 s]) or a
history: a@1 a@2
expect chronicle: [2,2] {} [3,3] {} [1,1] {a@1} [2,2] {a@2}

title: a point without occurrences initiates as its instant
on: instant(a + [1 s]) and a
history: a@1 a@2
expect continuous: [1,2] {a@1} [2,2] {a@2} [2,3] {a@2}

title: what a point holds may be older than the whole may be long
on: (instant((a ; b) within 5) ; c) within 3
history: a@1 b@5 c@7 c@8 c@9
expect unrestricted: [5,7] {a@1 b@5 c@7} [5,8] {a@1 b@5 c@8}

title: two points of an instant are two initiators
on: (instant(a and b) or instant(a and c)) ; d
history: a@1 b@2 c@2 d@3
expect continuous: [2,3] {a@1 b@2 d@3} [2,3] {a@1 c@2 d@3}

title: points in a window and at its end
on: A*(a, instant(c and d), instant(a ; b))
history: d@0 a@1 c@2 b@3
expect *: [1,3] {d@0 c@2}

title: points are counted once an instant
on: any(2, instant(a ; b)*)
history: a@1 a@2 b@2 b@3 b@4
expect restricted: [2,3] {a@1 a@2 b@2 b@3} [3,4] {a@2 b@3 b@4}
expect chronicle: [2,3] {a@1 a@2 b@2 b@3}
"""


@pytest.mark.parametrize("text", EXAMPLES.split("\n\n"))
def test_instant(text: str) -> None:
    case = read(text)
    for context in case.expected:
        found = reference(case.rulebook, case.history, until=case.until, context=context)
        agree(found, case, context)
