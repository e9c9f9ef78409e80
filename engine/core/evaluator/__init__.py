"""Evaluates a closed list of Spark SQL on Arrow columns, with Spark's ANSI meaning (G30).

A text of the list becomes typed nodes, whose kernels run over whole columns. `filters.py` is for a
`where`, `firings.py` for an `if`. A text outside the list has no nodes: Spark evaluates it.
"""
