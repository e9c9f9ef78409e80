"""Variables of a rulebook: `${floor}` of `vars:`, and `${TIDEGATE_VAR_X}` of the environment, which
stands in paths and names of tables only. `$${floor}` is the text `${floor}`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from tidegate.rules.errors import Place, Problem, did_you_mean
from tidegate.rules.yaml.reader import Fields, Items, Node, Scalar

SECTIONS = ("tables", "events", "scripts", "rules", "samples", "reads", "defaults")
"""Where they are filled in."""
ENVIRONMENT = "TIDEGATE_VAR_"
_LEFT = "TIDEGATE_SECRET_"  # which a webhook reads when it is sent
_USE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAMES_TABLE = re.compile(r"tables\.[^.]+\.(?:path|table)")


@dataclass(frozen=True, slots=True)
class Filled(Scalar):
    """A scalar with values in place of variables. `origin`: as it was written. `pieces`: where each
    value begins in the text and how long it is, with begin and length of its `${..}`."""

    origin: Scalar | None = None
    pieces: tuple[tuple[int, int, int, int], ...] = ()

    def locate(self, offset: int) -> Place:
        return self.locator()(offset)

    def locator(self) -> Callable[[int], Place]:
        if self.origin is None:
            return super().locator()
        at = self.origin.locator()
        begins = [begin for begin, *_ in self.pieces]
        return lambda offset: at(self._written(offset, bisect_right(begins, offset)))

    def _written(self, offset: int, begun: int) -> int:
        """The offset in what was written; of all of a value, where its variable begins. `begun`:
        how many pieces begin up to it."""
        if not begun:
            return offset
        begin, length, written, used = self.pieces[begun - 1]
        return written + used + (offset - begin - length) if offset >= begin + length else written


class Variables:
    """Fills in variables. `known`: those of `vars:`. `bytes_max`: how long all that is filled in
    may be. `values`: of the environment, by `${NAME}`: what a version of the rulebook keeps.
    `environment`: has the others; None where it is not at hand. What is wrong is added to
    `problems`."""

    def __init__(
        self,
        known: Mapping[str, str],
        values: Mapping[str, str],
        environment: Mapping[str, str] | None,
        bytes_max: int,
        problems: list[Problem],
    ) -> None:
        self._known, self._values, self._environment = known, values, environment
        self._left, self._problems = bytes_max, problems
        self.used: dict[str, str] = {}
        """The values of the environment that were used, by `${NAME}`."""

    def document(self, top: Fields) -> Fields:
        """A rulebook's nodes, filled in."""
        entries = {n: self.node(e) if n in SECTIONS else e for n, e in top.entries.items()}
        return replace(top, entries=entries)

    def script(self, node: Scalar, problems: list[Problem]) -> Scalar:
        """The text of a script's file, filled in. What is wrong is added to these problems."""
        self._problems = problems
        return self._scalar(node)

    def node(self, node: Node) -> Node:
        match node:
            case Scalar():
                return self._scalar(node)
            case Items():
                return replace(node, items=tuple(map(self.node, node.items)))
            case Fields():
                return replace(node, entries={n: self.node(e) for n, e in node.entries.items()})
        return node

    def _scalar(self, node: Scalar) -> Scalar:
        if "${" not in node.text:
            return node
        text, last, pieces = "", 0, []
        for found in _USE.finditer(node.text):
            if not self._means(found[2], node):
                continue
            value = found[0][1:] if found[1] else self._value(found[2], node, found.start())
            if value is not None and self._fits(value, node):
                text += node.text[last : found.start()]
                pieces.append((len(text), len(value), found.start(), len(found[0])))
                text, last = text + value, found.end()
        if not pieces:
            return node
        text += node.text[last:]
        return Filled(node.place, text, node.style, node.raw, node.commented, node, tuple(pieces))

    def _fits(self, value: str, node: Scalar) -> bool:
        """Whether all values together are no longer than a text may be."""
        fitted = self._left >= 0
        self._left -= len(value)
        if fitted and self._left < 0:
            message = "the values of variables make the rulebook longer than yaml_bytes_max"
            self._refused(message, "make them shorter", node, 0)
        return self._left >= 0

    def _means(self, name: str, node: Scalar) -> bool:
        """Whether `${name}` is a variable there. Else it is text, and so is `$${name}`."""
        if name.startswith(_LEFT):
            return False
        return name.startswith(ENVIRONMENT) or bool(self._known) or _names_table(node)

    def _value(self, name: str, node: Scalar, offset: int) -> str | None:
        """The value of a variable; None: it is left as it is."""
        if name.startswith(ENVIRONMENT):
            if _names_table(node):
                return self._of_environment(name, node, offset)
            message = f"${{{name}}}: variables of the environment stand in tables' paths and names"
            return self._refused(message, "elsewhere vars: {x: ..}, ${x}", node, offset)
        if name in self._known:
            return self._known[name]
        hint = did_you_mean(name, self._known) if self._known else ""
        hint = hint or f"write ${{{ENVIRONMENT}{name.upper()}}}, or vars: {{{name}: ..}}"
        return self._refused(f"there is no variable {name!r}", hint, node, offset)

    def _of_environment(self, name: str, node: Scalar, offset: int) -> str | None:
        written = f"${{{name}}}"
        value = self._values.get(written, (self._environment or {}).get(name))
        if value is None and self._environment is None:
            message = f"the variable {name} is new: only the engine's own environment can have it"
            hint = "let the engine read its file itself: run --watch, SIGHUP, or a new start"
            return self._refused(message, hint, node, offset)
        if value is None:
            message = f"the variable {name} is not set in the environment"
            return self._refused(message, f"export {name}=..", node, offset)
        self.used[written] = value
        return value

    def _refused(self, message: str, hint: str, node: Scalar, offset: int) -> str | None:
        """None: the text stays as it is."""
        self._problems.append(Problem("variable", message, node.locate(offset), hint))
        return None


def _names_table(node: Scalar) -> bool:
    return _NAMES_TABLE.fullmatch(node.place.path) is not None


def declared(documents: Iterator[Fields]) -> dict[str, str]:
    """The texts of all `vars:`, by name. What is no text or number is refused where it is read."""
    found: dict[str, str] = {}
    for top in documents:
        given = top.entries.get("vars")
        for name, node in given.entries.items() if isinstance(given, Fields) else ():
            if isinstance(node, Scalar):
                found.setdefault(name, node.text)
    return found
