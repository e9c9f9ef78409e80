"""Makes the entries of a bucket's firings, in the order of their actions (G15, G16)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.entries import Entry, Progress, Turn
from tidegate.engine.core.statement import Question, Statement
from tidegate.engine.core.values import Firings, Unasked
from tidegate.rules.analysis.graph import stages
from tidegate.rules.model import Coupling, Rule

log = logging.getLogger(__name__)

DETACHED_KINDS = frozenset({"webhook"})  # whatever their rule's coupling is (G15)
_MODES = list(Coupling)  # in the order of their actions
COMMITS_WARNED_ABOVE = 100  # entries of one `for_each` rule in one bucket


@dataclass(frozen=True, slots=True)
class Stamp:
    """Gives entries their markers: the app id, and the version after which their effect lands.
    `latest`: the last listed version of each table. `now`: the engine's clock, microseconds."""

    store_id: str
    rulebook: str
    latest: Mapping[str, int]
    now: int = 0

    def on(self, entry: Entry, *, asked: bool = False) -> Entry:
        """The entry with its marker. `asked`: a detached condition made it. Such entries have an
        app id of their own, because their numbers are not in the order of the queue."""
        app_id = f"tidegate/{self.store_id}/{self.rulebook}/{entry.rule}"
        if entry.alternative:
            app_id += "/otherwise"
        if entry.turn.place:  # it stands for an entry whose marker may be far ahead of it
            app_id += "/asked" if asked else f"/redrive/{entry.turn.place}/{entry.turn.order}"
        version = self.latest.get(entry.target) if entry.target is not None else None
        return replace(entry, app_id=app_id, target_version=version)


@dataclass(frozen=True, slots=True)
class _Set:
    """Firings that are acted on together, by `statements`. `ids`: None for all that held. `depth`:
    the largest of them. `order`: (coupling, instant of detection if immediate, stage of the rule,
    rule, number among the rule's sets)."""

    rule: Rule
    statements: Sequence[Statement]
    ids: tuple[str, ...] | None
    depth: int
    order: tuple[int, int, int, str, int]


def entries_for(
    firings: Sequence[Firings],
    unasked: Mapping[str, Sequence[Unasked]],
    rules: Mapping[str, Rule],
    statements: Mapping[str, Sequence[Statement]],
    depth_max: int,
    stamp: Stamp,
    later: Mapping[str, frozenset[str]],
    *,
    decided: bool = False,
) -> tuple[Entry, ...]:
    """The entries of one bucket, in the order of its actions (G15): immediate ones by detection,
    stage of the rule, rule, key, firing; then deferred ones by stage of the rule, rule; then
    detached ones by rule. The statements of a set follow each other.

    No entries: firings of a dry rule, damped ones, and those whose condition does not hold. Dead
    entries: firings deeper than `depth_max` (G22). Dead entries of kind `condition`: firings that
    could not be asked, one for each part of `unasked`, by rule (G13, G25). An entry of kind
    `condition`: firings whose condition is detached and not `decided` yet. `later`: by rule, the
    rules that come after it (`rules.analysis.graph.later_ones`).
    """
    stage_of = stages([rules[of_rule.rule] for of_rule in firings], later)
    sets: list[_Set] = []
    asked: list[Entry] = []
    for of_rule in sorted(firings, key=lambda f: f.rule):
        rule = rules[of_rule.rule]
        dead = unasked.get(rule.name, ())
        asked += [_dead_condition(rule, of_rule, one) for one in dead]
        if rule.asks_later and not decided:
            left = of_rule.some(of_rule.through)
            if len(left):
                ids = tuple(left.hex_ids().to_pylist()) if dead else None
                asked.append(_condition(rule, left, ids))
        elif not rule.reaction.dry:
            sets += _sets(of_rule, rule, stage_of[rule.name], depth_max, statements[rule.name])
    entries = asked + list(_staged(sets))
    return tuple(
        stamp.on(_admitted(_timed(replace(entry, turn=turn), rules, stamp), depth_max))
        for order, entry in enumerate(entries)
        for turn in (replace(entry.turn, order=order),)
    )


def alternative(
    entry: Entry, statements: Iterable[Statement], depth_max: int, stamp: Stamp
) -> tuple[Entry, ...]:
    """The entries of a rule's `otherwise`, for the firings of an entry that was not done in time
    (G23). They are detached and have a queue of their own. The entry itself is still tried."""
    entries = (
        Entry(
            entry.rule,
            statement,
            entry.firing_ids,
            bucket=entry.bucket,
            depth=entry.depth,
            turn=Turn(order=order, stage=None),
            alternative=True,
        )
        for order, statement in enumerate(statements)
    )
    return tuple(stamp.on(_admitted(one, depth_max)) for one in entries)


