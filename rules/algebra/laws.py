"""Carlson & Lisper's 36 laws of the event algebra, as one table.

    x, y, z      any expression
    never        any expression without instances
    {s}, {t}     any duration; {least} is the shorter of the two
    and, within  their `+` and their index

All laws hold for `[[E]]` but those with `instances=False`, which hold for starts and ends in
`restricted` (Cor. 4.4). `rules.algebra.normal_form` rewrites with them. The list follows from the
definitions of the operators and is checked in `tests/laws`; order and names are not the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Use(Enum):
    """What normalisation makes of a law."""

    REWRITE = "the left side becomes the right one"
    ORDER = "operands are put into one list, sorted, each once; a `;` groups to the left"
    IMPLIED = "follows from other laws in use"
    NONE = "no: it would change constituents, forget less, or copy or tear apart what rules share"


@dataclass(frozen=True, slots=True)
class Law:
    """Two texts with variables. `instances`: both have the same instances, so the law holds in
    every context; otherwise only starts and ends are equal, in `restricted`."""

    name: str
    left: str
    right: str
    use: Use
    instances: bool = True


_REWRITE, _ORDER, _IMPLIED, _NONE = Use

LAWS: tuple[Law, ...] = (
    Law("or-idempotent", "x or x", "x", _ORDER),
    Law("or-commutative", "x or y", "y or x", _ORDER),
    Law("or-associative", "(x or y) or z", "x or (y or z)", _ORDER),
    Law("or-never", "x or never", "x", _REWRITE),
    Law("and-idempotent", "x and x", "x", _NONE, instances=False),
    Law("and-commutative", "x and y", "y and x", _ORDER),
    Law("and-associative", "(x and y) and z", "x and (y and z)", _ORDER),
    Law("and-never", "x and never", "never", _REWRITE),
    Law("and-over-or", "(x or y) and z", "(x and z) or (y and z)", _NONE),
    Law("and-absorbs-or", "x and (x or y)", "x or (x and y)", _NONE, instances=False),
    Law("seq-associative", "(x ; y) ; z", "x ; (y ; z)", _ORDER),
    Law("seq-never-first", "never ; x", "never", _REWRITE),
    Law("seq-never-then", "x ; never", "never", _REWRITE),
    Law("seq-over-or-first", "(x or y) ; z", "(x ; z) or (y ; z)", _NONE),
    Law("seq-over-or-then", "x ; (y or z)", "(x ; y) or (x ; z)", _NONE),
    Law("minus-itself", "x - x", "never", _IMPLIED),
    Law("minus-never", "x - never", "x", _REWRITE),
    Law("never-minus", "never - x", "never", _REWRITE),
    Law("minus-minus", "(x - y) - z", "x - (y or z)", _REWRITE),
    Law("minus-exchanges", "(x - y) - z", "(x - z) - y", _IMPLIED),
    Law("minus-idempotent", "(x - y) - y", "x - y", _IMPLIED),
    Law("minus-over-or", "(x or y) - z", "(x - z) or (y - z)", _NONE),
    Law("minus-inside-and", "(x and y) - z", "((x - z) and (y - z)) - z", _NONE),
    Law("minus-inside-seq", "(x ; y) - z", "((x - z) ; (y - z)) - z", _NONE),
    Law("and-covers-seq", "(x and y) or (x ; y)", "x and y", _REWRITE),
    Law("minus-covered", "x - (y or (y ; z))", "x - y", _REWRITE),
    Law("within-within", "(x within {s}) within {t}", "x within {least}", _REWRITE),
    Law("within-idempotent", "(x within {s}) within {s}", "x within {s}", _IMPLIED),
    Law("within-never", "never within {s}", "never", _NONE),
    Law("within-over-or", "(x or y) within {s}", "(x within {s}) or (y within {s})", _NONE),
    Law("within-over-minus", "(x within {s}) - y", "(x - y) within {s}", _REWRITE),
    Law("within-inside-minus", "(x - (y within {s})) within {s}", "(x - y) within {s}", _REWRITE),
    Law(
        "within-inside-and",
        "(x and y) within {s}",
        "((x within {s}) and (y within {s})) within {s}",
        _NONE,
    ),
    Law(
        "within-inside-seq",
        "(x ; y) within {s}",
        "((x within {s}) ; (y within {s})) within {s}",
        _NONE,
    ),
    Law("within-absorbed", "x or (x within {s})", "x", _REWRITE),
    Law("within-in-absent", "(x within {s}) - (y within {s})", "(x within {s}) - y", _IMPLIED),
)
