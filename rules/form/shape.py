"""Records read by `rules.form.form` -> the model: defaults, absolute paths, instants, actions."""

from __future__ import annotations

import datetime
import os
import re
import zoneinfo
from collections.abc import Mapping
from typing import Any

from tidegate.rules.algebra.plain_expressions import plain
from tidegate.rules.analysis.draft import Draft, refuse_relative
from tidegate.rules.analysis.keyed_events import resolve_keys
from tidegate.rules.errors import Place
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.form import texts
from tidegate.rules.form.calendars import count_business_days
from tidegate.rules.form.form import read_setting
from tidegate.rules.form.texts import REST
from tidegate.rules.form.variables import Variables
from tidegate.rules.model import (
    LATEST,
    About,
    Action,
    Change,
    ClockEvent,
    Condition,
    Constraint,
    Context,
    Coupling,
    Damping,
    Dedupe,
    EventType,
    Hysteresis,
    Pattern,
    Precedence,
    Reaction,
    Retry,
    Rule,
    Selection,
    Settings,
    SignalAction,
    SignalEvent,
    Sql,
    Start,
    Switch,
    Table,
    TableEvent,
    Throttle,
    Webhook,
)
from tidegate.rules.sql.statement import with_names
from tidegate.rules.yaml.kinds import BAD, Record, Report
from tidegate.rules.yaml.reader import Fields, Items, Node, Scalar

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def shape(
    top: Record,
    file: str | None,
    markers_max: int,
    files: Mapping[str, str],
    variables: Variables,
    report: Report,
) -> Draft:
    """Everything of a rulebook but its settings. The names in expressions are not checked yet.
    `markers_max`: the limit of one script. `files`: texts of scripts' files that are known already.
    `variables`: of the rulebook, which those texts may name."""
    book = Draft(top, file or top.node.place.file, top.get("timezone", "UTC"), files=dict(files))
    for name, record in book.records("tables").items():
        book.tables[name] = _table(book, name, record, file, report)
    for name, record in book.records("events").items():
        event = _event(book, name, record, report)
        if event is not None:
            book.events[name] = event
    if book.top.has("scripts"):
        from tidegate.rules.form.shape_scripts import shape_scripts  # a language of its own

        shape_scripts(book, file, markers_max, variables, report)
    samples = top.readable("samples")
    book.samples = {name: text for name, (text, _) in samples.items()}
    book.sample_places = {name: node.locate(0) for name, (_, node) in samples.items()}
    count_business_days(book, report)
    for name, node, scalar in book.expressions():
        book.rules[name] = _rule(book, name, node, scalar, report)
    return book


def shape_settings(record: Record | None, overrides: Mapping[str, str], report: Report) -> Settings:
    """The limits of `settings:`, overridden by `--set name=value`."""
    values = dict(record.values) if record else {}
    for name, text in overrides.items():
        value = read_setting(name, text, report)
        if value is not BAD:
            values[name] = value
    return Settings(**values)


def _table(book: Draft, name: str, record: Record, file: str | None, report: Report) -> Table:
    path = record.get("path")
    if path is not None and not _SCHEME.match(path) and not os.path.isabs(path):
        if file is None:
            refuse_relative(path, record.place("path"), "an absolute path or a URI", report)
        else:
            path = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(file)), path))
    return Table(
        name,
        book.top.key_place("tables", name),
        path=path,
        start=_start(record, book.timezone, report),
        **record.given("key", "on_restore", "on_unpaired", catalog="table"),
    )


