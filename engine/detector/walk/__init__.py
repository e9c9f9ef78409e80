"""Rules that are chains of event types, detected in one walk over a whole table of occurrences.

The event graph steps node by node over buckets, whatever an expression is; a chain over a history
that is there from beginning to end needs neither the steps between nor anything carried on.
"""
