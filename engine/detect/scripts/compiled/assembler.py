"""Statements as instructions: the places of one move as one program."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.engine.detect.scripts.compiled.expressions import Expressions
from tidegate.engine.detect.scripts.compiled.instructions import Instruction, Op
from tidegate.engine.detect.scripts.compiled.layout import Layout, UncompiledError
from tidegate.engine.detect.scripts.compiled.registers import Register, Registers
from tidegate.engine.detect.scripts.places import Action, Marker, Places
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.tree import nodes
from tidegate.rules.eventscript.types import Array, Basic


class Assembler(Expressions):
    """Makes programs for the moves of a script."""

    def __init__(self, layout: Layout, registers: Registers, places: Places,
                 program: tree.Program, steps_max: int) -> None:  # fmt: skip
        super().__init__(layout, registers)
        self.places = places.places
        self._inputs = program.inputs
        self._variables = program.variables
        self._outputs = [*program.outputs]
        self._output_types = program.outputs
        self.timed = [
            part.number
            for part in self.places
            if isinstance(part, Marker) and not isinstance(part.tree, tree.Named)
        ]
        self.clocks = [
            part.number
            for part in self.places
            if isinstance(part, Marker) and _is_constant(part.tree)
        ]
        inner = [n for p in self.places if isinstance(p, Action) for n in nodes(p.block)]
        self.loops = any(isinstance(n, tree.Count | tree.Each | tree.While) for n in inner)
        self.statements = sum(isinstance(n, tree.Statement) for n in inner)
        self._counts = self.loops or self.statements > steps_max

    def program(
        self, places: Sequence[int], source: int | None, timed: Sequence[int]
    ) -> list[Instruction]:
        """The instructions of places in order, after an event of an input (None: a start), to a
        state with timed markers; [] if there is nothing to do. Raises `UncompiledError`."""
        self.begin()
        for number in places:
            part = self.places[number]
            if isinstance(part, Action):
                self._block(part.block)
            elif part.tree.variable is not None:
                self._take(part.tree, part.tree.variable, source)
        for number in timed:
            self._timer(number)
        return self.ended()

    # places ------------------------------------------------------------------------------------

    def _take(
        self, marker: tree.Named | tree.Elapse | tree.Arrive, name: str, source: int | None
    ) -> None:
        """A marker's place stores the value of the event."""
        if source is None or not isinstance(marker, tree.Named):
            raise UncompiledError("the instant of a timed event")
        given, wanted = self._inputs[source].type, self._variables[name]
        if isinstance(wanted, Array):
            raise UncompiledError(str(wanted))
        target, words = self.variable(name), self.layout.inputs[source]
        if given == wanted:
            for to, word in zip(target, words, strict=True):
                self.put(Op.EVENT_F if word.double else Op.EVENT_I, to, word.place)
        elif given == Basic.LONG and wanted == Basic.DOUBLE:
            (to,), (word,) = target, words
            value = self.temporary(Basic.LONG)
            self.put(Op.EVENT_I, value, word.place)
            self.put(Op.DOUBLE, to, value.number)
        else:
            raise UncompiledError(f"{given} as {wanted}")

    def _timer(self, number: int) -> None:
        marker = self.places[number].tree  # type: ignore[union-attr]
        if isinstance(marker, tree.Arrive):
            self._arrive(number, marker)
            return
        assert isinstance(marker, tree.Elapse)  # noqa: S101, what else is timed
        (amount,) = self.value(marker.amount)
        unit = self.constant(marker.unit_micros, Basic.LONG)
        op = Op.TIMER_F if amount.double else Op.TIMER_I
        self.add(op, self.timed.index(number), self.read(amount), unit.number)
        self.release()

    def _arrive(self, number: int, marker: tree.Arrive) -> None:
        timer = self.timed.index(number)
        if marker.instant is not None:
            (instant,) = self.value(marker.instant)
            self.add(Op.TIMER_AT, timer, self.read(instant))
            self.release()
        elif number in self.clocks:
            self.add(Op.TIMER_CLOCK, timer, self.clocks.index(number))
        else:
            raise UncompiledError("a clock with variables")

    # statements --------------------------------------------------------------------------------

    def _block(self, node: tree.Statement) -> None:
        whole = isinstance(node, tree.Block)
        inner = node.statements if isinstance(node, tree.Block) else (node,)
        if self._counts:
            self.add(Op.COUNT, whole + sum(not isinstance(each, tree.Block) for each in inner))
        for statement in inner:
            self._statement(statement)
            self.release()

    def _statement(self, node: tree.Statement) -> None:
        match node:
            case tree.Block():
                self._block(node)
            case tree.Assign(target, value):
                self._assign(target, value)
            case tree.Emit():
                self._emit(node)
            case tree.If(condition, then, other):
                self._if(condition, then, other)
            case tree.Count():
                self._count(node)
            case tree.Each():
                self._each(node)
            case tree.While(condition, body):
                start = self.here()
                with self.perhaps():
                    out = self.jump(Op.JUMP_UNLESS, self.condition(condition))
                    self._block(body)
                    self.add(Op.JUMP, start)
                self.land(out)
            case _:
                raise UncompiledError(type(node).__name__)

    def _assign(self, target: tree.Expression, value: tree.Expression) -> None:
        if isinstance(target.type, Array):
            self._assign_array(target, value)
            return
        if isinstance(target, tree.Index):
            items = self.items(target.array)
            (given,) = self.value(value)
            (index,) = self.value(target.index)
            op = Op.SET_F if items.kind == Basic.DOUBLE else Op.SET_I
            self.add(op, self.read(given), items.number, self.read(index))
            return
        self.assign(self.target(target), self.value(value))

    def _assign_array(self, target: tree.Expression, value: tree.Expression) -> None:
        to = self.items(target)
        if isinstance(value, tree.New) and isinstance(value.count, tree.Literal):
            self.add(Op.NEW, to.number, value.count.value)
        elif isinstance(value, tree.Variable):
            self.add(Op.COPY, to.number, self.items(value).number)
        else:
            raise UncompiledError("an array of any length")

    def _emit(self, node: tree.Emit) -> None:
        output = self._outputs.index(node.output)
        if node.value is not None:
            words = self.layout.outputs[output]
            if node.value.type != self._output_types[node.output]:
                raise UncompiledError(f"{node.value.type} as an output")
            values = self.value(node.value)
            for value, word in zip(values, words, strict=True):
                self.add(
                    Op.OUT_F if word.double else Op.OUT_I, self.read(value), word.place, output
                )
        self.add(Op.EMIT, output)

    def _if(
        self, condition: tree.Expression, then: tree.Statement, other: tree.Statement | None
    ) -> None:
        past = self.jump(Op.JUMP_UNLESS, self.condition(condition))
        with self.perhaps():
            self._block(then)
        if other is not None:
            out = self.jump(Op.JUMP)
            self.land(past)
            with self.perhaps():
                self._block(other)
            self.land(out)
        else:
            self.land(past)

    def _count(self, node: tree.Count) -> None:
        with self.frame() as names:
            index, last = self.kept(node.low), self.kept(node.high)
            names[node.name] = (index,)
            self._rounds(index, last, node.body)

    def _each(self, node: tree.Each) -> None:
        items = self.items(node.array)
        changed = {_root(n.target) for n in nodes(node.body) if isinstance(n, tree.Assign)}
        if _root(node.array) in changed:
            raise UncompiledError("a loop that changes its array")
        one, zero = self.constant(1, Basic.LONG), self.constant(0, Basic.LONG)
        with self.frame() as names:
            index, last = self.lasting(Basic.LONG), self.lasting(Basic.LONG)
            element = self.lasting(items.kind)
            names[node.name] = (element,)
            self.move(index, zero)
            self.put(Op.LOAD_I, last, items.length)
            self.put(Op.SUB_I, last, last.number, one.number)
            get = Op.GET_F if element.double else Op.GET_I
            self._rounds(index, last, node.body, (get, element.number, items.number))

    def _rounds(
        self,
        index: Register,
        last: Register,
        body: tree.Statement,
        get: tuple[Op, int, int] | None = None,
    ) -> None:
        """A body for each index up to the last. `get`: operation, register and array of a local
        name that is an element."""
        one, test = self.constant(1, Basic.LONG), self.lasting(Basic.BOOLEAN)
        start = self.here()
        self.put(Op.MOST_I, test, index.number, last.number)
        out = self.jump(Op.JUMP_UNLESS, test)
        if get is not None:
            self.add(*get, index.number)
        with self.perhaps():
            self._block(body)
        self.put(Op.SAME_I, test, index.number, last.number)
        end = self.jump(Op.JUMP_IF, test)
        self.put(Op.ADD_I, index, index.number, one.number)
        self.add(Op.JUMP, start)
        self.land(out)
        self.land(end)


def _is_constant(marker: tree.Regex) -> bool:
    """Whether a marker is a clock without variables."""
    return (
        isinstance(marker, tree.Arrive)
        and marker.instant is None
        and all(part is None or isinstance(part, tree.Literal) for part in marker.components)
    )


def _root(node: tree.Expression) -> str | None:
    """The variable that an expression is, or is a part of."""
    while isinstance(node, tree.Index | tree.Field):
        node = node.array if isinstance(node, tree.Index) else node.structure
    return node.name if isinstance(node, tree.Variable) else None
