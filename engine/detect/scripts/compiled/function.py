"""A transition as a function of LLVM's, while it is built.

The words of an instance that it reads or writes are variables (`alloca`), which LLVM makes
registers of the processor. They are loaded first and stored last. So a transition that fails has
changed nothing but elements of arrays, which are put back. Example: `sum = sum + x`, sum the word 5
of an instance, x the column 0 of an event:

    entry:  sum = alloca double; store row[5], sum
    body:   store (load sum) + column0[place], sum
            store load sum, row[5]
            return records
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from tidegate.engine.detect.scripts.compiled import context as at
from tidegate.engine.detect.scripts.compiled.kernel import FAILED, FULL
from tidegate.engine.detect.scripts.compiled.layout import Items, Word

I32, I64, F64 = ir.IntType(32), ir.IntType(64), ir.DoubleType()
ADDRESS = ir.PointerType()
FALSE = ir.Constant(ir.IntType(1), False)
KIND = ir.FunctionType(I64, [ADDRESS, ADDRESS, *[I64] * 5])
"""row, context, now, place, key, cause, records: records."""
NAME = "transition"
UNDO = 1 << 14
"""Elements of arrays that a transition may change; one that changes more is interpreted."""
Value = tuple[Any, ...]
"""A value of a script: a value of LLVM's for each of its words, an i64 or a double."""


def integer(value: int) -> Any:
    return ir.Constant(I64, int(value))


def real(value: float) -> Any:
    return ir.Constant(F64, value)


