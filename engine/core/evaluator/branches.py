"""Forms that evaluate a part only where it is needed: AND, OR, `case`, `if`, `coalesce`.

Example: `b <> 0 AND a / b > 1`. The quotient is computed only for the rows where b is not 0: Spark
does not raise there either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.evaluator.casts import cast
from tidegate.engine.core.evaluator.kinds import common
from tidegate.engine.core.evaluator.nodes import Mask, Node, OutsideError, Rows, Values, placed


def joined(parts: Sequence[Node], word: str) -> Node:
    """AND or OR of several parts, from left to right."""
    if any(part.kind != pa.bool_() for part in parts):
        raise OutsideError
    decides = word == "OR"  # the value after which no other part matters
    combine = pc.or_kleene if decides else pc.and_kleene

    def run(rows: Rows) -> Values:
        held = parts[0].run(rows)
        for part in parts[1:]:
            if part.checked:
                open_ = ~_is(held, decides, rows.count)
                said = placed(part.run(rows.some(open_)), open_, pa.nulls(rows.count, pa.bool_()))
            else:
                said = part.run(rows)
            held = combine(held, said)
        return held

    text = f" {word} ".join(part.text for part in parts)
    return _made(pa.bool_(), f"({text})", parts, run)


def case(branches: Sequence[tuple[Node, Node]], default: Node | None) -> Node:
    """The value of the first branch whose condition is true, else the default, else null."""
    others = [] if default is None else [default]
    if any(condition.kind != pa.bool_() for condition, _ in branches):
        raise OutsideError
    kind = common(*(value.kind for value in (*(value for _, value in branches), *others)))
    branches = [(condition, cast(value, kind)) for condition, value in branches]
    default = None if default is None else cast(default, kind)

    def run(rows: Rows) -> Values:
        found = pa.nulls(rows.count, kind)
        open_ = np.ones(rows.count, np.bool_)
        for condition, value in branches:
            held = open_.copy()
            held[open_] = _is(condition.run(rows.some(open_)), True, int(open_.sum()))
            found = placed(value.run(rows.some(held)), held, found)
            open_ &= ~held
        return found if default is None else placed(default.run(rows.some(open_)), open_, found)

    parts = [part for branch in branches for part in branch]
    parts += [] if default is None else [default]
    said = " ".join(f"WHEN {condition.text} THEN {value.text}" for condition, value in branches)
    otherwise = "" if default is None else f" ELSE {default.text}"
    return _made(kind, f"CASE {said}{otherwise} END", parts, run)


def coalesce(parts: Sequence[Node]) -> Node:
    """The first value that is not null."""
    kind = common(*(part.kind for part in parts))
    parts = [cast(part, kind) for part in parts]

    def run(rows: Rows) -> Values:
        every = np.ones(rows.count, np.bool_)
        found = placed(parts[0].run(rows), every, pa.nulls(rows.count, kind))
        for part in parts[1:]:
            missing = found.is_null().to_numpy(zero_copy_only=False)
            found = placed(part.run(rows.some(missing)), missing, found)
        return found

    return _made(kind, f"COALESCE({', '.join(part.text for part in parts)})", parts, run)


def _made(
    kind: pa.DataType, text: str, parts: Sequence[Node], run: Callable[[Rows], Values]
) -> Node:
    columns = frozenset[str]().union(*(part.columns for part in parts))
    if not columns:
        raise OutsideError
    return Node(kind, text, run, columns, checked=any(part.checked for part in parts))


def _is(held: Values, value: bool, count: int) -> Mask:
    """The rows of which a truth value is `value`; null is neither."""
    if isinstance(held, pa.Scalar):
        return np.full(count, held.as_py() is value, np.bool_)
    said = held.fill_null(not value).to_numpy(zero_copy_only=False)
    return np.asarray(said if value else ~said, np.bool_)
