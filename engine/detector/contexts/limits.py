"""What a choice refuses to carry."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.detector.instances import Instances
from rules.errors import EngineError


def check_carried(carried: Sequence[Instances], carried_max: int) -> None:
    """Raises `EngineError('carried-per-key')` if there is more of one key, or of every key."""
    if sum(len(part) for part in carried) <= carried_max:
        return
    most = int(np.bincount(np.concatenate([part.key for part in carried])).max())
    if most > carried_max:
        raise EngineError(
            "carried-per-key",
            f"{most} occurrences of one key are not used up, at most {carried_max} are carried",
            "bound the expression by `within`, or raise carried_per_key_max",
        )
