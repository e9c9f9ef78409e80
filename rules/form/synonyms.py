"""Synonyms: words that people write for a key or a word of the language, each with that word."""

from __future__ import annotations

import re
from collections.abc import Callable

from tidegate.rules.expressions.durations import duration_micros

_MINUTE = 60_000_000


def _lasting(value: str) -> str:
    """The hint for `for: 10m`."""
    length = value or "10 min"
    return f"what must last is said in `on`: {{holds: raised, until: cleared, for: {length}}}"


def _silenced(value: str) -> str:
    """The hint for `inhibited_by: down`."""
    by = value if re.fullmatch(r"[A-Za-z_]\w*", value, re.ASCII) else "down"
    return f"what silences it is said in `on`: slow without during({by}, slow, [10 min])"


def _gathered(value: str) -> str:
    """The hint for `group_wait: 15m`."""
    return f"what is gathered is said in `on`: {{window: {value or '15 min'}, of: alert}}"


def _beside(_: str) -> str:
    """The hint for what is no part of a window: `{window: 5 min, of: req, per: host}`."""
    return "it stands in the rule, beside on:"


def _rhythm(value: str) -> str:
    """The hint for `every: 5 min`: a cron line."""
    try:
        minutes, rest = divmod(duration_micros(re.sub(r"\bdays?\b", "d", value)), _MINUTE)
    except ValueError:
        minutes, rest = 5, 0
    lines = [
        *((n, f"*/{n} * * * *") for n in range(2, 31) if 60 % n == 0),
        *((60 * n, f"0 */{n} * * *") for n in range(2, 13) if 24 % n == 0),
        (1, "* * * * *"),
        (60, "0 * * * *"),
        (24 * 60, "0 0 * * *"),
        (7 * 24 * 60, "0 0 * * mon"),
    ]
    line = dict(lines).get(minutes if not rest else 0, "*/5 * * * *")
    return f'an event that comes again and again is a cron line: cron: "{line}"'


