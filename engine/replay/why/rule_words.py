"""A rule as one sentence, and what a statement does in a few words. Secrets are never in them."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from tidegate.engine.core.statement import (
    Question,
    SignalStatement,
    SqlStatement,
    Statement,
    SwitchStatement,
    WebhookStatement,
)
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.replay.why_not.words import lasting, listed
from tidegate.rules.expressions.windows import Window
from tidegate.rules.model import Action, Damping, Rule, SignalAction, Sql, Switch, Webhook

SQL_MAX = 100


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
        said += f", where `{_one_line(pattern.where.text)}`"
    if rule.condition is not None:
        asks = "if the query `{}` has a row" if rule.condition.query else "if `{}`"
        said += f", {asks.format(_one_line(rule.condition.text))}"
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
        yield f"a hysteresis (fire `{_one_line(damping.hysteresis.fire.text)}`)"
    if damping.dedupe is not None:
        by = ", ".join(damping.dedupe.by)
        yield f"a dedupe by {by} within {lasting(damping.dedupe.within_micros)}"
    if damping.cooldown_micros is not None:
        yield f"a cooldown of {lasting(damping.cooldown_micros)}"
    if damping.throttle is not None:
        within = lasting(damping.throttle.within_micros)
        yield f"a throttle of {damping.throttle.count:,} in {within}"


def act_words(act: Statement | Action) -> str:
    """What an entry or an action does: ``runs `INSERT INTO t ..` ``, `raises blocked`."""
    match act:
        case Question(text):
            return f"asks `{_one_line(text)}`"
        case SqlStatement(text) | Sql(text=text):
            return f"runs `{_one_line(text)}`"
        case SignalStatement(event=event) | SignalAction(event=event):
            return f"raises {event}"
        case WebhookStatement(url=url) | Webhook(url=url):
            return f"sends a webhook to {_host(url)}"
        case SwitchStatement(rule=rule, enabled=enabled) | Switch(rule=rule, enabled=enabled):
            return f"{'enables' if enabled else 'disables'} rule {rule}"
    return f"is a {act.kind}"


def _one_line(text: str) -> str:
    return shortened(" ".join(text.split()), SQL_MAX)


def _host(url: str) -> str:
    """The host of a URL alone: paths and queries may be secret."""
    return urlsplit(url).hostname or "its URL"
