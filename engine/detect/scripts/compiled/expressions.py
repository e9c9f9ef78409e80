"""Expressions as instructions. A value is a register for each of its words."""

from __future__ import annotations

from tidegate.engine.detect.scripts.compiled.instructions import Op
from tidegate.engine.detect.scripts.compiled.layout import Items, UncompiledError, Word, kinds_of
from tidegate.engine.detect.scripts.compiled.registers import Program, Register
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.types import Array, Basic, Structure

Value = tuple[Register, ...]

_LONGS = {"+": Op.ADD_I, "-": Op.SUB_I, "*": Op.MUL_I, "/": Op.DIV_I, "%": Op.MOD_I,
          "<": Op.LESS_I, "<=": Op.MOST_I, "==": Op.SAME_I, "!=": Op.OTHER_I}  # fmt: skip
_DOUBLES = {"+": Op.ADD_F, "-": Op.SUB_F, "*": Op.MUL_F, "/": Op.DIV_F, "%": Op.MOD_F,
            "<": Op.LESS_F, "<=": Op.MOST_F, "==": Op.SAME_F, "!=": Op.OTHER_F}  # fmt: skip
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_LONG_CALLS = {"abs": Op.ABS_I, "min": Op.MIN_I, "max": Op.MAX_I}
_DOUBLE_CALLS = {"abs": Op.ABS_F, "min": Op.MIN_F, "max": Op.MAX_F,
                 "floor": Op.FLOOR, "ceil": Op.CEIL, "sqrt": Op.SQRT}  # fmt: skip


