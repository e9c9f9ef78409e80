"""Features that the language has and the engine has not built yet. A use of them is refused.

Whoever builds a feature deletes its row here. A caller that can do more than the engine, as the
simulation can, passes the features that it accepts.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.rules.algebra.points import counted_points
from tidegate.rules.analysis.draft import Draft, refuse
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.model import Settings
from tidegate.rules.yaml.kinds import Report
from tidegate.rules.yaml.reader import Scalar

SHORT_PERIOD = "a short period"
SIMULATED = frozenset({SHORT_PERIOD})
"""What simulated time has and `run` has not: periods below a second (S11)."""

_KEYS = {key: f"rule key {key}" for key in ("expire_key_after", "granularity")}
"""Features that are keys of rules."""


def refuse_unbuilt(
    book: Draft, limits: Settings, features: frozenset[str], report: Report, *, warned: bool = False
) -> None:
    """Add a problem for every use of a feature that is neither built nor in `features`. `warned`: a
    use of one of `features` brings a warning that `run` refuses it."""
    accepted = Report()
    for _, node, scalar in book.expressions():
        _periods(node, scalar, limits, accepted if SHORT_PERIOD in features else report)
    for _, node, scalar in book.expressions():
        named = () if isinstance(node, w.Window) else book.names("rules")
        for below in counted_points(node, named):
            message = "'instant' of what takes time is not built yet inside 'every' and '[i]'"
            hint = "make a rule of its operand and count that, every(2, r); or put the instant"
            hint += " around the whole, instant(every(2, a ; b))"
            refuse(report, "unbuilt", message, scalar, below, hint)
    for record in book.records("rules").values():
        for key, feature in _KEYS.items():
            if record.has(key):
                to = accepted if feature in features else report
                to.add("unbuilt", f"{feature!r} is not built yet", record.place(key))
    for problem in accepted.problems if warned else ():
        message = f"{problem.message} in `run`"
        report.warnings.append(replace(problem, code="not-live", message=message))


def all_features() -> frozenset[str]:
    """Every feature named here: for a caller that accepts the whole language."""
    return frozenset({*_KEYS.values(), SHORT_PERIOD})


def _periods(node: x.Expression, scalar: Scalar, limits: Settings, report: Report) -> None:
    """Refuse ticks that follow each other so fast that an engine would do nothing else (S11)."""
    for below in node.walk():
        period = _period(below)
        if period is None or not period.fixed:
            continue
        if period.micros < 1_000 * limits.period_min_ms:
            message = f"a period below {limits.period_min_ms:,} ms is refused"
            hint = "make it longer; the setting period_min_ms is the shortest that may run"
            refuse(report, "short-period", message, scalar, below, hint)


def _period(node: x.Expression) -> x.Duration | None:
    """How often a node ticks by itself: `P`, and a window whose ends stand on a grid."""
    match node:
        case x.Periodic(period=period) | x.PeriodicStar(period=period):
            return period
        case w.Tumbling(length=period) | w.Sliding(every=period):
            return period
    return None
