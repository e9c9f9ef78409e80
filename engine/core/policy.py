"""The policy: what the operator allows, in one file apart from all rulebooks (G27, G28, G29). And
the requests of webhooks, which the policy allows or refuses."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tidegate.engine.core.addresses import public
from tidegate.engine.core.signing import SECRET_CHARACTERS_MIN
from tidegate.rules.analysis.webhooks import host_of, secrets_of
from tidegate.rules.errors import InputError, Problem, word_place
from tidegate.rules.model import Rulebook, Webhook
from tidegate.rules.yaml import kinds as k
from tidegate.rules.yaml import scalars as s
from tidegate.rules.yaml.kinds import Key, Record, Report
from tidegate.rules.yaml.reader import read_yaml

VARIABLE = "TIDEGATE_POLICY"
UNMARKED = ("delete", "insert_overwrite")
VIEW, OPERATE = "view", "operate"  # what a key may do in the console
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


def _by_key(what: str) -> k.Kind:
    return k.mapping(k.listing(s.text(what, r"[A-Za-z_]\w*"), 1), r"[\w-]+", "a key's name")


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
    Key("inbox_keys", _by_key("a signal"), "signals that each key may raise"),
    Key("listen_keys", _by_key("a name"), "rules and signals that each key may wait for"),
    Key(
        "monitor_keys",
        k.listing(s.text("a key's name", r"[\w-]+"), 1),
        "keys that may read /metrics, and by that alone nothing else",
    ),
    Key(
        "console_keys",
        k.mapping(k.listing(s.choice(VIEW, OPERATE), 1), r"[\w-]+", "a key's name"),
        "what each key may do in the console: view, or operate, which includes it",
    ),
)


@dataclass(frozen=True, slots=True)
class Policy:
    """What is allowed, by default nothing.

    `functions`: SQL functions besides Spark's own, by name. `python`: pure Python functions.
    `webhook_hosts`: hosts that webhooks may call; true: also at a private address.
    `at_least_once`: the kinds of statements in `UNMARKED` that may run. `inbox_keys`: by key, the
    signals that it may raise. `listen_keys`: by key, the rules and signals that it may wait for.
    `monitor_keys`: the keys that may read the figures. `console_keys`: by key, what it may do in
    the console.
    """

    functions: frozenset[str] = frozenset()
    python: frozenset[str] = frozenset()
    webhook_hosts: Mapping[str, bool] = field(default_factory=dict)
    at_least_once: frozenset[str] = frozenset()
    inbox_keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    listen_keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    monitor_keys: frozenset[str] = frozenset()
    console_keys: Mapping[str, frozenset[str]] = field(default_factory=dict)


def load_policy(file: str | os.PathLike[str] | None) -> Policy:
    """The policy in `file`, or in the file that TIDEGATE_POLICY names; the empty policy if neither
    names one. Raises InputError."""
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
    names: dict[str, Any] = {
        key: frozenset(top.get(key, ()))
        for key in ("functions", "python", "at_least_once", "monitor_keys")
    }
    keys: dict[str, Any] = {
        key: {name: frozenset(allowed) for name, allowed in top.get(key, {}).items()}
        for key in ("inbox_keys", "listen_keys", "console_keys")
    }
    hosts = dict(map(_webhook_host, top.get("webhook_hosts", ())))
    return Policy(webhook_hosts=hosts, **names, **keys)


def _webhook_host(given: str | Record) -> tuple[str, bool]:
    if isinstance(given, str):
        return given, False
    return given.get("host"), given.get("private", False)


@dataclass(frozen=True, slots=True)
class Post:
    """One request. With a `secret` it is signed when it is sent."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    secret: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request. `error`: why it failed, without secrets and values of the user's
    tables; None: it is done. `lasting`: it would fail again. `after_seconds`: how long the receiver
    asked to wait before the next try. `sent`: False if the engine was stopped before it."""

    error: str | None = None
    lasting: bool = False
    after_seconds: float = 0
    sent: bool = True


class Poster(Protocol):
    """Sends requests. May be called from several threads at once."""

    def post(self, posts: Sequence[Post]) -> Sequence[Answer]:
        """Send each, in any order, several at a time; their answers, in the order given."""
        ...


def allowed(policy: Mapping[str, bool], url: str) -> bool | None:
    """Whether the host of a URL may have a private address; None if the host is not listed. An
    entry without a port allows the default port of the URL's scheme only."""
    host, port = host_of(url)
    scheme = url.partition(":")[0]
    found = None
    for entry, private in policy.items():
        name, listed = host_of(f"{scheme}://{entry}")
        fits = host.endswith(name[1:]) if name.startswith("*.") else host == name
        if fits and listed == port:
            found = found or private
    return found


def entry_of(url: str, *, private: bool) -> str:
    """The entry, as YAML, that lets the host of a URL be called."""
    host, port = host_of(url)
    shown = f"[{host}]" if ":" in host else host
    if port != (443 if url.startswith("https:") else 80):
        shown += f":{port}"
    if ":" in shown:
        shown = f'"{shown}"'
    return f"{{host: {shown}, private: true}}" if private else shown


def webhook_problems(
    book: Rulebook, policy: Policy, environment: Mapping[str, str] | None = None
) -> list[Problem]:
    """Hosts that the policy does not list, and unusable secrets. Without an `environment` secrets
    are not checked."""
    return [
        problem
        for rule in book.rules.values()
        for action in (*rule.reaction.actions, *rule.reaction.otherwise)
        if isinstance(action, Webhook)
        for problem in (*_host(action, policy), *_secrets(action, environment))
    ]


def _host(action: Webhook, policy: Policy) -> Iterator[Problem]:
    let, private = allowed(policy.webhook_hosts, action.url), _is_private(action.url)
    if let or (let is not None and not private):
        return
    named = entry_of(action.url, private=False)
    message = f"the policy does not let webhooks call {named}"
    if private:
        message += ", which is no address of the internet"
    entry = entry_of(action.url, private=private)
    hint = f"its operator writes webhook_hosts: [{entry}] into the file of --policy"
    yield Problem("webhook-host", message, action.place, hint)


def _is_private(url: str) -> bool:
    """Whether a URL names an address that is not public. A host name is only resolved when it is
    called."""
    host, _ = host_of(url)
    try:
        return not public(str(ipaddress.ip_address(host)))
    except ValueError:
        return False


def _secrets(action: Webhook, environment: Mapping[str, str] | None) -> Iterator[Problem]:
    if environment is None:
        return
    for name in secrets_of(action.secret, action.headers):
        why = secret_fault(name, environment, signs=name == action.secret)
        if why:
            hint = "set it where the engine is started, for example to what "
            hint += "`openssl rand -hex 32` prints, and give the receiver the same"
            yield Problem("webhook-secret", why, action.place, hint)


def secret_fault(name: str, environment: Mapping[str, str], *, signs: bool) -> str | None:
    """Why a variable cannot be used as a secret; None if it can. `signs`: it signs requests, and so
    must be long enough."""
    value = environment.get(name, "")
    if not value:
        return f"the variable {name} is not set"
    if signs and len(value) < SECRET_CHARACTERS_MIN:
        return f"the secret in {name} is shorter than {SECRET_CHARACTERS_MIN} characters"
    if not signs and not (value.isascii() and value.isprintable()):
        return f"the value of {name} cannot stand in a header: it is no line of printable ASCII"
    return None
