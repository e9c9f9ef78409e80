"""The form of a rulebook's tables and events (see `rules.form.form`)."""

from __future__ import annotations

from tidegate.rules.form import synonyms, texts
from tidegate.rules.form.calendars import DAYS, HOLIDAYS
from tidegate.rules.form.value_forms import (
    COLUMN,
    COLUMNS,
    DATES,
    INSTANT,
    LENGTH,
    NAME,
    ZONE,
    sql,
)
from tidegate.rules.model import Change
from tidegate.rules.sql.types import sql_type
from tidegate.rules.yaml import kinds as k
from tidegate.rules.yaml import scalars as s
from tidegate.rules.yaml.kinds import Key

_SOME_START = "{version: 7}, {time: 2026-01-01T00:00:00Z}"
_START = k.by_form(
    "now, earliest, snapshot, {version: n} or {time: t}",
    one=s.choice("now", "earliest", "snapshot", words=synonyms.START_WORDS, like=_SOME_START),
    named=k.by_key(
        "a start",
        k.variants(
            "a start",
            (
                Key("version", s.integer(0), "first version to read"),
                Key("time", INSTANT, "first instant to read"),
            ),
        ),
    ),
)
_TABLE_KEYS = (
    Key("key", COLUMNS, "columns that identify a row; needed for update events"),
    Key("start", _START, "now | earliest | snapshot | {version: 7} | {time: ..}; default now"),
    Key("on_restore", s.choice("stop", "changes", "skip"), "what a RESTORE does; default stop"),
    Key("on_unpaired", s.choice("stop", "delete_insert"), "updates whose images do not pair"),
)
_A_TABLE = "{path: /lake/orders, key: [id]}"
_TABLES = (
    Key("path", s.text("a path"), "folder of the table, or any URI"),
    Key("table", s.text("a catalog name"), "name in the catalog"),
)
TABLE = k.by_key(
    "a table",
    k.variants("a table", _TABLES, *_TABLE_KEYS, like=_A_TABLE, words=synonyms.TABLE_WORDS),
    like=_A_TABLE,
    words=synonyms.TABLE_WORDS,
)

_SEVERAL = "change, for any of insert, update, delete; else an event type for each"
_CHANGE = s.choice(*Change, words=synonyms.CHANGE_WORDS, like=_SEVERAL)
_WHERE = sql("kind = 'withdraw'")
_TABLE_EVENT = k.record(
    "a table event",
    Key("on", _CHANGE, "insert | update | delete | change | transaction | commit", required=True),
    Key("table", NAME, "a name of tables:", required=True),
    Key("of", COLUMNS, "update: one of these columns changed"),
    Key("where", _WHERE, "Spark SQL over the row; on update also old.x, new.x"),
    Key("time", COLUMN, "column with the event time; default the commit's instant"),
    Key("lateness", LENGTH, "how late a row may be, with time:"),
    Key("ahead", LENGTH, "how far ahead of its commit a row may be, with time:; default 1 h"),
    Key(
        "columns",
        k.listing(s.parsed("a column", texts.column), 1),
        "parameters: [a, b as c], or [*, b as c]: all others, too",
    ),
    words=synonyms.EVENT_WORDS,
)
_SOME_FIELDS = "{order_id: bigint}, or {} for none"
_SIGNAL_EVENT = k.record(
    "a signal event",
    Key(
        "signal",
        k.mapping(
            s.parsed("a type", sql_type, "bigint"), texts.NAME, "a field name", like=_SOME_FIELDS
        ),
        "fields with their Spark SQL types",
        required=True,
    ),
    Key("where", _WHERE, "Spark SQL over the fields"),
    Key("from_table", NAME, "a table whose inserted rows raise it"),
    words={key: word for key, word in synonyms.EVENT_WORDS.items() if word == "signal"},
)
_CLOCK_KEYS = (
    Key("days", DAYS, "mon-fri, or [sat, sun]; default every day"),
    Key("except", DATES, "dates on which it does not happen"),
    Key(
        "holidays",
        HOLIDAYS,
        "a country or a part of it, as DE-BE: its holidays are such dates too",
    ),
    Key("timezone", ZONE, "default the rulebook's"),
    Key(
        "misfire",
        s.choice("fire_all", "fire_last", "skip"),
        "what was missed while the engine was down; default fire_all",
    ),
)
_ABSOLUTE = s.parsed("a clock literal", texts.absolute, '"<(08:00:00)*/*/*>", or 08:00')
_CRON = s.parsed("a cron line", texts.cron_line, '"0 17 * * mon-fri"')
_CLOCKS = (Key("at", _ABSOLUTE, "<(hh:mm:ss)mm/dd/yyyy>"), Key("cron", _CRON, "a Vixie cron line"))
EVENT = k.by_key(
    "an event type",
    {
        "on": _TABLE_EVENT,
        "signal": _SIGNAL_EVENT,
        **k.variants("a clock event", _CLOCKS, *_CLOCK_KEYS, words=synonyms.EVENT_WORDS),
    },
    like="{on: insert, table: orders} or {signal: {order_id: bigint}}",
    words=synonyms.EVENT_WORDS,
)
