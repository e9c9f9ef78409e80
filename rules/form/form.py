"""The form of a rulebook: every key, its kind and its meaning. The one source of truth.

`rules.form.shape` reads rulebooks by it. Editors get it as JSON Schema: `rules/schema.json`, which
`python -m tidegate.rules.form.form` writes. A test fails while that file is stale.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import get_args

from tidegate.rules.analysis import webhooks
from tidegate.rules.errors import did_you_mean, word_place
from tidegate.rules.form import synonyms, texts
from tidegate.rules.form.assembly import WITHOUT_DEFAULT
from tidegate.rules.form.calendars import DAYS, HOLIDAYS
from tidegate.rules.form.events import EVENT, TABLE
from tidegate.rules.form.limits import LIMITS
from tidegate.rules.form.scripts import SCRIPT
from tidegate.rules.form.value_forms import (
    A_QUERY,
    AN_INSERT,
    ANYTHING,
    COLUMN,
    COLUMNS,
    DATES,
    FREE_NAME_PATTERN,
    KEYWORDS,
    LENGTH_ABOVE_0,
    NAME,
    SQL_NAME,
    SQL_VALUES,
    WHERE,
    ZONE,
    sql,
)
from tidegate.rules.form.windows import ON
from tidegate.rules.model import LATEST, Context, Coupling, Detect, Settings, Severity
from tidegate.rules.yaml import kinds as k
from tidegate.rules.yaml import scalars as s
from tidegate.rules.yaml.json_schema import Schema, either, schema_file
from tidegate.rules.yaml.kinds import BAD, Key, Kind, Report
from tidegate.rules.yaml.reader import Items, Node, Scalar

_MAY_BE_ZERO = {
    "actions_in_parallel_max",
    "commit_slack_ms",
    "firings_per_rule_per_minute_max",
    "spark_restarts_max",
    "skew_max_seconds",
}


def _setting(name: str) -> Kind:
    if name == "detect":
        return s.choice(*get_args(Detect))
    if name == "state_path":
        what = "an absolute path, a URI, or store"
        return s.text(what, r"store|/.+|(?:file|s3|gs|abfss?|hdfs)://[^?#]+", "/data/state")
    return s.integer(0 if name in _MAY_BE_ZERO else 1)


SETTINGS = k.record(
    "settings",
    *(Key(f.name, _setting(f.name), LIMITS[f.name]) for f in fields(Settings)),
    like="{bucket_rows_max: 100000}",
)


_SIGNAL = k.by_form(
    "the name of a signal event, or {name: {field: expression}}",
    one=NAME,
    named=k.mapping(SQL_VALUES, texts.NAME, "the name of an event", single=True),
    like="late_order, or {late_order: {order_id: order_id}}",
)
_SECRET = s.text("a variable named TIDEGATE_SECRET_..", webhooks.VARIABLE, "TIDEGATE_SECRET_OPS")
_HEADER = s.parsed("a header's value", webhooks.header, "Bearer ${TIDEGATE_SECRET_OPS}")
_WEBHOOK = k.record(
    "a webhook",
    Key("url", s.parsed("a URL", webhooks.url, webhooks.A_URL), "literal", required=True),
    Key("secret", _SECRET, "environment variable with the signing secret"),
    Key(
        "headers",
        k.mapping(_HEADER, webhooks.HEADER, "a header"),
        "further headers; ${TIDEGATE_SECRET_X} stands for that variable's value",
    ),
    Key("body", SQL_VALUES, "fields of the JSON body, as expressions"),
    like=f"{{url: {webhooks.A_URL}}}",
)
_AN_ACTION = f"{{sql: {AN_INSERT}}}, or {{signal: late_order}}"
_NAMED_ACTION = k.with_node(
    k.by_key(
        "an action",
        k.variants(
            "an action",
            (
                Key("sql", sql(AN_INSERT), "one INSERT, MERGE or UPDATE that reads event"),
                Key("signal", _SIGNAL, "raise an event, one a firing"),
                Key("webhook", _WEBHOOK, "POST, at least once"),
                Key("enable", NAME, "enable a rule"),
                Key("disable", NAME, "disable a rule"),
            ),
        ),
        like=_AN_ACTION,
        several="a list has each on a line of its own, behind a dash",
        words=synonyms.ACTION_WORDS,
    )
)


_TEXT_ACTION = k.short("sql", _NAMED_ACTION, sql().schema, _AN_ACTION)
ACTION = k.by_form("an action", one=_TEXT_ACTION, named=_NAMED_ACTION)
_REFERENCE: Schema = {"$ref": "#/$defs/action"}
_LISTED = k.listing(replace(ACTION, schema=_REFERENCE))


def _actions(node: Node, report: Report) -> object:
    """A list of actions, or one alone."""
    if isinstance(node, Items):
        return _LISTED.read(node, report)
    if isinstance(node, Scalar) and not node.text.strip():
        hint = f"write {AN_INSERT}; without actions leave the key out: the rule only detects"
        return report.add("type", "expected actions, found nothing", node.place, hint)
    value = ACTION.read(node, report)
    return BAD if value is BAD else (value,)


ACTIONS = Kind(
    _actions, either([({"type": "array"}, _LISTED.schema), ({}, _REFERENCE)]), _AN_ACTION
)

_ONE_OF_THREE = s.choice("first", "last", "all")
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
    Key("pairs", s.choice("unique", "all"), "with the next run only, or every later one"),
    Key("repeat", s.FLAG, "re-apply until nothing matches"),
    Key("evaluate", s.choice("early", "at_end"), "at once, or at the end of the within span"),
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
    one=sql("count(*) > 3"),
    named=k.record(
        "a condition",
        Key("sql", sql(A_QUERY), "a query of the firing_ids that hold", required=True),
    ),
    like="count(*) > 3, or {sql: SELECT firing_id FROM event ..}",
)
_RATE = s.parsed("a rate", texts.rate, "3 per 1 h")
_DEDUPE = k.record(
    "dedupe",
    Key(
        "by",
        COLUMNS,
        "columns of what the rule sees, alike in firings that repeat",
        required=True,
    ),
    Key("within", LENGTH_ABOVE_0, "how long a firing is remembered", required=True),
    like="{by: [host], within: 1 d}",
)
_HYSTERESIS = k.record(
    "hysteresis",
    Key("fire", sql("max(level) > 80"), "when a firing passes", required=True),
    Key("rearm", sql("max(level) < 70"), "what must have held before the next", required=True),
    like="{fire: max(level) > 80, rearm: max(level) < 70}",
)
_LABELS = k.mapping(
    s.text("a label's value", like="fraud"), texts.NAME, "a label's name", like="{team: fraud}"
)
_SEVERITY = s.choice(*Severity, words=synonyms.SEVERITY_WORDS)
_MODE = s.choice(*Coupling, words=synonyms.COUPLING_WORDS)
_NAMES = k.one_or_many("a rule or a list of rules", NAME)
_RULE_KEYS = (
    Key("on", ON, "the event expression, or a window", required=True),
    Key("per", _PER, "evaluate for each value of these columns"),
    Key(
        "context",
        k.by_form(
            "a context",
            one=s.choice(*Context, LATEST, words=synonyms.CONTEXT_WORDS),
            named=_SELECTION,
        ),
        "parameter context; default restricted (latest) for a composite expression, else"
        " unrestricted",
    ),
    Key("description", s.text(), "what it is for; its firings carry it"),
    Key("labels", _LABELS, "{team: fraud}; its firings carry them"),
    Key("severity", _SEVERITY, "info | warning | error | critical; its firings carry it"),
    Key("where", WHERE, "a condition between constituents, before the context chooses"),
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
    Key("days", DAYS, "days of the week that are business days; default mon-fri"),
    Key("except", DATES, "dates that are no business days"),
    Key("holidays", HOLIDAYS, "as DE-BE: holidays of a country, or a part of it, are none either"),
    Key("priority", s.integer(), "higher first; default 0"),
    Key(
        "retry",
        k.record(
            "retry",
            Key("attempts", s.integer(1, 1_000), "default 3"),
            Key("backoff", s.parsed("a pair of pauses", texts.backoff, "1s..1m"), "default 1s..1m"),
            like="{attempts: 3}",
        ),
        "how a failing action is tried again",
    ),
    Key("within", LENGTH_ABOVE_0, "contingency: how long the action may take"),
    Key("otherwise", ACTIONS, "contingency: what to do then"),
    Key("for_each", s.choice("firing"), "run the actions once per firing"),
    Key("enabled", s.FLAG, "default true"),
    Key("on_dead", s.choice("continue", "hold"), "what a dead entry does to its queue"),
    Key("precedes", _NAMES, "rules whose actions run after this one's"),
    Key("follows", _NAMES, "rules whose actions run before this one's"),
    Key("granularity", ANYTHING, "granularity of firings"),
    Key("throttle", _RATE, "at most so many firings of a key in a time"),
    Key("cooldown", LENGTH_ABOVE_0, "silence of a key after a firing"),
    Key("dedupe", _DEDUPE, "drop firings of a key that repeat"),
    Key("hysteresis", _HYSTERESIS, "fire again only after a reset of the key"),
    Key("ignore_own", s.FLAG, "do not react to what its own actions write"),
    Key("mode", s.choice("live", "dry"), "dry: all but the actions; default live"),
    Key("disabled_for", k.listing(ANYTHING), "keys for which the rule does not fire"),
    Key("net", s.choice("firing", "bucket"), "what transition tables sum up; default firing"),
    Key("at_least_once", s.FLAG, "let in actions without a marker, which may be repeated"),
    Key("expire_key_after", LENGTH_ABOVE_0, "forget a key that has been silent"),
)
RULE = k.record(
    "a rule", *_RULE_KEYS, like="{on: placed ; paid, do: ..}", words=synonyms.RULE_WORDS
)

DEFAULTS = k.record(
    "defaults",
    *(key for key in _RULE_KEYS if key.name not in WITHOUT_DEFAULT),
    like="{severity: warning, retry: {attempts: 5}}",
    words=synonyms.RULE_WORDS,
)
_VARS = k.mapping(
    s.scalar("a value", {"type": ["string", "number", "boolean"]}, lambda node, _: node.text),
    texts.NAME,
    "a variable",
    like="{floor: 100}",
)
_INCLUDE = k.one_or_many("a file or a list of files", s.text("a file", like="tables.yaml"))

RULEBOOK = k.record(
    "a rulebook",
    Key("rulebook", s.text("a name", texts.NAME), "the rulebook's name", required=True),
    Key("timezone", ZONE, "for clock events and months; default UTC"),
    Key("tables", k.mapping(TABLE, texts.NAME, SQL_NAME), "names used in SQL"),
    Key("events", k.mapping(EVENT, FREE_NAME_PATTERN, SQL_NAME, keywords=KEYWORDS), "event types"),
    Key("scripts", k.mapping(SCRIPT, texts.NAME, SQL_NAME), "event scripts"),
    Key("rules", k.mapping(RULE, FREE_NAME_PATTERN, SQL_NAME, keywords=KEYWORDS), "the rules"),
    Key(
        "reads",
        k.listing(s.parsed("a table's full name", texts.full_name)),
        "what actions may read beside tables: [catalog.db.table]",
    ),
    Key(
        "samples",
        k.mapping(sql("SELECT max(level) FROM tank"), texts.NAME, SQL_NAME),
        "samples of P and P*",
    ),
    Key(
        "cycles",
        k.listing(k.with_node(k.listing(NAME, 1))),
        "rules that trigger each other on purpose: [[a, b]]; not warned of",
    ),
    Key("settings", SETTINGS, "limits, each with its unit in its name"),
    Key("vars", _VARS, "values, of which ${name} stands for one in texts"),
    Key("defaults", DEFAULTS, "keys of rules that do not have them"),
    Key("include", _INCLUDE, "files whose tables, events, rules, .. are this rulebook's, too"),
    words=synonyms.RULEBOOK_WORDS,
)


def read_setting(name: str, text: str, report: Report) -> object:
    """One `--set name=text`, read as the key `name` of `settings:` would be."""
    place = word_place(f"--set {name}", f"settings.{name}")
    if name not in SETTINGS.names:
        hint = did_you_mean(name, SETTINGS.names)
        return report.add("unknown-key", f"unknown setting {name}", place, hint)
    return _setting(name).read(Scalar(place, text, ""), report)


FILE = Path(__file__).parents[1] / "schema.json"


def schema_text() -> str:
    """The schema as JSON text, as `schema.json` should hold it."""
    doc = "Tables, events, scripts and rules: which changes matter, and what to do about them."
    return schema_file("rulebook", doc, RULEBOOK.schema, {"action": ACTION.schema})


if __name__ == "__main__":
    FILE.write_text(schema_text(), encoding="utf-8")
