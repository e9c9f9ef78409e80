"""A rulebook of one rule with a window, and histories of one key."""

from __future__ import annotations

from tests.replay.why_not.runs import Line

HOLDS = "{holds: over, until: [ok, off], for: 5 min}"
KEPT = HOLDS.replace("}", ", keep: 2 min}")
OVER = "{over: {window: 1 min, of: over, fire: avg(v) > 10, rearm: avg(v) < 5}}"
EVENTS = ("over", "ok", "off")


def book(on: str, more: str = "") -> str:
    signals = "\n".join(f"  {name}: {{signal: {{k: bigint, v: double}}}}" for name in EVENTS)
    return (
        f"rulebook: windows\nevents:\n{signals}\n  tick: {{signal: {{v: double}}}}\n"
        f"rules:\n  r: {{per: k, on: {on}}}\n{more}"
    )


def lines(text: str) -> list[Line]:
    """`over@10 over@20(8.2)`: events of key 7 with their seconds, and v."""
    found = list[Line]()
    for word in text.split():
        event, _, rest = word.partition("@")
        seconds, _, value = rest.rstrip(")").partition("(")
        of_row = None if value == "null" else float(value or 0)
        found.append((event, float(seconds), {"k": 7, "v": of_row}))
    return found
