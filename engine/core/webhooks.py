"""Requests of webhooks, what came of them, and to where they may go (G29)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tidegate.engine.core.addresses import public
from tidegate.engine.core.policy import Policy
from tidegate.engine.core.signing import SECRET_CHARACTERS_MIN
from tidegate.rules.analysis.webhooks import host_of, secrets_of
from tidegate.rules.errors import Problem
from tidegate.rules.model import Rulebook, Webhook


@dataclass(frozen=True, slots=True)
class Post:
    """One request. With a `secret` it is signed when it is sent."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    secret: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request: `error` says why it is not done, without a secret or a value of the
    user's tables; `lasting`: it would fail again; `after_seconds`: when it may be sent again, as
    the other side asked."""

    error: str | None = None
    lasting: bool = False
    after_seconds: float = 0


class Poster(Protocol):
    """Sends requests. May be called from several threads at once."""

    def post(self, posts: Sequence[Post]) -> Sequence[Answer]:
        """Send each, in any order, several at a time; their answers, in the order given."""
        ...


def allowed(policy: Mapping[str, bool], url: str) -> bool | None:
    """Whether the host of a URL may have a private address; None where it is not listed. A host
    without a port is listed for that of its scheme alone."""
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
    """What a policy lists, as YAML, so that the host of a URL may be called."""
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
    """Hosts that the policy does not list, and secrets that are not in the environment, if one is
    given."""
    return [
        problem
        for rule in book.rules.values()
        for action in (*rule.actions, *rule.otherwise)
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
    """Whether a URL names an address that is not one of the internet. What a name is resolved to
    is only known when it is called."""
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
    """Why a variable cannot be used; None where it can. One that signs is long enough."""
    value = environment.get(name, "")
    if not value:
        return f"the variable {name} is not set"
    if signs and len(value) < SECRET_CHARACTERS_MIN:
        return f"the secret in {name} is shorter than {SECRET_CHARACTERS_MIN} characters"
    if not signs and not (value.isascii() and value.isprintable()):
        return f"the value of {name} cannot stand in a header: it is no line of printable ASCII"
    return None
