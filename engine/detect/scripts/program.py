"""A script made ready to run: its automaton, what each of its places does, and when
timed markers are due (`eventscript.md` 4)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate.engine.core.clocks import NextOccurrence, RunningClock
from tidegate.engine.core.values import FOREVER
from tidegate.engine.detect.scripts.builtins import to_object
from tidegate.engine.detect.scripts.context import Context, Variables
from tidegate.engine.detect.scripts.expressions import Expressions
from tidegate.engine.detect.scripts.machine import Machine, Move
from tidegate.engine.detect.scripts.places import Action, Marker, Places
from tidegate.engine.detect.scripts.statements import Statements
from tidegate.engine.detect.scripts.value_types import copied, default, grows, holds_arrays
from tidegate.rules.errors import Place
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.tree import nodes
from tidegate.rules.eventscript.types import Basic, Type
from tidegate.rules.expressions import nodes as x

Reach = Callable[[Variables, Any], None]
"""What a place does: of the variables and the value of the event."""
Change = Callable[[Any], Any]
Due = Callable[[Variables, int], int]
"""The instant at which a marker is due that is reached at an instant; `FOREVER`: never."""
_CLOCKS_MAX = 1_000
"""Of `arrive` with variables in it: so many clocks are remembered."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings `script_*_max`."""

    steps: int = 1_000_000
    state_bytes: int = 65_536
    paths: int = 10_000
    states: int = 40_000


@dataclass(frozen=True, slots=True)
class Script:
    """A script of a rulebook. `machine`: auto, dfa or hierarchical; `functions` are those that it
    declares; `zone` is that of `arrive`; `expire_micros`: after its previous event an instance is
    dropped, None = never."""

    name: str
    program: tree.Program
    machine: str = "auto"
    expire_micros: int | None = None
    zone: str = "UTC"
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    limits: Limits = Limits()

    @property
    def digest(self) -> str:
        """Names the script's state: what it says, but for layout and comments."""
        program = self.program
        nowhere = Place()
        plain = replace(
            program,
            text="",
            inputs=tuple(replace(each, place=nowhere) for each in program.inputs),
            functions={n: replace(f, place=nowhere) for n, f in program.functions.items()},
        )
        said = f"{self.name} {self.expire_micros} {self.zone} {plain}"
        return hashlib.blake2b(said.encode(), digest_size=8).hexdigest()


class Compiled:
    """A script compiled to closures. `variables` are the script's, in the order in which an
    instance has them; behind them stand the names of loops. `expire_micros`: as the script's, but
    only keys expire."""

    def __init__(self, script: Script) -> None:
        program, limits = script.program, script.limits
        self.script = script
        self.expire_micros = script.expire_micros if program.key_names else None
        self.places = Places(program.regex)
        self.machine = Machine(self.places, script.machine, limits.states, limits.paths)
        self.context = Context(limits.steps, limits.state_bytes, script.functions)
        self.variables: tuple[tuple[str, Type], ...] = tuple(program.variables.items())
        parts = self.places.places
        loops = (n for n in nodes(program.regex) if isinstance(n, tree.Count | tree.Each))
        names = [name for name, _ in self.variables]
        names += dict.fromkeys(" " + loop.name for loop in loops)
        slots = {name: n for n, name in enumerate(names)}
        self.expressions = Expressions(self.context, slots)
        self._statements = Statements(self.expressions, program.outputs)
        self._types = {name: each.type for each in program.inputs for name in each.events}
        self._defaults = [default(kind) for _, kind in self.variables]
        self._defaults += [None] * (len(names) - len(self.variables))
        self._reach = [self._of_place(part) for part in parts]
        self.arrivals = frozenset(
            p.number for p in parts if isinstance(p, Marker) and isinstance(p.tree, tree.Arrive)
        )
        self.standing = frozenset(
            p.number for p in parts if isinstance(p, Marker) and isinstance(p.tree, tree.Within)
        )
        self.due: Mapping[int, Due] = dues(self.places, self.expressions, script.zone)

    def fresh(self) -> Variables:
        """The variables of a new instance."""
        return [copied(value) for value in self._defaults]

    def with_loops(self, variables: Variables) -> Variables:
        """The variables of a carried instance, and room for the names of loops."""
        return variables + self._defaults[len(self.variables) :]

    def runs(self, move: Move) -> tuple[Reach, ...]:
        """What the places of a move do, in order."""
        found = move.runs
        if found is None:
            found = move.runs = tuple(
                reach for place in move.places if (reach := self._reach[place]) is not None
            )
        return found

    def _of_place(self, part: Marker | Action) -> Reach | None:
        if isinstance(part, Action):
            return self._statements.block(part.block)
        marker = part.tree
        if marker.variable is None:
            return None
        kind = dict(self.variables)[marker.variable]
        target = tree.Variable(kind, marker.variable, place=marker.place)
        change = self._change(marker, kind)
        if change is None and not grows(kind):
            slot = self.expressions.slot(target)

            def keep(variables: Variables, value: Any) -> None:
                variables[slot] = value

            return keep
        store = self._statements.store(target)
        return (lambda v, value: store(v, change(value))) if change else store

    def _change(self, marker: tree.Named | tree.Elapse | tree.Arrive, kind: Type) -> Change | None:
        """How the value of an event becomes that of a variable; None: as it is."""
        types: dict[str, Type] = {}
        if isinstance(marker, tree.Named):
            types = {e: t for e, t in self._types.items() if marker.event in (None, e)}
        if kind == Basic.DOUBLE and Basic.LONG in types.values():
            return lambda value: None if value is None else float(value)
        if kind == Basic.OBJECT and {*types.values()} != {Basic.OBJECT}:
            context = self.context
            return lambda value: to_object(value, types.get(context.event, Basic.TIME))
        return copied if holds_arrays(kind) else None


