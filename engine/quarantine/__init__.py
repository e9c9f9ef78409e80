"""What ends Spark's Java, or outlasts its deadline, is found, set aside and named (G13).

`Quarantine` counts strikes. `WatchedFeed`, `WatchedConditions` and `WatchedSink` stand in front of
the ports of the same names: whatever Spark runs of a rulebook's texts goes through them. `Gate`
gives a suspect Spark for itself, so that its next strike is nobody else's.

Example: a condition ends Java. It has one strike, as have all texts that ran beside it. Spark is
started again, each of them runs alone, and those that end cleanly are suspects no more. The
condition ends Java a second time: the firings that it was asked of are dead, and nothing else is.
"""
