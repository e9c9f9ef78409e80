"""The limits of an inbox that answers for several rulebooks."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import fields, replace

from tidegate.rules.model import Settings

_NAMES = [f.name for f in fields(Settings) if f.name.startswith(("inbox_", "console_"))]
CLIENTS_MAX = 10_000  # so many are remembered


def strictest(of_books: Iterable[Settings]) -> Settings:
    """The smallest value of each setting of inbox and console, and the shortest history, among
    rulebooks (G28)."""
    known = list(of_books)
    names = [*_NAMES, "history_retention_days"]
    return replace(known[0], **{n: min(getattr(one, n) for one in known) for n in names})


class Rates:
    """A token bucket for each client. It holds the tokens of one second and fills evenly."""

    def __init__(self, per_second: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, at

    def take(self, client: str) -> bool:
        """Take a token of a client, if it has one left."""
        now = self._clock()
        tokens, at = self._left.pop(client, (self._per_second, now))
        tokens = min(self._per_second, tokens + (now - at) * self._per_second)
        self._left[client] = (tokens - 1 if tokens >= 1 else tokens, now)
        if len(self._left) > CLIENTS_MAX:
            self._left.popitem(last=False)
        return tokens >= 1
