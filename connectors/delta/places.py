"""From an offset in a SQL text to its place (line, column) in the rulebook's YAML file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tidegate.rules.errors import InputError, Place
from tidegate.rules.model import Rulebook
from tidegate.rules.yaml.reader import Fields, Items, Node, Scalar, read_yaml


class Texts:
    """The SQL texts of a rulebook's YAML. The YAML is read again when the first place is asked
    for."""

    def __init__(self, rulebook: Rulebook) -> None:
        self._rulebook = rulebook
        self._scalars: Mapping[tuple[int, int], Scalar] | None = None

    def locate(self, place: Place) -> Callable[[int], Place]:
        """From an offset in the text that begins at `place` to the place of that character."""

        def at(offset: int) -> Place:
            if place.file != (self._rulebook.file or "<text>"):
                return place  # the rule was put beside the rulebook's text
            scalar = self._known().get((place.line, place.column))
            if scalar is None or offset > len(scalar.text):
                return place
            return scalar.locate(offset)

        return at

    def _known(self) -> Mapping[tuple[int, int], Scalar]:
        if self._scalars is None:
            text = self._rulebook.text
            try:
                top, _ = read_yaml(text, self._rulebook.file or "<text>", len(text) * 4)
                found = _scalars(top)
            except InputError:
                found = iter(())  # the rulebook was not made from YAML
            begins = ((s.locate(0), s) for s in found)  # behind a quote or a block's header
            self._scalars = {(begin.line, begin.column): s for begin, s in begins}
        return self._scalars


def _scalars(node: Node) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Items):
        for item in node.items:
            yield from _scalars(item)
    elif isinstance(node, Fields):
        for entry in node.entries.values():
            yield from _scalars(entry)
