"""What `recent` needs of its streams where later occurrences are always the better ones; and
`restricted`, where points are searched for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidegate.engine.detect.events.graph.operators.open_windows import last_before
from tidegate.engine.detect.events.graph.search.streams import Leaf, Point, parts
from tidegate.engine.detect.events.occurrences.instances import (
    Bools,
    Instances,
    Moment,
    Pending,
    no_pending,
)
from tidegate.rules.expressions import nodes as x


def latest(tree: x.Expression, streams: Sequence[Instances], moment: Moment) -> list[Instances]:
    """The occurrences that are carried. Of each stream and key these are the last one, and the last
    one before each pending start of what must follow it.

    An instance with an earlier occurrence is less than the same with a later one (S1), and so is a
    point that holds it. And `recent` consumes the earlier one together with the later. So no more
    is carried than in `restricted` (semantics 4): a few occurrences, whatever arrives.
    """
    ordered = [_by_rank(part, moment) for part in streams]
    marks: list[Bools] = [np.zeros(len(part), dtype=np.bool_) for part in ordered]
    _mark(tree, no_pending(), ordered, marks, moment.keys)
    return [part.where(mark) for part, mark in zip(ordered, marks, strict=True)]


def _mark(
    node: x.Expression, before: Pending, streams: Sequence[Instances], marks: list[Bools], keys: int
) -> Pending:
    """Marks the occurrences of the greatest instance up to now, and of the greatest one before each
    start in `before`. Returns the pending starts of `node`."""
    if isinstance(node, Leaf):
        part = streams[node.stream]
        found, last = last_before(part, before.key, before.start, keys)
        at = np.concatenate([found, last])
        marks[node.stream][at[at >= 0]] = True
        held = part.where(marks[node.stream])
        return Pending(held.key, held.start)
    if isinstance(node, x.Seq):
        before = _mark(node.then, before, streams, marks, keys)
        return _mark(node.first, before, streams, marks, keys)
    if isinstance(node, Point):
        _mark(node.part, before, streams, marks, keys)
        return no_pending()
    starts = [_mark(part, before, streams, marks, keys) for part in parts(node)]
    key, start = ([getattr(s, name) for s in starts] for name in ("key", "start"))
    return Pending(np.concatenate(key), np.concatenate(start))


def _by_rank(part: Instances, moment: Moment) -> Instances:
    """Simultaneous occurrences in order of rank."""
    if (part.end[1:] > part.end[:-1]).all():
        return part
    return part.take(np.lexsort((moment.rank[part.row], part.end)))
