"""`{session: d, of: x}`: rows at most d apart, at the last + d."""

from __future__ import annotations

from tests.reference.meaning import World
from tests.reference.values import Instance
from tests.reference.windows.rows import rows_of, together
from tidegate.rules.expressions.windows import Session


def detected(e: Session, world: World) -> list[Instance]:
    rows, gap = rows_of(e.part, world), e.gap.micros
    found: list[Instance] = []
    for last in rows:
        if any(last.end < row.end <= last.end + gap for row in rows):
            continue  # it goes on
        if any(instance.end == last.end + gap for instance in found):
            continue  # another of the last ones
        begin = last.end
        while earlier := [row.end for row in rows if begin - gap <= row.end < begin]:
            begin = min(earlier)
        session = [row for row in rows if begin <= row.end <= last.end]
        found.append(together(session, last.end + gap))
    return found
