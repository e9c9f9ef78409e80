"""Moves of a script as functions: the places that are reached, then the timers of the new state."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.engine.core.values import FOREVER
from tidegate.engine.detect.scripts.compiled.arithmetic import whole
from tidegate.engine.detect.scripts.compiled.context import Context
from tidegate.engine.detect.scripts.compiled.function import F64, Function, integer, real
from tidegate.engine.detect.scripts.compiled.layout import Layout, UncompiledError
from tidegate.engine.detect.scripts.compiled.statements import Statements
from tidegate.engine.detect.scripts.machine import Move
from tidegate.engine.detect.scripts.places import Action, Marker
from tidegate.engine.detect.scripts.program import Compiled
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.tree import nodes
from tidegate.rules.eventscript.types import Array, Basic

Transition = tuple[tuple[int, ...], int | None, tuple[int, ...]]
"""The places of a move in order; the input of the event that is stored, None = none; the timed
markers of the state that it leads to."""


class Transitions:
    """`timed`, `clocks`: the places of timed markers, and of clocks without variables, by number.
    `loops`, `statements`: whether there are loops; how many statements there are."""

    def __init__(self, compiled: Compiled, layout: Layout) -> None:
        self._layout, self._program = layout, compiled.script.program
        self.context = Context(layout)
        self._places = compiled.places.places
        markers = [(p.number, p.tree) for p in self._places if isinstance(p, Marker)]
        self.timed = [number for number, node in markers if not isinstance(node, tree.Named)]
        self.clocks = [number for number, node in markers if _is_constant(node)]
        inner = [n for p in self._places if isinstance(p, Action) for n in nodes(p.block)]
        self.loops = any(isinstance(n, tree.Count | tree.Each | tree.While) for n in inner)
        self.statements = sum(isinstance(n, tree.Statement) for n in inner)
        steps_max = compiled.script.limits.steps
        self._steps_max = steps_max if self.loops or self.statements > steps_max else None

    def of(self, move: Move, source: int | None) -> Transition:
        """A move by an event of an input; None: the start."""
        taking = any(isinstance(self._places[number], Marker) for number in move.places)
        return move.places, source if taking else None, move.state.timed

    def function(self, made: Transition) -> Function:
        """Raises `UncompiledError`."""
        function = Function(self.context)
        self._add(self._statements(function), made)
        return function

    def check(self, symbols: Sequence[tuple[int, str]]) -> None:
        """Try each place with each event that it takes. Raises `UncompiledError`."""
        trial, tried = self._statements(Function(self.context)), set()
        for part in self._places:
            node = part.block if isinstance(part, Action) else part.tree
            if id(node) in tried:
                continue
            tried.add(id(node))
            if isinstance(node, tree.Elapse | tree.Arrive):
                self._add(trial, ((), None, (part.number,)))
            elif isinstance(node, tree.Named):
                for source in {n for n, name in symbols if node.event in (None, name)}:
                    self._add(trial, ((part.number,), source, ()))
            else:
                self._add(trial, ((part.number,), None, ()))

    def _statements(self, function: Function) -> Statements:
        return Statements(function, self._layout, self._program.outputs, self._steps_max)

    def _add(self, to: Statements, made: Transition) -> None:
        places, source, timed = made
        for number in places:
            part = self._places[number]
            if isinstance(part, Action):
                to.block(part.block)
            elif part.tree.variable is not None:
                self._take(to, part.tree.variable, source)
        for number in timed:
            marker = self._places[number].tree  # type: ignore[union-attr]
            of = self._elapse if isinstance(marker, tree.Elapse) else self._arrive
            to.function.set_timer(self.timed.index(number), of(to, number, marker))

    def _take(self, to: Statements, name: str, source: int | None) -> None:
        """A marker's place stores the value of the event."""
        if source is None:
            raise UncompiledError("the instant of a timed event")
        given, wanted = self._program.inputs[source].type, self._program.variables[name]
        if isinstance(wanted, Array):
            raise UncompiledError(str(wanted))
        value = tuple(map(to.function.event, self._layout.inputs[source]))
        if given == Basic.LONG and wanted == Basic.DOUBLE:
            value = (to.function.b.sitofp(*value, F64),)
        elif given != wanted:
            raise UncompiledError(f"{given} as {wanted}")
        to.function.assign(self._layout.variables[name], value)

    def _elapse(self, to: Statements, _: int, marker: tree.Elapse) -> Any:
        """When a timer is due; never, if that is too far."""
        function, b, now = to.function, to.function.b, to.function.now
        never, left = integer(FOREVER), b.sub(integer(FOREVER), now)
        length, unit = to.word(marker.amount), marker.unit_micros
        if length.type == F64:
            function.fail_if(b.fcmp_unordered("<=", length, real(0.0)))
            exact = b.fmul(length, real(unit))
            span = whole(function, function.intrinsic("llvm.rint.f64", exact))
            least = b.select(b.icmp_signed("<", span, integer(1)), integer(1), span)
            return b.select(b.icmp_signed("<", span, left), b.add(now, least), never)
        function.fail_if(b.icmp_signed("<=", length, integer(0)))
        most = b.sdiv(b.sub(left, integer(1)), integer(unit))
        near = b.icmp_signed("<=", length, most)
        return b.select(near, b.add(now, b.mul(length, integer(unit))), never)

    def _arrive(self, to: Statements, number: int, marker: tree.Arrive) -> Any:
        b, now = to.function.b, to.function.now
        if marker.instant is not None:
            instant = to.word(marker.instant)
            return b.select(b.icmp_signed(">", instant, now), instant, integer(FOREVER))
        if number in self.clocks:
            return to.function.clock(self.clocks.index(number))
        raise UncompiledError("a clock with variables")


def _is_constant(marker: tree.Regex) -> bool:
    """Whether a marker is a clock without variables."""
    return (
        isinstance(marker, tree.Arrive)
        and marker.instant is None
        and all(part is None or isinstance(part, tree.Literal) for part in marker.components)
    )
