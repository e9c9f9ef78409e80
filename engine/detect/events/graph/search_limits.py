"""The limits of a choice: what it carries and how long it searches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidegate.engine.detect.events.occurrences.instances import EVERY_KEY, Instances
from tidegate.rules.errors import EngineError


class LimitError(EngineError):
    """A limit that one key of a rule has reached. `key` is its code in the step. `of` adds the
    names of the rule and the key."""

    def __init__(self, code: str, message: str, hint: str, key: int = EVERY_KEY) -> None:
        super().__init__(code, message, hint)
        self.key = key

    def of(self, rule: str, key: str) -> RuleLimitError:
        """The same, naming the rule and the key."""
        whose = f"rule {rule}, key {key}" if key else f"rule {rule}"
        return RuleLimitError(self.code, f"{whose}: {self.message}", self.hint, rule, self.message)


class RuleLimitError(EngineError):
    """A limit that `rule` has reached: it cannot be detected any further (G13). `reason` is the
    message without the values of the key."""

    def __init__(self, code: str, message: str, hint: str, rule: str, reason: str) -> None:
        super().__init__(code, message, hint)
        self.rule, self.reason = rule, reason

    def __reduce__(self) -> tuple[type[RuleLimitError], tuple[str, ...]]:
        """It comes back from a task as bytes."""
        return RuleLimitError, (self.code, self.message, self.hint, self.rule, self.reason)


def check_carried(carried: Sequence[Instances], carried_max: int) -> None:
    """Raises `LimitError('carried-per-key')` if more than `carried_max` instances are of one key,
    or of every key."""
    if sum(len(part) for part in carried) <= carried_max:
        return
    counts = np.bincount(np.concatenate([part.key for part in carried]))
    if counts.max() > carried_max:
        raise LimitError(
            "carried-per-key",
            f"{counts.max()} occurrences are not consumed, at most {carried_max} are carried"
            " (setting carried_per_key_max)",
            "bound the expression by `within`, or raise carried_per_key_max",
            int(counts.argmax()),
        )


def check_held(windows: Instances, carried_max: int) -> None:
    """Raises `LimitError('carried-per-key')` if an open window has more than `carried_max` rows."""
    sizes = np.diff(windows.offsets)
    if sizes.max(initial=0) > carried_max:
        raise _too_long(int(sizes.max()), carried_max, int(windows.key[sizes.argmax()]))


def check_rows(rows: Instances, carried_max: int) -> None:
    """The same where each row of a window is an instance."""
    if len(rows) <= carried_max:
        return
    sizes = np.bincount(rows.key)
    if sizes.max() > carried_max:
        raise _too_long(int(sizes.max()), carried_max, int(sizes.argmax()))


def _too_long(rows: int, most: int, key: int) -> LimitError:
    return LimitError(
        "carried-per-key",
        f"a window has {rows} rows, at most {most} are carried (setting carried_per_key_max)",
        "make the window shorter, or raise carried_per_key_max",
        key,
    )
