"""`explain --format text`: for people."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from tidegate.engine.core.text.layout import columns, counted
from tidegate.engine.explain.model import WINDOW, Explained, Node, Rule, Script, ScriptInput, Warned
from tidegate.engine.explain.phrases import kept
from tidegate.rules.algebra.bound import Bound
from tidegate.rules.analysis.triggers import Trigger
from tidegate.rules.expressions.durations import length

_FOLDED = {5: 26, 3: 12, 4: 14, 2: 12, 1: 12}
"""Columns of the graph's table, in the order in which they are folded -> their least width."""
STATES_MAX = 40
"""States in a table; JSON has more."""
_UNFOLDED = 1 << 30  # width of a table whose lines are folded later


_ASKED_BY = {
    "scan": "compiled: one scan over all keys",
    "search": "not compiled: a search at each instant, in at most search_steps_max steps",
}
_BY_EXECUTORS = (
    "Spark's executors detect what has a key, but for rules and scripts that say `in Spark`"
)
_DETECTED_BY = {
    "spark": (f"{_BY_EXECUTORS} (detect: spark)",),
    "auto": (f"{_BY_EXECUTORS}: in buckets of which more is visible than driver_rows_max, or "
             "while more is carried than driver_carried_max (detect: auto)",),
}  # fmt: skip


def text(explained: Explained, width: int, *, verbose: bool = False) -> str:
    """What each rule does in sentences, and its figures; scripts, the shared graph, the triggering
    graph, warnings; in lines of `width` columns where words allow it; ends with a newline.
    `verbose`: with the contexts that a rule might have, too."""
    parts = [[f"rulebook {explained.rulebook}"]]
    parts += [[*_rule(rule, verbose)] for rule in explained.rules]
    if explained.rules and (verbose or explained.detect == "spark"):
        parts.append([*_DETECTED_BY.get(explained.detect, ())])
    parts += [[*script_text(script)] for script in explained.scripts]
    if explained.rules or not explained.scripts:
        parts.append(["graph (what each node stores per key)", *_nodes(explained.nodes, width)])
        parts.append(["triggers", *_triggers(explained)])
    parts.append([f"cycle: {' -> '.join((*loop, loop[0]))}" for loop in explained.cycles])
    parts.append([line for warning in explained.warnings for line in _warning(warning)])
    fitting = (_fitting(line, width) for part in parts if part for line in (*part, ""))
    return "\n".join(line for lines in fitting for line in lines)


def _rule(rule: Rule, verbose: bool) -> Iterator[str]:
    per = f", per {', '.join(rule.key_names)}" if rule.key_names else ""
    disabled = "" if rule.enabled else ", disabled"
    chosen = WINDOW if rule.context == WINDOW else f"context {rule.context}"
    yield f"rule {rule.name} ({chosen}{per}{disabled})"
    yield from (f"  {sentence}" for sentence in rule.sentences)
    if rule.description:
        yield f"  description {' '.join(rule.description.split())}"
    if rule.severity:
        yield f"  severity    {rule.severity}"
    if rule.labels:
        yield f"  labels      {', '.join(f'{name}={value}' for name, value in rule.labels.items())}"
    yield f"  on          {rule.expression}"
    if rule.normalised != rule.expression:
        yield f"  normalised  {rule.normalised}"
    yield f"  node        {rule.root}"
    if rule.where:
        yield f"  where       {rule.where}"
        parts = ", ".join(rule.asked)
        yield f"              asked of each match of {parts}, before the context chooses"
        yield f"              {_ASKED_BY[rule.asked_by or 'search']}"
    if rule.searched:
        yield "  searched    what ends at an instant, in at most search_steps_max steps"
    if rule.whole and rule.key_names:
        yield f"  in Spark    detected by the driver, not by key: {rule.whole}"
    for timer in rule.timers:
        yield f"  timer       {timer}"
    if rule.business_days:
        yield f"  business    days: {rule.business_days}"
    if rule.writes:
        yield f"  writes      {', '.join(rule.writes)}"
    if rule.watched:
        watched = ", ".join(rule.watched)
        yield f"              an event type is of {watched}: what is written there shares no commit"
    for one in rule.damping:
        yield f"  {one.kind:<10}  {one.said}"
        yield f"              remembers {one.why}"
    (_, own), *others = rule.stores.items()
    yield f"  stores      {_stores(own)}"
    yield f"              {own.why}"
    for advice in own.advice:
        yield f"              {advice}"
    for context, stores in others if verbose else ():
        yield f"  in {context}, it stores {_stores(stores)}"
        yield f"    {rule.choices[context]}"


def _stores(stores: Bound) -> str:
    said = kept(stores)
    if stores.instances_max is None and stores.span_micros is None:
        return said
    if stores.pause_micros is not None:
        return f"{said}; forgets a key after {length(stores.pause_micros)} without a row"
    if stores.forgets_micros is None:
        return f"{said}; never forgets a key"
    after = f"; forgets after {length(stores.forgets_micros)}" if stores.forgets_micros else ""
    return f"{said}{after}"


