"""Safe YAML, read to nodes that know where they stood."""
