"""Other clocks than the wall's: simulation over a trace."""
