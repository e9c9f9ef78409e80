"""Flat expressions (`rules.stages`) and windows `A*` in the contexts that consume occurrences."""
