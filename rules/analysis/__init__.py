"""Facts that follow from a rulebook: keys, lateness, order, who uses whom."""
