"""Rules that fire again for one initiator, and what would make them fire once (S13).

The default context of a composite expression consumes nothing. A rule with a `context` or a damping
key has made its choice, and is not warned. But no context consumes what begins a timer or a window,
so that warning is given for every rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidegate.rules.algebra.plain_expressions import plain
from tidegate.rules.algebra.repetition import fires_again, initiators, looked_at, shared, timers
from tidegate.rules.analysis.draft import Draft
from tidegate.rules.checks.doubts import Doubt
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.parser import replaced, unlabelled
from tidegate.rules.model import DAMPINGS, Context, Rule
from tidegate.rules.yaml.hints import in_quotes

_NAMES_MAX = 4
_MEANT = "; if each is meant, say so: context: restricted (the default)"


def repetitions(book: Draft, rule: Rule, node: x.Expression) -> Iterator[Doubt]:
    """The parts of a rule's expression that fire again, from the outside in; the hints say how to
    write what fires once."""
    if isinstance(node, w.Window):
        return
    record = book.records("rules")[rule.name]
    if any(map(record.has, DAMPINGS)) or (
        record.has("context") and rule.pattern.context is Context.UNRESTRICTED
    ):
        return
    form = _Form(book, rule, node)
    if not record.has("context") and not record.has("select") and not plain(node):
        yield from form.whole()
    for timer, begun in looked_at(node):
        yield from form.part(timer, begun)


def _alternates(node: x.Expression) -> bool:
    """Whether it is `r ; resolved r`, within a length of time or not: between two ends of what r
    holds it fires once."""
    match unlabelled(node):
        case x.Within(part=part):
            return _alternates(part)
        case x.Seq(first=x.Name(name=fired), then=x.Resolved(name=over)):
            return fired == over
    return False


@dataclass(frozen=True, slots=True)
class _Form:
    book: Draft
    rule: Rule
    node: x.Expression

    def whole(self) -> Iterator[Doubt]:
        """The repetition that a context can end."""
        node, rules = self.node, self.book.rules
        if _alternates(node):
            return
        if events := fires_again(node, rules):
            message = f"this fires again at each later {_again(events, initiators(node))}"
            hint = f"context: recent fires once{_MEANT}"
            if named := timers(node, rules):
                hint = self._named(named, "timer", then=", context: recent") + _MEANT
            yield Doubt("fires-again", message, hint, node)
        elif names := shared(node, rules):
            message = f"one {_either(names)} counts in several detections of this"
            hint = f"context: recent counts each once{_MEANT}"
            yield Doubt("fires-again", message, hint, node)

    def part(self, timer: x.Expression, begun: x.Expression) -> Iterator[Doubt]:
        """The repetition of what begins a timer or a window, which no context consumes."""
        rules, shown = self.book.rules, format_expression(timer)
        if events := fires_again(begun, rules):
            again = _again(events, initiators(begun))
            message = f"{shown} begins again at each later {again}, in every context"
        elif not isinstance(timer, x.Aperiodic) and (names := shared(begun, rules)):
            message = f"one {_either(names)} begins {shown} several times, in every context"
        else:
            return
        if named := timers(begun, rules):
            hint = self._named(named, "timer")
        else:
            hint = self._named((begun,), "begun", ", context: recent")
        yield Doubt("fires-again", message, hint, timer)

    def _named(
        self, parts: Sequence[x.Expression], name: str, context: str = "", then: str = ""
    ) -> str:
        """The advice to make rules of these parts: their detections are occurrences."""
        names = [f"{name}{number}" for number in range(1, len(parts) + 1)]
        names = names if len(parts) > 1 else [name]
        per = self.book.records("rules")[self.rule.name].get("per")
        keyed = f", per: {_columns(per)}" if per else ""
        told = [
            f"{name}: {{on: {in_quotes(format_expression(part))}{keyed}{context}}}"
            for name, part in zip(names, parts, strict=True)
        ]
        written = unlabelled(self.node)
        for name, part in zip(names, parts, strict=True):
            written = replaced(written, unlabelled(part), x.Name(name))
        told.append(f"on: {format_expression(written)}{then}")
        return f"name what no context uses up as a rule of its own: {'; '.join(told)}"


def _again(events: Sequence[str], begun: Sequence[str]) -> str:
    if begun == events:
        same = {1: f"first {events[0]}", 2: "other"}.get(len(events), "others")
    else:
        same = _either(begun)
    return f"{_either(events)}, for the same {same}"


def _either(names: Sequence[str]) -> str:
    *before, last = names if len(names) <= _NAMES_MAX else (*names[:_NAMES_MAX], "..")
    return f"{', '.join(before)} or {last}" if before else last


def _columns(per: object) -> str:
    if isinstance(per, str):
        return per
    return f"[{', '.join(map(str, per))}]" if isinstance(per, tuple) else "{..}"
