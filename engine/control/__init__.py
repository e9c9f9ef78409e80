"""What operators and programs ask of a store: signals, status, firings, switches, rules as data."""
