"""The console: pages in a browser that show what the engines of a store do, and buttons that ask
for something. Each page has its JSON under the same path, with `.json`."""

from tidegate.connectors.http.console.pages import Told
from tidegate.connectors.http.console.site import Console

__all__ = ["Console", "Told"]
