"""The HTTP inbox: programs raise signals, and wait for what rules detect (G4, G28)."""

from tidegate.engine.inbox.limits import strictest
from tidegate.engine.inbox.server import Address, Inbox, parse_address

__all__ = ["Address", "Inbox", "parse_address", "strictest"]
