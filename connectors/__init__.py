"""The outside world: Delta tables, the clock, the inbox."""