def _fitting(line: str, width: int) -> list[str]:
    """A line as several lines; further ones begin below the text of the first."""
    if len(line) <= width:
        return [line]
    begin = re.match(r" +(?:\w+  +)?", line)
    indent = begin[0] if begin else ""
    if len(indent) > width // 2:
        return [line]
    below = " " * len(indent) or "    "
    return textwrap.wrap(line, width, subsequent_indent=below, break_on_hyphens=False)


def _nodes(nodes: Sequence[Node], width: int) -> Iterator[str]:
    names = ("node", "operator", "operands", "rules", "stores", "expression")
    rows = []
    for node in nodes:
        operands, rules = " ".join(node.operands) or "-", " ".join(node.rules)
        operator = f"searched, {node.operator}" if node.searched else node.operator
        rows.append((node.id, operator, operands, rules, kept(node), node.expression))
    lines = columns(names, rows, width - 2, left=6, folded=_FOLDED)
    yield from (f"  {line}" for line in lines)


def _triggers(explained: Explained) -> Iterator[str]:
    if not explained.triggers:
        yield "  none"
    for trigger in explained.triggers:
        yield f"  {trigger.rule} -> {said(trigger)} -> {trigger.triggers}"
    if explained.triggers_more:
        yield f"  .. and {explained.triggers_more} more"


def said(trigger: Trigger) -> str:
    """What connects the two rules of a triggering edge."""
    if trigger.kind == "table":
        return f"table {trigger.through}: {trigger.event}"
    said = {"signal": f"signal {trigger.event}", "action": trigger.event}
    return said.get(trigger.kind, "its detections")


def _warning(warning: Warned) -> Iterator[str]:
    file = f"{warning.file}:" if warning.file else ""
    path = f" ({warning.path})" if warning.path else ""
    yield f"warning: {file}{warning.line}:{warning.column}: {warning.message}{path}"
    if warning.hint:
        yield f"    {warning.hint}"


def script_text(script: Script) -> Iterator[str]:
    """The lines about one script."""
    disabled = "" if script.enabled else ", disabled"
    yield f"script {script.name} (machine {script.machine}: {script.why}{disabled})"
    for number, taken in enumerate(script.inputs):
        yield f"  {'takes' if not number else '':<10}  {_input(taken)}"
    for number, emitted in enumerate(script.outputs):
        takers = ", ".join(emitted.taken_by) or "nobody"
        event = "" if emitted.event == emitted.name else f", as {emitted.event}"
        said = f"{emitted.type} {emitted.name}{event}, to {takers}"
        yield f"  {'emits' if not number else '':<10}  {said}"
    if script.keys:
        yield f"  group       {_typed(script.keys)}"
    if script.keys and script.whole:
        yield f"  in Spark    run by the driver, not by key: {script.whole}"
    yield f"  variables   {_typed(script.variables) or 'none'}"
    per = " a key" if script.keys else ""
    yield f"  stores      {script.bytes_max:,} bytes of variables{per}{script.bytes_why}"
    yield f"  time        {_time(script)}"
    yield from (f"              {why}" for why in script.unbounded)
    yield f"  start       state 0{_done(script.start)}"
    yield from _table(script)


def _input(taken: ScriptInput) -> str:
    of = f".{taken.value}" if taken.value else ""
    ordered = f", ordered by {', '.join(taken.order_by)}" if taken.order_by else ""
    return f"{taken.type} {taken.name}, from {taken.kind} {taken.event}{of}{ordered}"


def _typed(named: Mapping[str, str]) -> str:
    return ", ".join(f"{kind} {name}" for name, kind in named.items())


def _time(script: Script) -> str:
    if script.unbounded:
        return "not bounded but by script_steps_max:"
    if script.statements_max is None:
        return "bounded, by how many paths there are"
    return f"bounded: at most {script.statements_max:,} statements a transition"


def _done(actions: Sequence[str]) -> str:
    return f": {', '.join(actions)}" if actions else ""


def _table(script: Script) -> Iterator[str]:
    shown = script.table[:STATES_MAX]
    rows = [
        ("" if number else str(state.number), move.event, str(move.next), ", ".join(move.actions))
        for state in shown
        for number, move in enumerate(state.moves)
    ]
    lines = iter(columns(("state", "event", "next", "actions"), rows, _UNFOLDED, left=4))
    yield f"  {next(lines)}"
    for state in shown:
        yield from (f"  {next(lines)}" for _ in state.moves)
        number = "" if state.moves else str(state.number)
        if state.unexpected:
            yield f"  {number:<5}  unexpected: {', '.join(state.unexpected)}"
        elif not state.moves:
            yield f"  {number:<5}  the end"
    more = len(script.table) - len(shown) + script.states_more
    if more:
        yield f"  .. and {counted(more, 'state')} more"
