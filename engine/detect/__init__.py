"""Occurrences -> detections: event scripts, and the event graph of rules."""
