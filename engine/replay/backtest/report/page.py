"""A backtest as an HTML page that needs nothing else: counts by rule, bars by period, the busiest
keys, the timeline of one key on demand, what differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidegate.engine.core.text.layout import counted, fates_text
from tidegate.engine.core.text.page import data, document, inert
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.core.text.times import micros_text
from tidegate.engine.replay.backtest.against import Difference
from tidegate.engine.replay.backtest.counts import busiest, by_period, by_rule
from tidegate.engine.replay.backtest.model import Backtest
from tidegate.engine.replay.backtest.report.bars import figures, share
from tidegate.engine.replay.backtest.report.card import card_of, element
from tidegate.engine.replay.backtest.report.differences import (
    COUNTS,
    ROWS,
    by_rule_rows,
    kinds,
    sentences,
)
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
from tidegate.engine.replay.backtest.report.timelines import LABEL_MAX, SCRIPT, Timelines, timelines

PERIODS_MAX = 400
"""Periods that have bars: days, or if there are more of them weeks, months, years."""
RULES_MAX = 20
"""Rules that have bars: those that fired most."""
KEYS_MAX = 20
"""Keys that are listed: those for which most fired."""
DIFFERENCES_MAX = 500
"""Rows of a kind of difference that are listed: the first."""

_STYLE = """
figure { margin: 0; padding: .6rem 0 .2rem; }
figcaption { position: sticky; left: 0; width: fit-content; max-width: 85vw;
  overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } .bars rect { fill: currentColor; }
