"""Why a case needs Spark (`testing.md`)."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from tidegate.engine.replay.cases.model import Case
from tidegate.rules.model import Rulebook


def needs_spark(book: Rulebook, schemas: Mapping[str, pa.Schema], case: Case) -> str | None:  # noqa: ARG001
    """The reason in a few words; None where the case is fast."""
    return None
