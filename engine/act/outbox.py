"""Which entries a bucket's firings make, and in what order (G15, G16)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from engine.values import Entry, Firings, Statement
from rules.model import Rule

log = logging.getLogger(__name__)

COMMITS_WARNED_ABOVE = 100  # entries of one `for_each` rule in one bucket


def entries_for(
    firings: Sequence[Firings],
    rules: Mapping[str, Rule],
    statements: Mapping[str, Sequence[Statement]],
    depth_max: int,
) -> tuple[Entry, ...]:
    """The entries of one bucket, in the order of its actions: priority descending, rule; then the
    statements in order, of all firings at once or of firing after firing (`for_each`).

    Firings whose condition failed make none; those deeper than `depth_max` make dead ones (G22).
    """
    ordered = sorted(firings, key=lambda f: (-rules[f.rule].priority, f.rule))
    entries = (
        entry
        for of_rule in ordered
        for ids, depth in _sets(of_rule, rules[of_rule.rule], depth_max)
        for entry in _entries(of_rule.rule, statements[of_rule.rule], ids, depth)
    )
    return tuple(
        _admitted(replace(entry, order=order), depth_max) for order, entry in enumerate(entries)
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
        yield Entry(rule, s.kind, s.text, s.target, order=0, firing_ids=ids, depth=depth)


def _admitted(entry: Entry, depth_max: int) -> Entry:
    if entry.depth <= depth_max:
        return entry
    error = f"depth {entry.depth} is past max_cascade_depth = {depth_max}"
    return replace(entry, state="dead", error=error)


def _warn(rule: Rule, firings: int) -> None:
    commits = firings * len(rule.actions)
    if commits > COMMITS_WARNED_ABOVE:
        text = "rule %s: `for_each: firing` makes %d entries in one bucket, each a commit"
        log.warning(text, rule.name, commits)
