"""A walk in `restricted`: routes over stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tidegate.engine.detector.instances import Int16, Int32
from tidegate.engine.detector.kernels import NEVER
from tidegate.engine.detector.log import Keyed, Log
from tidegate.engine.detector.walk import kernel
from tidegate.engine.detector.walk.found import Found, Walked
from tidegate.engine.detector.walk.route import Walk
from tidegate.engine.values import Int64

ROOM = 1 << 17
"""So many detections, and those of one instant, are written to one set of arrays."""


def walk_restricted(walk: Walk, log: Log, keyed: Keyed) -> Walked | None:
    """What each rule of a walk detects; None if there are simultaneous occurrences that only the
    event graph can choose among."""
    value, low, keys = keyed
    program = _Program(walk, log, keys.count)
    found: dict[str, list[Found]] = {rule: [] for rule in program.rules}
    for part in _parts(program, log, value, low):
        if part is None:
            return None
        for number, rule in enumerate(program.rules):
            width = walk.outputs[rule][0] + 1
            found[rule].append(part.of(number, width).in_order(keys))
    return found, keys


@dataclass(frozen=True, slots=True)
class _Part:
    """Detections of several rules: the place of the rule, key, start and end of each, and
    row[n, stage] of the log."""

    output: Int16
    key: Int32
    start: Int64
    end: Int64
    row: Int64

    def of(self, place: int, width: int) -> Found:
        """Those of one rule, with the occurrences of its stages."""
        mine = np.flatnonzero(self.output == place)
        key, start, end, row = self.key, self.start, self.end, self.row[:, :width]
        if len(mine) < len(key):
            key, start, end = key[mine], start[mine], end[mine]
            row = row.take(mine, axis=0)
        offsets = np.arange(len(key) + 1, dtype=np.int64) * width
        return Found(key, start, end, offsets, row.reshape(-1))


class _Program:
    """A walk as the arrays that the kernel reads."""

    def __init__(self, walk: Walk, log: Log, keys: int) -> None:
        stages, guards = walk.longest.stages, sorted(walk.guards)
        last = len(stages) - 1
        self.last, self.width = np.uint64(last), len(stages)
        self.rules = tuple(walk.outputs)
        events = [stage.event for stage in stages] + guards
        self.place = log.places(events)
        sizes = [stage + 2 for stage in range(last)] + [0] + [2] * len(guards)
        record = sum(sizes)
        self.at = np.array([sum(sizes[:place]) for place in range(len(events))], np.uint64)
        self.at = np.append(self.at, np.uint64(max(keys, 1) * record))
        self.size = np.array([record] * len(events) + [0])
        self.span = np.array([stage.span for stage in stages])
        checks, emits, bounds, offsets = [0], [], [0], []
        for number, stage in enumerate(stages):
            passes = [] if number == last else [(-1, stage.guards)]
            passes += [
                (place, own)
                for place, (at, own) in enumerate(walk.outputs.values())
                if at == number
            ]
            for emit, own in passes:
                emits.append(emit)
                offsets += [self.at[events.index(event)] for event in sorted(own)]
                bounds.append(len(offsets))
            checks.append(len(emits))
        begins = last > 0 and emits[: checks[1]] == [-1] and not stages[0].guards
        self.noted = np.array([begins] + [False] * last + [True] * (len(guards) + 1))
        self.checks, self.bounds = np.array(checks, np.uint64), np.array(bounds, np.uint64)
        self.guards = np.array(offsets, dtype=np.uint64)
        self.emits = np.array(emits)
        self.outputs_max = max(b - a for a, b in pairwise(checks))
        """How many detections an occurrence gives at most."""


def _parts(program: _Program, log: Log, value: Int64, low: int) -> Iterator[_Part | None]:
    """The detections of all rules, part by part."""
    state = np.full(int(program.at[-1]) + 2, NEVER)
    ahead = kernel.AHEAD if len(state) > kernel.CACHED else len(log)
    run = np.empty(kernel.RUN_MAX, dtype=np.int64)
    most = min(ROOM, len(log) * program.outputs_max)
    room = most + kernel.RUN_MAX * program.outputs_max
    at = 0
    while at < len(log):
        output = np.empty(room, dtype=np.int16)
        key = np.empty(room, dtype=np.int32)
        start, end = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        row = np.empty((room, program.width), dtype=np.int64)
        at, n = kernel.walk(
            at, log.code, log.time, value, low, program.last, program.place, program.at,
            program.size, program.noted, program.span, program.checks, program.emits,
            program.bounds, program.guards, state, ahead, run, np.uint64(most), output, key, start,
            end, row,
        )  # fmt: skip
        if at < 0:
            yield None
            return
        yield _Part(output[:n], key[:n], start[:n], end[:n], row[:n])
