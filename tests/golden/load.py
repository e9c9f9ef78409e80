"""Reads the text fixtures `tests/golden/*.txt`: one case a block, blocks separated by blank lines.

    title: what the case shows
    on: a ; b                          the expression of rule r; or several `rule NAME: a ; b`;
                                       or a window: on: {window: 5 s, of: a}
    per: k                             key columns (also `per NAME:`); context (`context NAME:`)
    events: a(k) opening               declarations; those of the history are inferred
    clock opening: <(08:00:00)*/*/*>   a named clock event; after it days=sat,sun
                                       except=2026-12-25,2026-12-26 zone=Europe/Berlin
    table tx: transaction              an event type of the changes of a table
    select: first=last then=first pairs=unique repeat evaluate=early
    where: x.v < y.v                   a condition between constituents (also `where NAME:`)
    timezone: Europe/Berlin            default UTC
    business: days=sat,sun except=2026-12-24 holidays=DE-BE    the rules' calendar
    history: a@1(k=7) b@2.5(k=7)       seconds, or ISO 8601 in UTC
    until: 9
    expect restricted, recent: k=7 [1,2.5] {a@1(k=7) b@2.5(k=7)}
    expect *: ...                      the contexts not named in another line
    expect: ...                        each rule's own context
    fires: Fires when ..               what `explain` says of rule r: when it fires
    says restricted, recent: Of ..     which instances it takes, by context as for `expect`

A detection is `rule key=value [start,end] {constituents}`; `rule` may be left out for r. Indented
lines continue the line before; `#` begins a comment line. An entry that stands twice or that
nothing reads raises ValueError with file and line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from tidegate.rules.errors import InputError, Place
from tidegate.rules.expressions.nodes import (
    BeginOf,
    BusinessCalendar,
    Clock,
    Cron,
    EndOf,
    Expression,
    Labelled,
    Name,
    Or,
    Resolved,
    counted_by,
)
from tidegate.rules.expressions.parser import parse
from tidegate.rules.expressions.predicate_parser import parse_predicate
from tidegate.rules.expressions.windows import Window
from tidegate.rules.form.windows import ON
from tidegate.rules.model import (
    Change,
    ClockEvent,
    Constraint,
    Context,
    EventType,
    Pattern,
    Rule,
    Rulebook,
    Selection,
    SignalEvent,
    TableEvent,
    in_context,
)
from tidegate.rules.yaml.kinds import Report
from tidegate.rules.yaml.reader import read_yaml

FOLDER = Path(__file__).parent
PLACE = Place()
_WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OCCURRENCE = re.compile(r"(<[^>]*>|\w+)@([^\s(){}]+)(?:\(([^)]*)\))?")
_DETECTION = re.compile(r"(\w+ +)?((?:\w+=\S+ +)*)\[([^,\]]+),([^\]]+)\] *\{([^}]*)\}")

Line = tuple[str, int, dict[str, Any]]
T = TypeVar("T")


@dataclass(frozen=True)
class Case:
    """One fixture. `expected` maps a context (None: each rule's own) to detections as `simulate`
    prints them; `history` holds (event type, microseconds, parameters). `fires`, `says`: what
    `explain` says of rule r, in sentences."""

    title: str
    file: str
    line: int
    rulebook: Rulebook
    history: tuple[Line, ...]
    until: int | None
    expected: Mapping[Context | None, list[dict[str, Any]]] = field(default_factory=dict)
    fires: str | None = None
    says: Mapping[Context | None, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.title}"

    def in_context(self, context: Context | None) -> Rulebook:
        """Its rulebook with all rules in this context; None: each in its own."""
        if context is None:
            return self.rulebook
        rules = self.rulebook.rules.items()
        given = {name: in_context(rule, context) for name, rule in rules}
        return replace(self.rulebook, rules=given)


def cases(pattern: str = "*.txt") -> Iterator[Case]:
    """Every case of the fixtures whose file name matches."""
    for path in sorted(FOLDER.glob(pattern)):
        yield from read_all(path.read_text(), path.name)


def read_all(text: str, file: str) -> Iterator[Case]:
    """The cases of a whole file."""
    numbered = enumerate(text.splitlines(), 1)
    lines = ((number, line) for number, line in numbered if not line.startswith("#"))
    for blank, block in groupby(lines, lambda line: not line[1].strip()):
        if not blank:
            yield _case(list(block), file)


def read(block: str, file: str = "here") -> Case:
    """One case."""
    (case,) = read_all(block, file)
    return case


def micros(text: str) -> int:
    """Seconds, or ISO 8601 in UTC, as microseconds."""
    if "T" in text:
        return (datetime.fromisoformat(text).replace(tzinfo=UTC) - _EPOCH) // timedelta(
            microseconds=1
        )
    return int(Decimal(text) * 1_000_000)


def _seconds(text: str) -> int | float:
    whole, rest = divmod(micros(text), 1_000_000)
    return micros(text) / 1_000_000 if rest else whole


def _value(text: str) -> Any:
    if text in ("null", "false", "true"):
        return {"null": None, "false": False, "true": True}[text]
    try:
        return int(text) if "." not in text else float(text)
    except ValueError:
        return text


def _fields(text: str | None) -> dict[str, Any]:
    pairs = (item.partition("=") for item in (text or "").split(",") if item.strip())
    return {name.strip(): _value(value) for name, _, value in pairs}


def occurrences(text: str) -> list[Line]:
    """`a@1(k=7) b@2` as (event type, microseconds, parameters)."""
    return [(name, micros(time), _fields(inside)) for name, time, inside in _tokens(text)]


def _tokens(text: str) -> list[tuple[str, str, str]]:
    rest = _OCCURRENCE.sub("", text).strip()
    if rest:
        raise ValueError(f"not an occurrence: {rest}")
    return _OCCURRENCE.findall(text)


def detections(text: str) -> list[dict[str, Any]]:
    """Detections as `simulate` prints them."""
    rest = _DETECTION.sub("", text).strip()
    if rest:
        raise ValueError(f"not a detection: {rest}")
    return [
        {
            "rule": (rule or "r").strip(),
            "key": _fields(key.strip().replace(" ", ",")),
            "start": _seconds(start),
            "end": _seconds(end),
            "constituents": [
                {"event": name, "time": _seconds(time), **_fields(fields)}
                for name, time, fields in _tokens(inside)
            ],
        }
        for rule, key, start, end, inside in _DETECTION.findall(text)
    ]


def _case(lines: list[tuple[int, str]], file: str) -> Case:
    numbers: dict[str, int] = {}
    entries: dict[str, str] = {}
    last = ""
    for number, line in lines:
        if line[0].isspace() and last:
            entries[last] += " " + line.strip()
            continue
        last, _, text = (part.strip() for part in line.partition(":"))
        if last in entries:
            raise ValueError(f"{file}:{number}: a second `{last}` in one block")
        numbers[last], entries[last] = number, text
    first = lines[0][0]
    if missing := {"title", "history"} - entries.keys():
        raise ValueError(f"{file}:{first}: no {', no '.join(sorted(missing))}")
    try:
        case = _made(entries, file, first)
    except (ArithmeticError, ValueError) as error:
        raise ValueError(f"{file}:{first}: {error}") from error
    for key in entries:
        raise ValueError(f"{file}:{numbers[key]}: unknown entry `{key}`")
    return case


def _made(entries: dict[str, str], file: str, line: int) -> Case:
    """Takes out what it knows."""
    history = occurrences(entries.pop("history"))
    until = entries.pop("until", None)
    return Case(
        title=entries.pop("title"),
        file=file,
        line=line,
        rulebook=rulebook(entries, history),
        history=tuple(history),
        until=None if until is None else micros(until),
        expected=_by_context("expect", entries, detections),
        fires=entries.pop("fires", None),
        says=_by_context("says", entries, str),
    )


def _by_context(
    word: str, entries: dict[str, str], read: Callable[[str], T]
) -> dict[Context | None, T]:
    """The entries that begin with a word, by the contexts that are named behind it."""
    given: dict[Context | None, T] = {}
    others: dict[Context, T] = {}
    for key in [key for key in entries if key.split()[0] == word]:
        found = read(entries.pop(key))
        names = key.removeprefix(word).strip()
        if names == "*":
            others = dict.fromkeys(Context, found)
        elif names:
            contexts = [Context(name.strip()) for name in names.split(",")]
            if twice := [context for context in contexts if context in given]:
                raise ValueError(f"a second answer in {twice[0]}")
            given |= dict.fromkeys(contexts, found)
        else:
            given[None] = found
    return {**others, **given}


def rulebook(entries: dict[str, str], history: list[Line]) -> Rulebook:
    """The rulebook of a block; takes its entries out."""
    zone = entries.pop("timezone", "UTC")
    calendar = _calendar(entries.pop("business", ""))
    events = _events(entries, history, zone)
    texts = {"r": entries.pop("on")} if "on" in entries else {}
    for key in [key for key in entries if key.startswith("rule ")]:
        texts[key.removeprefix("rule ")] = entries.pop(key)
    rules: dict[str, Rule] = {}
    for name, text in texts.items():
        suffix = "" if name == "r" else f" {name}"
        keys = tuple(entries.pop("per" + suffix, "").split())
        context = entries.pop("context" + suffix, None)
        selection = entries.pop("select" + suffix, None)
        made = rule(name, text, keys, context, selection, events, rules)
        pattern = replace(made.pattern, on=counted_by(made.pattern.on, calendar))
        made = replace(made, pattern=pattern)
        where = entries.pop("where" + suffix, None)
        rules[name] = constrained(made, where) if where else made
    return Rulebook("golden", None, "", zone, {}, events, rules)


def _calendar(text: str) -> BusinessCalendar:
    said = dict(word.split("=", 1) for word in text.split())
    listed = {key: tuple(value.split(",")) for key, value in said.items() if key != "days"}
    week = tuple(map(_WEEKDAYS.index, said["days"].split(","))) if "days" in said else ()
    week = week or BusinessCalendar().days
    return BusinessCalendar(week, listed.get("except", ()), listed.get("holidays", ()))


def rule(
    name: str,
    text: str,
    keys: tuple[str, ...],
    context: str | None,
    selection: str | None,
    events: Mapping[str, EventType],
    rules: Mapping[str, Rule],
) -> Rule:
    """A rule with defaults filled in; a type with all key columns is keyed (S7)."""
    on = window(text) if text.startswith("{") else parse(text)
    keyed = {
        used
        for used in {node.name for node in on.walk() if isinstance(node, Name | Resolved)}
        if keys and set(keys) <= set(_columns(used, events, rules))
    }
    return Rule(
        name,
        PLACE,
        Pattern(
            on,
            text,
            context=Context(context) if context else default_context(on),
            selection=_selection(selection) if selection else None,
            key_names=keys,
            per=dict.fromkeys(sorted(keyed), keys),
        ),
    )


def window(text: str) -> Expression:
    """A window, read as `on:` of a rule."""
    node, _ = read_yaml(text, "window", len(text))
    report = Report()
    read = ON.read(node, report)
    if report.problems:
        raise InputError(report.problems)
    found: Expression = read[0]
    return found


def constrained(rule: Rule, where: str) -> Rule:
    """The rule with a condition between constituents."""
    constraint = Constraint(parse_predicate(where), where, PLACE)
    return replace(rule, pattern=replace(rule.pattern, where=constraint))


def _columns(name: str, events: Mapping[str, EventType], rules: Mapping[str, Rule]) -> list[str]:
    event = events.get(name)
    if isinstance(event, SignalEvent):
        return list(event.fields)
    return list(rules[name].pattern.key_names) if name in rules else []


def default_context(on: Expression) -> Context:
    """Section 3: unrestricted for plain types (S9), else restricted. A window has its own."""
    if isinstance(on, Window):
        return Context.CUMULATIVE
    return Context.UNRESTRICTED if _plain(on) else Context.RESTRICTED


def _plain(on: Expression) -> bool:
    if isinstance(on, Labelled):
        return _plain(on.part)
    if isinstance(on, Or):
        return all(map(_plain, on.parts))
    return isinstance(on, Name | Clock | Cron | BeginOf | EndOf | Resolved)


def _selection(text: str) -> Selection:
    options: dict[str, Any] = {}
    for option in text.split():
        name, _, value = option.partition("=")
        options[name] = value or True
    return Selection(**options)


def _events(entries: dict[str, str], history: list[Line], zone: str) -> dict[str, EventType]:
    columns: dict[str, dict[str, str]] = {}
    for name, inside in re.findall(r"(\w+)(?:\(([^)]*)\))?", entries.pop("events", "")):
        columns[name] = {c.strip(): "bigint" for c in inside.split(",") if c.strip()}
    for name, _, fields in history:
        kinds = columns.setdefault(name, {})
        for column, value in fields.items():
            kinds[column] = "string" if isinstance(value, str) else kinds.get(column, "bigint")
    events: dict[str, EventType] = {
        name: SignalEvent(name, PLACE, fields) for name, fields in columns.items()
    }
    for key in [key for key in entries if key.startswith("table ")]:
        name = key.removeprefix("table ")
        parameters = {column: column for column in columns.get(name, ())}
        events[name] = TableEvent(name, PLACE, Change(entries.pop(key)), "t", columns=parameters)
    for key in [key for key in entries if key.startswith("clock ")]:
        name = key.removeprefix("clock ")
        events[name] = _clock(name, entries.pop(key), zone)
    return events


def _clock(name: str, text: str, zone: str) -> ClockEvent:
    expression, *options = re.split(r" (?=(?:days|except|zone)=)", text)
    given = dict(option.strip().split("=") for option in options)
    return ClockEvent(
        name,
        PLACE,
        parse(expression),
        given.get("zone", zone),
        tuple(_WEEKDAYS.index(day) for day in given["days"].split(",")) if "days" in given else (),
        tuple(given["except"].split(",")) if "except" in given else (),
    )
