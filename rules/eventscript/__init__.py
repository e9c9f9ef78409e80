"""Event scripts: regular expressions over events, with actions (EventScript, Cohen and Kalleberg,
LCTES 2008). A text becomes a typed tree; every mistake has its line and column."""
