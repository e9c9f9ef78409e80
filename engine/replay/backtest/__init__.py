"""`backtest`: what a rulebook would have done in the past of its tables."""
