"""What was detected against what a case expects, shown as a diff of lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import unified_diff

from tests.golden.load import Case
from tests.golden.write import detection_text
from tests.reference.evaluate import canonical
from tidegate.rules.model import Context


def agree(found: Sequence[str], case: Case, context: Context | None = None, how: str = "") -> None:
    """Fails unless what was found, canonical, is what the case expects in this context (None: each
    rule's own). `how` says which of several ways found it."""
    __tracebackhide__ = True
    expected = canonical(case.expected[context])
    if list(found) != expected:
        texts = [
            [detection_text(json.loads(line)) for line in lines] for lines in (expected, found)
        ]
        name = " ".join(filter(None, [str(case), context and f"in {context}", how]))
        diff = unified_diff(*texts, "expected", "found", n=len(expected), lineterm="")
        raise AssertionError("\n".join([name, *(line for line in diff if line[:2] != "@@")]))
