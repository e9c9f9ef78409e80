"""The rung `context`: there is an instance, and the rule's context did not choose it.

Example: `a ; b` in `chronicle`, with a at 1, b at 2 and 3. At 3 there is an instance, but its a was
consumed by the detection at 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tidegate.engine.core.event_names import is_tick
from tidegate.engine.core.text.layout import listed
from tidegate.engine.replay.why_not.evidence import Asked, Rung
from tidegate.engine.replay.why_not.fate import firings_of
from tidegate.engine.replay.why_not.probe import Instances, Part, Probe
from tidegate.rules.expressions.parser import unlabelled
from tidegate.rules.expressions.windows import Window
from tidegate.rules.model import Context


class _Used(NamedTuple):
    """A constituent that a detection has used up, at `instant`. `passed_over`: it was older than
    what was used."""

    part: Part
    instant: int
    passed_over: bool


def chosen(asked: Asked, probe: Probe, *, detected: bool) -> Rung:
    """`detected`: the rule itself was."""
    pattern = asked.rule.pattern
    if isinstance(pattern.on, Window):
        return all_rows()
    name = "select" if pattern.selection else str(pattern.context)
    if detected:
        return Rung("context", True, f"The context `{name}` chose it.", {"context": name})
    every = (probe.left if pattern.where else None) or probe.one(unlabelled(pattern.on))
    there = every.span(asked.since, asked.until)
    at = len(there) - 1
    used = list(_used(there.parts(at), int(there.end[at]), probe.detected, pattern.context))
    instance = {"start": int(there.start[at]), "end": int(there.end[at])}
    figures: dict[str, Any] = {"context": name, "instance": instance}
    figures["used"] = [
        {
            "event": asked.written(one.part.event),
            "instant": one.part.instant,
            "by_instant": one.instant,
            "firing_id": _firing(asked, one.instant),
        }
        for one in used
    ]
    words = asked.words
    interval = f"{words.between(instance['start'], instance['end'])}{words.of_key}"
    sentence = f"There is an instance {interval}, but the context `{name}` did not choose it"
    if used:
        said = [_sentence(asked, one) for one in used[:3]]
        sentence += f": {listed(said)}"
    elif pattern.selection:
        sentence += ": `select` takes other occurrences of the same runs"
    return Rung("context", False, f"{sentence}.", figures)


def all_rows() -> Rung:
    """Of a window, which has no context."""
    return Rung("context", True, "A window takes all its rows.", {})


def _sentence(asked: Asked, one: _Used) -> str:
    words, name = asked.words, asked.written(one.part.event)
    how = "was given up, for a newer one was used," if one.passed_over else "was used up"
    firing = _firing(asked, one.instant)
    by = f" (firing {firing[:8]})" if firing else ""
    return (
        f"`{name}` of {words.at(one.part.instant)} {how} by the detection at"
        f" {words.at(one.instant)}{by}"
    )


def _used(
    parts: tuple[Part, ...], end: int, detected: Instances, context: Context
) -> Iterator[_Used]:
    """The constituents that detections before or at `end` have used up."""
    taken: dict[tuple[str, int], int] = {}
    newest: dict[str, tuple[int, int]] = {}  # by event type, its last used instant, and by what
    for n in range(len(detected)):
        instant = int(detected.end[n])
        if instant > end:
            break
        for part in detected.parts(n):
            if is_tick(part.event):
                continue
            taken.setdefault((part.event, part.position), instant)
            if part.instant >= newest.get(part.event, (-(2**63), 0))[0]:
                newest[part.event] = part.instant, instant
    for part in dict.fromkeys(parts):
        by = taken.get((part.event, part.position))
        if by is not None:
            yield _Used(part, by, passed_over=False)
        elif context is Context.RECENT and part.event in newest:
            last, by = newest[part.event]
            if part.instant <= last:
                yield _Used(part, by, passed_over=True)


def _firing(asked: Asked, instant: int) -> str | None:
    """The id of the firing of a detection, if it is kept."""
    found = [one.id for one in firings_of(asked, None) if one.end == instant]
    return found[-1] if found else asked.evidence.ended_at(instant)
