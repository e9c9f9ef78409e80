"""Values, times and log lines as text."""
