"""Values for columns that a filter names and the store does not keep: such that the filter holds,
as far as it compares columns with literals.

Example: `kind = 'withdraw' and amount >= 1000` gives kind `withdraw` and amount 1000.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from tidegate.rules.sql.tree import tree_of


@dataclass(slots=True)
class Filling:
    """What is guessed of a row: `now`, by column; `before`, of its pre-image. `unknown`: the parts
    of the filter of which nothing follows."""

    now: dict[str, Any] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)


def filling(where: str | None, now: Mapping[str, Any], before: Mapping[str, Any]) -> Filling:
    """Values for a filter. `now`, `before`: what is known of the row and of its pre-image, by
    column; these are left as they are."""
    found = Filling()
    tree = None if where is None else tree_of(where, expression=True)
    for part in () if tree is None else _parts(tree):
        _fill(part, found, now, before)
    return found


def _parts(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The conjuncts of a condition."""
    tree = _bare(tree)
    if isinstance(tree, exp.And):
        yield from _parts(tree.left)
        yield from _parts(tree.right)
    else:
        yield tree


def _fill(
    part: exp.Expr, found: Filling, now: Mapping[str, Any], before: Mapping[str, Any]
) -> None:
    named = [*part.find_all(exp.Column)]
    if all(_known(each, now, before) for each in named):
        return
    column, value = _wanted(part, found, now, before)
    if column is None or _known(column, now, before):
        if column is None:
            found.unknown.append(part.sql("spark"))
        return
    (found.before if _is_old(column) else found.now).setdefault(_name(column), value)


def _wanted(
    part: exp.Expr, found: Filling, now: Mapping[str, Any], before: Mapping[str, Any]
) -> tuple[exp.Column | None, Any]:
    """A column that has no value, and one that makes this part true."""
    part = _bare(part)
    match part:
        case exp.Column():
            return part, True
        case exp.Not() if _column(part.this) is not None:
            return _column(part.this), False
        case exp.Not() if isinstance(_bare(part.this), exp.Is):
            return _column(_bare(part.this).this), 1
        case exp.Is():
            return _column(part.this), None
        case exp.In() if part.expressions:
            return _column(part.this), _literal(part.expressions[0])
        case exp.Between():
            return _column(part.this), _literal(part.args["low"])
        case exp.EQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE() | exp.NEQ():
            sides = (part.left, part.right), (part.right, part.left)
            for flipped, (one, other) in enumerate(sides):
                column = _column(one)
                if column is None or _known(column, now, before):
                    continue
                value = _value(other, found, now, before)
                if value is not None:
                    return column, _beyond(part, value, flipped=bool(flipped))
    return None, None


def _value(
    side: exp.Expr, found: Filling, now: Mapping[str, Any], before: Mapping[str, Any]
) -> Any:
    """A literal, or the value of a column that has one; a column without any is taken as 0."""
    column = _column(side)
    if column is None:
        return _literal(side)
    old = _is_old(column)
    values = {**found.before, **before} if old else {**found.now, **now}
    if _name(column) not in values:
        (found.before if old else found.now)[_name(column)] = 0
        return 0
    return values[_name(column)]


def _beyond(part: exp.Expr, value: Any, *, flipped: bool) -> Any:
    """A value on the right side of a bound."""
    step = 0
    if isinstance(part, exp.GT | exp.NEQ):
        step = 1
    elif isinstance(part, exp.LT):
        step = -1
    step = -step if flipped and not isinstance(part, exp.NEQ) else step
    if not step:
        return value
    if isinstance(value, bool):
        return not value
    return value + step if isinstance(value, int | float | Decimal) else f"{value}x"


def _literal(side: exp.Expr) -> Any:
    match side:
        case exp.Literal() if side.is_string:
            return side.this
        case exp.Literal():
            try:
                return int(side.this) if side.this.isdigit() else Decimal(side.this)
            except InvalidOperation:
                return None
        case exp.Neg() if isinstance(side.this, exp.Literal) and not side.this.is_string:
            found = _literal(side.this)
            return None if found is None else -found
        case exp.Boolean():
            return bool(side.this)
        case exp.Paren():
            return _literal(side.this)
    return None


def _column(side: exp.Expr) -> exp.Column | None:
    side = _bare(side)
    return side if isinstance(side, exp.Column) else None


def _bare(tree: exp.Expr) -> exp.Expr:
    """A tree without the parentheses around it."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


def _is_old(column: exp.Column) -> bool:
    return column.table.lower() == "old"


def _name(column: exp.Column) -> str:
    return column.name


def _known(column: exp.Column, now: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    return _name(column) in (before if _is_old(column) else now)