class Function:
    """`b` builds the instructions, one behind the other. `now`: the instant of the event."""

    def __init__(self, columns: at.Context) -> None:
        self._columns = columns
        own = self._function = ir.Function(ir.Module(), KIND, NAME)
        self._row, self._context, self.now, self._place, self._key, self._cause, self._first = (
            own.args
        )
        self._entry = ir.IRBuilder(own.append_basic_block("entry"))
        self._body, self._failure = map(own.append_basic_block, ("body", "failure"))
        self.b = ir.IRBuilder(self._body)
        self._known: dict[int, Any] = {}
        self._words: dict[Word, Any] = {}
        self._written: dict[Word, Any] = {}
        self._records = self.variable(self._first)
        self._undo = self.variable(integer(0))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return self.b.block is self._body and not self._body.instructions

    def ended(self) -> str:
        """The text of a module of the whole function."""
        b = self.b
        for word, variable in self._written.items():
            b.store(b.load(variable), self._at(integer(word.place)))
        b.ret(b.load(self._records))
        self._fail()
        self._entry.branch(self._body)
        return str(self._function.module)

    def fail_if(self, condition: Any) -> None:
        past = self.b.append_basic_block()
        self.b.cbranch(condition, self._failure, past)
        self.b.position_at_end(past)

    def _fail(self) -> None:
        """Put back what was overwritten, last first."""
        b = self.b
        b.position_at_end(self._failure)
        with self.loop(lambda: b.icmp_signed(">", b.load(self._undo), integer(0))):
            undo = self.added(self._undo, -1)
            place, was = (b.load(self._cell(of, undo), typ=I64) for of in (at.WHERE, at.WAS))
            b.store(was, self._at(place))
        b.ret(b.select(self._full(), integer(FULL), integer(FAILED)))

    def _full(self) -> Any:
        """Whether there is no room for an emission more."""
        room = self._of_context(at.ROOM, I64)
        return self.b.icmp_signed("==", self.b.load(self._records), room)

    # what it is made of ------------------------------------------------------------------------

    def variable(self, value: Any) -> Any:
        """A variable, which has a value at first."""
        found = self._entry.alloca(value.type)
        self._entry.store(value, found)
        return found

    def added(self, address: Any, count: int) -> Any:
        """What an integer is after something is added to it."""
        found = self.b.add(self.b.load(address, typ=I64), integer(count))
        self.b.store(found, address)
        return found

    @contextmanager
    def loop(self, goes_on: Callable[[], Any]) -> Iterator[None]:
        """What is built meanwhile is done as long as a condition holds."""
        b = self.b
        test, body, past = (b.append_basic_block() for _ in range(3))
        b.branch(test)
        b.position_at_end(test)
        b.cbranch(goes_on(), body, past)
        b.position_at_end(body)
        yield
        b.branch(test)
        b.position_at_end(past)

    def intrinsic(self, name: str, value: Any, gives: Any = F64) -> Any:
        """The result of a function of LLVM's, of a double."""
        module = self._function.module
        kind = ir.FunctionType(gives, [F64])
        return self.b.call(module.globals.get(name) or ir.Function(module, kind, name), [value])

    def _at(self, place: Any) -> Any:
        """The address of a word of the instance."""
        return self.b.gep(self._row, [place], source_etype=I64)

    def _cell(self, column: int, row: Any, kind: Any = I64) -> Any:
        """The address of a row of a column whose address is in the context."""
        return self.b.gep(self._of_context(column), [row], source_etype=kind)

    def _of_context(self, place: int, kind: Any = ADDRESS) -> Any:
        """A word of the context, loaded once."""
        if place not in self._known:
            where = self._entry.gep(self._context, [integer(place)], source_etype=I64)
            self._known[place] = self._entry.load(where, typ=kind)
        return self._known[place]

    # values ------------------------------------------------------------------------------------

    def words(self, words: Sequence[Word]) -> Value:
        """Words of the instance, as they are now."""
        return tuple([self.b.load(self._word(word)) for word in words])

    def assign(self, words: Sequence[Word], value: Value) -> None:
        for word, part in zip(words, value, strict=True):
            variable = self._written[word] = self._word(word)
            self.b.store(part, variable)

    def _word(self, word: Word) -> Any:
        if word not in self._words:
            where = self._entry.gep(self._row, [integer(word.place)], source_etype=I64)
            self._words[word] = self.variable(self._entry.load(where, typ=_kind(word)))
        return self._words[word]

    def event(self, word: Word) -> Any:
        """A word of the event's value."""
        return self.b.load(self._of_value(at.EVENTS, word, self._place), typ=_kind(word))

    def key(self, word: Word) -> Any:
        """A word of the instance's key."""
        return self.b.load(self._of_value(at.KEYS, word, self._key), typ=_kind(word))

    def _of_value(self, of: int, word: Word, row: Any) -> Any:
        return self._cell(self._columns.place(of, word), row)

    def emit(self, output: int, words: Sequence[Word] = (), value: Value = ()) -> None:
        """`words`: those of the output in its columns."""
        b = self.b
        self.fail_if(self._full())
        record = b.load(self._records)
        for word, part in zip(words, value, strict=True):
            b.store(part, self._of_value(at.OUTPUTS, word, record))
        b.store(self._cause, self._cell(at.CAUSE, record))
        number = b.sub(record, self._first)
        for column, found in (at.KEY, self._key), (at.OUTPUT, integer(output)), (at.NUMBER, number):
            b.store(b.trunc(found, I32), self._cell(column, record, I32))
        self.added(self._records, 1)

    # arrays ------------------------------------------------------------------------------------

    def length(self, items: Items) -> Any:
        return self.b.load(self._at(integer(items.length)), typ=I64)

    def element(self, items: Items, index: Any) -> Any:
        return self.b.load(self._at(self._place_of(items, index)), typ=_kind(items))

    def put(self, items: Items, index: Any, value: Any) -> None:
        """Make a value an element of an array."""
        place = self._place_of(items, index)
        self._room(integer(1))
        self._overwrite(place, value)

    def fill(self, items: Items, count: Any, element: Callable[[Any], Any]) -> None:
        """Make an array one of so many elements, each of which is made from its index."""
        b = self.b
        self._room(b.add(count, integer(1)))
        self._overwrite(integer(items.length), count)
        n = self.variable(integer(0))
        b.store(integer(0), n)
        with self.loop(lambda: b.icmp_signed("<", b.load(n), count)):
            index = b.load(n)
            self._overwrite(b.add(index, integer(items.first)), element(index))
            self.added(n, 1)

    def _place_of(self, items: Items, index: Any) -> Any:
        """The place of an element. Fails if there is none."""
        self.fail_if(self.b.icmp_unsigned(">=", index, self.length(items)))
        return self.b.add(index, integer(items.first))

    def _room(self, count: Any) -> None:
        """Fail unless so many words more may be overwritten."""
        after = self.b.add(self.b.load(self._undo), count)
        self.fail_if(self.b.icmp_signed(">", after, integer(UNDO)))

    def _overwrite(self, place: Any, value: Any) -> None:
        """Change a word, and note where it is and what it was."""
        b = self.b
        undo = b.load(self._undo)
        b.store(place, self._cell(at.WHERE, undo))
        b.store(b.load(self._at(place), typ=I64), self._cell(at.WAS, undo))
        self.added(self._undo, 1)
        b.store(value, self._at(place))

    # timers ------------------------------------------------------------------------------------

    def set_timer(self, number: int, due: Any) -> None:
        self.b.store(due, self._cell(at.TIMERS, integer(number)))

    def clock(self, number: int) -> Any:
        """When a clock is next. Python knows it, once it has made a transition since it was."""
        since, found = (
            self.b.load(self._cell(at.CLOCKS, integer(2 * number + n)), typ=I64) for n in range(2)
        )
        self.fail_if(self.b.icmp_signed("<", self.now, since))
        self.fail_if(self.b.icmp_signed(">=", self.now, found))
        return found


def _kind(of: Word | Items) -> Any:
    return F64 if of.double else I64
