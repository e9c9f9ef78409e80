"""All nodes of a part of a script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from tidegate.rules.eventscript.tree import Node


def nodes(node: object) -> Iterator[Node]:
    """A node and all nodes in it, in the order of their fields."""
    if isinstance(node, Node):
        yield node
    if is_dataclass(node):
        for each in fields(node):
            yield from nodes(getattr(node, each.name))
    elif isinstance(node, tuple):
        for part in node:
            yield from nodes(part)
