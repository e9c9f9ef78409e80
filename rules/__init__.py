"""The language: YAML and event expressions to frozen values. No Spark, no I/O but reading files."""
