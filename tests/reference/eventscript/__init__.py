"""A direct, slow reading of event scripts (EventScript, Cohen and Kalleberg, LCTES 2008)."""
