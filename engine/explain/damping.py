"""What damps a rule, and how much it remembers for that."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.engine.core.text.layout import counted
from tidegate.engine.explain.amounts import length
from tidegate.engine.explain.model import Damps
from tidegate.rules.model import Rule as Written
from tidegate.rules.model import Rulebook


def damps(rule: Written, book: Rulebook) -> Iterator[Damps]:
    """In the order in which a firing is judged."""
    if rule.damping is None:
        return
    levels, dedupe = rule.damping.hysteresis, rule.damping.dedupe
    cooldown, rate = rule.damping.cooldown_micros, rule.damping.throttle
    if levels is not None:
        said = f"fire {levels.fire.text.strip()}; rearm {levels.rearm.text.strip()}"
        yield Damps(
            "hysteresis", said, 0, None, "a mark per key that has fired, until it is rearmed"
        )
    if dedupe is not None:
        most, within = book.settings.dedupe_keys_max, length(dedupe.within_micros)
        why = f"an instant of each firing, for {within}, at most {most:,} (dedupe_keys_max)"
        said = f"by {', '.join(dedupe.by)} within {within}"
        yield Damps("dedupe", said, None, dedupe.within_micros, why)
    if cooldown is not None:
        why = f"1 instant per key, for {length(cooldown)}"
        yield Damps("cooldown", length(cooldown), 1, cooldown, why)
    if rate is not None:
        within = length(rate.within_micros)
        why = f"at most {counted(rate.count, 'instant')} per key, for {within}"
        said = f"{rate.count:,} per {within}"
        yield Damps("throttle", said, rate.count, rate.within_micros, why)
