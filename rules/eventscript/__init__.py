"""Event scripts: regular expressions over events, with actions (EventScript, Cohen and Kalleberg,
LCTES 2008). From a text to a typed tree, every mistake with its line and column."""
