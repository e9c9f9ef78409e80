"""Cross checks: problems that only several keys together show. Each function adds to the report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tidegate.rules.analysis.draft import Draft, refuse
from tidegate.rules.analysis.graph import cycles, edges, used_in
from tidegate.rules.analysis.key_types import COMMIT_COLUMNS
from tidegate.rules.analysis.webhooks import check_webhook
from tidegate.rules.checks import selection
from tidegate.rules.checks.columns import RELATION_COLUMNS, relation_columns
from tidegate.rules.checks.damping import check_damping
from tidegate.rules.checks.scripts import check_scripts
from tidegate.rules.checks.where import check_where
from tidegate.rules.checks.windows import check_window, resolved
from tidegate.rules.errors import Place
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.clock_texts import occurs_never
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.slips import CHANGES, declared
from tidegate.rules.expressions.windows import Window
from tidegate.rules.model import (
    Change,
    ClockEvent,
    Coupling,
    Rule,
    ScriptEvent,
    SignalAction,
    SignalEvent,
    Switch,
    TableEvent,
    Webhook,
)
from tidegate.rules.sql.tokens import image_words
from tidegate.rules.yaml.kinds import Record, Report
from tidegate.rules.yaml.reader import Fields, Node, Scalar

_SQL_VALUES = {"null", "true", "false", "current_date", "current_timestamp", "current_timezone"}


def check(book: Draft, report: Report) -> None:
    """Every static check of a rulebook but what is not built yet."""
    _names(book, report)
    _tables(book, report)
    for name, record in book.records("events").items():
        _event(book, name, record, report)
    for name in book.made:
        made = book.events[name]
        if isinstance(made, SignalEvent | ScriptEvent):
            _columns(made.fields, {}, made.place, report)
    for _, node, scalar in book.expressions():
        _expression(book, node, scalar, report)
    _cycles(book, report)
    _declared_cycles(book, report)
    check_scripts(book, report)
    _order(book, report)
    for name, record in book.records("rules").items():
        _rule(book, name, record, report)


def _names(book: Draft, report: Report) -> None:
    for name in sorted(book.names("events") & book.names("rules")):
        place = book.top.key_place("rules", name)
        first = book.top.key_place("events", name)
        hint = f"the event is at line {first.line}; rename one of them"
        report.add("name", f"an event and a rule are both named {name!r}", place, hint)


def _tables(book: Draft, report: Report) -> None:
    spelt: dict[str, str] = {}
    relations = {"event", *(f"p_{rule}".lower() for rule in book.names("rules"))}
    for name in book.top.get("tables", ()):
        place = book.top.key_place("tables", name)
        if name.lower() in spelt:
            other = spelt[name.lower()]
            message = f"{name!r} and {other!r} are the same name in SQL"
            report.add("name", message, place, "rename one of them")
        spelt[name.lower()] = name
        if name.lower() in relations:
            message = f"the table name {name!r} is taken by a parameter relation"
            report.add("name", message, place, "rename the table; only the rulebook sees its name")


def _event(book: Draft, name: str, record: Record, report: Report) -> None:
    event = book.events.get(name)
    if isinstance(event, SignalEvent):
        _parameters(record.node.entries["signal"], event.fields, report)
        _known(book, record, "from_table", "table", report)
    if isinstance(event, ClockEvent) and occurs_never(event.expression, event.days, event.excluded):
        hint = "look at its date, its days and its exceptions"
        report.add("never", f"the clock {name!r} never occurs", record.node.place, hint)
    if not isinstance(event, TableEvent):
        return
    _known(book, record, "table", "table", report)
    if record.has("columns"):
        _parameters(record.node.entries["columns"], event.columns, report)
    for key in ("lateness", "ahead"):
        if record.has(key) and not record.has("time"):
            message = f"{key!r} needs an event time"
            report.add("value", message, record.place(key), "add time: COLUMN")
    _images(book, event, record, report)
    if event.change.is_commit:
        for key in ("time", "columns"):
            if record.has(key):
                message = f"a {event.change} has no {key!r}"
                hint = f"its columns are {', '.join(COMMIT_COLUMNS[event.change])}"
                report.add("value", message, record.place(key), hint)


def _images(book: Draft, event: TableEvent, record: Record, report: Report) -> None:
    """`old`, `new`, `of` and dropped no-op updates need the table's key (G11)."""
    where = record.get("where")
    images = image_words(where[0]) if where else []
    if event.change is not Change.UPDATE:
        if record.has("of"):
            message = f"'of' is for updates, not for {event.change}"
            report.add("value", message, record.place("of"), "write on: update")
        for word in images[:1]:
            place = where[1].locate(word.offset)
            message = f"{word.text}.x is for updates, not for {event.change}"
            report.add("images", message, place, "write on: update, or the column's name alone")
        return
    table = book.tables.get(event.table)
    if table is not None and not table.key:
        report.add(
            "key",
            f"the update event {event.name!r} needs the key of table {event.table!r},"
            " to pair pre- and post-images",
            record.place("on"),
            f"add key: [column, ..] to tables.{event.table}",
        )


