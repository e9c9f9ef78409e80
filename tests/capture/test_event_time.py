"""Which rows are late, missing or too far ahead (G5): to the microsecond."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tests.support.rulebooks import event
from tidegate.engine.capture.event_time import timed

OWN = event("row", "t", time="at", lateness_micros=10, ahead_micros=20)
TIMES = [105, 89, 90, 120, 121, None, 95]


def test_g05_a_row_at_the_edge_of_its_lateness_or_ahead_is_taken() -> None:
    column = pa.chunked_array([pa.array(TIMES, pa.timestamp("us", "UTC"))])
    row, commit = np.arange(len(TIMES)), np.full(len(TIMES), 100)
    found = timed(OWN, column, row, commit)
    assert found.time.tolist() == [90, 95, 105, 120]
    assert found.row.tolist() == [2, 6, 0, 3]
    refused = {why: rows.tolist() for rows, why in found.refused}
    assert refused == {
        "`time: at` is null": [5],
        "late: `time: at` is more than 10 us before its commit": [1],
        "`time: at` is more than 20 us after its commit": [4],
    }
    assert timed(OWN, column, row, commit, seen_at=100).time.tolist() == [89, 90, 95, 105, 120]
