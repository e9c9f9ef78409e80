"""Queues of the occurrences that are not consumed: one for each key code and place, oldest first.

The state, for `a ; b ; c` (places 0, 1, 2):

    ends[code * places + place]    the first and the last node of a queue (0: the queue is empty)
    instant[node]                  the instant of the node's occurrence
    link[node, NEXT]               the following node (0: none)
    link[node, AT]                 the position of the node's occurrence on the line
    link[0, NEXT]                  the first free node (0: none)
    link[0, AT]                    how many nodes were ever used
    used[row]                      0, or 1 + the number of the detection that consumed the row

A node is free once its occurrence has left its queue. The node freed last is used next, so nodes
stay few and near each other. An event type may be in several stages; an occurrence of it is in a
queue of each. A queue drops an occurrence that a detection has consumed from another queue.

    a@1 a@2 b@3 of code 1    ends[3] = 1, 2    link[1] = 2, 0    instant = 1, 2, 3
                             ends[4] = 3, 3    link[2] = 0, 1
                             ends[5] = 0, 0    link[3] = 0, 2
    a@1 is popped            ends[3] = 2, 2    link[0] = 1, 3    node 1 is the first free one
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidegate.engine.core.columns.numba_cache import inlined, njit, part
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.flat.line import COUNT, FROM, LIMIT, REPEATED, TO

HEAD, TAIL = 0, 1
NEXT, AT = 0, 1


class Queues(NamedTuple):
    """The state (see the table above), and the row of each position of the line."""

    ends: npt.NDArray[np.int32]
    instant: Int64
    link: npt.NDArray[np.int32]
    used: npt.NDArray[np.int32]
    row: Int64


class Chosen(NamedTuple):
    """An instance under construction: its positions, and the queue that each stands in."""

    position: Int64
    queue: Int64


@njit
def open_queues(places, line):
    """Empty queues for a line."""
    ends = np.zeros((line.codes * places, 2), dtype=np.int32)
    instant = np.empty(len(line.code) + 1, dtype=np.int64)
    link = np.empty((len(line.code) + 1, 2), dtype=np.int32)
    link[0] = 0
    return Queues(ends, instant, link, np.zeros(line.rows, dtype=np.int32), line.row)


@part
def fill(queues, places, place, line):
    """Puts the carried occurrences into their queues."""
    for i in range(line.carried):
        q = np.int64(line.code[i]) * places + place[line.source[i]]
        push(queues, q, i, line.time[i])


@inlined
def push(queues, q, position, instant):
    ends, instants, link, _, _ = queues
    new = np.int64(link[0, NEXT])
    if new > 0:
        link[0, NEXT] = link[new, NEXT]
    else:
        new = np.int64(link[0, AT]) + 1
        link[0, AT] = new
    instants[new] = instant
    link[new, NEXT] = 0
    link[new, AT] = position
    if ends[q, HEAD] == 0:
        ends[q, HEAD] = new
    else:
        link[ends[q, TAIL], NEXT] = new
    ends[q, TAIL] = new


@inlined
def pop(queues, q):
    """Takes the first occurrence out of a queue. Returns its position."""
    ends, link = queues.ends, queues.link
    first = ends[q, HEAD]
    ends[q, HEAD] = link[first, NEXT]
    link[first, NEXT] = link[0, NEXT]
    link[0, NEXT] = first
    return np.int64(link[first, AT])


@inlined
def consume(queues, position, n):
    """Notes that detection n consumes the occurrence at a position."""
    if len(queues.used) > 0:
        queues.used[queues.row[position]] = n + 1


@inlined
def consumed(queues, position):
    return len(queues.used) > 0 and queues.used[queues.row[position]] > 0


@inlined
def front_after(queues, q, bound):
    """Drops occurrences from the front of a queue while they are consumed or not later than
    `bound`. Returns the first node that is left (0: none)."""
    ends, instant, link, _, _ = queues
    first = np.int64(ends[q, HEAD])
    while first > 0:
        if instant[first] > bound and not consumed(queues, np.int64(link[first, AT])):
            return first
        pop(queues, q)
        first = np.int64(ends[q, HEAD])
    return first


@inlined
def reachable(queues, table, base, s):
    """Whether the stage before s can be filled by now. Until then an occurrence of stage s is of no
    use, now or later."""
    if s == 0:
        return True
    present = 0
    for p in range(table[s - 1, FROM], table[s - 1, TO]):
        present += queues.ends[base + p, HEAD] > 0
    return present >= (1 if table[s - 1, REPEATED] else table[s - 1, COUNT])


@part
def oldest(queues, table, time, base, now, stages, chosen):
    """Writes the oldest instance of the first `stages` stages that may end at `now` to `chosen`.
    Returns whether there is one.

    The oldest instance has the oldest occurrence in every place at once. Proof: X is older than Y
    in one place, and Y is older than X in another. The older occurrence of each place gives an
    instance too: each of its stages ends no later than in X and in Y, and starts where one of them
    does. So the stages are filled from the left, each with the first occurrences after the stage
    before. Occurrences that are passed over are dropped, as no later instance reaches them. If the
    stages up to s are longer than their limit, the first occurrence is in no instance, and is
    dropped too.
    """
    while True:
        found = _fill_stages(queues, table, time, base, now, stages, chosen)
        if found >= 0:
            return found > 0
        pop(queues, chosen.queue[0])


@part
def _fill_stages(queues, table, time, base, now, stages, chosen):
    """Fills `chosen` stage by stage. Returns 1: it is complete; 0: an occurrence is missing; -1:
    its start is too old."""
    bound = now - table[len(table) - 1, LIMIT] - 1
    start = bound
    done = 0
    for s in range(stages):
        count, first_place = table[s, COUNT], table[s, FROM]
        if count == 1 and table[s, TO] == first_place + 1:
            q = base + first_place
            first = front_after(queues, q, bound)
            if first == 0:
                return 0
            chosen.position[done] = queues.link[first, AT]
            chosen.queue[done] = q
            bound = queues.instant[first]
        else:
            if _fill_stage(queues, table, base, s, bound, chosen, done) < count:
                return 0
            bound = time[chosen.position[done + count - 1]]
        if s == 0:
            start = bound if count == 1 else time[chosen.position[0]]
        if bound - start > table[s, LIMIT]:
            return -1
        done += count
    return 1


@part
def _fill_stage(queues, table, base, s, bound, chosen, done):
    """Writes the oldest COUNT occurrences after `bound` in the places of a stage to chosen[done:],
    in order. Returns how many candidates there are."""
    count, repeated = table[s, COUNT], table[s, REPEATED] > 0
    present = 0
    for p in range(table[s, FROM], table[s, TO]):
        q = base + p
        first = front_after(queues, q, bound)
        while first > 0 and not (repeated and present == count):
            _insert(chosen, done, present, count, np.int64(queues.link[first, AT]), q)
            present += 1
            first = np.int64(queues.link[first, NEXT]) if repeated else 0
    return present


@part
def _insert(chosen, done, present, count, position, q):
    """Inserts a position into the sorted chosen[done:], which has `present` of them. Keeps the
    `count` oldest."""
    o = min(present, count)
    while o > 0 and chosen.position[done + o - 1] > position:
        if o < count:
            chosen.position[done + o] = chosen.position[done + o - 1]
            chosen.queue[done + o] = chosen.queue[done + o - 1]
        o -= 1
    if o < count:
        chosen.position[done + o] = position
        chosen.queue[done + o] = q


@njit
def left(queues, room, since):
    """The positions of the occurrences in the queues, of the instant `since` or later, in order."""
    mark = np.zeros(room, dtype=np.bool_)
    _mark_left(queues, mark, since)
    return np.flatnonzero(mark)


@part
def _mark_left(queues, mark, since):
    ends, instant, link, _, _ = queues
    for q in range(len(ends)):
        node = np.int64(ends[q, HEAD])
        while node > 0:
            at = np.int64(link[node, AT])
            mark[at] = instant[node] >= since and not consumed(queues, at)
            node = np.int64(link[node, NEXT])