def _parameters(node: Node, names: Iterable[str], report: Report) -> None:
    """See `_columns`; each name stands in `node`."""
    _columns(names, node.keys if isinstance(node, Fields) else {}, node.place, report)


def _columns(
    names: Iterable[str], places: Mapping[str, Place], otherwise: Place, report: Report
) -> None:
    """No parameter may have the name of a column that the engine adds, or of another parameter: to
    Spark, upper and lower case are one. `places`: where the names stand; else at `otherwise`."""
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.lower(), name)
        if other != name:
            message = f"{name!r} and {other!r} are one name in SQL"
            report.add("name", message, places.get(name, otherwise), "rename one of them")
        if name.lower() in RELATION_COLUMNS:
            message = f"the parameter name {name!r} is taken by the parameter relation"
            hint = "rename it; for a table: columns: [a, b as c]"
            report.add("name", message, places.get(name, otherwise), hint)


def _known(book: Draft, record: Record, key: str, what: str, report: Report) -> None:
    name, names = record.get(key), book.names(f"{what}s")
    if name is not None and name not in names and book.readable(f"{what}s"):
        hint = report.did_you_mean(name, names)
        report.add(f"unknown-{what}", f"unknown {what} {name!r}", record.place(key), hint)


def _expression(book: Draft, node: x.Expression, scalar: Scalar, report: Report) -> None:
    events, either = book.names("events"), book.names("events", "rules")
    said: set[str] = set()
    for below in node.walk():
        if isinstance(below, x.Name | x.Edge) and below.name not in either:
            if below.name in said | book.dashed or not book.readable("events", "rules"):
                continue
            said.add(below.name)
            hint = report.did_you_mean(below.name, either)
            message = f"unknown event {below.name!r}"
            if below.name in book.names("tables"):
                message = f"{below.name!r} is a table, no event"
                meant = declared("insert", below.name)
                hint = f"name what happens to it, under events: {meant}"
            elif below.name.lower() in CHANGES:
                message = f"{below.name!r} is no event by itself"
                table = min(book.names("tables"), default="orders")
                hint = f"name it, under events: {declared(below.name.lower(), table)}"
            refuse(report, "unknown-event", message, scalar, below, hint)
        elif isinstance(below, x.Resolved):
            resolved(book, below, scalar, report)
        elif isinstance(below, x.Failed) and below.name in events:
            message = f"{below.name!r} is no rule: only the action of one can fail"
            hint = report.did_you_mean(below.name, book.names("rules"))
            refuse(report, "begin-end", message, scalar, below, hint)
        elif isinstance(below, x.Edge) and below.name in events:
            event = book.events.get(below.name)
            changes = (Change.UPDATE, Change.TRANSACTION, Change.COMMIT)
            if event and not (isinstance(event, TableEvent) and event.change in changes):
                message = f"{below.name!r} has no beginning and end"
                hint = "begin_of and end_of take an update, transaction or commit event, or a rule"
                refuse(report, "begin-end", message, scalar, below, hint)
        elif isinstance(below, x.Edge):
            record = book.records("rules").get(below.name)
            if record and not record.has("do"):
                edge = format_expression(below)
                message = f"{edge}: the rule {below.name!r} has no action"
                hint = f"give it a do:, or write {below.name}, which is when it detects"
                refuse(report, "begin-end", message, scalar, below, hint)
        elif isinstance(below, x.Periodic | x.PeriodicStar) and below.sample is not None:
            bare = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", below.sample)
            if bare and below.sample not in book.samples:
                hint = (
                    report.did_you_mean(below.sample, book.samples) or "declare it under samples:"
                )
                message = f"unknown sample {below.sample!r}"
                refuse(report, "unknown-sample", message, scalar, below, hint)


def _cycles(book: Draft, report: Report) -> None:
    """A rule may not be an event of itself, through whatever other rules (S8)."""
    uses = {rule: used_in(node, book.rules) for rule, node, _ in book.expressions()}
    for cycle in cycles(uses):
        message = f"rules are events of each other in a cycle: {' -> '.join(cycle)}"
        place = book.records("rules")[cycle[0]].place("on")
        report.add("cycle", message, place, "raise a signal in place of one of them")


def _declared_cycles(book: Draft, report: Report) -> None:
    rules = book.names("rules")
    for names, node in book.top.get("cycles", ()):
        for name in names:
            if name not in rules and book.readable("rules"):
                hint = report.did_you_mean(name, rules)
                report.add("unknown-rule", f"unknown rule {name!r}", node.place, hint)


def _order(book: Draft, report: Report) -> None:
    """`precedes` and `follows` form no cycle, and relate only rules whose couplings allow that
    order (G15)."""
    later: dict[str, list[str]] = {name: [] for name in book.rules}
    modes = list(Coupling)
    for one, two in edges(book.rules):
        if not {one, two} <= book.rules.keys():
            continue
        later[one].append(two)
        first, second = (book.rules[name].reaction.coupling for name in (one, two))
        loose = [n for n in (one, two) if book.rules[n].reaction.coupling is Coupling.DETACHED]
        if loose:
            message = f"{one} cannot precede {two}: {loose[0]} is detached, which has no order"
            hint = f"to act once {one} has acted write on: end_of {one} in {two}"
            report.add("order", message, _stated(book, one, two), hint)
        elif modes.index(first) > modes.index(second):
            message = f"{one} cannot precede {two}: {first} actions come after {second} ones"
            hint = f"couple the action of {one} {second}, or that of {two} {first}"
            report.add("order", message, _stated(book, one, two), hint)
    for cycle in cycles(later):
        message = f"rules precede each other in a cycle: {' -> '.join(cycle)}"
        hint = "leave one of these precedes or follows out"
        report.add("order", message, _stated(book, *cycle[:2]), hint)


