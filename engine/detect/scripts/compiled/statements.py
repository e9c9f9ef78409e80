"""What the places of a script do, as instructions of LLVM's: statements, events that are stored,
timers."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidegate.engine.core.values import FOREVER
from tidegate.engine.detect.scripts.compiled.arithmetic import whole
from tidegate.engine.detect.scripts.compiled.expressions import Expressions, words_of
from tidegate.engine.detect.scripts.compiled.function import F64, FALSE, Function, integer, real
from tidegate.engine.detect.scripts.compiled.layout import Layout, UncompiledError, Word
from tidegate.engine.detect.scripts.places import Action, Marker
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.tree import nodes
from tidegate.rules.eventscript.types import Array, Basic, Type


class Statements(Expressions):
    """Adds what places do to a function, which fails after `steps_max` statements; None: there are
    never so many. Raises `UncompiledError`."""

    def __init__(
        self, function: Function, layout: Layout, program: tree.Program, steps_max: int | None
    ) -> None:
        super().__init__(function, layout)
        self._program, self._steps_max = program, steps_max
        self._steps = function.variable(integer(0))

    def place(self, part: Marker | Action, source: int | None) -> None:
        """A place that is reached, by an event of an input; None: a timed one."""
        if isinstance(part, Action):
            self._block(part.block)
        elif part.tree.variable is not None:
            self._take(part.tree.variable, source)

    def timer(self, part: Marker | Action) -> None:
        """The timer of a timed marker, before which a path stands."""
        marker, number = part.tree if isinstance(part, Marker) else None, part.number
        if isinstance(marker, tree.Elapse):
            due = self._elapse(marker)
        elif isinstance(marker, tree.Arrive) and marker.instant is not None:
            instant, b = self.word(marker.instant), self.function.b
            later = b.icmp_signed(">", instant, self.function.now)
            due = b.select(later, instant, integer(FOREVER))
        elif number in self.layout.clocks:
            due = self.function.clock(self.layout.clocks.index(number))
        else:
            raise UncompiledError("a clock with variables")
        self.function.set_timer(self.layout.timed.index(number), due)

    def _elapse(self, marker: tree.Elapse) -> Any:
        """When a timer is due; never, if that is too far."""
        function, b, now = self.function, self.function.b, self.function.now
        never, left = integer(FOREVER), b.sub(integer(FOREVER), now)
        length, unit = self.word(marker.amount), marker.unit_micros
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

    def _take(self, name: str, source: int | None) -> None:
        """Store the value of an event; that of a timed one is its instant."""
        given: Type = Basic.TIME
        wanted, value = self._program.variables[name], (self.function.now,)
        if source is not None:
            given = self._program.inputs[source].type
            value = tuple(map(self.function.event, self.layout.inputs[source]))
        if given == Basic.LONG and wanted == Basic.DOUBLE:
            value = (self.function.b.sitofp(*value, F64),)
        elif given != wanted or isinstance(wanted, Array):
            raise UncompiledError(f"{given} as {wanted}")
        self.function.assign(self.layout.variables[name], value)

    # statements --------------------------------------------------------------------------------

    def _block(self, node: tree.Statement) -> None:
        """A block, or a statement as a block of one."""
        whole = isinstance(node, tree.Block)
        inner = node.statements if isinstance(node, tree.Block) else (node,)
        if self._steps_max is not None:
            count = whole + sum(not isinstance(each, tree.Block) for each in inner)
            steps = self.function.added(self._steps, count)
            self.function.fail_if(self.function.b.icmp_signed(">", steps, integer(self._steps_max)))
        for statement in inner:
            self._statement(statement)

    def _statement(self, node: tree.Statement) -> None:
        match node:
            case tree.Block():
                self._block(node)
            case tree.Assign(target, value):
                self._assign(target, value)
            case tree.Emit():
                self._emit(node)
            case tree.If():
                self._if(node)
            case tree.Count(name, low, high, body):
                self._rounds(name, self.word(low), self.word(high), lambda index: index, body)
            case tree.Each():
                self._each(node)
            case tree.While(condition, body):
                with self.function.loop(lambda: self.holds(self.word(condition))):
                    self._block(body)
            case _:
                raise UncompiledError(type(node).__name__)

    def _assign(self, target: tree.Expression, value: tree.Expression) -> None:
        if isinstance(target.type, Array):
            self._assign_array(target, value)
        elif isinstance(target, tree.Index):
            given, items = self.word(value), self.items(target.array)
            self.function.put(items, self.word(target.index), given)
        else:
            self.function.assign(self._target(target), self.value(value))

    def _target(self, node: tree.Expression) -> Sequence[Word]:
        """The words of a variable, or of a field of one."""
        if isinstance(node, tree.Field):
            return self._target(node.structure)[words_of(node)]
        if isinstance(node, tree.Variable):
            return self.layout.variables[node.name]
        raise UncompiledError(type(node).__name__)

    def _assign_array(self, target: tree.Expression, value: tree.Expression) -> None:
        function, items = self.function, self.items(target)
        if isinstance(value, tree.New) and isinstance(value.count, tree.Literal):
            function.fill(items, integer(value.count.value), lambda _: integer(0))
        elif isinstance(value, tree.Variable):
            of = self.items(value)
            function.fill(items, function.length(of), lambda index: function.element(of, index))
        else:
            raise UncompiledError("an array of any length")

    def _emit(self, node: tree.Emit) -> None:
        outputs, value = self._program.outputs, node.value
        output = [*outputs].index(node.output)
        if value is None:
            self.function.emit(output)
        elif value.type == outputs[node.output]:
            self.function.emit(output, self.layout.outputs[output], self.value(value))
        else:
            raise UncompiledError(f"{value.type} as an output")

    def _if(self, node: tree.If) -> None:
        b, test = self.function.b, self.holds(self.word(node.condition))
        if node.other is None:
            with b.if_then(test):
                self._block(node.then)
            return
        with b.if_else(test) as branches:
            for branch, part in zip(branches, (node.then, node.other), strict=True):
                with branch:
                    self._block(part)

    def _each(self, node: tree.Each) -> None:
        function, items = self.function, self.items(node.array)
        changed = {_root(n.target) for n in nodes(node.body) if isinstance(n, tree.Assign)}
        if _root(node.array) in changed:
            raise UncompiledError("a loop that changes its array")
        last = function.b.sub(function.length(items), integer(1))
        self._rounds(
            node.name, integer(0), last, lambda index: function.element(items, index), node.body
        )

    def _rounds(
        self, name: str, low: Any, high: Any, of: Callable[[Any], Any], body: tree.Statement
    ) -> None:
        """A body for each index from low up to high; its name is a value `of` the index."""
        b, outer = self.function.b, self.locals
        index, more = self.function.variable(integer(0)), self.function.variable(FALSE)
        b.store(low, index)
        b.store(b.icmp_signed("<=", low, high), more)
        with self.function.loop(lambda: b.load(more)):
            at = b.load(index)
            self.locals = {**outer, name: of(at)}
            self._block(body)
            b.store(b.icmp_signed("<", at, high), more)
            self.function.added(index, 1)
        self.locals = outer


def _root(node: tree.Expression) -> str | None:
    """The variable that an expression is, or is a part of."""
    while isinstance(node, tree.Index | tree.Field):
        node = node.array if isinstance(node, tree.Index) else node.structure
    return node.name if isinstance(node, tree.Variable) else None
