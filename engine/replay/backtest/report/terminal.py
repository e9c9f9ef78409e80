"""A backtest for a terminal: counts by rule, bars by period and rule, the busiest keys.

Example of bars, three rules over two days:

    2026-03-01  pay   ████████████████████████████████ 120
                tell  ██ 8
    2026-03-02  pay   ███ 11
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len

from tidegate.engine.core.text.layout import columns, counted, cut, fates_text, wrapped
from tidegate.engine.core.text.printable import in_line
from tidegate.engine.replay.backtest.against import Difference
from tidegate.engine.replay.backtest.counts import busiest, by_period, by_rule
from tidegate.engine.replay.backtest.model import Backtest
from tidegate.engine.replay.backtest.report.differences import difference_lines
from tidegate.engine.replay.backtest.report.labels import (
    WORDS,
    fates_shown,
    fired_label,
    key_label,
    parked_labels,
    period_labels,
    span_label,
    sums,
)

PERIODS_MAX = 35
"""Periods that are shown: days, or if there are more of them weeks, months, years."""
RULES_MAX = 10
"""Rules that have bars of their own in each period: those that fired most. The others have one
together."""
KEYS_MAX = 10
"""Keys that are shown: those for which most fired."""
_NAME_MAX, _BAR_MAX = 28, 40  # characters
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def show(
    found: Backtest, difference: Difference | None = None, *, width: int = 100
) -> Iterator[str]:
    """The lines; none is wider than `width`. With a difference, `found` is its `one`."""
    counts = by_rule(found)
    whole = sums(counts)
    yield from wrapped(f"backtest of {found.rulebook} ({found.label})", width)
    yield from wrapped(span_label(found), width, "  ")
    for note in found.notes:
        yield from wrapped(note, width, "  ")
    said = fates_text(whole)
    if whole["unasked"]:
        said += f", {whole['unasked']:,} whose condition was not asked"
    yield from wrapped(f"would have happened: {said}", width, "  ")
    for parked in parked_labels(found):
        yield from wrapped(parked, width, "  ")
    shown = fates_shown(whole)
    rows = [(rule, *(of_rule[fate] for fate in shown)) for rule, of_rule in counts.items()]
    yield ""
    yield from columns(("rule", *(WORDS[fate] for fate in shown)), rows, width)
    if whole["fired"] + whole["unasked"]:
        label = fired_label(counts)
        yield from _periods(found, label, width)
        yield from _keys(found, label, width)
    if difference is not None:
        yield ""
        yield from difference_lines(difference, width)


def _periods(found: Backtest, label: str, width: int) -> Iterator[str]:
    """A bar for each period and rule in which something fired. All are of one scale."""
    periods = by_period(found, PERIODS_MAX)
    ranked = sorted(periods.counts, key=lambda rule: -int(periods.counts[rule].sum()))
    most, others = [r for r in ranked if r in {*ranked[:RULES_MAX]}], ranked[RULES_MAX:]
    counts = {rule: periods.counts[rule] for rule in periods.counts if rule in most}
    if others:
        name = f"({counted(len(others), 'other rule')})"
        counts[name] = sum(periods.counts[rule] for rule in others)  # type: ignore[assignment]
    yield ""
    parts = "" if periods.unit == "day" else f"; the first and last {periods.unit} may be parts"
    yield from wrapped(f"{label}, by {periods.unit} and rule{parts}", width)
    rows = []
    for number, period in enumerate(period_labels(periods)):
        some = {rule: int(own[number]) for rule, own in counts.items() if own[number]}
        rows += [(period * (not n), *one) for n, one in enumerate(some.items())]
    yield from _bars(rows, width)


def _keys(found: Backtest, label: str, width: int) -> Iterator[str]:
    some = busiest(found, KEYS_MAX)
    if some:
        yield ""
        yield from wrapped(f"{label}, by rule and key: the busiest", width)
        yield from _bars([(one.rule, key_label(one.key), one.count) for one in some], width)


def _bars(rows: Sequence[tuple[str, str, int]], width: int) -> Iterable[str]:
    """Lines of two names, a bar and the count. Long names are cut."""
    numbers = max(len(f"{count:,}") for *_, count in rows)
    room = width - numbers - 5  # two gaps of two, one of one
    first = min(max(cell_len(in_line(one)) for one, _, _ in rows), _NAME_MAX, room // 3)
    wide = max(min(_NAME_MAX, room // 3), room - first - _BAR_MAX)
    second = min(max(cell_len(in_line(one)) for _, one, _ in rows), wide)
    bar = min(_BAR_MAX, room - first - second)
    most = max(count for *_, count in rows)
    for one, other, count in rows:
        names = f"{_padded(one, first)}  {_padded(other, second)}"
        yield f"{names}  {bar_text(count, most, bar)} {count:,}"


def _padded(text: str, width: int) -> str:
    line = cut(text, width)
    return line + " " * (width - cell_len(line))


def bar_text(count: int, most: int, width: int) -> str:
    """A bar whose length is to `width` as `count` is to `most`, in eighths of a character; what is
    not 0 has at least one."""
    eighths = max(1, round(8 * width * count / most)) if count else 0
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
