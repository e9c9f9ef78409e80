"""The occurrences of one step: those carried, then those that arrive."""
