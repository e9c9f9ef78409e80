"""Detection: occurrences of event types -> detections of rules. Pure and columnar."""
