"""Authenticates requests: by a bearer token, or by a signature over the request (G28, G29)."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.requests import Request

from tidegate.connectors.http.refusal import Refusal
from tidegate.engine.core.policy import OPERATE, VIEW, Policy
from tidegate.engine.core.signing import SECRET_CHARACTERS_MIN, SIGNATURE, signed
from tidegate.rules.errors import EngineError

_PART = re.compile(r"t=(\d{1,12})|v2=([0-9a-f]{64})")
_PARTS_MAX = 10
_HOST = re.compile(r"\A\[?([^\]]*?)\]?(:[0-9]*)?\Z")


@dataclass(frozen=True, slots=True)
class Key:
    """A client of the policy. `raises`: signals that it may raise. `hears`: rules and signals that
    it may listen to. None: all of them. `console`: what it may do there. `token`: a digest of its
    secret."""

    name: str
    raises: frozenset[str] | None = None
    hears: frozenset[str] | None = None
    console: frozenset[str] = frozenset()
    secret: bytes = field(default=b"", repr=False)
    token: bytes = field(default=b"", repr=False)

    @property
    def only_monitors(self) -> bool:
        """Whether it may only read figures."""
        return self.raises == self.hears == frozenset()


ANYBODY = Key("", console=frozenset({VIEW}))


def variable(name: str) -> str:
    """The environment variable that holds a key's secret."""
    return f"TIDEGATE_SECRET_{name.upper().replace('-', '_')}"


def load_keys(policy: Policy, environment: Mapping[str, str] = os.environ) -> tuple[Key, ...]:
    """The keys of a policy with their secrets. Raises EngineError `inbox-secret`."""
    listed = (policy.inbox_keys, policy.listen_keys, policy.monitor_keys, policy.console_keys)
    names = sorted({name for some in listed for name in some})
    secrets: dict[str, str] = {}
    keys = []
    for name in names:
        secret = environment.get(variable(name), "")
        if len(secret) < SECRET_CHARACTERS_MIN:
            what = "shorter than 16 characters" if secret else "not set"
            hint = f"set {variable(name)}, for example to what `openssl rand -hex 32` prints"
            raise EngineError("inbox-secret", f"the secret of inbox key {name} is {what}", hint)
        if secret in secrets:
            message = f"inbox keys {secrets[secret]} and {name} have one secret"
            raise EngineError("inbox-secret", message, "give each key a secret of its own")
        secrets[secret] = name
        raises = policy.inbox_keys.get(name, frozenset())
        hears = policy.listen_keys.get(name, frozenset())
        console = policy.console_keys.get(name, frozenset())
        if OPERATE in console:
            console |= {VIEW}
        own = secret.encode()
        keys.append(Key(name, raises, hears, console, own, _digest(own)))
    return tuple(keys)


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets in requests that prove one of the `keys`. Without keys, every program on this machine is
    let in. A browser is such a program: the request must name this machine as its host, which a web
    page from elsewhere cannot forge."""

    keys: Sequence[Key]
    window_seconds: int
    clock: Callable[[], float] = time.time

    def admit(self, request: Request, body: bytes | None = None) -> Key | None:
        """The key of the client. None: the request is signed, and `body` is needed to check that.
        Raises Refusal 401, or 403 for a foreign host."""
        self.check_host(request)
        if not self.keys:
            return ANYBODY
        if SIGNATURE in request.headers:
            return None if body is None else self._signer(request, body)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        secret = token.strip(" ").encode("latin-1")  # 0xA0 may be of a letter
        if scheme.lower() == "bearer" and (key := self.owner(secret)):
            return key
        raise _unknown()

    def owner(self, secret: bytes) -> Key | None:
        """The key whose secret this is."""
        given = _digest(secret)
        return self._first(lambda key: hmac.compare_digest(key.token, given))

    def check_host(self, request: Request) -> None:
        """Raises Refusal where no key is asked for, and the request names another machine; and
        where it names two: who stands between may go by the other one."""
        if len(request.headers.getlist("host")) > 1:
            raise Refusal(400, "bad-request", "the request has two headers Host", "send one")
        if not self.keys and not _is_loopback(_HOST.sub(r"\1", request.headers.get("host", ""))):
            hint = "call it by 127.0.0.1 or localhost"
            raise Refusal(403, "foreign-host", "this inbox is called by another name", hint)

    def _signer(self, request: Request, body: bytes) -> Key:
        given_parts = request.headers[SIGNATURE].split(",")[:_PARTS_MAX]
        parts = [_PART.fullmatch(part.strip()) for part in given_parts]
        times = {part[1] for part in parts if part and part[1]}
        given = [bytes.fromhex(part[2]) for part in parts if part and part[2]]
        if len(times) != 1:
            raise _unknown()
        (at,) = times
        if abs(self.clock() - int(at)) > self.window_seconds:
            message = f"the signature's time is more than {self.window_seconds} s from now"
            hint = "sign each request when it is sent, by a clock that is right"
            raise _unknown(message, hint)

        method, target = request.method.encode(), _target(request)

        def has_signed(key: Key) -> bool:
            own = signed(key.secret, at.encode(), method, target, body)
            return any([hmac.compare_digest(own, one) for one in given])  # noqa: C419, all of them

        if key := self._first(has_signed):
            return key
        raise _unknown()

    def _first(self, fits: Callable[[Key], bool]) -> Key | None:
        """The first key that fits. All are compared, so that the time taken tells nothing."""
        found = [key for key in self.keys if fits(key)]
        return found[0] if found else None


def _unknown(
    message: str = "no known key has sent this request",
    hint: str = "send `Authorization: Bearer SECRET`, or X-Tidegate-Signature: t=SECONDS,v2=HEX",
) -> Refusal:
    headers = {"www-authenticate": "Bearer"}
    return Refusal(401, "unauthorised", message, hint, headers=headers, close=True)


def _target(request: Request) -> bytes:
    """The path of a request, not decoded, with its query."""
    path, query = request.scope["raw_path"], request.scope["query_string"]
    return b"%s?%s" % (path, query) if query else bytes(path)


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
