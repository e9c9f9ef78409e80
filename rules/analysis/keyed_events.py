"""`per:`: the event types that are keyed, their key columns, and whether each instance has a key
(S7)."""

from __future__ import annotations

from tidegate.rules.algebra.emptiness import every_instance
from tidegate.rules.analysis.draft import Draft, refuse
from tidegate.rules.analysis.key_types import check_key_types, declared_columns
from tidegate.rules.errors import did_you_mean, nearest
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.model import SignalEvent, TableEvent
from tidegate.rules.yaml.kinds import BAD, Record, Report
from tidegate.rules.yaml.reader import Fields

Per = dict[str, tuple[str, ...]]


def resolve_keys(book: Draft, rule: str, report: Report) -> tuple[tuple[str, ...], Per]:
    """The names of the rule's key columns, and the columns of every keyed event type."""
    record = book.records("rules")[rule]
    names = key_names(record)
    if not names:
        return (), {}
    before = len(report.problems)
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        report.add("per", f"{twice} stands twice in the key", record.place("per"), "name it once")
    node, scalar = record.get("on")
    used = event_names(node)
    for name, _, column in (name.partition(".") for name in names):
        if name in used and column:
            message = f"'{name}.{column}' is no column: per: names it without its event"
            hint = f"write {column}; where others name it otherwise: {{{name}: {column}, ..}}"
            report.add("per", message, record.place("per"), hint)
    listed = isinstance(record.get("per"), dict)
    per = _listed(book, record, used, report) if listed else _inferred(book, record, used, report)
    if len(report.problems) == before:
        check_key_types(book, record, names, per, report)
    rules = book.records("rules")
    known = all(name in book.events or name in rules for name in used)
    if len(report.problems) > before or not known or _needs_key(node, per):
        return names, per
    if not per:
        _without_columns(book, record, used, report)
        return names, per
    hint = f"start it by a keyed event: {', '.join(per)} ; .."
    if isinstance(node, w.Window):
        hint = f"a window per {', '.join(names)} is of events that have it: {', '.join(per)}"
    refuse(
        report,
        "keyless",
        f"this could happen without any {', '.join(names)}: for which one would the rule fire?",
        scalar,
        _keyless(node, per),
        hint,
    )
    return names, per


def key_names(record: Record) -> tuple[str, ...]:
    """The names of a rule's key columns: those of the first entry of `per:`."""
    per = record.get("per", ())
    if isinstance(per, dict):
        per = next((columns for columns in per.values() if columns is not BAD), ())
    return (per,) if isinstance(per, str) else per


def _without_columns(
    book: Draft, record: Record, used: dict[str, x.Expression], report: Report
) -> None:
    """No event of the expression is keyed."""
    names = key_names(record)
    rules = [name for name in used if name in book.records("rules")]
    known = set().union(*(columns_of(book, name) or () for name in used))
    lacking = [name for name in names if name not in known] or list(names)
    message = f"no event of the expression has the column {', '.join(lacking)}"
    hint = did_you_mean(lacking[0], known) if known else ""
    if not hint.startswith("did you mean"):
        signals = [name for name in used if isinstance(book.events.get(name), SignalEvent)]
        hint = f"declare it: {signals[0]}: {{signal: {{{lacking[0]}: ..}}}}" if signals else hint
        hint = _give_per(rules[0], names) if rules else hint
    if "," in lacking[0]:
        hint = f"a list has brackets: per: [{lacking[0]}]"
    report.add("per", message, record.place("per"), hint)


def _give_per(rule: str, columns: tuple[str, ...]) -> str:
    shown = columns[0] if len(columns) == 1 else f"[{', '.join(columns)}]"
    return f"the rule {rule!r} is an event for each key only if it has one: give it a per: {shown}"


def event_names(node: x.Expression) -> dict[str, x.Expression]:
    """Every event type or rule that an expression names, with the first node that does."""
    found: dict[str, x.Expression] = {}
    for below in node.walk():
        if isinstance(below, x.Name | x.Edge):
            found.setdefault(below.name, below)
    return found


def _listed(book: Draft, record: Record, used: dict[str, x.Expression], report: Report) -> Per:
    """`per: {event: column}`: the event types listed are keyed, the others broadcast."""
    given = record.get("per")
    node = record.node.entries["per"]
    places = node.keys if isinstance(node, Fields) else {}
    width = len(key_names(record))
    per: Per = {}
    for name, columns in given.items():
        place = places[name]
        if columns is BAD:
            continue

        if name not in used:
            declared = book.names("events", "rules")
            if not all(other in declared for other in used):
                continue  # one of them is what was meant, and is said to be unknown
            hint = report.did_you_mean(name, used)
            report.add("per", f"{name!r} does not occur in the expression", place, hint)
            continue
        if len(columns) != width:
            message = f"{name!r} has {len(columns)} key columns, the first entry {width}"
            report.add("per", message, place, "list as many columns for each event")
        has = columns_of(book, name)
        if has is not None and not set(columns) <= has:
            lacking = ", ".join(sorted(set(columns) - has))
            hint = report.did_you_mean(lacking, has) if has else ""
            if name in book.records("rules") and not hint.startswith("did you mean"):
                hint = _give_per(name, columns)
            hint = hint or f"{name!r} cannot be keyed; leave it out"
            report.add("per", f"{name!r} has no column {lacking}", place, hint)
        per[name] = columns
    return per


def _inferred(book: Draft, record: Record, used: dict[str, x.Expression], report: Report) -> Per:
    """`per: column` or `per: [column, ..]`: the event types that have these columns are keyed."""
    columns = key_names(record)
    wanted = set(columns)
    per: Per = {}
    for name in used:
        has = columns_of(book, name)
        if has is None or wanted <= has:
            if name in book.events or name in book.records("rules"):
                per[name] = columns
            continue
        must_have = isinstance(book.events.get(name), TableEvent)
        if must_have or (has & wanted) or (has and name in book.records("rules")):
            lacking = ", ".join(sorted(wanted - has))
            hint = (
                "name each keyed event's columns: per: {event: column, other: its_column};"
                " the rest broadcast"
            )
            if name in book.records("rules"):
                hint = _give_per(name, columns)
            elif must_have and (meant := nearest(lacking, sorted(has))):
                hint = f"did you mean {meant!r}?"
            report.add("per", f"{name!r} has no column {lacking}", record.place("per"), hint)
    return per


def columns_of(book: Draft, name: str) -> set[str] | None:
    """The columns that an event type can be keyed by; None where only the table knows."""
    if name in book.events:
        columns = declared_columns(book.events[name])
        return None if columns is None else set(columns)
    records = book.records("rules")
    return set(key_names(records[name])) if name in records else None


def _needs_key(node: x.Expression, per: Per) -> bool:
    """Whether every instance of `node` holds a keyed occurrence (S7)."""

    def keyed(node: x.Expression) -> bool | None:
        if isinstance(node, x.Name | x.Edge):
            return node.name in per
        return (isinstance(node, x.Aperiodic) and _needs_key(node.opener, per)) or None

    return every_instance(node, keyed)


def _keyless(node: x.Expression, per: Per) -> x.Expression:
    """The part to underline: the operand of an `or` that has no key, else the whole."""
    if isinstance(node, x.Or):
        return next(_keyless(part, per) for part in node.parts if not _needs_key(part, per))
    if isinstance(node, x.Within | x.Minus | x.Labelled | w.Window):
        return _keyless(node.operands()[0], per)
    return node
