"""Features that the language has and the engine has not built yet. A use of them is refused.

Whoever builds a feature deletes its row here. A caller that can do more than the engine, as the
simulation can, passes the features that it accepts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from tidegate.rules.algebra.plain_expressions import LOOKED_AT
from tidegate.rules.algebra.points import points
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
        for below in unbuilt_points(node, named):
            message = "'instant' of what takes time is not built yet as a constituent of"
            message += " 'every' and '[i]'"
            hint = "count the detections of a rule with the instant's operand as its 'on', or put"
            hint += " the instant around the whole"
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


def unbuilt_points(
    node: x.Expression, rules: Collection[str], *, counted: bool = False
) -> Iterator[x.Instant]:
    """Each `instant` of what takes time that the engine cannot count: as a constituent of `every`
    or `[i]`, whose instances do not tell which occurrences each of its points holds."""
    if isinstance(node, x.Instant) and counted:
        yield from points(node, rules)
        return
    counted = counted or isinstance(node, x.Every | x.Nth)
    for number, operand in enumerate(node.operands()):
        if number not in LOOKED_AT.get(type(node), ()):
            yield from unbuilt_points(operand, rules, counted=counted)


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
