"""What a backtest has found, by the column.

`trial.py` makes a `Backtest`; `found.py` gives its JSON lines. `report/` shows it to people, and
`against.py` compares two of them. Both of these read `Backtest.firings` only, so a test may make it
by hand: see `firings_table`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tidegate.engine.core.parameters import INSTANT
from tidegate.engine.core.values import Firings

FIRINGS = pa.schema(
    {
        "rule": pa.string(),
        "firing_id": pa.string(),
        "key": pa.string(),
        "start": INSTANT,
        "end": INSTANT,
        "condition": pa.string(),
        "damped": pa.string(),
        "depth": pa.int32(),
        "constituents": pa.int32(),
        "made_of": pa.string(),
    }
)
"""A row a firing, by (end, rule, key, start):

    firing_id     32 hexadecimal digits; live and in a backtest the same (G6)
    key           a JSON object, `{}` without `per:`; equal keys are equal texts
    start, end    when its first and last constituents occurred. It is detected at its end
    condition     held | failed | none | dead (it could not be asked) | skipped (--conditions skip)
    damped        what dropped it, such as `cooldown`; null = nothing
    constituents  how many
    made_of       a digest of its constituents: two firings of the same rule, key and end in two
                  backtests that are compared differ if their digests do
"""


@dataclass(frozen=True, slots=True)
class Span:
    """The past that was asked for: [begin, end], microseconds. `zone`: the rulebook's time zone, in
    which days are counted."""

    begin: int
    end: int
    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class RuleFound:
    """A rule of the rulebook. `parked_at`: the instant (microseconds) at which a limit would have
    parked it, with the reason and the hint; None: it would run to the end. `shown`: its firings are
    asked for (`--rule`)."""

    name: str
    parked_at: int | None = None
    parked_why: str | None = None
    hint: str | None = None
    shown: bool = True


@dataclass(frozen=True, slots=True)
class Backtest:
    """What one rulebook would have done in a span.

    `label`: what tells it apart from the one that it is compared with, such as `bank.yaml` or
    `registered version 3`. `warm_up`: how long before the span it began to look, microseconds; what
    fired in it is left out. `rules`: in the rulebook's order. `firings`: as `FIRINGS` says.
    `rows`: how many changes were read. `notes`: sentences that every report shows, such as that the
    past contains what the real rules did. `whole`: by rule, the engine's own value of its firings,
    with the parameters of their constituents: what a line of `--json` is made of. `against`: what
    the rulebook that it is compared with would have done in the same span.

    Example: `bank.yaml` over March, with one firing.

        Backtest("bank", "bank.yaml", Span(march, april, "Europe/Berlin"),
                 rules=(RuleFound("four_withdrawals"),),
                 firings=firings_table([{"rule": "four_withdrawals", "key": '{"account_id":7}',
                                         "start": march, "end": march + 5_000_000}]))
    """

    rulebook: str
    label: str
    span: Span
    rules: tuple[RuleFound, ...]
    firings: pa.Table
    warm_up: int = 0
    rows: int = 0
    notes: tuple[str, ...] = ()
    whole: Mapping[str, Firings] = field(default_factory=dict)
    against: Backtest | None = None


_DEFAULTS: Mapping[str, Any] = {
    "key": "{}",
    "condition": "none",
    "damped": None,
    "depth": 1,
    "constituents": 1,
}


def firings_table(rows: Iterable[Mapping[str, Any]] = ()) -> pa.Table:
    """Firings by hand: `rule`, `start` and `end` (microseconds) at least. Without another the id is
    the row's number, and `made_of` is the same for all."""
    full = [
        {**_DEFAULTS, "firing_id": f"{number:032x}", "made_of": "", **row}
        for number, row in enumerate(rows, 1)
    ]
    return pa.Table.from_pylist(full, FIRINGS)
