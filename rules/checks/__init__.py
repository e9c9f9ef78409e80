"""Errors and warnings: what no single key of a rulebook can show."""