RULEBOOK_WORDS = {
    **dict.fromkeys(("name", "book", "id"), "rulebook"),
    **dict.fromkeys(("tz", "zone", "time_zone"), "timezone"),
    **dict.fromkeys(("sources", "source", "lake"), "tables"),
    **dict.fromkeys(("signals", "triggers"), "events"),
    **dict.fromkeys(("script", "eventscript", "eventscripts", "programs"), "scripts"),
    **dict.fromkeys(("limits", "config", "options"), "settings"),
}
TABLE_WORDS = {
    **dict.fromkeys(("location", "uri", "url", "file", "delta"), "path"),
    **dict.fromkeys(("name", "catalog"), "table"),
    **dict.fromkeys(("keys", "primary_key", "pk", "id", "columns"), "key"),
    **dict.fromkeys(("from", "since", "version"), "start"),
}
EVENT_WORDS: dict[str, str | tuple[str, ...] | Callable[[str], str]] = {
    **dict.fromkeys(("every", "interval", "period"), _rhythm),
    **dict.fromkeys(("type", "change", "operation", "kind"), "on"),
    **dict.fromkeys(("if", "when", "filter", "condition", "having"), "where"),
    **dict.fromkeys(("source", "from", "path"), "table"),
    **dict.fromkeys(("fields", "parameters", "schema"), "signal"),
    **dict.fromkeys(("schedule", "crontab"), "cron"),
    **dict.fromkeys(("clock", "daily"), "at"),
    **dict.fromkeys(("timestamp", "event_time"), "time"),
    **dict.fromkeys(("watermark", "delay"), "lateness"),
    **dict.fromkeys(("tz", "zone", "time_zone"), "timezone"),
}
SCRIPT_WORDS = {
    **dict.fromkeys(("path", "source"), "file"),
    **dict.fromkeys(("script", "program", "code"), "text"),
    **dict.fromkeys(("inputs", "events", "from"), "in"),
    **dict.fromkeys(("outputs", "emits", "to"), "out"),
    **dict.fromkeys(("errors", "on_fault"), "on_error"),
    **dict.fromkeys(("active", "disabled"), "enabled"),
}
RULE_WORDS: dict[str, str | tuple[str, ...] | Callable[[str], str]] = {
    "when": ("on", "if"),
    **dict.fromkeys(("condition", "conditions", "having", "filter"), "if"),
    **dict.fromkeys(("then", "action", "actions", "execute", "run", "sql"), "do"),
    **dict.fromkeys(("key", "keys", "by", "group_by", "partition_by"), "per"),
    "for": _lasting,
    **dict.fromkeys(("group_wait", "group_interval", "batch", "window"), _gathered),
    **dict.fromkeys(("inhibited_by", "inhibit", "inhibits", "unless", "silenced_by"), _silenced),
    **dict.fromkeys(("event", "events", "pattern", "expression", "trigger", "match"), "on"),
    **dict.fromkeys(("policy", "mode", "consumption"), "context"),
    **dict.fromkeys(("retries", "attempts"), "retry"),
    **dict.fromkeys(("else", "fallback"), "otherwise"),
    **dict.fromkeys(("active", "disabled"), "enabled"),
    **dict.fromkeys(("debounce", "silence", "mute", "suppress"), "cooldown"),
    **dict.fromkeys(("rate_limit", "ratelimit", "limit"), "throttle"),
    **dict.fromkeys(("desc", "summary", "comment", "note", "doc"), "description"),
    **dict.fromkeys(("tags", "annotations", "metadata"), "labels"),
    **dict.fromkeys(("level", "urgency", "importance"), "severity"),
    **dict.fromkeys(("deduplicate", "distinct", "unique"), "dedupe"),
}
WINDOW_WORDS: dict[str, str | tuple[str, ...] | Callable[[str], str]] = {
    **dict.fromkeys(("per", "if", "do", "cooldown", "severity", "having"), _beside),
    **dict.fromkeys(("tumbling", "tumble", "length", "size", "within"), "window"),
    **dict.fromkeys(("slide", "sliding", "hop", "advance", "step"), "every"),
    **dict.fromkeys(("gap", "timeout", "idle"), "session"),
    **dict.fromkeys(("on", "events", "event", "from", "rows"), "of"),
    **dict.fromkeys(("begin", "raised", "start"), "holds"),
    **dict.fromkeys(("end", "cleared", "stop"), "until"),
    **dict.fromkeys(("lasting", "pending"), "for"),
    **dict.fromkeys(("keep_firing_for", "keep_for"), "keep"),
}
CROSSING_WORDS = WINDOW_WORDS | {
    **dict.fromkeys(("if", "when", "above", "having"), "fire"),
    **dict.fromkeys(("reset", "below", "clear"), "rearm"),
}
ACTION_WORDS = {
    **dict.fromkeys(("insert", "merge", "update", "query", "statement", "spark_sql"), "sql"),
    **dict.fromkeys(("raise", "emit", "send", "publish", "event", "notify"), "signal"),
    **dict.fromkeys(("http", "post", "url", "call"), "webhook"),
}
CHANGE_WORDS = {
    **dict.fromkeys(("append", "added", "new", "create", "created", "write"), "insert"),
    **dict.fromkeys(("upsert", "any", "all", "modify"), "change"),
    **dict.fromkeys(("remove", "removed"), "delete"),
    "load": "transaction",
    **dict.fromkeys(("alter", "optimize", "schema"), "commit"),
}
CONTEXT_WORDS = {
    **dict.fromkeys(("last", "newest"), "latest"),
    **dict.fromkeys(("fifo", "oldest", "first", "chronological"), "chronicle"),
    **dict.fromkeys(("all", "any", "general"), "unrestricted"),
    **dict.fromkeys(("sliding", "each"), "continuous"),
    **dict.fromkeys(("batch", "together"), "cumulative"),
    **dict.fromkeys(("default", "regular"), "restricted"),
}
SEVERITY_WORDS = {
    **dict.fromkeys(("low", "notice", "debug", "none"), "info"),
    **dict.fromkeys(("warn", "medium", "minor", "moderate"), "warning"),
    **dict.fromkeys(("high", "err", "major"), "error"),
    **dict.fromkeys(("crit", "fatal", "page", "emergency", "alert", "severe"), "critical"),
}
COUPLING_WORDS = {
    **dict.fromkeys(("async", "asynchronous", "separate", "decoupled"), "detached"),
    **dict.fromkeys(("sync", "now"), "immediate"),
}
START_WORDS = {
    **dict.fromkeys(("beginning", "begin", "first", "oldest", "all", "start"), "earliest"),
    **dict.fromkeys(("latest", "end", "head", "newest", "current"), "now"),
    **dict.fromkeys(("existing", "initial"), "snapshot"),
}
