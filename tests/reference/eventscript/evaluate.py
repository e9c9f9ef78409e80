"""The emissions of an event script over a history (page, 3 and 4), transition by transition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.reference.eventscript import paths as paths_
from tests.reference.eventscript.expand import Marker, expand, in_order, leads_to, places
from tests.reference.eventscript.paths import Paths, Reach, enter, markers, step
from tests.reference.eventscript.runs import ERROR, Functions, Run, RunawayError, error
from tests.reference.eventscript.times import LARGEST, duration, next_match
from tests.reference.eventscript.values import default
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.types import Array, Basic, Structure, Type

ARRIVE, ELAPSE = 0, 1  # in the order of one instant; named events stand between them


class Event(NamedTuple):
    """A value that arrives on an input, at `time` (microseconds)."""

    time: int
    input: str
    value: Any


@dataclass(frozen=True)
class Emission:
    """`cause`: ("start",), ("event", its number in the history) or ("timed", the previous cause,
    the instant); `number` counts the emissions of a transition from 0, `$error`s included."""

    time: int
    key: tuple[Any, ...]
    output: str
    value: Any
    cause: tuple[Any, ...]
    number: int


@dataclass
class Instance:
    """`previous`: the cause of the last expected event. `dues`: by marker its instant."""

    key: tuple[Any, ...]
    variables: dict[str, Any]
    paths: Paths = frozenset()
    previous: tuple[Any, ...] = ("start",)
    dues: dict[int, int] = field(default_factory=dict)

    def due(self, kind: int, all_places: Mapping[int, Any]) -> dict[int, int]:
        """The dues of `arrive` or of `elapse` markers."""
        wanted = tree.Arrive if kind == ARRIVE else tree.Elapse
        return {n: at for n, at in self.dues.items() if isinstance(all_places[n].source, wanted)}


def run(
    program: tree.Program,
    events: Sequence[Event],
    *,
    start: int | None = None,
    until: int | None = None,
    **options: Any,
) -> list[Emission]:
    """All emissions, by time, key and order of emission.

    `start` is the activation, by default the instant of the first event. `until` is inclusive, and
    later events are skipped; without it a pending `elapse` runs out once an instance. Options are
    the fields of `Evaluation`."""
    evaluation = Evaluation(program, **options)
    times = [event.time for event in events]
    start = min(times, default=None) if start is None else start
    if start is None or (until is not None and start > until):
        return []
    evaluation.activate(start)
    numbered = [(n, e) for n, e in enumerate(events) if until is None or e.time <= until]
    for now in sorted({event.time for _, event in numbered}):
        evaluation.instant(now, [each for each in numbered if each[1].time == now])
    evaluation.finish(until)
    return sorted(evaluation.emissions, key=lambda e: (e.time, key_rank(e.key)))


@dataclass
class Evaluation:
    """`order_by`: columns by input. `emitted`: by input that is an output of another script, which;
    simultaneous values of one script, by whatever inputs, stay as they are given, in the place of
    the first such input."""

    program: tree.Program
    zone: str = "UTC"
    functions: Functions = field(default_factory=dict)
    order_by: Mapping[str, Sequence[str]] = field(default_factory=dict)
    emitted: Mapping[str, str] = field(default_factory=dict)
    steps_max: int = 1_000_000
    paths_max: int = 10_000

    def __post_init__(self) -> None:
        self.root = expand(self.program.regex)
        self.places = places(self.root)
        self.leads = leads_to(self.root)
        if any(number in blocks for number, blocks in self.leads.items()):
            raise ValueError("a block leads to itself")
        self.inputs = {each.name: each for each in self.program.inputs}
        self.instances: dict[Any, Instance] = {}
        self.emissions: list[Emission] = []
        self.parked = False

    # Instances --------------------------------------------------------------------------------

    def activate(self, now: int) -> None:
        if not any(each.group for each in self.program.inputs):
            self.begin((), now)

    def begin(self, key: tuple[Any, ...], now: int) -> None:
        """An instance starts: enter(program)."""
        variables = {name: default(of) for name, of in self.program.variables.items()}
        instance = self.instances[key_rank(key)] = Instance(key, variables)
        self.transition(instance, enter(self.root), self.new_run(instance, now, ""), ("start",))

    def in_key_order(self) -> list[Instance]:
        return [self.instances[rank] for rank in sorted(self.instances)]

    def new_run(self, instance: Instance, now: int, event: str) -> Run:
        return Run(
            dict(instance.variables), instance.key, now, event, self.functions, self.steps_max
        )

    # Transitions ------------------------------------------------------------------------------

    def transition(
        self,
        instance: Instance,
        reach: Reach,
        run: Run,
        cause: tuple[Any, ...],
        value: Any = None,
        taken: Collection[int] = (),
    ) -> None:
        """An expected event, or a start: the places reached run, and the new markers' operands
        are taken. Over a limit nothing of it remains, and the script is parked. `taken`: the timed
        markers that are this event."""
        try:
            if paths_.size(reach.paths) > self.paths_max:
                raise RunawayError
            for number in in_order(reach.places, self.leads):
                place = self.places[number]
                if not isinstance(place, Marker):
                    run.run(place.block, {})
                elif place.source.variable is not None:
                    of = self.program.variables[place.source.variable]
                    run.variables[place.source.variable] = widened(value, of)
            dues = {}
            for number in sorted(markers(reach.paths)):
                place = self.places[number]
                assert isinstance(place, Marker)
                stood = number in markers(instance.paths) and number not in taken
                if stood and isinstance(place.source, tree.Within):
                    at = instance.dues.get(number)
                else:
                    at = self.due(place.source, run)
                if at is not None:
                    dues[number] = at
        except RunawayError:
            self.parked = True
            self.emit(instance, run.now, [(ERROR, error("runaway", run.event, run.now))], cause)
            return
        self.emit(instance, run.now, run.emitted, cause)
        instance.paths, instance.variables, instance.dues = reach.paths, run.variables, dues
        instance.previous = cause

    def emit(
        self,
        instance: Instance,
        now: int,
        emitted: Sequence[tuple[str, Any]],
        cause: tuple[Any, ...],
    ) -> None:
        for number, (output, value) in enumerate(emitted):
            self.emissions.append(Emission(now, instance.key, output, value, cause, number))

    def due(self, marker: tree.Named | tree.Elapse | tree.Arrive, run: Run) -> int | None:
        """When a marker that is reached now is due; None: never."""
        match marker:
            case tree.Elapse():
                lasts = duration(run.operand(marker.amount, {}), marker.unit_micros)
                if lasts is not None and lasts <= 0:
                    run.fail("elapse", marker)
                    return None
                return None if lasts is None or run.now + lasts >= LARGEST else run.now + lasts
            case tree.Arrive(instant=None):
                parts = tuple(c and run.operand(c, {}) for c in marker.components)
                return next_match(parts, run.now, self.zone)
            case tree.Arrive(instant=tree.Expression() as instant):
                at = int(run.operand(instant, {}))
                return at if at > run.now else None
        return None

    # Events -----------------------------------------------------------------------------------

    def instant(self, now: int, simultaneous: Sequence[tuple[int, Event]]) -> None:
        """All that happens up to `now`, and at it: `arrive`, named events, `elapse`."""
        self.fire(lambda at, kind, _: (at, kind) <= (now, ARRIVE))
        for number, event in sorted(simultaneous, key=self.rank):
            if not self.parked:
                self.named(number, event)
        self.fire(lambda at, *_: at <= now)

    def rank(self, numbered: tuple[int, Event]) -> Any:
        """The order of simultaneous events: declaration, `order_by`, S1's rank, as given."""
        number, event = numbered
        declared = list(self.inputs).index(event.input)
        if event.input in self.emitted:
            scripts = [self.emitted.get(name) for name in self.inputs]
            return scripts.index(self.emitted[event.input]), (), (), number
        columns = [event.value[name] for name in self.order_by.get(event.input, ())]
        return declared, key_rank(columns), value_rank(event.value), number

    def named(self, number: int, event: Event) -> None:
        declared = self.inputs[event.input]
        reading = Run({}, (), event.time, event.input, self.functions, self.steps_max)
        reading.raw = event.value
        name = classify(declared, reading)
        if declared.group:
            reading.event = name or event.input
            key = tuple(reading.value(each, {}) for each in declared.group)
            if name is not None and key_rank(key) not in self.instances:
                self.begin(key, event.time)
            takers = [i for i in self.in_key_order() if key_rank(i.key) == key_rank(key)]
        else:
            takers = self.in_key_order()
        for instance in takers:
            if self.parked:
                return
            run = self.new_run(instance, event.time, name or event.input)
            run.emitted += reading.emitted
            self.take(instance, run, ("event", number), name, event.value)

    def take(
        self, instance: Instance, run: Run, cause: tuple[Any, ...], name: str | None, value: Any
    ) -> None:
        """A named event, if `name` says that it is one."""
        if name is None:
            self.emit(instance, run.now, run.emitted, cause)
            return

        def matches(marker: Marker) -> bool:
            return isinstance(marker.source, tree.Named) and marker.source.event in (None, name)

        reach = step(self.root, instance.paths, matches)
        if reach.alive:
            self.transition(instance, reach, run, cause, value)
        else:
            run.emitted.append((ERROR, error("unexpected", name, run.now)))
            self.emit(instance, run.now, run.emitted, cause)

    # Time -------------------------------------------------------------------------------------

    def fire(self, wanted: Callable[[int, int, Instance], bool]) -> None:
        """Fires what is due and wanted, (instant, kind, instance), first to last."""
        while not self.parked:
            waiting = [
                (at, kind, rank)
                for rank, instance in self.instances.items()
                for kind in (ARRIVE, ELAPSE)
                for at in instance.due(kind, self.places).values()
                if wanted(at, kind, instance)
            ]
            if not waiting:
                return
            at, kind, rank = min(waiting)
            self.timed(self.instances[rank], at, kind)

    def timed(self, instance: Instance, now: int, kind: int) -> None:
        """The markers of one kind that are due at `now` are one event, if it is expected."""
        together = {n for n, at in instance.due(kind, self.places).items() if at == now}
        reach = step(self.root, instance.paths, lambda marker: marker.number in together)
        if not reach.alive:
            for number in together:
                del instance.dues[number]
            return
        run = self.new_run(instance, now, "elapse" if kind == ELAPSE else "arrive")
        self.transition(instance, reach, run, ("timed", instance.previous, now), now, together)

    def finish(self, until: int | None) -> None:
        """What is due after the last event."""
        if until is not None:
            self.fire(lambda at, *_: at <= until)
            return
        last = {
            id(each): min(each.due(ELAPSE, self.places).values(), default=-(2**64))
            for each in self.instances.values()
        }
        self.fire(lambda at, _, instance: at <= last[id(instance)])


