"""Scans of flat expressions (`rules.algebra.stages`) and of windows `A*`, in the contexts that
consume occurrences."""
