"""`explain --format text`: for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidegate.engine.explain.amounts import kept, length
from tidegate.engine.explain.model import Explained, Node, Rule, Stores, Trigger, Warned


def text(explained: Explained) -> str:
    """Rules, the shared graph, the triggering graph, warnings; ends with a newline."""
    parts = [
        [f"rulebook {explained.rulebook}"],
        *(list(_rule(rule)) for rule in explained.rules),
        ["graph (what each node stores per key)", *_nodes(explained.nodes)],
        ["triggers", *_triggers(explained)],
        [f"cycle: {' -> '.join((*loop, loop[0]))}" for loop in explained.cycles],
        [line for warning in explained.warnings for line in _warning(warning)],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _rule(rule: Rule) -> Iterator[str]:
    per = f", per {', '.join(rule.key_names)}" if rule.key_names else ""
    disabled = "" if rule.enabled else ", disabled"
    yield f"rule {rule.name} (context {rule.context}{per}{disabled})"
    yield f"  on          {rule.expression}"
    if rule.normalised != rule.expression:
        yield f"  normalised  {rule.normalised}"
    yield f"  node        {rule.root}"
    for timer in rule.timers:
        yield f"  timer       {timer}"
    if rule.writes:
        yield f"  writes      {', '.join(rule.writes)}"
    (_, own), *others = rule.stores.items()
    yield f"  stores      {_stores(own)}"
    yield f"              {own.why}"
    for advice in own.advice:
        yield f"              {advice}"
    for context, stores in others:
        yield f"    {context:<12}  {_stores(stores)}"


def _stores(stores: Stores) -> str:
    said = kept(stores)
    if stores.instances_max is None and stores.span_micros is None:
        return said
    if stores.forgets_micros is None:
        return f"{said}; never forgets a key"
    return (
        said
        if not stores.forgets_micros
        else f"{said}; forgets after " + length(stores.forgets_micros)
    )


def _nodes(nodes: Sequence[Node]) -> Iterator[str]:
    rows = [("node", "operator", "operands", "rules", "stores", "expression")]
    for node in nodes:
        operands, rules = " ".join(node.operands) or "-", " ".join(node.rules)
        rows.append((node.id, node.operator, operands, rules, kept(node), node.expression))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {line.rstrip()}"


def _triggers(explained: Explained) -> Iterator[str]:
    if not explained.triggers:
        yield "  none"
    for trigger in explained.triggers:
        yield f"  {trigger.rule} -> {said(trigger)} -> {trigger.triggers}"
    if explained.triggers_more:
        yield f"  .. and {explained.triggers_more} more"


def said(trigger: Trigger) -> str:
    """What an edge of the triggering graph goes through."""
    if trigger.kind == "table":
        return f"table {trigger.through}: {trigger.event}"
    return f"signal {trigger.event}" if trigger.kind == "signal" else "its detections"


def _warning(warning: Warned) -> Iterator[str]:
    yield f"warning: {warning.line}:{warning.column}: {warning.message} ({warning.path})"
    if warning.hint:
        yield f"    {warning.hint}"
