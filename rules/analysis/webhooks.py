"""What a webhook may say: its URL, its headers, the fields of its body (G29)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from tidegate.rules.model import Webhook
from tidegate.rules.yaml.kinds import Report

VARIABLE = r"TIDEGATE_SECRET_[A-Z0-9_]+"
A_URL = "https://ops.example.org/alarm"
HEADER = r"[A-Za-z0-9-]+"
ENVELOPE = ("firing_id", "rule", "detected_at", "key")
"""What every body says of its firing."""

_HOST = r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:.]+\]"
_URL = re.compile(
    rf"(https?)://({_HOST})(?::([0-9]{{1,5}}))?(?:[/?][\w.~:/?@!$&'()*+,;=%-]*)?", re.A
)
_LOOPBACK = re.compile(r"localhost|127(?:\.[0-9]{1,3}){3}|\[::1\]")
_REFERENCE = re.compile(r"\$\{([^}]*)\}")
# fmt: off
_OWN_HEADERS = {
    "connection", "content-encoding", "content-length", "content-type", "expect", "host",
    "idempotency-key", "transfer-encoding", "upgrade", "x-tidegate-signature",
}
# fmt: on


def url(text: str) -> str:
    """The URL as written, which is https, or http to this machine. Raises `ValueError`."""
    found = _URL.fullmatch(text)
    if found is None and "@" in text.partition("://")[2].partition("/")[0]:
        hint = f'write headers: {{Authorization: "Basic ${{TIDEGATE_SECRET_OPS}}"}}, and {A_URL}'
        raise ValueError(f"a URL holds no user and password; {hint}")
    if found is None or int(found[3] or 1) not in range(1, 65_536):
        raise ValueError(f"{text!r} is not a URL; write {A_URL}")
    if found[1] == "http" and not _LOOPBACK.fullmatch(found[2]):
        raise ValueError(f"http:// is only for this machine; write https://{text[7:]}")
    return text


def host_of(address: str) -> tuple[str, int]:
    """The host that a URL names, in small letters, and the port."""
    parts = urlsplit(address)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def header(text: str) -> str:
    """The value of a header, in which `${TIDEGATE_SECRET_X}` stands for that variable's."""
    if not re.fullmatch(r"[!-~](?:[ -~]*[!-~])?", text):
        raise ValueError(f"{text!r} is not the value of a header: printable ASCII")
    for name in variables(text):
        if not re.fullmatch(VARIABLE, name):
            hint = "write ${TIDEGATE_SECRET_OPS}; its value is the whole secret"
            raise ValueError(f"the variable {name!r} is none that a header may hold; {hint}")
    return text


def variables(text: str) -> tuple[str, ...]:
    """The environment variables that a header's value names."""
    return tuple(_REFERENCE.findall(text))


def secrets_of(secret: str | None, headers: Mapping[str, str]) -> tuple[str, ...]:
    """The environment variables that a webhook names."""
    named = [name for text in headers.values() for name in variables(text)]
    return tuple(dict.fromkeys([*([secret] if secret else []), *named]))


def filled(text: str, values: Mapping[str, str]) -> str:
    """A header's value with those of the variables in it."""
    return _REFERENCE.sub(lambda found: values[found[1]], text)


def check_webhook(action: Webhook, report: Report) -> None:
    """Add the problems of a webhook's headers and fields: taken names, and headers given twice."""
    seen: set[str] = set()
    for name in action.headers:
        if name.lower() in _OWN_HEADERS:
            message = f"the header {name} is set by the engine"
            report.add("webhook", message, action.place, "leave it out of headers")
        elif name.lower() in seen:
            message = f"the header {name} is given twice"
            report.add("webhook", message, action.place, "upper and lower case are one")
        seen.add(name.lower())
    for name in action.fields:
        if name in ENVELOPE:
            message = f"every body holds {name} of its firing: no field can be called so"
            report.add("webhook", message, action.place, "give the field another name")
