"""A file for each kind of entry."""
