"""The builders under the names of before."""

from typing import Any

from tests.support import rulebooks
from tests.support.capture import Capturing as Loop
from tests.support.capture import needs, rows, total
from tests.support.rulebooks import event, table

__all__ = ["Loop", "event", "needs", "rows", "rulebook", "table", "total"]


def rulebook(tables: Any, events: Any, **settings: Any) -> Any:
    return rulebooks.rulebook(tables=tables, events=events, **settings)