def _start(record: Record, timezone: str, report: Report) -> Start:
    start = record.get("start", "now")
    if not isinstance(start, Record):
        return Start(start)
    if "version" in start.values:
        return Start("version", start.get("version"))
    instant = start.get("time", _EPOCH)
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=zoneinfo.ZoneInfo(timezone))
    if instant > datetime.datetime.now(datetime.UTC):
        message = "this instant is still to come: no change of the table could be read from it on"
        hint = "write start: now, or an instant that has passed"
        report.add("value", message, start.place("time"), hint)
    return Start("time", (instant - _EPOCH) // datetime.timedelta(microseconds=1))


def _event(book: Draft, name: str, record: Record, report: Report) -> EventType | None:
    place = book.top.key_place("events", name)
    if record.has("signal"):
        types = record.readable("signal")
        return SignalEvent(name, place, types, *_where(record), record.get("from_table"))
    if record.has("on"):
        return _table_event(name, place, record, report)
    expression = record.get("at") or (x.Cron(record.get("cron")) if record.get("cron") else None)
    if expression is None:
        return None
    days, excluded = record.get("days", ()), record.get("except", ())
    return ClockEvent(
        name,
        place,
        expression,
        timezone=record.get("timezone", book.timezone),
        days=texts.united(days),
        excluded=tuple(sorted({*excluded})),
        **record.given("holidays", "misfire"),
    )


def _table_event(name: str, place: Place, record: Record, report: Report) -> TableEvent | None:
    change, table = record.get("on"), record.get("table")
    if change is None or table is None:
        return None
    columns: dict[str, str] = {}
    listed = record.get("columns", ())
    for parameter, column in listed:
        if parameter.lower() in map(str.lower, columns):
            message = f"two columns are named {parameter!r}"
            hint = "write it once" if column == REST else f"write {column} as other_name"
            report.add("value", message, record.place("columns"), hint)
        columns[parameter] = column
    rest = columns.pop(REST, None) is not None
    where, where_place = _where(record)
    said = record.given("of", "time", lateness_micros="lateness", ahead_micros="ahead")
    if rest:  # then a column's new name can mean no other column
        where = where and with_names(where, columns)
        meant = {name.lower(): column for name, column in columns.items()}
        if "of" in said:
            said["of"] = tuple(meant.get(name.lower(), name) for name in said["of"])
        if "time" in said:
            said["time"] = meant.get(said["time"].lower(), said["time"])
    return TableEvent(
        name,
        place,
        Change(change),
        table,
        where=where,
        where_place=where_place,
        columns=columns,
        rest=rest,
        **said,
    )


def _where(record: Record) -> tuple[str | None, Place | None]:
    """The text of a `where`, and where it begins."""
    where = record.get("where")
    return (where[0], where[1].locate(0)) if where else (None, None)


def _rule(book: Draft, name: str, node: x.Expression, scalar: Scalar, report: Report) -> Rule:
    record = book.records("rules")[name]
    key_names, per = resolve_keys(book, name, report)
    context, selection = _context(record, node)
    condition_mode, action_mode = _coupling(record, report)
    _check_net(record, action_mode, report)
    text = scalar.text.strip()
    return Rule(
        name,
        book.top.key_place("rules", name),
        Pattern(
            node,
            text,
            context,
            selection,
            key_names,
            per,
            LATEST if record.get("context") == LATEST else "",
            where=_constraint(record),
            **record.given("ignore_own"),
        ),
        condition=_condition(record),
        condition_coupling=condition_mode,
        damping=_damping(record),
        reaction=Reaction(
            _actions(record.get("do", ()), key_names, book),
            action_mode,
            dry=record.get("mode") == "dry",
            retry=_retry(retry) if (retry := record.get("retry")) else Retry(),
            otherwise=_actions(record.get("otherwise", ()), key_names, book),
            **record.given("for_each", "net", "at_least_once", "on_dead", within_micros="within"),
        ),
        precedence=Precedence(**record.given("priority", "precedes", "follows")),
        disabled_for=_disabled_for(record, key_names, report),
        about=_about(record),
        **record.given("enabled"),
    )


def _about(record: Record) -> About:
    said = {name: record.get(name) for name in ("description", "severity") if record.get(name)}
    return About.of({**said, "labels": record.readable("labels")})


def _context(record: Record, node: x.Expression) -> tuple[Context, Selection | None]:
    if isinstance(node, w.Window):
        return Context.CUMULATIVE, None
    default = Context.UNRESTRICTED if plain(node) else Context.RESTRICTED
    given = record.get("context")
    if given is None:
        return default, None
    if not isinstance(given, Record):
        return Context(given), None
    select = given.get("select")
    chosen = dict(select.values) if select else {}
    chosen |= {key: given.get(key) for key in given.values if key != "select"}
    return default, Selection(**chosen)


def _coupling(record: Record, report: Report) -> tuple[Coupling, Coupling]:
    given = record.get("coupling", Coupling.DEFERRED)
    if not isinstance(given, Record):
        return Coupling(given), Coupling(given)
    either = given.get("condition") or given.get("action") or Coupling.DEFERRED
    condition = Coupling(given.get("condition", either))
    action = Coupling(given.get("action", either))
    order = list(Coupling)
    if order.index(action) < order.index(condition):
        report.add(
            "coupling",
            f"the action is coupled {action}, earlier than its condition, {condition}",
            given.place("action"),
            f"couple the action {condition} or later",
        )
    return condition, action


def _disabled_for(
    record: Record, key_names: tuple[str, ...], report: Report
) -> tuple[Mapping[str, Any], ...]:
    """The keys in `disabled_for`, each by column. If a key has one column, its value is enough."""
    found = []
    for given in map(_plain, record.get("disabled_for", ())):
        key = given if isinstance(given, dict) else dict.fromkeys(key_names[:1], given)
        nested = any(value is None or isinstance(value, dict | list) for value in key.values())
        if nested or set(key) != {*key_names} or not key_names:
            like = ", ".join(f"{name}: .." for name in key_names)
            hint = f"write {{{like}}}" if key_names else "a rule without per: has no keys"
            message = "disabled_for lists keys of the rule"
            report.add("value", message, record.place("disabled_for"), hint)
        found.append(key)
    return tuple(found)


def _check_net(record: Record, action: Coupling, report: Report) -> None:
    """Refuse `net: bucket` for firings that are not acted on together."""
    if record.get("net", "firing") != "bucket":
        return
    apart = "for_each: firing" if record.get("for_each") else f"coupling: {action}"
    if record.get("for_each") or action is Coupling.IMMEDIATE:
        message = f"net: bucket sums up firings, which {apart} acts on one by one"
        report.add("net", message, record.place("net"), "leave one of the two out")


def _constraint(record: Record) -> Constraint | None:
    given = record.get("where")
    return Constraint(given[0], given[1].text.strip(), given[1].locate(0)) if given else None


def _condition(record: Record) -> Condition | None:
    given = record.get("if")
    if given is None:
        return None
    query = isinstance(given, Record)
    found = given.get("sql") if query else given
    return Condition(found[0], query, found[1].locate(0)) if found else None


def _damping(record: Record) -> Damping | None:
    dedupe, levels = record.get("dedupe"), record.get("hysteresis")
    cooldown, rate = record.get("cooldown"), record.get("throttle")
    found = Damping(
        hysteresis=_hysteresis(levels) if levels else None,
        dedupe=Dedupe(dedupe.get("by", ()), dedupe.get("within", 1)) if dedupe else None,
        cooldown_micros=cooldown,
        throttle=Throttle(*rate) if rate else None,
    )
    return None if found == Damping() else found


def _hysteresis(record: Record) -> Hysteresis | None:
    fire, rearm = record.get("fire"), record.get("rearm")
    if not fire or not rearm:
        return None
    return Hysteresis(*(Condition(text, False, node.locate(0)) for text, node in (fire, rearm)))


def _retry(record: Record) -> Retry:
    default = Retry()
    low, high = record.get("backoff", (default.backoff_min_micros, default.backoff_max_micros))
    return Retry(record.get("attempts", default.attempts), low, high)


def _actions(
    given: tuple[tuple[Record, Node], ...], key_names: tuple[str, ...], book: Draft
) -> tuple[Action, ...]:
    built = (_action(record, node.place, key_names, book) for record, node in given)
    return tuple(action for action in built if action is not None)


def _action(record: Record, place: Place, key_names: tuple[str, ...], book: Draft) -> Action | None:
    if not record.values:
        return None
    kind, value = next(iter(record.values.items()))
    if kind == "sql":
        return Sql(value[0], value[1].locate(0))
    if kind == "signal":
        return _signal(value, record.place("signal"), key_names, book)
    if kind == "webhook":
        return Webhook(
            value.get("url", ""),
            value.get("secret"),
            value.readable("headers"),
            value.readable("body"),
            place,
        )
    return Switch(value, kind == "enable", record.place(kind))


def _signal(given: Any, place: Place, key_names: tuple[str, ...], book: Draft) -> SignalAction:
    if isinstance(given, str):
        # A bare name hands the key columns on; an event without fields has no use for them.
        event = book.events.get(given)
        bare = isinstance(event, SignalEvent) and not event.fields
        return SignalAction(given, {} if bare else {key: key for key in key_names}, place)
    [(event_name, values)] = given.items()
    texts = {} if values is BAD else {f: text for f, text in values.items() if text is not BAD}
    return SignalAction(event_name, texts, place)


def _plain(value: Any) -> Any:
    """The plain value of a YAML node, without places."""
    if isinstance(value, Scalar):
        return value.value
    if isinstance(value, Items):
        return [_plain(item) for item in value.items]
    if isinstance(value, Fields):
        return {key: _plain(item) for key, item in value.entries.items()}
    return value
