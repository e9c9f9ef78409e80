"""Which entries a bucket's firings make, and in what order (G15, G16)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow.compute as pc

from tidegate.engine.entries import Entry, Statement
from tidegate.engine.values import Failure, Firings
from tidegate.rules.model import Rule

log = logging.getLogger(__name__)

COMMITS_WARNED_ABOVE = 100  # entries of one `for_each` rule in one bucket


@dataclass(frozen=True, slots=True)
class Stamp:
    """What every entry of a bucket is marked with: its marker's app id, and the version after which
    its effect can stand. `latest`: the version of each table that was listed last."""

    store_id: str
    rulebook: str
    latest: Mapping[str, int]

    def on(self, entry: Entry) -> Entry:
        app_id = f"tidegate/{self.store_id}/{self.rulebook}/{entry.rule}"
        if entry.place:  # it stands for an entry whose marker may be far ahead of it
            app_id += f"/redrive/{entry.place}"
        version = self.latest.get(entry.target) if entry.target is not None else None
        return replace(entry, app_id=app_id, target_version=version)


def entries_for(
    firings: Sequence[Firings],
    failed: Mapping[str, Failure],
    rules: Mapping[str, Rule],
    statements: Mapping[str, Sequence[Statement]],
    depth_max: int,
    stamp: Stamp,
) -> tuple[Entry, ...]:
    """The entries of one bucket, in the order of its actions: priority descending, rule; then the
    statements in order, of all firings at once or of firing after firing (`for_each`).

    Firings for which the condition does not hold make none; those deeper than `depth_max` make dead
    ones (G22); those of rules in `failed`, whose condition could not be asked, one dead entry of
    kind `condition` (G13).
    """
    ordered = sorted(firings, key=lambda f: (-rules[f.rule].priority, f.rule))
    entries: list[Entry] = []
    for of_rule in ordered:
        rule = rules[of_rule.rule]
        if rule.name in failed:
            entries.append(_dead_condition(rule, of_rule, failed[rule.name]))
            continue
        for ids, depth in _sets(of_rule, rule, depth_max):
            entries += _entries(rule.name, statements[rule.name], ids, depth)
    return tuple(
        stamp.on(_admitted(replace(entry, order=order), depth_max))
        for order, entry in enumerate(entries)
    )


def _sets(
    firings: Firings, rule: Rule, depth_max: int
) -> Iterator[tuple[tuple[str, ...] | None, int]]:
    """The firings that are acted on together, None for all that held, with their largest depth.
    Those past the depth are a set of their own, so that only they are dead."""
    held = firings.firings.filter(pc.not_equal(firings.firings["condition"], "failed"))
    if not held.num_rows:
        return
    depths = held["depth"].to_numpy()
    past = depths > depth_max
    if rule.for_each == "firing":
        _warn(rule, len(depths))
        ids = replace(firings, firings=held).hex_ids().to_pylist()
        yield from (((one,), int(depth)) for one, depth in zip(ids, depths, strict=True))
    elif past.any() and not past.all():
        ids = np.array(replace(firings, firings=held).hex_ids().to_pylist())
        for chosen in (~past, past):
            yield tuple(ids[chosen].tolist()), int(depths[chosen].max())
    else:
        yield None, int(depths.max())


def _entries(
    rule: str, statements: Sequence[Statement], ids: tuple[str, ...] | None, depth: int
) -> Iterator[Entry]:
    for s in statements:
        yield Entry(rule, s.kind, s.text, s.target, 0, firing_ids=ids, depth=depth, action=s.action)


def _dead_condition(rule: Rule, firings: Firings, why: Failure) -> Entry:
    text = rule.condition.text if rule.condition is not None else ""
    depth = int(pc.max(firings.firings["depth"]).as_py())
    return Entry(
        rule.name,
        "condition",
        text,
        None,
        0,
        state="dead",
        attempts=why.attempts,
        error=why.error,
        details=why.details,
        depth=depth,
    )


def _admitted(entry: Entry, depth_max: int) -> Entry:
    if entry.depth <= depth_max or entry.state == "dead":
        return entry
    error = f"depth {entry.depth} is past max_cascade_depth = {depth_max}"
    return replace(entry, state="dead", error=error)


def _warn(rule: Rule, firings: int) -> None:
    commits = firings * len(rule.actions)
    if commits > COMMITS_WARNED_ABOVE:
        text = "rule %s: `for_each: firing` makes %d entries in one bucket, each a commit"
        log.warning(text, rule.name, commits)
