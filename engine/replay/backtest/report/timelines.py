"""The detections that a page holds so that it can draw the timeline of one key on demand.

`timeline.js` draws them. A page stays usable however much has fired: it holds the detections of the
keys for which most fired, at most `HELD_MAX`, and says what it lacks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.text.layout import counted
from tidegate.engine.core.text.printable import in_line, shortened
from tidegate.engine.replay.backtest.counts import FATES, asked_for, by_rule, fates, fired
from tidegate.engine.replay.backtest.model import Backtest
from tidegate.engine.replay.backtest.report.labels import WORDS, instant_labels, key_label

HELD_MAX = 10_000
"""Detections that a page holds for its timelines."""
OF_KEY_MAX = 2_000
"""Detections of one key that a page holds: the first."""
LABEL_MAX = 300
"""Characters of a key's label."""
NO_KEY = "(no key)"
SCRIPT = Path(__file__).with_name("timeline.js").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Timelines:
    """`data`: what the script reads, see `timelines`. `left_out`: what it lacks, in a sentence;
    empty: nothing. `place`: the number of each key in the data, by the key's text."""

    data: dict[str, Any]
    left_out: str
    place: dict[str | None, int]


def timelines(found: Backtest) -> Timelines:
    """The detections of the keys for which most fired.

    Data, by the column: `rules` and `fates`, words; `keys`, labels; `ends`, where each key's
    detections end; and of each detection `rule`, `fate` (numbers of these), `constituents`, `start`
    and `end` (microseconds from the span's begin) and their labels `from` and `at`.
    """
    firings = asked_for(found)
    keys = firings["key"].combine_chunks().dictionary_encode(null_encoding="encode")
    codes = keys.indices.to_numpy().astype(np.int64)
    count = np.bincount(codes, minlength=len(keys.dictionary))
    through = np.bincount(codes[fired(firings).to_numpy()], minlength=len(count))
    ranked = np.lexsort((np.arange(len(count)), -count, -through))
    held = np.minimum(count[ranked], OF_KEY_MAX)
    chosen = ranked[np.cumsum(held) <= HELD_MAX]
    ordered = np.argsort(codes, kind="stable")
    first = np.cumsum(count) - count
    parts = [ordered[first[key] :][: min(int(count[key]), OF_KEY_MAX)] for key in chosen]
    rows = np.concatenate([np.zeros(0, np.int64), *parts])
    names: list[str | None] = keys.dictionary.take(pa.array(chosen, pa.int64())).to_pylist()
    return Timelines(
        _data(found, firings.take(rows), names, [len(part) for part in parts]),
        _left_out(int(count.sum()), len(rows), len(count), len(chosen)),
        {name: place for place, name in enumerate(names)},
    )


def _data(
    found: Backtest, firings: pa.Table, keys: list[str | None], counts: list[int]
) -> dict[str, Any]:
    rules = pa.array([*by_rule(found)], pa.string())
    start, end = (firings[name].cast(pa.int64()).to_numpy() for name in ("start", "end"))
    zone, begin = found.span.zone, found.span.begin
    return {
        "rules": [in_line(rule) for rule in rules.to_pylist()],
        "fates": [WORDS[fate] for fate in FATES],
        "keys": [shortened(in_line(key_label(key)), LABEL_MAX) or NO_KEY for key in keys],
        "ends": np.cumsum(counts, dtype=np.int64).tolist(),
        "rule": pc.index_in(firings["rule"], rules).to_pylist(),
        "fate": pc.index_in(fates(firings), pa.array(FATES)).to_pylist(),
        "constituents": firings["constituents"].to_pylist(),
        "start": (start - begin).tolist(),
        "end": (end - begin).tolist(),
        "from": instant_labels(start, zone),
        "at": instant_labels(end, zone),
    }


def _left_out(detections: int, held: int, keys: int, held_keys: int) -> str:
    if held == detections:
        return ""
    return (
        f"Of {counted(detections, 'detection')} this page holds {held:,}, for timelines: those of "
        f"{held_keys:,} of {counted(keys, 'key')}, the ones for which most fired, and of each the "
        f"first {OF_KEY_MAX:,} at most (HELD_MAX, OF_KEY_MAX). `--json` prints all; `--rule`, or a "
        "shorter span, makes them fewer. Counts, bars and tables are of all"
    )
