"""Damping: which firings are dropped though their condition let them through."""