.lane { stroke: var(--line); } .when { stroke: var(--line); stroke-dasharray: 1 4; }
.arc path { fill: none; stroke: currentColor; stroke-width: 2; }
.arc .span { stroke-width: 3; stroke-opacity: .6; } .arc .mark { fill: var(--paper); }
.arc .f0 { fill: currentColor; } .arc .f4 { stroke-dasharray: 2 2; }
.arc:hover path { stroke-width: 4; }
td { overflow-wrap: anywhere; min-width: 7rem; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.number, td.drawn { min-width: 0; }
button, input, select { font: inherit; color: inherit; background: var(--wash); max-width: 100%;
  border: 1px solid var(--soft); border-radius: 4px; padding: .2rem .6rem; }
:focus-visible { outline: 3px solid var(--c0); outline-offset: 2px; }
button { white-space: nowrap; } button:disabled { opacity: .5; } summary { cursor: pointer; }
label { display: inline-block; margin-right: 1rem; }
[hidden] { display: none; }
@media (max-width: 40rem) { body { padding: 0 .8rem; margin: 1rem auto; } }
"""

_LEGEND = """<p class="legend">A line goes from the first constituent to the end, where the mark is:
filled fired, hollow condition failed, hollow with a bar damped, a cross dead, dashed not asked.
Distances grow with the logarithm of time. The table below the picture says the same.</p>"""


def page(found: Backtest, difference: Difference | None = None, *, made_at: int) -> str:
    """The HTML document. With a difference, `found` is its `one`. `made_at`: the time of the run,
    microseconds."""
    counts = by_rule(found)
    lines = timelines(found)
    body = [
        element(card_of(found, difference, made_at)),
        *_head(found, counts, made_at),
        *_rules(counts),
        *_periods(found, fired_label(counts)),
        *_keys(found, fired_label(counts), lines),
        *(_difference(difference) if difference is not None else ()),
        *_timeline(lines),
    ]
    return document(f"backtest of {found.rulebook}", body, style=_STYLE, script=SCRIPT)


def _head(found: Backtest, counts: dict[str, dict[str, int]], made_at: int) -> Iterator[str]:
    whole = sums(counts)
    said = fates_text(whole)
    if whole["unasked"]:
        said += f", {whole['unasked']:,} whose condition was not asked"
    made = micros_text(made_at - made_at % 1_000_000).replace("T", " ")
    yield f"<h1>Backtest of {inert(found.rulebook)}</h1>"
    label, span = inert(found.label), inert(span_label(found))
    yield f"<p>What <code>{label}</code> would have done {span}.</p>"
    yield f"<p><strong>{said}</strong></p>"
    yield from (f'<p class="note">{inert(note)}</p>' for note in found.notes)
    yield f'<p class="note">This page was made at {made} UTC.</p>'
    yield from (f'<p class="warning">{inert(parked)}.</p>' for parked in parked_labels(found))


def _rules(counts: dict[str, dict[str, int]]) -> Iterator[str]:
    shown = fates_shown(sums(counts))
    yield "<h2>By rule</h2>"
    rows = (_cells([rule, *(own[fate] for fate in shown)]) for rule, own in counts.items())
    yield from _table(["rule", *(WORDS[fate] for fate in shown)], rows)


def _periods(found: Backtest, label: str) -> Iterator[str]:
    periods = by_period(found, PERIODS_MAX)
    names = period_labels(periods)
    ranked = sorted(periods.counts, key=lambda rule: -int(periods.counts[rule].sum()))
    some = [rule for rule in ranked[:RULES_MAX] if periods.counts[rule].any()]
    counts = {rule: own for rule, own in periods.counts.items() if rule in some}
    yield f"<h2>By {periods.unit}</h2>"
    parts = "" if periods.unit == "day" else f" The first and the last {periods.unit} may be parts."
    yield f'<p class="note">How many {label}; each rule has a scale of its own.{parts}</p>'
    silent = [rule for rule in ranked[RULES_MAX:] if periods.counts[rule].any()]
    if silent:
        rules = counted(len(silent), "rule that fired less has", "rules that fired less have")
        yield f'<p class="warning">{rules} no bars here (RULES_MAX).</p>'
    if not counts:
        yield "<p>None fired.</p>"
        return
    yield '<div class="scroll" tabindex="0" role="region" aria-label="Bars by rule">'
    yield from figures(periods, counts, names, label)
    yield "</div><details><summary>The same as a table</summary>"
    rows = (
        [name, *numbers]
        for name, *numbers in zip(names, *(own.tolist() for own in counts.values()), strict=True)
        if any(numbers)
    )
    yield from _table([periods.unit, *counts], map(_cells, rows))
    yield "</details>"


def _keys(found: Backtest, label: str, lines: Timelines) -> Iterator[str]:
    some = busiest(found, KEYS_MAX)
    if not some:
        return
    yield "<h2>The busiest keys</h2>"
    yield f'<p class="note">How many {label}, by rule and key.</p>'
    place = {rule: number for number, rule in enumerate(by_rule(found))}
    rows = []
    for one in some:
        cells = _cells([one.rule, shortened(key_label(one.key), LABEL_MAX), one.count])
        cells.append(f'<td class="drawn">{share(one.count, some[0].count, place[one.rule])}</td>')
        at = lines.place.get(one.key)
        button = f'<button type="button" data-key="{at}" hidden>timeline</button>'
        cells.append(f"<td class='drawn'>{button if at is not None else ''}</td>")
        rows.append(cells)
    yield from _table(["rule", "key", "count", "as a bar", "timeline"], rows)


def _difference(found: Difference) -> Iterator[str]:
    yield "<h2>What differs</h2>"
    for number, side in enumerate((found.one, found.other), 1):
        yield f"<p>{number}: <code>{inert(side.label)}</code></p>"
    yield from (f"<p>{inert(sentence)}.</p>" for sentence in sentences(found))
    if not found.count:
        return
    yield from _table(["rule", *COUNTS], map(_cells, by_rule_rows(found)))
    for kind in kinds(found, DIFFERENCES_MAX):
        yield f"<h3>{inert(kind.title)}</h3>"
        if len(kind.rows) < kind.count:
            first = f"The first {len(kind.rows):,} of {kind.count:,} (DIFFERENCES_MAX)"
            yield f'<p class="warning">{first}; `--json` prints all.</p>'
        rows = ([end, rule, shortened(key, LABEL_MAX), said] for end, rule, key, said in kind.rows)
        yield from _table(ROWS, map(_cells, rows))


def _timeline(lines: Timelines) -> Iterator[str]:
    yield "<h2>One key</h2>"
    if lines.left_out:
        yield f'<p class="warning">{lines.left_out}.</p>'
    if not lines.place:
        yield "<p>Nothing was detected.</p>"
    yield "<noscript><p>Timelines are drawn by a script, which does not run here.</p></noscript>"
    yield '<div id="choose" hidden>'
    yield '<label>Keys that hold <input id="find" type="search" autocomplete="off"></label>'
    yield '<label>Key <select id="key"></select></label>'
    yield f'{_LEGEND}<p id="told" role="status" tabindex="-1"></p><div id="timeline"></div></div>'
    yield data("timelines", lines.data)


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table of cells that are made already."""
    yield '<div class="wide" tabindex="0"><table><thead><tr>'
    yield "".join(f'<th scope="col">{inert(name)}</th>' for name in names)
    yield "</tr></thead><tbody>"
    yield from (f"<tr>{''.join(cells)}</tr>" for cells in rows)
    yield "</tbody></table></div>"


def _cells(row: Iterable[str | int]) -> list[str]:
    """Texts of others, and numbers."""
    return [
        f'<td class="number">{cell:,}</td>' if isinstance(cell, int) else f"<td>{inert(cell)}</td>"
        for cell in row
    ]
