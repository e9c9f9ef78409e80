"""A script whose keys are stepped apart, partition by partition, anywhere (G26).

A task is a step of the script over some partitions of its keys. It is a value, and gives a value:
it may run in another process, on another machine. What an input without `group` takes goes to every
task.

Example: `in {string card; double amount;} Payment group(card)`, 16 partitions, 2 tasks. A payment
of card 7 arrives, and 7 is of partition 3: it goes to the second task, which has the odd
partitions, with the instances in these. What both have emitted is put in order.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from tidegate.engine.core.state_parts import Shelf
from tidegate.engine.core.values import Batch, Carried
from tidegate.engine.detect.events.occurrences import batches as of_batches
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.scripts.emissions import Emissions
from tidegate.engine.detect.scripts.inputs import Source
from tidegate.engine.detect.scripts.program import Script
from tidegate.engine.detect.scripts.run import ScriptRunner
from tidegate.rules.errors import EngineError, InputError

Arrivals = Mapping[str, Batch]


@dataclass(frozen=True)
class Sent:
    """What a runner is made of where the task runs: the arguments of `ScriptRunner`."""

    script: Script
    activation: int
    sources: Mapping[str, Source]
    partitions_max: int

    @cached_property
    def packed(self) -> bytes:
        return pickle.dumps(self, protocol=5)


class ScriptDone(NamedTuple):
    """What a task has left.

    emissions  for the keys of its partitions; None where these are more than `found_max`
    tables     what it has changed of what is carried
    gone       the names of what is not carried any more
    reached    how far it got
    parked     whether a transition has run away there
    emitted    how many emissions, also where it has left none
    failed     in place of these, why an occurrence was not taken, or a file not read or written
    """

    emissions: Emissions | None = None
    tables: Parts = Parts()
    gone: frozenset[str] = frozenset()
    reached: int = 0
    parked: bool = False
    emitted: int = 0
    failed: EngineError | InputError | None = None


class ScriptTask(NamedTuple):
    """A step of a script over some partitions of its keys. `runner`: a `Sent`, packed; `arrivals`:
    by input. What it leaves goes to files of `shelf`, unless that is None. With more than
    `found_max` emissions it leaves nothing."""

    runner: bytes
    tables: Parts
    arrivals: Arrivals
    watermark: int
    limit: int | None
    partitions: int
    shelf: Shelf | None
    found_max: int | None

    def __call__(self, read: Sequence[Arrivals] = ()) -> ScriptDone:
        """The task, wherever it runs. `read`: arrivals that were read there."""
        runner, shelf = runner_of(self.runner), self.shelf
        given = of_batches.with_read(self.arrivals, read, self.watermark)
        try:
            made = runner.step(
                Carried(self.tables), given, self.watermark, self.limit, shelf, self.partitions
            )
            count = len(made.emissions)
            if self.found_max is not None and count > self.found_max:
                return ScriptDone(reached=made.reached, parked=made.parked, emitted=count)
            after = Parts.of(made.carried.tables)
            new = {name: after[name] for name in made.carried.changed if name in after}
            there = shelf.write(new) if shelf is not None else {}
        except (EngineError, InputError) as error:
            return ScriptDone(failed=error)
        gone = frozenset(name for name in made.carried.changed if name not in after)
        left = Parts.of({**new, **there})
        return ScriptDone(made.emissions, left, gone, made.reached, made.parked, count)


@lru_cache(maxsize=4)
def runner_of(packed: bytes) -> ScriptRunner:
    """A runner; for the tasks that follow in the same process, too. What it keeps between steps are
    tables of moves and compiled code."""
    sent: Sent = pickle.loads(packed)  # noqa: S301, sent by the engine
    return ScriptRunner(
        sent.script, sent.activation, sent.sources, partitions_max=sent.partitions_max
    )
