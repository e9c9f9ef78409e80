"""Enables and disables rules and scripts while the engine runs (G24)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from tidegate.engine.core.entries import Control
from tidegate.engine.core.state import State
from tidegate.rules.analysis.graph import uses_of
from tidegate.rules.model import Rulebook


@dataclass(frozen=True, slots=True)
class Switched:
    """What the next plan does to rules and scripts. `enabled`: they go on. `disabled`: they stop.
    `anew`: by rule, the instant at which it begins without its carried state: enabled ones that
    were disabled, and the rules that use them. `answers`: by control, why it changes nothing."""

    enabled: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    anew: Mapping[str, int] = field(default_factory=dict)
    answers: Mapping[int, str] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        return bool(self.enabled or self.disabled)


NOTHING = Switched()


def switched(
    controls: Iterable[Control],
    state: State,
    rulebook: Rulebook,
    quarantined: Collection[str] = (),
) -> Switched:
    """What the controls do, in their order; the last one of a rule wins. `quarantined`: rules with
    texts in quarantine. Enabling such a rule releases its texts.

    Example: `disable a` at 10:00, `enable a` at 10:05, of a rule that runs: both are carried out,
    and it begins anew. It sees nothing that stands before 10:05, whenever that is taken.
    """
    begun: dict[str, int] = {}
    enabled: set[str] = set()
    disabled: set[str] = set()
    answers: dict[int, str] = {}
    for control in controls:
        name = control.subject
        rule = rulebook.rules.get(name) or rulebook.scripts.get(name)
        what = "script" if name in rulebook.scripts else "rule"
        off = name in disabled or (name in state.disabled and name not in enabled)
        if control.kind not in ("enable", "disable"):
            continue
        if rule is None:
            answers[control.id] = f"{what} {name} is not in the rulebook"
        elif not rule.enabled:
            answers[control.id] = f"{what} {name} is disabled in the rulebook: enabled: false"
        elif control.kind == "disable" and off:
            answers[control.id] = f"{what} {name} is disabled already"
        elif control.kind == "disable":
            enabled.discard(name)
            begun.pop(name, None)
            disabled.add(name)
        elif off or ({name} & {*state.parked, *quarantined} and name not in enabled):
            disabled.discard(name)
            enabled.add(name)
            if off:
                begun[name] = control.asked_at
        else:
            answers[control.id] = f"{what} {name} is not parked, and not disabled"
    anew = _with_users(begun, rulebook)
    return Switched(frozenset(enabled), frozenset(disabled), anew, answers)


def _with_users(begun: Mapping[str, int], rulebook: Rulebook) -> dict[str, int]:
    """The instant at which each rule begins, with the rules that use those in `begun`. A rule
    begins no earlier than the rules that it uses."""
    found, changed = dict(begun), bool(begun)
    while changed:
        changed = False
        for rule in rulebook.rules.values():
            used = [found[name] for name in uses_of(rule, rulebook.rules) if name in found]
            if used and max(used) > found.get(rule.name, -1):
                found[rule.name], changed = max(used), True
    return found
