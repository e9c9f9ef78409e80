"""The exploration of a script's automaton, before anything runs: its states and moves, and the
ambiguities, where one event lets two paths of a set go on (`eventscript.md` 5).

The exploration is bounded by `script_states_max`, `script_paths_max` and
`script_exploring_steps_max`. It is not bounded by time, so every machine explores the same part of
a script. A step is one path, or one marker or block of a pair, that is looked at or led to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidegate.engine.detect.scripts.paths import Paths, Symbol, TooManyPathsError, markers
from tidegate.engine.detect.scripts.places import (
    NOTHING,
    Action,
    Marker,
    Path,
    PathSet,
    Places,
    Reached,
)
from tidegate.rules.errors import Place
from tidegate.rules.eventscript import tree

OTHER = ""
"""The symbol of all events that no marker names."""
_Due = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """`symbol` lets paths go on from two markers, by their places. `actions`: both reach a block,
    or store what they take."""

    symbol: Symbol
    first: int
    second: int
    actions: bool


@dataclass(slots=True)
class Explored:
    """The part of an automaton that was explored.

    states[n]   the path set of state n; state 0 is the start
    moves[n]    symbol -> the next state and what is reached; an absent symbol is not expected
    started     what the start reaches
    seen        the number of states, from 0 on, of which all moves are known
    too_large   "" if all was explored; else the setting that was reached
    steps       the number of steps that it took
    """

    places: Places
    started: Reached
    states: list[PathSet] = field(default_factory=list)
    moves: list[dict[Symbol, tuple[int, Reached]]] = field(default_factory=list)
    ambiguous: list[Ambiguity] = field(default_factory=list)
    too_large: str = ""
    seen: int = 0
    steps: int = 0


class _TooLargeError(Exception):
    """Its text: the setting that is reached."""


def explore(program: tree.Program, states_max: int, paths_max: int, steps_max: int) -> Explored:
    """The automaton of a script, as far as the bounds let it be seen."""
    return _Explorer(program, states_max, paths_max, steps_max).explore()


class _Explorer(Paths):
    def __init__(
        self, program: tree.Program, states_max: int, paths_max: int, steps_max: int
    ) -> None:
        super().__init__(Places(program.regex), paths_max)
        self._states_max = states_max
        self._steps, self._steps_max = 0, steps_max
        self._together = Together(self.places)
        known = self.names()
        events = dict.fromkeys(event for each in program.inputs for event in each.events)
        self._names = [event for event in events if event in known]
        if len(self._names) < len(events):
            self._names.append(OTHER)
        self._numbers: dict[PathSet, int] = {}
        self._pairs: dict[tuple[Place, Place], Ambiguity] = {}
        self._noted: set[tuple[int, int, bool]] = set()
        self._acts = frozenset(n for n, part in enumerate(self.places.places) if _acts(part))

    def explore(self) -> Explored:
        found = Explored(self.places, NOTHING)
        try:
            found.started = self.enter()
            self._state(found, found.started.paths)
            for number, paths in enumerate(found.states):  # which grows meanwhile
                for symbol in self._symbols(paths):
                    self._move(found, number, paths, symbol)
                found.seen = number + 1
        except TooManyPathsError:
            found.too_large = "script_paths_max"
        except _TooLargeError as error:
            found.too_large = str(error)
        found.ambiguous = [*self._pairs.values()]
        found.steps = self._steps
        return found

    def _symbols(self, paths: PathSet) -> Iterator[Symbol]:
        """What may come: each named event, and each set of timed markers that may be due
        together."""
        yield from self._names
        yield from self._together.sets(self.timed(paths))

    def _move(self, found: Explored, number: int, paths: PathSet, symbol: Symbol) -> None:
        self._looked(1)
        reached = self.step(paths, symbol)
        if reached.paths or reached.matched:
            found.moves[number][symbol] = (self._state(found, reached.paths), reached)

    def _state(self, found: Explored, paths: PathSet) -> int:
        self._looked(len(paths))
        number = self._numbers.setdefault(paths, len(found.states))
        if number == len(found.states):
            if number == self._states_max:
                raise _TooLargeError("script_states_max")
            found.states.append(paths)
            found.moves.append({})
        return number

    def _looked(self, steps: int) -> None:
        self._steps += steps
        if self._steps > self._steps_max:
            raise _TooLargeError("script_exploring_steps_max")

    # two paths at once -------------------------------------------------------------------------

    def _went_on(self, going: list[tuple[Path, frozenset[int]]], symbol: Symbol) -> None:
        """Notes where two paths of a set go on, of the sets of pairs too."""
        acting = ((self._lead(path), not self._acts.isdisjoint(own)) for path, own in going)
        self._note(sorted(acting), symbol)

    def _lead(self, path: Path) -> int:
        """The first marker of a path."""
        return path if isinstance(path, int) else min(markers(path[1] | path[2]))

    def _note(self, going: list[tuple[int, bool]], symbol: Symbol) -> None:
        """Each marker with the first that goes on beside it: with one that acts, if it does."""
        for n, (second, acts) in enumerate(going[1:], start=1):
            partner = next((i for i in range(n) if going[i][1]), 0) if acts else 0
            first, other = going[partner]
            said = first, second, acts and other
            if said in self._noted:
                continue
            self._noted.add(said)
            key = place_of(self.places, first), place_of(self.places, second)
            known = self._pairs.get(key)
            if known is None or (said[2] and not known.actions):
                self._pairs[key] = Ambiguity(symbol, *said)


def _acts(part: Marker | Action) -> bool:
    """Whether something happens at a place."""
    return isinstance(part, Action) or part.tree.variable is not None


def place_of(places: Places, number: int) -> Place:
    """Where a marker or block stands in the text, the same for all its copies."""
    part = places.places[number]
    return part.tree.place if isinstance(part, Marker) else part.block.place


class Together:
    """Markers with equal operands are always due together: all operands are taken at the same
    instant. `elapse` is never due with `arrive`, and neither are two whose constants differ. A
    `within` counts from an instant of its own, and may be due with any `elapse`."""

    def __init__(self, places: Places) -> None:
        self._due: dict[int, _Due] = {
            part.number: _due(part.tree, part.number)
            for part in places.places
            if isinstance(part, Marker) and isinstance(part.tree, tree.Elapse | tree.Arrive)
        }

    def sets(self, timed: Sequence[int]) -> Iterator[frozenset[int]]:
        """Each set of the markers that may be due together, small ones first."""
        groups: dict[_Due, list[int]] = {}
        for place in timed:
            groups.setdefault(self._due[place], []).append(place)
        kinds = [*groups]
        waiting: list[tuple[int, ...]] = [(n,) for n in range(len(kinds))]
        for chosen in waiting:  # which grows meanwhile
            yield frozenset(place for n in chosen for place in groups[kinds[n]])
            waiting += [
                (*chosen, n)
                for n in range(chosen[-1] + 1, len(kinds))
                if all(_may_meet(kinds[n], kinds[m]) for m in chosen)
            ]


def _due(marker: tree.Elapse | tree.Arrive, place: int) -> _Due:
    """What says when a marker is due; a part that only running tells is no number."""
    if isinstance(marker, tree.Elapse):
        if isinstance(marker, tree.Within):
            return "elapse", (marker.amount, place)
        amount = marker.amount
        if isinstance(amount, tree.Literal):
            return "elapse", round(amount.value * marker.unit_micros)
        return "elapse", (amount, marker.unit_micros)
    if marker.instant is not None:
        return "instant", marker.instant
    return "clock", *(
        each.value if isinstance(each, tree.Literal) else each for each in marker.components
    )


def _may_meet(one: _Due, other: _Due) -> bool:
    """Whether the text leaves it open that two are due at one instant."""
    if (one[0] == "elapse") != (other[0] == "elapse"):
        return False
    if one[0] != other[0]:
        return True
    pairs = zip(one[1:], other[1:], strict=True)
    return not any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)
