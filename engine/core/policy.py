"""What the operator allows: one file beside all rulebooks, never part of one (G27, G28, G29)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.rules.errors import InputError, Problem, word_place
from tidegate.rules.yaml import kinds as k
from tidegate.rules.yaml import scalars as s
from tidegate.rules.yaml.kinds import Key, Record, Report
from tidegate.rules.yaml.reader import read_yaml

VARIABLE = "TIDEGATE_POLICY"
UNMARKED = ("delete", "insert_overwrite")
_BYTES_MAX = 1_048_576
_DOTTED = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
_HOST = s.text("a host", r"((\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?")
_WEBHOOK_HOST = k.by_form(
    "a host, or {host: .., private: true}",
    one=_HOST,
    named=k.record(
        "a host",
        Key("host", _HOST, "name or address, also with a port", required=True),
        Key("private", s.FLAG, "whether its address may be one of this network or machine"),
    ),
)

_POLICY = k.record(
    "a policy",
    Key("functions", k.listing(s.text("a function", _DOTTED)), "SQL functions beside Spark's own"),
    Key("python", k.listing(s.text("a function", _DOTTED)), "pure Python functions"),
    Key("webhook_hosts", k.listing(_WEBHOOK_HOST), "hosts that webhooks may call"),
    Key(
        "at_least_once",
        k.listing(s.choice(*UNMARKED)),
        "statements without a marker that rules with `at_least_once: true` may run",
    ),
    Key(
        "inbox_keys",
        k.mapping(k.listing(s.text("a signal", r"[A-Za-z_]\w*"), 1), r"[\w-]+", "a key's name"),
        "signals that each key may raise",
    ),
    Key(
        "listen_keys",
        k.mapping(k.listing(s.text("a name", r"[A-Za-z_]\w*"), 1), r"[\w-]+", "a key's name"),
        "rules and signals that each key may wait for",
    ),
    Key(
        "monitor_keys",
        k.listing(s.text("a key's name", r"[\w-]+"), 1),
        "keys that may read /metrics, and by that alone nothing else",
    ),
)


@dataclass(frozen=True, slots=True)
class Policy:
    """`functions` are let in beside Spark's own, by the name they are called by; `webhook_hosts`
    may be called: true where their address may be private; `at_least_once` are the statements of
    `UNMARKED` that may run; `inbox_keys` are the signals that each
    key may raise, `listen_keys` the rules and signals that it may wait for, `monitor_keys` read
    figures. By default nothing is allowed."""

    functions: frozenset[str] = frozenset()
    python: frozenset[str] = frozenset()
    webhook_hosts: Mapping[str, bool] = field(default_factory=dict)
    at_least_once: frozenset[str] = frozenset()
    inbox_keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    listen_keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    monitor_keys: frozenset[str] = frozenset()


def load_policy(file: str | os.PathLike[str] | None) -> Policy:
    """The policy in `file`, by default in the one that TIDEGATE_POLICY names; the empty one where
    neither says a file. Raises InputError."""
    path = os.fspath(file) if file is not None else os.environ.get(VARIABLE, "")
    if not path:
        return Policy()
    try:
        with open(path, encoding="utf-8-sig") as stream:
            text = stream.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = f"name the policy's file by --policy or {VARIABLE}"
        problem = Problem("file", f"the policy cannot be read: {reason}", word_place(path), hint)
        raise InputError([problem]) from None
    return _read(text, path)


def _read(text: str, path: str) -> Policy:
    report = Report()
    node, refused = read_yaml(text, path, _BYTES_MAX, what="a policy", begin="functions: [..]")
    report.problems.extend(refused)
    top = _POLICY.read(node, report)
    if report.problems or not isinstance(top, Record):
        raise InputError(report.problems)
    return Policy(
        _names(top, "functions"),
        _names(top, "python"),
        dict(map(_webhook_host, top.get("webhook_hosts", ()))),
        _names(top, "at_least_once"),
        _keys(top, "inbox_keys"),
        _keys(top, "listen_keys"),
        _names(top, "monitor_keys"),
    )


def _names(top: Record, key: str) -> frozenset[str]:
    return frozenset(top.get(key, ()))


def _webhook_host(given: str | Record) -> tuple[str, bool]:
    if isinstance(given, str):
        return given, False
    return given.get("host"), given.get("private", False)


def _keys(top: Record, key: str) -> Mapping[str, frozenset[str]]:
    return {name: frozenset(allowed) for name, allowed in top.get(key, {}).items()}
