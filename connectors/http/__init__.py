"""The HTTP inbox: programs raise signals, and listen for what rules detect (G4, G28)."""

from tidegate.connectors.http.app import Beside, Shown
from tidegate.connectors.http.console import Told
from tidegate.connectors.http.inbox_limits import strictest
from tidegate.connectors.http.server import Address, Inbox, parse_address

__all__ = ["Address", "Beside", "Inbox", "Shown", "Told", "parse_address", "strictest"]
