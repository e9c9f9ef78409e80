"""A rule's detections and their constituents -> `engine.core.values.Detections`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import Detections, Int64
from tidegate.engine.detect.events.graph.roles import roles
from tidegate.engine.detect.events.occurrences.instances import Instances
from tidegate.engine.detect.events.occurrences.keys import Keys
from tidegate.engine.detect.events.occurrences.occurrences import Occurrences
from tidegate.engine.detect.events.state.held_back import names_for
from tidegate.engine.detect.events.step.constituents import Shown
from tidegate.rules.model import Rule

ABSENT = -(2**63)
"""The start and end of a label in a detection that has no occurrence under it."""


def build(
    rule: Rule, shown: Shown, keys: Keys, occurrences: Occurrences, behind: int | None = None
) -> Detections:
    """The detections of a rule that runs so far behind (None: not at all) in order of end, key,
    start, constituents; each occurrence once."""
    found = shown.found
    place, index, batches = occurrences.shown(shown.row)
    number = (
        np.cumsum([e not in occurrences.parts for e in occurrences.sources], dtype=np.int16) - 1
    )
    names = names_for(behind, batches)
    batches = {names[e]: batch for e, batch in batches.items() if e not in occurrences.parts}
    around = [role.labels for role in roles(rule.on)]
    labels = tuple(dict.fromkeys(label for inside in around for label in inside))
    innermost = np.array([labels.index(r[-1]) if r else -1 for r in around], dtype=np.int16)
    return Detections(
        rule.name,
        pa.table(keys.values(found.key), names=list(rule.key_names)),
        found.start,
        found.end,
        shown.offsets,
        tuple(batches),
        number[place],
        index,
        batches,
        labels,
        innermost[shown.role] if labels else None,
        {label: _span(label, around, found, occurrences) for label in labels},
    )


def _span(
    label: str, around: list[tuple[str, ...]], found: Instances, occurrences: Occurrences
) -> tuple[Int64, Int64]:
    """The interval of the occurrences under a label, in each detection."""
    labelled = np.array([label in inside for inside in around])[found.role]
    owner = np.repeat(np.arange(len(found)), np.diff(found.offsets))[labelled]
    start = np.full(len(found), 2**63 - 1)
    end = np.full(len(found), ABSENT)
    np.minimum.at(start, owner, occurrences.start[found.row[labelled]])
    np.maximum.at(end, owner, occurrences.time[found.row[labelled]])
    start[end == ABSENT] = ABSENT
    return start, end
