"""Firings -> outcomes: outbox entries, and running them in order."""