def classify(declared: tree.Input, reading: Run) -> str | None:
    """The name of an event: by the first condition of `case` that is true; None: it is none."""
    if declared.case is None:
        return declared.name
    for condition, name in declared.case.branches:
        if reading.condition(condition, {}):
            return name
    return declared.case.otherwise


def widened(value: Any, of: Type) -> Any:
    """A value as its type keeps it: longs as doubles, arrays as tuples."""
    if value is None:
        return None
    match of:
        case Basic.DOUBLE:
            return float(value)
        case Array(each):
            return tuple(widened(element, each) for element in value)
        case Structure(fields):
            return {name: widened(value[name], each) for name, each in fields}
    return value


# Ranks: null < false < true < numbers < strings -----------------------------------------------


def value_rank(value: Any) -> Any:
    """S1's rank of an event of one type at one instant: its columns in the order of names."""
    if isinstance(value, dict):
        return tuple((name, value_rank(value[name])) for name in sorted(value))
    if isinstance(value, tuple | list):
        return tuple(value_rank(each) for each in value)
    if value is None:
        return (0, 0)
    if isinstance(value, bool):
        return (1, value)
    return (2, value) if isinstance(value, int | float) else (3, value)


def key_rank(key: Sequence[Any]) -> Any:
    return tuple(value_rank(each) for each in key)
