"""One step over one bucket: occurrences in, detections and carried state out."""
