"""The form of a rulebook's event scripts (see `rules.form.form`)."""

from __future__ import annotations

from tidegate.rules.form import synonyms, texts
from tidegate.rules.form.value_forms import COLUMN, COLUMNS, LENGTH_ABOVE_0, NAME
from tidegate.rules.yaml import kinds as k
from tidegate.rules.yaml import scalars as s
from tidegate.rules.yaml.kinds import Key

ERROR = "$error"  # the output that every script has
_INPUT = k.record(
    "an input",
    Key("event", NAME, "the event type, rule or script output; default of the input's name"),
    Key("value", COLUMN, "the column of an input of one value; default value, or the only one"),
    Key("order_by", COLUMNS, "the order of occurrences at one instant"),
    like="{event: reading, value: celsius}",
)


_A_NAME = k.short("event", _INPUT, NAME.schema, "reading")
_KEYS = (
    Key(
        "in",
        k.mapping(k.by_form("an input", one=_A_NAME, named=_INPUT), texts.NAME, "an input"),
        "inputs whose name or order differ: {Use: use}, or {Use: {event: use, value: count}}",
    ),
    Key(
        "out",
        k.mapping(NAME, rf"{texts.NAME}|\{ERROR}", "an output", like="warm: got_warm"),
        "names of the event types that outputs are; $error: faults, an event type only if named",
    ),
    Key("machine", s.choice("auto", "dfa", "hierarchical"), "how it is run; default auto"),
    Key("on_error", s.choice("ignore", "log", "stop"), "what a fault does; default log"),
    Key("expire_key_after", LENGTH_ABOVE_0, "forget an instance so long after its last event"),
    Key("enabled", s.FLAG, "default true"),
)
_A_SCRIPT = "{file: heating.es}"
_SCRIPTS = (
    Key("file", s.text("a path"), "file of the script"),
    Key("text", k.with_node(s.text("an event script")), "the script"),
)
SCRIPT = k.by_key(
    "a script",
    k.variants("a script", _SCRIPTS, *_KEYS, like=_A_SCRIPT, words=synonyms.SCRIPT_WORDS),
    like=_A_SCRIPT,
    words=synonyms.SCRIPT_WORDS,
)