class Expressions(Program):
    """Adds the instructions of expressions to a program. Raises `UncompiledError`."""

    def value(self, node: tree.Expression) -> Value:
        """The registers of a value; those of a variable are the variable's own."""
        match node:
            case tree.Literal(value=value):
                if value is None or not isinstance(node.type, Basic):
                    raise UncompiledError("null")
                return (self.constant(value, node.type),)
            case tree.Variable(name=name):
                if isinstance(node.type, Array):
                    raise UncompiledError(str(node.type))
                return self.variable(name)
            case tree.Local(name=name):
                return self.local(name)
            case tree.Key(number=number):
                return (self._key(number),)
            case tree.Raw():
                return tuple(map(self._event, self.layout.raw))
            case tree.Index():
                return (self._element(node),)
            case tree.Field(structure=structure):
                first, count = _part(node)
                return self.value(structure)[first : first + count]
            case tree.Unary(op=op, operand=operand):
                ops = {"!": Op.NOT, "-": Op.NEG_F if node.type == Basic.DOUBLE else Op.NEG_I}
                return (self._result(node, ops[op], operand),)
            case tree.Binary():
                return (self._binary(node),)
            case tree.Choice():
                return self._choice(node)
            case tree.Call():
                return (self._call(node),)
            case tree.Build(fields=fields):
                return tuple(word for _, part in fields for word in self.value(part))
        raise UncompiledError(type(node).__name__)

    def condition(self, node: tree.Expression) -> Register:
        (found,) = self.value(node)
        return found

    def kept(self, node: tree.Expression) -> Register:
        """A value of one word, as it is now, up to the end of the frame."""
        (found,) = self.value(node)
        kept = self.lasting(Basic.DOUBLE if found.double else Basic.LONG)
        self.move(kept, found)
        return kept

    def assign(self, target: Value, value: Value) -> None:
        """Put a value into registers, of which it may consist itself."""
        if len(target) > 1:
            shared = {*target}
            value = tuple(self._copied(each) if each in shared else each for each in value)
        for to, given in zip(target, value, strict=True):
            self.move(to, given)

    def _copied(self, value: Register) -> Register:
        found = self.temporary(Basic.DOUBLE if value.double else Basic.LONG)
        self.move(found, value)
        return found

    def move(self, to: Register, value: Register) -> None:
        """Put the value of a register into another."""
        if to != value:
            self.put(Op.MOVE_F if to.double else Op.MOVE_I, to, self.read(value))

    def target(self, node: tree.Expression) -> Value:
        """The registers of a variable, or of a field of one."""
        if isinstance(node, tree.Field):
            first, count = _part(node)
            return self.target(node.structure)[first : first + count]
        if isinstance(node, tree.Variable):
            return self.variable(node.name)
        raise UncompiledError(type(node).__name__)

    def items(self, node: tree.Expression) -> Items:
        """The array that an expression is."""
        if isinstance(node, tree.Variable):
            return self.layout.arrays[node.name]
        raise UncompiledError("an array in a value")

    def _result(self, node: tree.Expression, op: Op, *operands: tree.Expression) -> Register:
        """An operation on values of one word."""
        registers = [self.condition(each) for each in operands]
        numbers = [self.read(each) for each in registers]
        (kind,) = kinds_of(node.type)
        found = self.temporary(kind)
        self.put(op, found, *numbers)
        return found

    def _event(self, word: Word) -> Register:
        found = self.temporary(word.kind)
        self.put(Op.EVENT_F if word.double else Op.EVENT_I, found, word.place)
        return found

    def _key(self, number: int) -> Register:
        word = self.layout.keys[number]
        found = self.temporary(word.kind)
        self.put(Op.KEY_F if word.double else Op.KEY_I, found, word.place)
        return found

    def _element(self, node: tree.Index) -> Register:
        items = self.items(node.array)
        index = self.read(self.condition(node.index))
        found = self.temporary(items.kind)
        self.put(Op.GET_F if found.double else Op.GET_I, found, items.number, index)
        return found

    def _binary(self, node: tree.Binary) -> Register:
        op, left, right, kind = node.op, node.left, node.right, node.left.type
        if op in ("&&", "||"):
            found = self.temporary(Basic.BOOLEAN)
            self.move(found, self.condition(left))
            past = self.jump(Op.JUMP_UNLESS if op == "&&" else Op.JUMP_IF, found)
            self.move(found, self.condition(right))
            self.land(past)
            return found
        if not isinstance(kind, Basic) or kind == Basic.OBJECT:
            raise UncompiledError(f"{op} of {kind}")
        if right.type == Basic.OBJECT or (kind == Basic.STRING and op not in ("==", "!=")):
            raise UncompiledError(f"{op} of {kind}")
        if op in (">", ">="):
            op, left, right = {">": "<", ">=": "<="}[op], right, left
        double = kind == Basic.DOUBLE and (op in _COMPARISONS or node.type == Basic.DOUBLE)
        return self._result(node, (_DOUBLES if double else _LONGS)[op], left, right)

    def _choice(self, node: tree.Choice) -> Value:
        found = tuple(self.temporary(kind) for kind in kinds_of(node.type))
        if not {node.then.type, node.other.type} <= {node.type}:
            raise UncompiledError("a choice of objects")
        past = self.jump(Op.JUMP_UNLESS, self.condition(node.condition))
        self.assign(found, self.value(node.then))
        out = self.jump(Op.JUMP)
        self.land(past)
        self.assign(found, self.value(node.other))
        self.land(out)
        return found

    def _call(self, node: tree.Call) -> Register:
        name, given = node.function, node.arguments
        kinds = [each.type for each in given]
        if name == "now":
            found = self.temporary(Basic.TIME)
            self.put(Op.NOW, found)
            return found
        if name == "isNull":
            self.value(given[0])
            return self.constant(False, Basic.BOOLEAN)
        if name == "length" and isinstance(kinds[0], Array):
            found = self.temporary(Basic.LONG)
            self.put(Op.LOAD_I, found, self.items(given[0]).length)
            return found
        if Basic.STRING in kinds or not all(isinstance(kind, Basic) for kind in kinds):
            raise UncompiledError(name)
        double = kinds[0] == Basic.DOUBLE
        if name in ("long", "double"):
            if double == (name == "double"):
                return self.condition(given[0])
            return self._result(node, Op.DOUBLE if name == "double" else Op.LONG, given[0])
        if name == "microseconds":
            return self.condition(given[0])
        if name == "round":
            return self._result(node, Op.ROUND, given[0])
        calls = _DOUBLE_CALLS if double else _LONG_CALLS
        if name not in calls:
            raise UncompiledError(name)
        found = self._result(node, calls[name], *given[:2])
        for more in given[2:]:
            numbers = found.number, self.read(self.condition(more))
            found = self.temporary(Basic.DOUBLE if double else Basic.LONG)
            self.put(calls[name], found, *numbers)
        return found


def _part(node: tree.Field) -> tuple[int, int]:
    """The first word of a field in its structure, and how many it has."""
    first, outer = 0, node.structure.type
    if not isinstance(outer, Structure):
        raise UncompiledError(str(outer))
    for name, kind in outer.fields:
        count = len([*kinds_of(kind)])
        if name == node.name:
            return first, count
        first += count
    raise KeyError(node.name)
