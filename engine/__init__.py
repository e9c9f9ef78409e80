"""The engine: five stages, what holds them together, and the command line."""
