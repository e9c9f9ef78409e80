"""Flat expressions (`rules.algebra.stages`) and windows `A*` in the contexts that consume
occurrences."""
