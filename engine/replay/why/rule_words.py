"""A rule as one sentence. Secrets are never in it."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.engine.core.text.layout import listed
from tidegate.engine.explain.reactions import act_words, one_line
from tidegate.engine.replay.why_not.words import lasting
from tidegate.rules.expressions.windows import Window
from tidegate.rules.model import Damping, Rule


def sentence(rule: Rule) -> str:
    """``Rule pay fires on `a ; b`, per account, in context chronicle, if `sum(x) > 9`; then it runs
    `INSERT ..`.``"""
    pattern = rule.pattern
    said = f"Rule {rule.name} fires on `{' '.join(pattern.text.split())}`"
    if pattern.key_names:
        said += f", per {', '.join(pattern.key_names)}"
    if pattern.selection is None and not isinstance(pattern.on, Window):
        said += f", in context {pattern.context}"
    if pattern.where is not None:
        said += f", where `{one_line(pattern.where.text)}`"
    if rule.condition is not None:
        asks = "if the query `{}` has a row" if rule.condition.query else "if `{}`"
        said += f", {asks.format(one_line(rule.condition.text))}"
    if rule.damping is not None:
        said += f", damped by {listed(damping_words(rule.damping))}"
    actions = [*map(act_words, rule.reaction.actions)]
    if actions:
        said += f"; then it {listed(actions)}"
    if rule.reaction.dry:
        said += " (dry: without its actions)"
    return f"{said}."


def damping_words(damping: Damping) -> Iterator[str]:
    """`a cooldown of 5 min`, `a throttle of 3 in 1 h`."""
    if damping.hysteresis is not None:
        yield f"a hysteresis (fire `{one_line(damping.hysteresis.fire.text)}`)"
    if damping.dedupe is not None:
        by = ", ".join(damping.dedupe.by)
        yield f"a dedupe by {by} within {lasting(damping.dedupe.within_micros)}"
    if damping.cooldown_micros is not None:
        yield f"a cooldown of {lasting(damping.cooldown_micros)}"
    if damping.throttle is not None:
        within = lasting(damping.throttle.within_micros)
        yield f"a throttle of {damping.throttle.count:,} in {within}"