def reads_key(program: tree.Program) -> bool:
    """Whether a script reads the values of its key."""
    return any(isinstance(node, tree.Key) for node in nodes(program.regex))


def dues(places: Places, expressions: Expressions, zone: str) -> Mapping[int, Due]:
    """When each timed marker is due, by its place."""
    found: dict[int, Due] = {}
    for part in places.places:
        if isinstance(part, Marker) and isinstance(part.tree, tree.Elapse):
            found[part.number] = _elapse(part.tree, expressions)
        elif isinstance(part, Marker) and isinstance(part.tree, tree.Arrive):
            instant = part.tree.instant
            found[part.number] = (
                _clock(part.tree, expressions, zone)
                if instant is None
                else _instant(instant, expressions)
            )
    return found


def _elapse(marker: tree.Elapse, expressions: Expressions) -> Due:
    amount, context = expressions.operand(marker.amount), expressions.context
    unit, place = marker.unit_micros, marker.place

    def due(variables: Variables, now: int) -> int:
        length: float = amount(variables)
        if not length > 0:
            context.fail("elapse", f"elapse of {length} is never due", place)
            return FOREVER
        if length * unit >= FOREVER - now:
            return FOREVER
        return now + max(round(length * unit), 1)

    return due


def _instant(expression: tree.Expression, expressions: Expressions) -> Due:
    instant = expressions.operand(expression)

    def due(variables: Variables, now: int) -> int:
        at = instant(variables)
        return int(at) if now < at < FOREVER else FOREVER

    return due


def _clock(marker: tree.Arrive, expressions: Expressions, zone: str) -> Due:
    parts = [None if part is None else expressions.operand(part) for part in marker.components]
    clocks: dict[tuple[int | None, ...], NextOccurrence | None] = {}

    def due(variables: Variables, now: int) -> int:
        reading = tuple(None if part is None else part(variables) for part in parts)
        if reading not in clocks:
            if len(clocks) >= _CLOCKS_MAX:
                clocks.clear()
            clocks[reading] = _next(reading, zone)
        found = clocks[reading]
        return FOREVER if found is None else found.after(now)

    return due


def _next(reading: tuple[int | None, ...], zone: str) -> NextOccurrence | None:
    """The next instant at which a clock reads so; None if it never does."""
    bounds = ((1, 9999), (1, 12), (1, 31), (0, 23), (0, 59), (0, 59))
    for value, (low, high) in zip(reading, bounds, strict=True):
        if value is not None and not low <= value <= high:
            return None
    year, month, day, hour, minute, second = reading
    clock = x.Clock(hour, minute, second, month, day, year)
    return NextOccurrence(RunningClock("arrive", clock, zone))
