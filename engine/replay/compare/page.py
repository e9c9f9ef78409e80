"""A comparison as an HTML page that needs nothing else: a picture for each key and context."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tidegate.engine.core.text.page import document
from tidegate.engine.replay.compare.labels import MEANINGS, Labels, key_label
from tidegate.engine.replay.compare.lanes import ARCS_MAX, axis, strip
from tidegate.engine.replay.compare.model import Column, ComparedDetection, Comparison

KEYS_MAX = 6
"""Keys that are drawn: the first that something is detected for."""
OCCURRENCES_MAX = 200
"""Occurrences of a key that are drawn: the first."""

_STYLE = """
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; }
figure { margin: 0; padding: .7rem 0 .2rem; border-top: 1px solid var(--line);
  width: max-content; min-width: 100%; }
figure:first-child { border-top: 0; }
figcaption { position: sticky; left: 1rem; width: max-content; margin-left: 1rem; }
.lane { stroke: var(--line); } .when { stroke: var(--line); stroke-dasharray: 1 4; }
.left circle { fill: var(--ink); stroke: var(--paper); }
.used circle { fill: var(--paper); stroke: var(--ink); stroke-width: 1.5; }
.used path { stroke: var(--ink); stroke-width: 1.5; }
.arc { outline: none; }
.arc path { fill: none; stroke: currentColor; stroke-width: 2; stroke-opacity: .8; }
.arc .span { stroke-width: 3; } .arc .end, .arc circle { fill: currentColor; }
.arc .drop { stroke-width: 1; stroke-opacity: .6; }
.arc:hover path, .arc:focus path { stroke-width: 4; stroke-opacity: 1; }
"""

_LEGEND = """<p class="legend">
<svg width="14" height="14" aria-hidden="true"><g class="left">
<circle cx="7" cy="7" r="6"/></g></svg> an occurrence ·
<svg width="14" height="14" aria-hidden="true"><g class="used"><circle cx="7" cy="7" r="6"/>
<path d="M3 3 l8 8 m0 -8 l-8 8"/></g></svg> one that is consumed in the end ·
<svg width="64" height="14" aria-hidden="true"><g class="arc"><path class="span"
d="M2 3 V11 M2 7 H56"/><circle cx="26" cy="7" r="3.5"/>
<path class="end" d="M50 7 l6 -6 l6 6 l-6 6 z"/></g></svg>
a detection, from its start to the instant at which it is detected: its constituents are the marks
on it, and what its arc joins above. Point at anything to read it. Distances grow with the
logarithm of time.</p>"""


def page(compared: Comparison) -> tuple[str, list[str]]:
    """The HTML document, and what was left out of it, a sentence each."""
    labels = Labels(compared)
    rule = compared.rule
    keys = _keys(compared)
    left_out: list[str] = []
    if len(keys) > KEYS_MAX:
        left_out.append(f"the first {KEYS_MAX} of {len(keys)} keys are drawn (KEYS_MAX)")
    quiet = {o.key for o in compared.occurrences} - {*keys, "{}"}
    note = f"{labels.note}; " * bool(labels.note) + f"{len(quiet)} more keys without a detection"
    panels: list[str] = []
    for key in keys[:KEYS_MAX]:
        panels += _panel(compared, labels, key, left_out)
    own = (
        f" Its own context is <code>{rule.pattern.context}</code>."
        if rule.pattern.selection is None
        else ""
    )
    body = [
        f"<h1>{escape(rule.name)} in every context</h1>",
        f"<p><code>{escape(' '.join(rule.pattern.text.split()))}</code>{own}</p>",
        _LEGEND,
        *(f'<p class="warning">{escape(note)}; the table below has everything.</p>'
          for note in left_out),
        f'<p class="note">{escape(note if quiet else labels.note)}</p>',
        *panels,
        *_table(compared, labels),
    ]  # fmt: skip
    title = f"{rule.name}: parameter contexts"
    return document(title, body, style=_STYLE), left_out


def _keys(compared: Comparison) -> list[str]:
    """Keys in order of their first detection; without any, those that have occurrences."""
    detected = [key for _, key in compared.instants()]
    keyed = bool(compared.rule.pattern.key_names)
    seen = [o.key for o in compared.occurrences if o.key != "{}" or not keyed]
    return [*dict.fromkeys(detected or seen)]


def _panel(compared: Comparison, labels: Labels, key: str, left_out: list[str]) -> Iterator[str]:
    """The pictures of one key below each other, on one axis."""
    own = [o for o in compared.occurrences if o.key in (key, "{}")]
    drawn = own[:OCCURRENCES_MAX]
    last = drawn[-1].time if len(drawn) < len(own) else None
    named = f" of {key_label(key)}" if key_label(key) else ""
    if last is not None:
        left_out.append(
            f"the first {len(drawn)} of {len(own)} occurrences{named} are drawn, up to "
            f"{labels.time(last)} (OCCURRENCES_MAX)"
        )
    found = {
        column.context: [
            f for f in column.found if f.key == key and (last is None or f.end <= last)
        ]
        for column in compared.columns
    }
    shown = [f for some in found.values() for f in some[:ARCS_MAX]]
    instants = {o.time for o in drawn} | {t for f in shown for t in (f.start, f.end)}
    instants |= {o.time for f in shown for o in f.constituents}
    lanes = [*dict.fromkeys(o.event for o in sorted(drawn, key=lambda o: o.event))]
    ticks = sorted({o for f in shown for o in f.constituents if o.event == "tick"} - {*drawn},
                   key=lambda o: o.time)  # fmt: skip
    lanes += ["tick"] if ticks and "tick" not in lanes else []
    on = axis(lanes, sorted(instants), labels)
    if named:
        yield f"<h2>{escape(key_label(key))}</h2>"
    yield '<div class="scroll">'
    for column in compared.columns:
        some = found[column.context]
        if len(some) > ARCS_MAX:
            left_out.append(
                f"{column.context}: the first {ARCS_MAX} of {len(some)} detections{named} are drawn"
                " (ARCS_MAX)"
            )
        picture = strip(on, column, [*drawn, *ticks], some)
        yield f"<figure><figcaption>{_caption(column, len(some))}</figcaption>{picture}</figure>"
    yield "</div>"


def _caption(column: Column, count: int) -> str:
    detected, used = MEANINGS[column.context]
    said = column.error or f"{count} detected: {detected}; {used}"
    return f"<strong>{column.context}</strong> <span>{escape(said)}</span>"


def _table(compared: Comparison, labels: Labels) -> Iterator[str]:
    """The same as a table, for reading and for those who do not see the pictures."""
    keyed = bool(compared.rule.pattern.key_names)
    yield '<h2>What is detected, and then consumed</h2><div class="wide"><table><thead><tr>'
    names = ["at", *["key"] * keyed, *(c.context for c in compared.columns)]
    yield "".join(f'<th scope="col">{name}</th>' for name in names) + "</tr></thead><tbody>"
    for instant, key in compared.instants():
        cells = [f'<th scope="row">{escape(labels.time(instant))}</th>']
        cells += [f"<td>{escape(key_label(key))}</td>"] * keyed
        for column in compared.columns:
            some = [f for f in column.found if (f.end, f.key) == (instant, key)]
            inside = "".join(f"<div>{_detected(labels, f)}</div>" for f in some)
            cells.append(f"<td>{inside}</td>")
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
    if not compared.instants():
        yield "<p>Nothing is detected in any context.</p>"


def _detected(labels: Labels, found: ComparedDetection) -> str:
    shown = escape(labels.detected(found, labels.occurrences(found.constituents)))
    used = escape(labels.occurrences(found.used_up))
    return f'{shown}<br><span class="note">✗ {used}</span>' if found.used_up else shown
