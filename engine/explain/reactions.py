"""What becomes of a rule's firings, in plain sentences: condition, damping, actions. Secrets are
never in them."""

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
from tidegate.engine.core.text.layout import counted, listed
from tidegate.engine.core.text.printable import shortened
from tidegate.rules.expressions.durations import length
from tidegate.rules.model import (
    Action,
    Coupling,
    Damping,
    Rule,
    SignalAction,
    Sql,
    Switch,
    Webhook,
)

SQL_MAX = 100
"""Characters of a text of SQL in a sentence."""
WHOLE_MAX = 40
"""Characters of a statement that is shown whole."""
WORDS_SHOWN = 3
"""Words of a longer one: `MERGE INTO accounts`."""
_SEES = {
    Coupling.IMMEDIATE: "each table as it was at the instant of the firing",
    Coupling.DEFERRED: "the tables as the firing's bucket has pinned them",
    Coupling.DETACHED: "the latest tables, some time after the bucket",
}


def reaction(rule: Rule) -> Iterator[str]:
    """What is asked of a firing, what may drop it, and what is done then."""
    if rule.condition is not None:
        asked = one_line(rule.condition.text)
        if rule.condition.query:
            sees = _SEES[rule.condition_coupling]
            yield f"A firing goes on only if `{asked}` returns its `firing_id`. It sees {sees}."
        else:
            yield f"A firing goes on only if `{asked}` is true of its rows."
    if rule.damping is not None:
        per = f" of one {listed(rule.pattern.key_names)}" if rule.pattern.key_names else ""
        yield from _damping(rule.damping, per)
    yield _actions(rule)
    reaction = rule.reaction
    if reaction.otherwise and reaction.within_micros is not None:
        acts = listed(map(_does, reaction.otherwise))
        # The alternative takes nothing back: the action may still land after it (G23).
        yield f"If that is not done within {length(reaction.within_micros)}, it also {acts}."
        yield "What was not done in time goes on being tried."


def _damping(damping: Damping, per: str) -> Iterator[str]:
    if (levels := damping.hysteresis) is not None:
        fire, rearm = one_line(levels.fire.text), one_line(levels.rearm.text)
        yield (
            f"Of the firings{per}, one of which `{fire}` is true goes on, and then none"
            f" until `{rearm}` has been true of one."
        )
    if (dedupe := damping.dedupe) is not None:
        by = listed(f"`{name}`" for name in dedupe.by)
        within = length(dedupe.within_micros)
        yield f"A firing{per} with the same {by} as another in the {within} before is dropped."
    if damping.cooldown_micros is not None:
        yield f"After a firing{per}, others are dropped for {length(damping.cooldown_micros)}."
    if (rate := damping.throttle) is not None:
        most, within = counted(rate.count, "firing"), length(rate.within_micros)
        yield f"At most {most}{per} go on in {within}; others are dropped."


def _actions(rule: Rule) -> str:
    reaction = rule.reaction
    if not reaction.actions:
        return "It only detects: it has no actions."
    acts = listed(map(_does, reaction.actions))
    if reaction.dry:
        return f"It is dry (`mode: dry`): what it would do is left out. It {acts}."
    if not any(isinstance(action, Sql) for action in reaction.actions):
        return f"Then it {acts}."
    if reaction.coupling is Coupling.IMMEDIATE:
        return f"Then it {acts}, firing by firing, in the order of detection."
    later = ", some time after the bucket" if reaction.coupling is Coupling.DETACHED else ""
    each = "each firing" if reaction.for_each else "all firings of a bucket"
    return f"Then it {acts}{later}, once for {each}."


def _does(action: Action) -> str:
    """As `act_words`, but of a statement the beginning: ``runs `MERGE INTO accounts ..` ``."""
    if not isinstance(action, Sql):
        return act_words(action)
    words = action.text.split()
    if len(" ".join(words)) > WHOLE_MAX:
        words = [*action.text.replace("(", " ").split()[:WORDS_SHOWN], ".."]
    return f"runs `{' '.join(words)}`"


def act_words(act: Statement | Action) -> str:
    """What an entry or an action does: ``runs `INSERT INTO t ..` ``, `raises blocked`."""
    match act:
        case Question(text):
            return f"asks `{one_line(text)}`"
        case SqlStatement(text) | Sql(text=text):
            return f"runs `{one_line(text)}`"
        case SignalStatement(event=event) | SignalAction(event=event):
            return f"raises {event}"
        case WebhookStatement(url=url) | Webhook(url=url):
            return f"sends a webhook to {_host(url)}"
        case SwitchStatement(rule=rule, enabled=enabled) | Switch(rule=rule, enabled=enabled):
            return f"{'enables' if enabled else 'disables'} rule {rule}"
    return f"is a {act.kind}"


def one_line(text: str) -> str:
    """A text of SQL as one line, shortened."""
    return shortened(" ".join(text.split()), SQL_MAX)


def _host(url: str) -> str:
    """The host of a URL alone: paths and queries may be secret."""
    return urlsplit(url).hostname or "its URL"
