"""All paths of an instance at once: `step` of section 3 over path sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidegate.engine.detect.scripts.places import (
    NOTHING,
    NOWHERE,
    Marker,
    Path,
    PathSet,
    Places,
    Reached,
    paired,
)
from tidegate.rules.eventscript import tree

Symbol = str | frozenset[int]
"""An event: a name, or the timed markers that are due together."""
_ANY, _TIMED = ".", " timed"  # no event has such a name


class TooManyPathsError(Exception):
    """More paths than `script_paths_max`."""


@dataclass(slots=True)
class Paths:
    """The steps of a script's paths. `most` is the greatest number of paths of one set, those
    inside pairs counted."""

    places: Places
    most: int
    _takes: tuple[str | None, ...] = ()
    _gone: dict[int, Reached] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._takes = tuple(
            _taken(part.tree) if isinstance(part, Marker) else None for part in self.places.places
        )

    def enter(self) -> Reached:
        """The start. Raises `TooManyPathsError`."""
        return self.checked(self.places.enter(self.places.root))

    def step(self, paths: PathSet, symbol: Symbol) -> Reached:
        """What some paths give when an event comes; it is expected if there is a path or a match.
        Raises `TooManyPathsError`."""
        return self.checked(self._step(paths, symbol))

    def timed(self, paths: PathSet) -> tuple[int, ...]:
        """The timed markers before which some paths stand, in the order of the text."""
        return tuple(sorted({n for n in markers(paths) if self._takes[n] == _TIMED}))

    def names(self) -> frozenset[str]:
        """The events that markers name."""
        return frozenset(name for name in self._takes if name and name not in (_ANY, _TIMED))

    def checked(self, found: Reached) -> Reached:
        """What was found. Raises `TooManyPathsError`."""
        if len(found.paths) > self.most or _size(found.paths, self.most) > self.most:
            message = f"more than {self.most:,} paths (setting script_paths_max)"
            raise TooManyPathsError(message)
        return found

    def _step(self, paths: PathSet, symbol: Symbol) -> Reached:
        self._looked(len(paths))
        going: list[tuple[Path, frozenset[int]]] = []
        new, reached, matched = set[object](), set[int](), False
        for path in paths:
            if isinstance(path, int):
                if not self.match(path, symbol):
                    continue
                after = self._gone.get(path) or self._go(path)
                own = after.places
            else:
                pair = self.places.pairs[path[0]]
                both = paired(pair, self._step(path[1], symbol), self._step(path[2], symbol))
                self._looked(len(both.places))
                if not both.paths and not both.matched:
                    continue
                new |= both.paths
                after = self.places.after(pair) if both.matched else NOTHING
                own = both.places | after.places
            self._looked(len(after.paths))
            going.append((path, own))
            new |= after.paths
            reached |= own
            matched |= after.matched
        if len(going) > 1:
            self._went_on(going, symbol)
        return Reached(frozenset(new), matched, frozenset(reached))  # type: ignore[arg-type]

    def _go(self, marker: int) -> Reached:
        """What a marker that is taken leads to."""
        after = self.places.after(self.places.places[marker])
        found = self._gone[marker] = after._replace(places=after.places | {marker})
        return found

    def _looked(self, steps: int) -> None:
        """So many paths, or places of pairs, are looked at or led to."""

    def _went_on(self, going: list[tuple[Path, frozenset[int]]], symbol: Symbol) -> None:
        """Several paths of one set go on, each with the places that it reaches."""

    def match(self, marker: int, symbol: Symbol) -> bool:
        """Whether the marker of a place takes an event."""
        if isinstance(symbol, str):
            taken = self._takes[marker]
            return taken in (symbol, _ANY)
        return marker in symbol


def markers(paths: PathSet) -> Iterator[int]:
    """The markers before which some paths stand, those inside pairs too."""
    for path in paths:
        if isinstance(path, int):
            yield path
        else:
            yield from markers(path[1])
            yield from markers(path[2])


def _size(paths: PathSet, most: int) -> int:
    """How many paths there are, those inside pairs too; counted no further than past `most`."""
    size = len(paths)
    for path in paths:
        if not isinstance(path, int) and size <= most:
            size += _size(path[1], most) + _size(path[2], most)
    return size


def _taken(marker: tree.Named | tree.Elapse | tree.Arrive) -> str:
    if isinstance(marker, tree.Named):
        return _ANY if marker.event is None else marker.event
    return _TIMED


def text_of(paths: PathSet) -> str:
    """A path set as text: its markers, then its pairs. Example: `0 3 (1:2;4 5)`."""
    marks = sorted(path for path in paths if isinstance(path, int))
    pairs = [path for path in paths if not isinstance(path, int)]
    inner = sorted(f"({n}:{text_of(left)};{text_of(right)})" for n, left, right in pairs)
    return " ".join([*map(str, marks), *inner])


def of_text(text: str) -> PathSet:
    """The path set of `text_of`."""
    found, rest = _read(text)
    if rest:
        raise ValueError(text)
    return found


def _read(text: str) -> tuple[PathSet, str]:
    found: list[object] = []
    while text and text[0] not in ";)":
        if text[0] == "(":
            number, _, text = text[1:].partition(":")
            left, text = _read(text)
            right, text = _read(text[1:])
            found.append((int(number), left, right))
            text = text[1:].removeprefix(" ")
        else:
            end = next((n for n, c in enumerate(text) if not c.isdigit()), len(text))
            found.append(int(text[:end]))
            text = text[end:].removeprefix(" ")
    return (frozenset(found) if found else NOWHERE), text  # type: ignore[arg-type]
