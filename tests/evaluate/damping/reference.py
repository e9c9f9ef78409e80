"""Damping as the guide has it, one firing at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tidegate.rules.model import Damping


@dataclass(frozen=True)
class Firing:
    """`repeats` stands for the values of dedupe's columns."""

    key: str
    at: int
    repeats: str = ""
    fires: bool = True
    rearms: bool = False


@dataclass
class Memory:
    """What a rule remembers of its firings that passed."""

    passed: dict[str, list[int]] = field(default_factory=dict)
    seen: dict[tuple[str, str], int] = field(default_factory=dict)
    disarmed: set[str] = field(default_factory=set)


def damped(damping: Damping, firings: Iterable[Firing], memory: Memory) -> Iterator[str | None]:
    """What drops each firing."""
    for firing in firings:
        why = _why(damping, firing, memory)
        if why is None:
            memory.passed.setdefault(firing.key, []).append(firing.at)
            memory.seen[firing.key, firing.repeats] = firing.at
        yield why


def _why(damping: Damping, firing: Firing, memory: Memory) -> str | None:
    if damping.hysteresis is not None:
        if firing.key in memory.disarmed:
            if firing.rearms:
                memory.disarmed.remove(firing.key)
            return "hysteresis"
        if not firing.fires:
            return "hysteresis"
        memory.disarmed.add(firing.key)
    before = memory.passed.get(firing.key, [])
    if damping.dedupe is not None:
        seen = memory.seen.get((firing.key, firing.repeats))
        if seen is not None and firing.at - seen < damping.dedupe.within_micros:
            return "dedupe"
    if before and firing.at - before[-1] < (damping.cooldown_micros or 0):
        return "cooldown"
    if damping.throttle is not None:
        lately = [at for at in before if firing.at - at < damping.throttle.within_micros]
        if len(lately) >= damping.throttle.count:
            return "throttle"
    return None
