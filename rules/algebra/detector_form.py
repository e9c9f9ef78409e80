"""The form of an expression that the detector runs: normal, with `within` pushed down."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache

from tidegate.rules.algebra.normal_form import normalise
from tidegate.rules.algebra.plain_expressions import plain
from tidegate.rules.algebra.transformation import transform
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.formatter import format_written
from tidegate.rules.model import Pattern, Rulebook

KEPT_MAX = 10_000  # forms: one is asked for several times while a rulebook is read


def detected(pattern: Pattern, rules: Collection[str] = ()) -> x.Expression:
    """The expression that the detector runs for a pattern. It has the same instances, and in every
    context the same detections (S9). `rules`: names of the rules that are used as events.

    It is the normal form, in which equal subexpressions of different rules are one node however
    they are written, after Carlson & Lisper's transformation. There are two exceptions:

    - if normalising drops a label (with a part that never happens), it is transformed only;
    - with a `select` it stays as written: the order of its operands and its outermost `within`
      have a meaning there.
    """
    used = frozenset(name for name in x.names_in(pattern.on) if name in rules)
    if pattern.selection:
        return without_points(pattern.on, used)
    return _detected(pattern.on, used, format_written(pattern.on))


def without_points(node: x.Expression, rules: Collection[str]) -> x.Expression:
    """The same without `instant` around what is a point anyway: event types, not `rules`."""
    made = x.with_operands(node, [without_points(operand, rules) for operand in node.operands()])
    if isinstance(made, x.Instant) and plain(made.part) and not x.names_in(made.part) & {*rules}:
        return made.part
    return made


@lru_cache(maxsize=KEPT_MAX)
def _detected(on: x.Expression, rules: frozenset[str], _written: str) -> x.Expression:
    points = isinstance(on, w.Window)  # to which a rule's detection is a point, too
    on = without_points(on, () if points else rules)
    normal = normalise(on)
    if isinstance(on, w.Window):
        return normal if _labels(normal) == _labels(on) else on
    if _labels(normal) != _labels(on):
        normal = on
    return transform(normal, rules=rules, forgetting=True).expression


def as_detected(book: Rulebook) -> Rulebook:
    """The rulebook with every rule's expression in the form that is detected."""
    rules = {
        r.name: replace(r, pattern=replace(r.pattern, on=detected(r.pattern, book.rules)))
        for r in book.rules.values()
    }
    return replace(book, rules=rules)


def _labels(expression: x.Expression) -> set[str]:
    return {node.label for node in expression.walk() if isinstance(node, x.Labelled)}
