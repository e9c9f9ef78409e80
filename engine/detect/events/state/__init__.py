"""What a step leaves for the next one, as Arrow tables."""