def _timed(entry: Entry, rules: Mapping[str, Rule], stamp: Stamp) -> Entry:
    """The entry with the instant at which its rule's alternative is due."""
    within = rules[entry.rule].reaction.within_micros
    if within is None or entry.kind == "condition":
        return entry
    return replace(entry, otherwise_at=stamp.now + within)


def _sets(
    firings: Firings, rule: Rule, stage: int, depth_max: int, statements: Sequence[Statement]
) -> Iterator[_Set]:
    """The sets of a rule's firings. Webhooks are one detached set with all firings."""
    firings = firings.acted_on
    held = firings.firings
    if not held.num_rows:
        return
    own = [s for s in statements if s.kind not in DETACHED_KINDS]
    beside = [s for s in statements if s.kind in DETACHED_KINDS]
    mode = rule.reaction.coupling
    if own and (rule.reaction.for_each == "firing" or mode is Coupling.IMMEDIATE):
        if (commits := len(held) * len(own)) > COMMITS_WARNED_ABOVE:
            text = "rule %s: `for_each: firing` makes %d entries in one bucket, each a commit"
            log.warning(text, rule.name, commits)
        depths = held["depth"].to_pylist()
        at = [0] * len(held)
        if mode is Coupling.IMMEDIATE:
            at = held["detected_at"].cast(pa.int64()).to_pylist()
        for n, one in enumerate(firings.hex_ids().to_pylist()):
            order = (_MODES.index(mode), at[n], stage, rule.name, n)
            yield _Set(rule, own, (one,), depths[n], order)
    elif own:
        yield from _whole(firings, rule, own, stage, depth_max, mode)
    if beside:
        yield from _whole(firings, rule, beside, stage, depth_max, Coupling.DETACHED)


def _whole(
    firings: Firings,
    rule: Rule,
    statements: Sequence[Statement],
    stage: int,
    depth_max: int,
    mode: Coupling,
) -> Iterator[_Set]:
    """All firings as one set. Firings past the depth are a second set, so that only they are
    dead."""
    depths = firings.firings["depth"].to_numpy()
    past = depths > depth_max
    order = (_MODES.index(mode), 0, stage, rule.name)
    if not past.any() or past.all():
        yield _Set(rule, statements, None, int(depths.max()), (*order, 0))
        return
    ids = np.array(firings.hex_ids().to_pylist())
    for n, chosen in enumerate((~past, past)):
        some = tuple(ids[chosen].tolist())
        yield _Set(rule, statements, some, int(depths[chosen].max()), (*order, n))


def _staged(sets: Iterable[_Set]) -> Iterator[Entry]:
    """The entries of sets, in order; their stages are numbered from 0. Sets of one stage may be
    acted on in any order, or at the same time."""
    numbers: dict[tuple[int, int, int], int] = {}
    for one in sorted(sets, key=lambda s: s.order):
        detached = one.order[0] == _MODES.index(Coupling.DETACHED)
        stage = None if detached else numbers.setdefault(one.order[:3], len(numbers))
        for statement in one.statements:
            turn = Turn(stage=stage)
            yield Entry(one.rule.name, statement, one.ids, depth=one.depth, turn=turn)


def _condition(rule: Rule, firings: Firings, ids: tuple[str, ...] | None) -> Entry:
    """An entry that asks the rule's condition. `ids`: of some firings, None: of all."""
    levels = rule.levels
    asked = rule.condition or (levels and levels.fire)
    text = asked.text if asked else ""
    depth = int(pc.max(firings.firings["depth"]).as_py())
    return Entry(rule.name, Question(text), ids, depth=depth, turn=Turn(stage=None))


def _dead_condition(rule: Rule, firings: Firings, dead: Unasked) -> Entry:
    own = firings.some(pc.is_in(firings.hex_ids(), pa.array(dead.firing_ids, pa.string())))
    why = dead.why
    progress = Progress(state="dead", attempts=why.attempts, error=why.error, details=why.details)
    return replace(_condition(rule, own, dead.firing_ids), progress=progress)


def _admitted(entry: Entry, depth_max: int) -> Entry:
    if entry.depth <= depth_max or entry.state == "dead" or entry.kind == "condition":
        return entry  # of a condition's firings, some may be admitted
    error = f"depth {entry.depth} is past max_cascade_depth = {depth_max}"
    return replace(entry, progress=Progress(state="dead", error=error))
