"""A plan as JSON: what a bucket held, for whoever asks later (G1, G2)."""

from __future__ import annotations

import json
from typing import Any

from tidegate.engine.core.lifecycle import detected_by
from tidegate.engine.core.values import CLIENT, ENGINE, Plan, TableRange


def plan_to_text(plan: Plan) -> str:
    """The parts of a plan that have no column of their own."""
    return json.dumps(
        {
            "ranges": [_range(span) for span in plan.ranges],
            "signals": {
                whose: [signal.id for signal in plan.signals if signal.namespace == whose]
                for whose in (CLIENT, ENGINE)
            },
            "pinned": dict(plan.pinned),
            "activations": dict(plan.activations),
            "controls": list(plan.controls),
            "passed_over": dict(plan.passed_over),
            "detected": {
                "by": detected_by(executors=plan.site.executors),
                "because": plan.site.why,
            },
        },
        separators=(",", ":"),
    )


def _range(span: TableRange) -> dict[str, Any]:
    return {
        "table": span.table,
        "table_id": span.cursor.table_id,
        "first": span.first,
        "last": span.last,
        "depths": {str(v): depth for v, depth in span.depths.items()},
        "skipped": sorted(span.skipped),
        "snapshot": span.snapshot,
    }
