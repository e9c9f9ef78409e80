"""A rulebook on its way from YAML to `Rulebook`: the model so far, and where it came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tidegate.rules.errors import Place
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.faults import excerpt
from tidegate.rules.model import EventType, Rule, Script, Table
from tidegate.rules.yaml.kinds import Record, Report
from tidegate.rules.yaml.reader import Scalar


@dataclass
class Draft:
    """What has been read. `tables`, `events` and `rules` hold only what was readable. `names` knows
    every name that is declared, so that one error does not cause others."""

    top: Record
    file: str
    timezone: str = "UTC"
    tables: dict[str, Table] = field(default_factory=dict)
    events: dict[str, EventType] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)
    scripts: dict[str, Script] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)  # events that scripts declare
    scripts_readable: bool = True
    files: dict[str, str] = field(default_factory=dict)  # of scripts, by name as it is written
    samples: Mapping[str, str] = field(default_factory=dict)
    sample_places: Mapping[str, Place] = field(default_factory=dict)  # of their text
    _records: dict[str, dict[str, Record]] = field(default_factory=dict)
    _names: dict[tuple[str, ...], frozenset[str]] = field(default_factory=dict)

    def records(self, section: str) -> dict[str, Record]:
        """The readable records of `tables`, `events`, `scripts` or `rules`."""
        if section not in self._records:
            found = self.top.get(section, {})
            self._records[section] = {n: r for n, r in found.items() if isinstance(r, Record)}
        return self._records[section]

    def names(self, *sections: str) -> frozenset[str]:
        """The names that these sections (`tables`, `events`, `scripts`, `rules`) declare. The
        outputs of scripts are names of events, too."""
        known = (*sections, str(len(self.made)))
        if known not in self._names:
            declared = (self.top.get(section, ()) for section in sections)
            made = self.made if "events" in sections else ()
            self._names[known] = frozenset(made).union(*declared)
        return self._names[known]

    def readable(self, *sections: str) -> bool:
        """Whether all names of these sections are known: each section was read, or is not written.
        For `events` all scripts must have been read, too."""
        if "events" in sections and not self.scripts_readable:
            return False
        return all(s in self.top.values or not self.top.has(s) for s in sections)

    @cached_property
    def signals(self) -> frozenset[str]:
        """The events that are declared as signals."""
        return frozenset(n for n, r in self.records("events").items() if r.has("signal"))

    @cached_property
    def dashed(self) -> frozenset[str]:
        """The pieces of names with a dash, which are refused where they are declared. An expression
        reads `order-placed` as `order` without `placed`."""
        names = self.names("events", "rules")
        return frozenset(piece for name in names if "-" in name for piece in name.split("-"))

    def expressions(self) -> Iterator[tuple[str, x.Expression, Scalar]]:
        """(rule, its expression, the scalar it was read from) of every readable one."""
        for name, record in self.records("rules").items():
            if "on" in record.values:
                node, scalar = record.get("on")
                yield name, node, scalar


def refuse(
    report: Report, code: str, message: str, scalar: Scalar, node: x.Expression, hint: str = ""
) -> None:
    """Record a problem of one node of an expression, underlined."""
    place = scalar.locate(node.span.start)
    report.add(code, message, place, hint, excerpt(scalar.text, node.span))


def refuse_relative(path: str, place: Place, instead: str, report: Report) -> None:
    """Add the problem that a path is relative, and to nothing."""
    message = f"the relative path {path!r} in a text without a file"
    hint = f"write {instead}, or load the rulebook from its file"
    report.add("relative-path", message, place, hint)
