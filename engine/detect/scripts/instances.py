"""Instances, and the transitions that they make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, NoReturn

from tidegate.engine.core.values import FOREVER
from tidegate.engine.detect.scripts.context import ERROR, RunawayError, Variables
from tidegate.engine.detect.scripts.inputs import Arrivals
from tidegate.engine.detect.scripts.machine import Move, State
from tidegate.engine.detect.scripts.paths import TooManyPathsError
from tidegate.engine.detect.scripts.program import Compiled

ARRIVE, NAMED, ELAPSE = range(3)
"""The order of what happens at one instant."""
Cause = int | tuple[int, int]
"""The number of an arrival, or 128 bits: the id of an occurrence of a step before, of a timed event
or of a start."""


Row = tuple[int, int, str | None, Any]
"""An arrival: the code of its key, its instant, what it is called, its value."""
EVERY = -1
"""The code of an arrival of every key."""


class Timer(NamedTuple):
    """A timed marker and when it is due."""

    at: int
    phase: int
    place: int


@dataclass(eq=False, slots=True)
class Instance:
    """One instance of a script. `key` numbers its key; `previous` is the instant of its last
    event that was expected, or of its start; `due` that of its first timer. `depth` goes with
    a cause that is no arrival."""

    key: int
    state: State
    variables: Variables
    previous: int
    cause: Cause
    depth: int = 0
    timers: list[Timer] = field(default_factory=list)
    due: int = FOREVER


@dataclass(eq=False, slots=True)
class Emitted:
    """What instances emit, by the column: instant, key, cause, depth (where the cause is no
    arrival), number within the transition, output, value. Many small tuples would keep the garbage
    collector busy."""

    time: list[int] = field(default_factory=list)
    key: list[int] = field(default_factory=list)
    cause: list[Cause] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    number: list[int] = field(default_factory=list)
    output: list[int] = field(default_factory=list)
    value: list[Any] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.time)


class StoppedError(Exception):
    """A step ends at `reached`, before its watermark. `runaway`: a transition has run away then;
    else too many timers are due."""

    def __init__(self, reached: int, *, runaway: bool) -> None:
        super().__init__(reached)
        self.reached, self.runaway = reached, runaway


class ParkedError(Exception):
    """A transition has run away, and the script has said so."""


class Stepper:
    """Makes the transitions of one step. `emissions` are in the order in which
    each instance makes them; `fired` are the instants of timed events. `keys` are the keys' values,
    by number. Methods raise `StoppedError` where more than `limit` timers fire, or
    a transition runs away; where that is at `last` it emits `$error` and they raise `ParkedError`.
    """

    def __init__(
        self,
        compiled: Compiled,
        keys: Sequence[tuple[Any, ...]],
        arrivals: Arrivals,
        limit: int | None = None,
        *,
        last: int | None = None,
    ) -> None:
        self.emissions = Emitted()
        self.fired: list[int] = []
        self._compiled = compiled
        self._machine = compiled.machine
        self._context = compiled.context
        self._context.undone()
        self._keys = keys
        self._last = last
        self._standing = compiled.standing
        self._ids = arrivals.ids
        self._depths = arrivals.depth
        self._faults = arrivals.faults
        self.limit = limit
        self._expires = compiled.expire_micros
        self._grouped = bool(compiled.script.program.key_names)

    def take(
        self,
        instances: dict[int, Instance],
        rows: Iterable[tuple[int, Row]],
        ordered: Callable[[], Sequence[Instance]] | None = None,
    ) -> None:
        """Some arrivals with their numbers, in their order. `instances`: by key. `ordered`: gives
        the instances by the order of their keys, for arrivals of every key; that matters where one
        of them runs away."""
        grouped, expires, named = self._grouped, self._expires, self.named
        for number, (code, time, name, value) in rows:
            if code == EVERY:
                for each in ordered() if ordered else [*instances.values()]:
                    if expires is None or not self._over(each, time):
                        named(each, number, name, value, time)
                continue
            instance = instances.get(code)
            if expires is not None and instance is not None and self._over(instance, time):
                del instances[code]
                instance = None
            if instance is None and grouped and name is not None:
                instance = instances[code] = self.start(code, time)
            if instance is not None:
                named(instance, number, name, value, time)

    def start(self, key: int, now: int) -> Instance:
        """A new instance of a key."""
        compiled, context = self._compiled, self._context
        cause = mixed((0, 0), now)
        context.now, context.event, context.key = now, "", self._keys[key]
        variables = compiled.fresh()
        try:
            move = self._machine.start()
        except TooManyPathsError as error:
            self._run_away(key, now, cause, 0, str(error))
        instance = Instance(key, move.state, variables, now, cause)
        self._transit(instance, move, None, now, cause, 0, [])
        return instance

    def named(
        self, instance: Instance, number: int, name: str | None, value: Any, now: int
    ) -> None:
        """An arrival, after the timers of the instance that are due before it. One without a name
        is no event."""
        if instance.due <= now:
            self.fire(instance, now, NAMED)
        context = self._context
        if self._faults and number in self._faults:
            context.found.extend((ERROR, fault) for fault in self._faults[number])
        if name is None:
            self._emit(instance.key, now, number, 0)
            return
        context.event = name
        state = instance.state
        try:
            move = state.moves[name]
        except KeyError:
            try:
                move = self._machine.move(state, name)
            except TooManyPathsError as error:
                self._run_away(instance.key, now, number, 0, str(error))
        context.now, context.key = now, self._keys[instance.key]
        if move is None:
            context.fail("unexpected", f"{name} is not expected here")
            self._emit(instance.key, now, number, 0)
        else:
            stood = instance.state.timed if self._standing else ()
            self._transit(instance, move, value, now, number, 0, stood)

    def fire(self, instance: Instance, until: int, phase: int = ELAPSE + 1) -> None:
        """Fires the timers of an instance that are due before a phase of an instant."""
        while instance.due <= until:
            first = min(instance.timers)
            if first[:2] >= (until, phase) or self.expired(instance, first.at):
                return
            self._fire_first(instance)

    def _fire_first(self, instance: Instance) -> None:
        """Fire the first timer of an instance, with those that are due together with it."""
        at, phase, _ = min(instance.timers)
        places = frozenset(t.place for t in instance.timers if t.at == at and t.phase == phase)
        instance.timers = [t for t in instance.timers if t.place not in places]
        set_due(instance)
        context = self._context
        context.now, context.key = at, self._keys[instance.key]
        context.event = "arrive" if phase == ARRIVE else "elapse"
        if isinstance(instance.cause, int):
            instance.depth = int(self._depths[instance.cause])
            high, low = self._ids[instance.cause].tolist()
            instance.cause = high, low
        cause, depth = mixed(instance.cause, at), instance.depth
        try:
            move = self._machine.move(instance.state, places)
        except TooManyPathsError as error:
            self._run_away(instance.key, at, cause, depth, str(error))
        if move is None:
            return
        self.fired.append(at)
        if self.limit is not None and len(self.fired) > self.limit:
            raise StoppedError(sorted(self.fired)[self.limit - 1], runaway=False)
        stood = [place for place in instance.state.timed if place not in places]
        self._transit(instance, move, at, at, cause, depth, stood)

    def fire_all(self, instances: Iterable[Instance], until: int) -> None:
        """Fire what is due up to an instant, in order of time."""
        heap = [(each.due, each.key, each) for each in instances if each.due <= until]
        heapify(heap)
        while heap:
            due, key, instance = heappop(heap)
            self.fire(instance, due)
            if instance.due <= until and instance.due > due:
                heappush(heap, (instance.due, key, instance))

    def expired(self, instance: Instance, now: int) -> bool:
        """Whether the instance is too old to take an event."""
        return self._expires is not None and now > instance.previous + self._expires

    def _over(self, instance: Instance, now: int) -> bool:
        """Whether the instance is too old once what was due before has happened: that may be its
        previous event."""
        if instance.due <= now:
            self.fire(instance, now, NAMED)
        return self.expired(instance, now)

    def _transit(
        self,
        instance: Instance,
        move: Move,
        value: Any,
        now: int,
        cause: Cause,
        depth: int,
        stood: Sequence[int],
    ) -> None:
        """Make a move, or undo it where it runs away. `stood`: the timed markers before which a
        path stood, but for those that are taken."""
        compiled, context = self._compiled, self._context
        variables = instance.variables
        before = variables.copy()
        context.steps = 0
        try:
            for run in move.runs or compiled.runs(move):
                run(variables, value)
            if context.fresh:
                context.measure(variables)
            timers = instance.timers
            if move.state.timed:
                timers = self._timers(move.state, variables, now, instance.timers, stood)
        except RunawayError as error:
            context.undone()
            variables[:] = before
            self._run_away(instance.key, now, cause, depth, str(error))
        if timers or instance.timers:
            instance.timers = timers if move.state.timed else []
            set_due(instance)
        instance.state, instance.previous = move.state, now
        instance.cause, instance.depth = cause, depth
        if context.undo:
            context.undo.clear()
        if context.found:
            self._emit(instance.key, now, cause, depth)

    def _timers(
        self,
        state: State,
        variables: Variables,
        now: int,
        before: Sequence[Timer],
        stood: Sequence[int],
    ) -> list[Timer]:
        kept = self._standing.intersection(stood) if self._standing else ()
        found = []
        for place in state.timed:
            if place in kept:
                found += [timer for timer in before if timer.place == place]
                continue
            at = self._compiled.due[place](variables, now)
            if at < FOREVER:
                phase = ARRIVE if place in self._compiled.arrivals else ELAPSE
                found.append(Timer(at, phase, place))
        return found

    def _emit(self, key: int, now: int, cause: Cause, depth: int) -> None:
        found, emitted = self._context.found, self.emissions
        for number, (output, value) in enumerate(found):
            emitted.time.append(now)
            emitted.key.append(key)
            emitted.cause.append(cause)
            emitted.depth.append(depth)
            emitted.number.append(number)
            emitted.output.append(output)
            emitted.value.append(value)
        found.clear()

    def _run_away(self, key: int, now: int, cause: Cause, depth: int, said: str) -> NoReturn:
        if self._last is None or now < self._last:
            raise StoppedError(now, runaway=True)
        self._context.now = now
        self._context.found.clear()
        self._context.fail("runaway", said)
        self._emit(key, now, cause, depth)
        raise ParkedError


def set_due(instance: Instance) -> None:
    instance.due = min((timer.at for timer in instance.timers), default=FOREVER)


_MASK = 2**64 - 1


def mixed(cause: tuple[int, int], instant: int) -> tuple[int, int]:
    """The cause that follows another at an instant, 128 bits (SplitMix64's finaliser)."""
    return _mix(cause[0] ^ _mix(instant)), _mix(cause[1] + _mix(~instant))


def _mix(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)
