"""Expressions as clauses: which template of `sentences.toml` an operator has, and the names of its
operands in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tidegate.engine.core.text.layout import listed
from tidegate.rules.algebra.plain_expressions import plain
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import ode
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.durations import format_duration
from tidegate.rules.expressions.formatter import format_expression, format_written
from tidegate.rules.expressions.parser import unlabelled

NAME_MAX = 40
"""Characters of a composite's text that serves as its name. A longer one has a number."""


class Names:
    """What the parts of an expression are called: event types by their names, composites by their
    text, labels, or numbers. `parts` are those that need a sentence of their own."""

    def __init__(self) -> None:
        self._found: dict[x.Expression, str] = {}
        self._numbers = 0

    def of(self, e: x.Expression) -> str:
        """`` `a` ``, `` `a` or `b` ``, `` `a ; b` ``, `part 2`."""
        match e:
            case x.Labelled(label=label):
                return self._part(e, f"`{label}`")
            case x.Instant(part=part):
                return self.of(part) if plain(part) else f"end of {self.of(part)}"
            case x.Or(parts=parts) if plain(e):
                return listed(map(self.of, parts), "or")
            case _ if plain(e):
                return f"`{format_expression(e)}`"
        if e not in self._found:
            text = format_written(e)
            if len(text) > NAME_MAX:
                self._numbers += 1
                text = ""
            self._part(e, f"`{text}`" if text else f"part {self._numbers}")
        return self._found[e]

    def parts(self) -> Iterator[tuple[x.Expression, str]]:
        """Those named so far, and those that are named meanwhile."""
        at = 0
        while at < len(self._found):
            part = [*self._found][at]
            at += 1
            yield part, self._found[part]

    def _part(self, e: x.Expression, name: str) -> str:
        return self._found.setdefault(e, name)


@dataclass(frozen=True, slots=True)
class Clause:
    """An expression as a clause. operator: its template. values: the names in it. operands: those
    of whose instances its own are made. filters: what is said behind it. instances: how many it
    stores in `restricted`."""

    operator: str
    values: Mapping[str, str]
    operands: tuple[x.Expression, ...]
    filters: tuple[str, ...]
    instances: int


_Operands = tuple[x.Expression, ...]


def clause(e: x.Expression, names: Names, *, again: bool = True) -> Clause:
    """The clause of an expression. again: whether a second event of one name is `another` one."""
    filters: list[str] = []
    while isinstance(e, x.Within | x.Minus | x.Labelled):
        if isinstance(e, x.Within):
            filters.append(f", within {format_duration(e.duration)}")
        elif isinstance(e, x.Minus):
            filters.append(f", with no {names.of(e.absent)} meanwhile")
        e = e.part
    operator, operands, more = _read(e)
    values = {key: names.of(given) if isinstance(given, x.Expression) else given
              for key, given in more.items()}  # fmt: skip
    if again and operator in _LAST and values["a"] == values[_LAST[operator]]:
        values[_LAST[operator]] = f"another {values['a']}"
    each = [names.of(operand) for operand in operands]
    values |= {"all": listed(each), "any": listed(each, "or"), "chain": ", then ".join(each)}
    instances = _INSTANCES.get(operator, len(operands))
    if isinstance(e, x.AnyRepeat):
        instances = e.count - 1
        values["before"] = values["a"] if instances == 1 else f"{instances} {values['a']}"
    return Clause(operator, values, operands, (*reversed(filters),), instances)


_LAST = {"; again": "b", "not again": "c"}
_INSTANCES = {";": 1, "; again": 1, "not": 1, "not again": 1}
_Read = tuple[str, _Operands, dict[str, x.Expression | str]]


def _read(e: x.Expression) -> _Read:
    """An operator's template, operands and values."""
    if plain(e):
        return "event", (e,), {"a": e}
    if e.word in ode.WORDS and (found := _of_ode(e)):
        return found
    match e:
        case x.Or(parts=parts):
            return "or", parts, {}
        case x.And(parts=parts):
            return "and", parts, {}
        case x.AnyOf(count=count, parts=parts) if count >= len(parts):
            return "and", parts, {}
        case x.AnyOf(count=count, parts=parts):
            return "any", parts, {"m": str(count)}
        case x.AnyRepeat(count=count, part=part):
            return "any *", (part,), {"a": part, **_number(count)}
        case x.Seq(first=first, then=x.Own(duration=d)):
            return "; [d]", (first,), {"a": first, "d": format_duration(d)}
        case x.Seq():
            stages = _chain(e)
            if len(stages) == 2:
                return f";{_again(*stages)}", stages, {"a": stages[0], "b": stages[1]}
            return "; ;", stages, {}
        case x.Not(absent=absent, opener=a, closer=x.Own(duration=d)):
            return "not [d]", (a,), {"a": a, "x": absent, "d": format_duration(d)}
        case x.Not(absent=absent, opener=a, closer=c):
            return f"not{_again(a, c)}", (a, c), {"a": a, "x": absent, "c": c}
        case x.Plus(base=base, duration=d):
            return "+", (base,), {"a": base, "d": format_duration(d)}
        case x.Nth(part=part, index=index):
            return "[i]", (part,), {"a": part, **_number(index)}
        case x.Every(count=count, part=part):
            return "every", (part,), {"a": part, **_number(count)}
        case x.Instant(part=part):
            return "event", (part,), {"a": e}
        case w.Window():
            return _of_window(e)
    return _of_window_operator(e)


