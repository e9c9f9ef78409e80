"""`tidegate test`: cases in YAML, run through the engine's own stages on a virtual clock."""
