"""Finds and isolates the texts of a rulebook that end Spark's Java or overrun their deadline (G13).

`Quarantine` counts strikes. `WatchedFeed`, `WatchedConditions` and `WatchedSink` wrap the ports of
the same names: all texts that Spark runs go through them. `Gate` lets a suspect run alone, so that
its next strike is its own.

Example: a condition ends Java. It gets a strike, and so do all texts that ran beside it. Spark is
started again, and each of them runs alone. Those that end cleanly are no suspects any more. The
condition ends Java a second time: the firings that it was asked of are dead, and nothing else.
"""
