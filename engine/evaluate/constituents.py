"""The constituents of detections, an entry each: values gathered from the batches they are in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.engine.core.values import Batch, Detections


def gather(
    detections: Detections,
    values: Callable[[str, Batch], npt.NDArray[Any]],
    like: npt.NDArray[Any],
) -> npt.NDArray[Any]:
    """A value an entry: `values(event, batch)` has one for each occurrence of an event type's
    batch. Filled into `like`, which has a row an entry."""
    for code in np.unique(detections.event_code):
        entries = np.flatnonzero(detections.event_code == code)
        event = detections.events[code]
        found = values(event, detections.batches[event])
        like[entries] = found[detections.event_row[entries]]
    return like
