"""Event expressions: text <-> nodes."""
