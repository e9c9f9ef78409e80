"""Changes of tables, signals and clocks -> the occurrences of a bucket."""
