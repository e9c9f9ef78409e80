"""What a rulebook may say: every key, its kind and its meaning. The one source of truth.

`rules.shape` reads by it, `rules.schema` prints it as JSON Schema.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

from tidegate.rules import kinds as k
from tidegate.rules import texts, words
from tidegate.rules.durations import duration_micros, lacks_unit
from tidegate.rules.errors import InputError, word_place
from tidegate.rules.kinds import BAD, Key, Kind, Report
from tidegate.rules.model import Change, Context, Coupling, Settings
from tidegate.rules.nearest import did_you_mean
from tidegate.rules.parser import parse
from tidegate.rules.reader import Fields, Items, Node, Scalar
from tidegate.rules.sqltypes import sql_type

# fmt: off
KEYWORDS = (
    "within", "without", "or", "and", "then", "begin_of", "end_of", "at", "cron",
    "all", "any", "every", "not",
)
# fmt: on

_FREE_NAME = rf"(?!(?:{'|'.join(KEYWORDS)})$){texts.NAME}"
_MAY_BE_ZERO = {"commit_slack_ms", "skew_max_seconds"}


def _sql_value(node: Scalar, report: Report) -> object:
    if node.text.strip():
        return node.text
    return report.add("value", "expected a Spark SQL expression, found nothing", node.place)


def _expression(node: Scalar, report: Report) -> object:
    try:
        return parse(node.text, locate=node.locate), node
    except InputError as error:
        report.problems.extend(error.problems)
        return BAD


def _length(read: Callable[[str], int]) -> Kind:
    def convert(node: Scalar, report: Report) -> int:
        value = read(node.text)
        if lacks_unit(node.text):
            hint = f"write {node.text} s, or the unit that is meant: {node.text} min"
            report.warn("no-unit", f"{node.text} without a unit is seconds", node.place, hint)
        return value

    schema: k.Schema = {"type": ["string", "number"]}
    return k.scalar("a length of time", schema, convert, "5 min")


def _sql(like: str = "") -> Kind:
    return k.with_node(k.text("Spark SQL", like=like))


def _limit(name: str) -> Kind:
    return k.integer(0 if name in _MAY_BE_ZERO else 1)


NAME = k.text("a name", texts.NAME)
COLUMN = k.text("a column name", like="order_id")
COLUMNS = k.by_form("a column or a list of columns", one=COLUMN, many=k.listing(COLUMN, 1))
_AN_INSERT = "INSERT INTO late (order_id) SELECT order_id FROM event"
_A_QUERY = "SELECT firing_id FROM event .."
LENGTH = _length(duration_micros)
LENGTH_ABOVE_0 = _length(texts.positive_micros)
ZONE = k.parsed("a time zone", texts.zone, "Europe/Berlin")
DATES = k.listing(k.parsed("a date", texts.date, "2026-12-25"))
INSTANT = k.parsed("an instant", texts.instant, "2026-03-02T09:00:00Z")
EXPRESSION = k.scalar(
    "an event expression",
    {"type": "string", "minLength": 1},
    _expression,
    "placed ; paid within 1 h",
)
SQL_VALUE = k.scalar(
    "a Spark SQL expression",
    {"type": ["string", "number", "boolean"]},
    _sql_value,
    "sum(amount)",
)
SQL_VALUES = k.mapping(SQL_VALUE, ".+", "a name")
SQL_NAME = "a name: letters, digits and _"
FREE_NAME = f"{SQL_NAME}, not a keyword"
ANYTHING = Kind(lambda node, _: node, {})
SETTINGS = k.record(
    "settings",
    *(Key(f.name, _limit(f.name), f"limit {f.name}") for f in fields(Settings)),
    like="{bucket_rows_max: 100000}",
)


def _only(what: str, name: str, kind: Kind, doc: str) -> Kind:
    return k.record(what, Key(name, kind, doc, required=True))


_SOME_START = "{version: 7}, {time: 2026-01-01T00:00:00Z}"
_START = k.by_form(
    "now, earliest, snapshot, {version: n} or {time: t}",
    one=k.choice("now", "earliest", "snapshot", words=words.START_WORDS, like=_SOME_START),
    named=k.by_key(
        "a start",
        {
            "version": _only("a start", "version", k.integer(0), "first version to read"),
            "time": _only("a start", "time", INSTANT, "first instant to read"),
        },
    ),
)
_TABLE_KEYS = (
    Key("key", COLUMNS, "columns that identify a row; needed for update events"),
    Key("start", _START, "now | earliest | snapshot | {version: 7} | {time: ..}; default now"),
    Key("on_restore", k.choice("stop", "changes", "skip"), "what a RESTORE does; default stop"),
    Key("on_unpaired", k.choice("stop", "delete_insert"), "updates whose images do not pair"),
)
_A_TABLE = "{path: /lake/orders, key: [id]}"
TABLE = k.by_key(
    "a table",
    {
        "path": k.record(
            "a table",
            Key("path", k.text("a path"), "folder of the table, or any URI", required=True),
            *_TABLE_KEYS,
            like=_A_TABLE,
            words=words.TABLE_WORDS,
        ),
        "table": k.record(
            "a table",
            Key("table", k.text("a catalog name"), "name in the catalog", required=True),
            *_TABLE_KEYS,
            like=_A_TABLE,
            words=words.TABLE_WORDS,
        ),
    },
    like=_A_TABLE,
    words=words.TABLE_WORDS,
)

_SEVERAL = "change, for any of insert, update, delete; else an event type for each"
_CHANGE = k.choice(*Change, words=words.CHANGE_WORDS, like=_SEVERAL)
_TABLE_EVENT = k.record(
    "a table event",
    Key("on", _CHANGE, "insert | update | delete | change | transaction", required=True),
    Key("table", NAME, "a name of tables:", required=True),
    Key("of", COLUMNS, "update: one of these columns changed"),
    Key("where", _sql("kind = 'withdraw'"), "Spark SQL over the row; on update also old.x, new.x"),
    Key("time", COLUMN, "column with the event time; default the commit's instant"),
    Key("lateness", LENGTH, "how late a row may be, with time:"),
    Key("ahead", LENGTH, "how far ahead of its commit a row may be, with time:; default 1 h"),
    Key("columns", k.listing(k.parsed("a column", texts.column), 1), "parameters: [a, b as c]"),
    words=words.EVENT_WORDS,
)
_SOME_FIELDS = "{order_id: bigint}, or {} for none"
_SIGNAL_EVENT = k.record(
    "a signal event",
    Key(
        "signal",
        k.mapping(
            k.parsed("a type", sql_type, "bigint"), texts.NAME, "a field name", like=_SOME_FIELDS
        ),
        "fields with their Spark SQL types",
        required=True,
    ),
    Key("from_table", NAME, "a table whose inserted rows raise it"),
    words={key: word for key, word in words.EVENT_WORDS.items() if word == "signal"},
)
_CLOCK_KEYS = (
    Key(
        "days",
        k.by_form(
            "days of the week",
            one=k.parsed("days", texts.days, "mon-fri"),
            many=k.listing(k.parsed("a day", texts.days, "sat"), 1),
        ),
        "mon-fri, or [sat, sun]; default every day",
    ),
    Key("except", DATES, "dates on which it does not happen"),
    Key("holidays", DATES, "more such dates"),
    Key("timezone", ZONE, "default the rulebook's"),
    Key("misfire", k.choice("fire", "skip"), "instants missed while the engine was down"),
)
_CLOCK = k.parsed("a clock literal", texts.absolute, '"<(08:00:00)*/*/*>", or 08:00')
_CRON = k.parsed("a cron line", texts.cron_line, '"0 17 * * mon-fri"')
EVENT = k.by_key(
    "an event type",
    {
        "on": _TABLE_EVENT,
        "signal": _SIGNAL_EVENT,
        "at": k.record(
            "a clock event",
            Key("at", _CLOCK, "<(hh:mm:ss)mm/dd/yyyy>", required=True),
            *_CLOCK_KEYS,
            words=words.EVENT_WORDS,
        ),
        "cron": k.record(
            "a clock event",
            Key("cron", _CRON, "a Vixie cron line", required=True),
            *_CLOCK_KEYS,
            words=words.EVENT_WORDS,
        ),
    },
    like="{on: insert, table: orders} or {signal: {order_id: bigint}}",
    words=words.EVENT_WORDS,
)

_SIGNAL = k.by_form(
    "the name of a signal event, or {name: {field: expression}}",
    one=NAME,
    named=k.mapping(SQL_VALUES, texts.NAME, "the name of an event", single=True),
    like="late_order, or {late_order: {order_id: order_id}}",
)
_SECRET = k.text(
    "a variable named TIDEGATE_SECRET_..", r"TIDEGATE_SECRET_[A-Z0-9_]+", "TIDEGATE_SECRET_OPS"
)
_A_URL = "https://ops.example.org/alarm"
_WEBHOOK = k.record(
    "a webhook",
    Key("url", k.text("a URL", r"https?://[^\s{}]+", _A_URL), "literal http(s) URL", required=True),
    Key("secret", _SECRET, "environment variable with the signing secret"),
    Key("headers", k.mapping(k.text("a text"), r"[A-Za-z0-9-]+", "a header"), "literal headers"),
    Key("body", SQL_VALUES, "fields of the JSON body, as expressions"),
    like=f"{{url: {_A_URL}}}",
)
_AN_ACTION = f"{{sql: {_AN_INSERT}}}, or {{signal: late_order}}"
_NAMED_ACTION = k.with_node(
    k.by_key(
        "an action",
        {
            "sql": _only(
                "an action", "sql", _sql(_AN_INSERT), "one INSERT, MERGE or UPDATE that reads event"
            ),
            "signal": _only("an action", "signal", _SIGNAL, "raise an event, one a firing"),
            "webhook": _only("an action", "webhook", _WEBHOOK, "POST, at least once"),
            "enable": _only("an action", "enable", NAME, "enable a rule"),
            "disable": _only("an action", "disable", NAME, "disable a rule"),
        },
        like=_AN_ACTION,
        several="a list has each on a line of its own, behind a dash",
        words=words.ACTION_WORDS,
    )
)


def _as_sql(node: Node, report: Report) -> object:
    """A text alone is the SQL of an action."""
    sql = Fields(node.place, {"sql": node}, {"sql": node.place})
    return _NAMED_ACTION.read(sql, report)


_TEXT_ACTION = Kind(_as_sql, _sql().schema, _AN_ACTION)
ACTION = k.by_form("an action", one=_TEXT_ACTION, named=_NAMED_ACTION)


_LISTED = k.listing(ACTION)


def _actions(node: Node, report: Report) -> object:
    """A list of actions, or one alone."""
    if isinstance(node, Items):
        return _LISTED.read(node, report)
    if isinstance(node, Scalar) and not node.text.strip():
        hint = f"write {_AN_INSERT}; without actions leave the key out: the rule only detects"
        return report.add("type", "expected actions, found nothing", node.place, hint)
    value = ACTION.read(node, report)
    return BAD if value is BAD else (value,)


ACTIONS = Kind(_actions, {"anyOf": [ACTION.schema, _LISTED.schema]}, _AN_ACTION)

_ONE_OF_THREE = k.choice("first", "last", "all")
_SELECTION = k.record(
    "a selection",
    Key(
        "select",
        k.record(
            "select",
            Key("first", _ONE_OF_THREE, "of each run of the first operand"),
            Key("then", _ONE_OF_THREE, "of each run of the second operand"),
            like="{first: last, then: first}",
        ),
        "which occurrences of a run take part",
        required=True,
    ),
    Key("pairs", k.choice("unique", "all"), "with the next run only, or every later one"),
    Key("repeat", k.FLAG, "re-apply until nothing matches"),
    Key("evaluate", k.choice("early", "at_end"), "at once, or at the end of the within span"),
    like="{select: {first: last, then: first}}",
)
_PER = k.by_form(
    "a column, a list of columns or {event: column}",
    one=COLUMN,
    many=k.listing(COLUMN, 1),
    named=k.mapping(COLUMNS, texts.NAME, "the name of an event"),
)
_CONDITION = k.by_form(
    "an expression over a firing or {sql: query}",
    one=_sql("count(*) > 3"),
    named=_only("a condition", "sql", _sql(_A_QUERY), "a query of the firing_ids that hold"),
    like="count(*) > 3, or {sql: SELECT firing_id FROM event ..}",
)
_MODE = k.choice(*Coupling, words=words.COUPLING_WORDS)
_NAMES = k.by_form("a rule or a list of rules", one=NAME, many=k.listing(NAME, 1))
RULE = k.record(
    "a rule",
    Key("on", EXPRESSION, "the event expression", required=True),
    Key("per", _PER, "evaluate for each value of these columns"),
    Key(
        "context",
        k.by_form("a context", one=k.choice(*Context, words=words.CONTEXT_WORDS), named=_SELECTION),
        "parameter context; default restricted for a composite expression, else unrestricted",
    ),
    Key("if", _CONDITION, "the condition"),
    Key("do", ACTIONS, "the actions; none: the rule only detects"),
    Key(
        "coupling",
        k.by_form(
            "a coupling mode or {condition: .., action: ..}",
            one=_MODE,
            named=k.record(
                "coupling",
                Key("condition", _MODE, "what the condition sees"),
                Key("action", _MODE, "when the actions run"),
            ),
        ),
        "immediate | deferred | detached; default deferred",
    ),
    Key("priority", k.integer(), "higher first; default 0"),
    Key(
        "retry",
        k.record(
            "retry",
            Key("attempts", k.integer(1, 1_000), "default 3"),
            Key("backoff", k.parsed("a pair of pauses", texts.backoff, "1s..1m"), "default 1s..1m"),
            like="{attempts: 3}",
        ),
        "how a failing action is tried again",
    ),
    Key("within", LENGTH_ABOVE_0, "contingency: how long the action may take"),
    Key("otherwise", ACTIONS, "contingency: what to do then"),
    Key("for_each", k.choice("firing"), "run the actions once per firing"),
    Key("enabled", k.FLAG, "default true"),
    Key("on_dead", k.choice("continue", "hold"), "what a dead entry does to its queue"),
    Key("precedes", _NAMES, "rules whose actions run after this one's"),
    Key("follows", _NAMES, "rules whose actions run before this one's"),
    Key("granularity", ANYTHING, "granularity of firings"),
    Key("throttle", ANYTHING, "at most so many firings in a time"),
    Key("cooldown", LENGTH_ABOVE_0, "silence after a firing"),
    Key("dedupe", ANYTHING, "drop firings that repeat"),
    Key("hysteresis", ANYTHING, "fire again only after a reset"),
    Key("ignore_own", k.FLAG, "do not react to what its own actions write"),
    Key("at_least_once", k.FLAG, "allow actions without a marker"),
    Key("expire_key_after", LENGTH_ABOVE_0, "forget a key that has been silent"),
    like="{on: placed ; paid, do: ..}",
    words=words.RULE_WORDS,
)

RULEBOOK = k.record(
    "a rulebook",
    Key("rulebook", k.text("a name", texts.NAME), "the rulebook's name", required=True),
    Key("timezone", ZONE, "for clock events and months; default UTC"),
    Key("tables", k.mapping(TABLE, texts.NAME, SQL_NAME), "names used in SQL"),
    Key("events", k.mapping(EVENT, _FREE_NAME, FREE_NAME), "event types"),
    Key("rules", k.mapping(RULE, _FREE_NAME, FREE_NAME), "the rules"),
    Key(
        "reads",
        k.listing(k.parsed("a table's full name", texts.full_name)),
        "what actions may read beside tables: [catalog.db.table]",
    ),
    Key(
        "samples",
        k.mapping(_sql("SELECT max(level) FROM tank"), texts.NAME, SQL_NAME),
        "samples of P and P*",
    ),
    Key("settings", SETTINGS, "limits"),
    words=words.RULEBOOK_WORDS,
)


def read_setting(name: str, text: str, report: Report) -> object:
    """One `--set name=text`, read as the key `name` of `settings:` would be."""
    place = word_place(f"--set {name}", f"settings.{name}")
    keys = {f.name for f in fields(Settings)}
    if name not in keys:
        hint = did_you_mean(name, keys)
        return report.add("unknown-key", f"unknown setting {name}", place, hint)
    return _limit(name).read(Scalar(place, text, ""), report)