def _stated(book: Draft, earlier: str, later: str) -> Place:
    """Where it is written that a rule comes before another."""
    if later in book.rules[earlier].precedence.precedes:
        return book.records("rules")[earlier].place("precedes")
    return book.records("rules")[later].place("follows")


def _rule(book: Draft, name: str, record: Record, report: Report) -> None:
    if record.has("within") != record.has("otherwise"):
        have, lack = ("within", "otherwise") if record.has("within") else ("otherwise", "within")
        message = f"{have!r} needs {lack!r}"
        hint = (
            "write both, or neither; how long the events may take stands in on: a ; b within 5 min"
        )
        report.add("missing-key", message, record.place(have), hint)
    elif record.has("within") and not record.has("do"):
        message = "'within' needs 'do': how long the actions may take"
        report.add("missing-key", message, record.place("within"), "give the rule a do:")
    elif record.get("otherwise") == ():
        hint = "write what to do then, as in do: [{signal: late_order}]"
        report.add("value", "'otherwise' does nothing", record.place("otherwise"), hint)
    others = book.names("rules")
    for key in ("precedes", "follows"):
        for other in record.get(key, ()):
            if other not in others:
                hint = report.did_you_mean(other, others - {name})
                report.add("unknown-rule", f"unknown rule {other!r}", record.place(key), hint)
    rule = book.rules.get(name)
    if rule:
        check_damping(book, rule, record, report)
        if isinstance(rule.pattern.on, Window):
            check_window(book, rule, record, report)
        else:
            check_where(book, rule, record, report)
    if rule and rule.pattern.selection:
        for message, hint in selection.faults(rule.pattern.on, rule.pattern.selection):
            report.add("selection", message, record.place("context"), hint)
    for action in (*rule.reaction.actions, *rule.reaction.otherwise) if rule else ():
        if isinstance(action, Switch) and action.rule not in book.names("rules"):
            hint = report.did_you_mean(action.rule, book.names("rules"))
            report.add("unknown-rule", f"unknown rule {action.rule!r}", action.place, hint)
        elif isinstance(action, Switch) and (of := book.rules.get(action.rule)) and not of.enabled:
            message = f"the rule {of.name!r} is disabled by the rulebook itself"
            hint = f"leave its enabled: out, and run `tidegate disable {of.name}` once"
            report.add("switch", message, action.place, hint)
        if rule and isinstance(action, SignalAction):
            _raised(book, action, report)
            _read(book, rule, action, report)
        if isinstance(action, Webhook):
            check_webhook(action, report)


def _read(book: Draft, rule: Rule, action: SignalAction, report: Report) -> None:
    """Warn of a field whose expression is one name, which no event of the rule has as a column."""
    known = relation_columns(book, rule)
    if known is None:
        return
    spelt = {column.lower() for column in known} | _SQL_VALUES
    for field, text in action.fields.items():
        if text.isidentifier() and text.lower() not in spelt:
            message = f"{field}: no event of the expression has the column {text}"
            report.warn("unknown-column", message, action.place, report.did_you_mean(text, known))


def _raised(book: Draft, action: SignalAction, report: Report) -> None:
    if action.event not in book.names("events"):
        hint = report.did_you_mean(action.event, book.signals)
        report.add("unknown-event", f"unknown event {action.event!r}", action.place, hint)
        return
    event = book.events.get(action.event)
    if event is None:
        return
    if not isinstance(event, SignalEvent):
        message = f"{action.event!r} is not an explicit event; nobody can raise it"
        hint = report.did_you_mean(action.event, book.signals)
        report.add("not-a-signal", message, action.place, hint)
        return
    lacking = [field for field in event.fields if field not in action.fields]
    path = action.place.path
    refused = lacking and any(p.place.path.startswith(path) for p in report.problems)
    if lacking and not refused and action.fields.keys() <= event.fields.keys():
        fields = {**dict.fromkeys(event.fields, ".."), **action.fields}
        shown = ", ".join(f"{name}: {text}" for name, text in fields.items())
        message = f"the event {action.event!r} is raised without {', '.join(lacking)}"
        hint = f"give each field an expression, NULL for none: {{{action.event}: {{{shown}}}}}"
        report.add("missing-field", message, action.place, hint)
    for field in action.fields:
        if field not in event.fields:
            declared = ", ".join(event.fields) or "none"
            message = f"the event {action.event!r} has no field {field!r}"
            hint = report.did_you_mean(field, event.fields) or f"its fields: {declared}"
            report.add("unknown-field", message, action.place, hint)