def _again(first: x.Expression, last: x.Expression) -> str:
    """The end of a template's name: what comes first and what comes last are one event."""
    return " again" if unlabelled(first) == unlabelled(last) else ""


def _of_window_operator(e: x.Expression) -> _Read:
    """`A`, `A*`, `P` and `P*`."""
    match e:
        case x.Aperiodic(opener=a, part=b, closer=x.Own(duration=d)):
            return "A [d]", (b,), {"a": a, "b": b, "d": format_duration(d)}
        case x.Aperiodic(opener=a, part=b, closer=c):
            return "A", (b,), {"a": a, "b": b, "c": c}
        case x.AperiodicStar(opener=a, part=b, closer=x.Own(duration=d)):
            return "A* [d]", (a, b), {"a": a, "b": b, "d": format_duration(d)}
        case x.AperiodicStar(opener=a, part=b, closer=c):
            return f"A*{_again(a, c)}", (a, b, c), {"a": a, "b": b, "c": c}
        case (
            x.Periodic(opener=a, period=p, closer=c) | x.PeriodicStar(opener=a, period=p, closer=c)
        ):
            sign = "P*" if isinstance(e, x.PeriodicStar) else "P"
            again = _again(a, c) if sign == "P*" else ""
            values: dict[str, x.Expression | str] = {"a": a, "d": format_duration(p)}
            if isinstance(c, x.Own):
                return f"{sign} [d]", (a,), {**values, "e": format_duration(c.duration)}
            return f"{sign}{again}", (a, c), {**values, "c": c}
    raise TypeError(f"no sentence for {type(e).__name__}")


def _of_ode(e: x.Expression) -> _Read | None:
    """Ode's operators that are more than another name."""
    given = ode.written(e)
    match e.word, given:
        case "fa" | "faAbs", (x.Expression() as a, x.Expression() as b, x.Expression() as c):
            return e.word, (a, b), {"a": a, "b": b, "c": c}
        case "times", (
            int(n),
            x.Expression() as b,
            x.Expression() as a,
            x.Expression() as c,
        ):
            return "times", (a, b), {"a": a, "b": b, "c": c, **_number(n)}
        case "relative", (x.Expression() as a, x.Nth(part=b, index=n)):
            return "relative [n]", (a, b), {"a": a, "b": b, **_number(n)}
    return None


def _of_window(e: w.Window) -> _Read:
    match e:
        case w.Tumbling(part=part, length=d):
            return "tumbling", (part,), {"a": part, "d": format_duration(d)}
        case w.Sliding(part=part, length=d, every=every):
            lengths = {"d": format_duration(d), "e": format_duration(every)}
            return "sliding", (part,), {"a": part, **lengths}
        case w.Session(part=part, gap=d):
            return "session", (part,), {"a": part, "d": format_duration(d)}
        case w.Crossing(part=part, length=d, fire=fire, rearm=rearm):
            asked = " ".join(fire.text.split())
            armed = f"`{asked}` was not true"
            if rearm is not None:
                armed = f"`{' '.join(rearm.text.split())}` was true"
            said = {"d": format_duration(d), "fire": asked, "rearmed": armed}
            return "over", (part,), {"a": part, **said}
        case w.Holding(begun=begun, ended=ended, length=d, keep=keep):
            operator = "holds, keep" if keep.micros else "holds"
            said = {"d": format_duration(d), "e": format_duration(keep)}
            return operator, (begun, ended), {"a": begun, "b": ended, **said}
    raise TypeError(f"no sentence for {type(e).__name__}")


def _chain(e: x.Expression) -> _Operands:
    """The stages of a sequence, which is associative."""
    if isinstance(e, x.Seq) and not isinstance(e.then, x.Own):
        return (*_chain(e.first), *_chain(e.then))
    return (e,)


def _number(number: int) -> dict[str, x.Expression | str]:
    """A count and its ordinal: `3`, `3rd`."""
    teens = 10 < number % 100 < 20
    ending = "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return {"m": str(number), "nth": f"{number}{ending}"}
