"""The event graph (Snoop): expressions of all rules as shared nodes."""
