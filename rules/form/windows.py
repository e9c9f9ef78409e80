"""The form of a window: `on: {window: 5 min, of: req}` (see `rules.form.form`).

A window is read as an event expression is: as (node, scalar). The scalar has the window's text in
flow style, and knows where each piece of it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import cast

from tidegate.rules.algebra.plain_expressions import plain
from tidegate.rules.errors import Place
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.faults import excerpt
from tidegate.rules.expressions.formatter import PLAIN_SCALAR
from tidegate.rules.expressions.predicates import Predicate
from tidegate.rules.form import synonyms
from tidegate.rules.form.value_forms import (
    EXPRESSION,
    LENGTH,
    LENGTH_ABOVE_0,
    OVER_ROWS,
    SPAN_ABOVE_0,
)
from tidegate.rules.yaml import kinds as k
from tidegate.rules.yaml.kinds import BAD, Key, Kind, Record, Report
from tidegate.rules.yaml.reader import Fields, Items, Node, Scalar

_LIKE = "{window: 5 min, of: placed}"


def _plain(node: Node, report: Report) -> object:
    """An event type, a rule, or an `or` of these, with its scalar."""
    read = EXPRESSION.read(node, report)
    if read is BAD or plain(read[0]):
        return read
    found, scalar = read
    message = f"a window takes event types and rules, not `{' '.join(scalar.text.split())}`"
    hint = "give this a rule of its own, and name that rule here"
    place = scalar.locate(found.span.start)
    return report.add("window", message, place, hint, excerpt(scalar.text, found.span))


_ONE = Kind(_plain, EXPRESSION.schema, "placed")
_OF = k.one_or_many("an event or a list of events", _ONE)
_OF_KEY = Key("of", _OF, "an event type or rule, or a list of them", required=True)
_CROSSING = k.record(
    "over",
    Key("window", LENGTH_ABOVE_0, "how long a row stays in the window", required=True),
    _OF_KEY,
    Key("fire", OVER_ROWS, "when it fires, of the rows in the window", required=True),
    Key("rearm", OVER_ROWS, "what must have held before the next; default: fire does not hold"),
    like="{window: 1 min, of: reading, fire: avg(celsius) > 80}",
    words=synonyms.CROSSING_WORDS,
)
_KEYS = {
    "window": k.record(
        "a window",
        Key("window", SPAN_ABOVE_0, "its length", required=True),
        Key("every", SPAN_ABOVE_0, "how often one ends; default its length"),
        _OF_KEY,
        like=_LIKE,
        words=synonyms.WINDOW_WORDS,
    ),
    "session": k.record(
        "a session",
        Key("session", LENGTH_ABOVE_0, "how long nothing comes before it ends", required=True),
        _OF_KEY,
        like="{session: 30 min, of: click}",
        words=synonyms.WINDOW_WORDS,
    ),
    "over": k.record(
        "a crossing",
        Key("over", _CROSSING, "{window, of, fire, rearm}", required=True),
        like=f"{{over: {_CROSSING.like}}}",
        words=synonyms.WINDOW_WORDS,
    ),
    "holds": k.record(
        "what holds",
        Key("holds", _OF, "what begins it", required=True),
        Key("until", _OF, "what ends it", required=True),
        Key("for", LENGTH_ABOVE_0, "how long it must last before it fires", required=True),
        Key("keep", LENGTH, "how long nothing may begin anew before it is over; default 0"),
        like="{holds: too_hot, until: cool, for: 10 min}",
        words=synonyms.WINDOW_WORDS,
    ),
}
_RECORD = k.by_key(
    "a window",
    _KEYS,
    like=_LIKE,
    several="a window is one of them; another is a rule of its own",
    words=synonyms.WINDOW_WORDS,
)


def _window(node: Node, report: Report) -> object:
    """A window as (node, scalar)."""
    record = _RECORD.read(node, report)
    if not isinstance(record, Record):
        return BAD
    text = _Text(record.node)
    made = _MADE[next(iter(record.node.entries.keys() & _KEYS.keys()))](record, text)
    if made is None:
        return BAD
    scalar = WindowText(record.node.place, text.text, "", text.text, pieces=tuple(text.pieces))
    return replace(made, span=x.Span(0, len(text.text))), scalar


ON = k.by_form(
    "an event expression or a window",
    one=EXPRESSION,
    named=Kind(_window, _RECORD.schema, _LIKE, _RECORD.names),
    like=EXPRESSION.like,
)


@dataclass(frozen=True, slots=True)
class WindowText(Scalar):
    """The text of a window in flow style. `pieces`: where in it the texts of scalars begin."""

    pieces: tuple[tuple[int, Scalar], ...] = ()

    def locate(self, offset: int) -> Place:
        for begin, scalar in self.pieces:
            if begin <= offset <= begin + len(scalar.text):
                return scalar.locate(offset - begin)
        return self.place

    def locator(self) -> Callable[[int], Place]:
        return self.locate


class _Text:
    """The text of a mapping in flow style, as it was written."""

    def __init__(self, node: Fields) -> None:
        self.text = ""
        self.pieces: list[tuple[int, Scalar]] = []
        self._write(node)

    def begin(self, scalar: Scalar) -> int:
        """Where the text of a scalar begins."""
        return next(begin for begin, piece in self.pieces if piece is scalar)

    def _write(self, node: Node) -> None:
        match node:
            case Fields(entries=entries):
                self.text += "{"
                for number, (key, value) in enumerate(entries.items()):
                    self.text += f"{', ' if number else ''}{key}: "
                    self._write(value)
                self.text += "}"
            case Items(items=items):
                self.text += "["
                for number, item in enumerate(items):
                    self.text += ", " if number else ""
                    self._write(item)
                self.text += "]"
            case Scalar(text=text):
                said = re.sub(r"\s", " ", text)
                quote = "" if PLAIN_SCALAR.fullmatch(said) else "'"
                self.pieces.append((len(self.text + quote), node))
                self.text += f"{quote}{said.replace(quote, 2 * quote) if quote else said}{quote}"


def _moved(node: x.Expression, by: int) -> x.Expression:
    """The same node, as it stands so many characters later."""
    moved = x.with_operands(node, [_moved(operand, by) for operand in node.operands()])
    return replace(moved, span=x.Span(node.span.start + by, node.span.end + by))


def _either(record: Record, key: str, text: _Text) -> x.Expression | None:
    """What `of: [a, b]` names: `a or b`."""
    given = record.get(key)
    if not given:
        return None
    parts = [*_alternatives(_moved(node, text.begin(scalar)) for node, scalar in given)]
    if len(parts) == 1:
        return parts[0]
    return x.Or(tuple(parts), span=x.Span(parts[0].span.start, parts[-1].span.end))


def _alternatives(nodes: Iterator[x.Expression]) -> Iterator[x.Expression]:
    for node in nodes:
        if isinstance(node, x.Or):
            yield from _alternatives(iter(node.parts))
        else:
            yield node


def _of_length(record: Record, text: _Text) -> w.Window | None:
    part, length, every = _either(record, "of", text), record.get("window"), record.get("every")
    if part is None or length is None or (every is None and record.has("every")):
        return None
    if every is None:
        return w.Tumbling(part, length)
    return w.Sliding(part, length, every)


def _session(record: Record, text: _Text) -> w.Window | None:
    part, gap = _either(record, "of", text), record.get("session")
    return None if part is None or gap is None else w.Session(part, x.Duration(0, gap))


def _crossing(record: Record, text: _Text) -> w.Window | None:
    over = record.get("over")
    if over is None:
        return None
    part, length = _either(over, "of", text), over.get("window")
    fire, rearm = (_asked(over, key) for key in ("fire", "rearm"))
    if part is None or length is None or fire is None or (rearm is None and over.has("rearm")):
        return None
    return w.Crossing(part, x.Duration(0, length), fire, rearm)


def _asked(record: Record, key: str) -> w.Asked | None:
    if (given := record.get(key)) is None:
        return None
    tree, node = cast("tuple[Predicate, Scalar]", given)
    return w.Asked(tree, node.text.strip(), node.locate(0))


def _holding(record: Record, text: _Text) -> w.Window | None:
    begun, ended = (_either(record, key, text) for key in ("holds", "until"))
    length, keep = record.get("for"), record.get("keep", None if record.has("keep") else 0)
    if begun is None or ended is None or length is None or keep is None:
        return None
    return w.Holding(begun, ended, x.Duration(0, length), x.Duration(0, keep))


_MADE = {"window": _of_length, "session": _session, "over": _crossing, "holds": _holding}
