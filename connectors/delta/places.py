"""From an offset in a SQL text to the place in the YAML file where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tidegate.rules.errors import InputError, Place
from tidegate.rules.model import Rulebook
from tidegate.rules.yaml.reader import Fields, Items, Node, Scalar, read_yaml


class Texts:
    """Reads the rulebook's YAML again, but only once a place in it is asked for."""

    def __init__(self, rulebook: Rulebook) -> None:
        self._rulebook = rulebook
        self._scalars: Mapping[tuple[int, int], Scalar] | None = None

    def locate(self, place: Place) -> Callable[[int], Place]:
        """The places of the characters of the text that begins at `place`."""

        def at(offset: int) -> Place:
            if place.file != (self._rulebook.file or "<text>"):
                return place  # of a rule that stands beside the text
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
                found = iter(())  # not made from YAML: the text's own place has to do
            begins = ((s.locate(0), s) for s in found)  # of the content, not of quotes or header
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
