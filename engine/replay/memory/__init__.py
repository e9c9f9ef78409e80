"""An engine's ports in memory, and the world of a case over them: no Spark, no disk, no threads,
and a clock that goes as it is told."""
