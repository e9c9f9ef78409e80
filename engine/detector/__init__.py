"""Detection: occurrences of event types -> detections of rules. Pure and columnar."""

from pathlib import Path

from tidegate.engine.detector.compiled import forget_stale

forget_stale(Path(__file__).parent)
