"""Kinds of YAML values: each says how to read a node and what its JSON Schema is.

One declaration (`rules.form`) made of these is both the reader of rulebooks and their schema.
A reader never raises: it adds to the report and returns `BAD`, so that one pass finds every
error of a file.
"""

from __future__ import annotations

import difflib
import heapq
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from tidegate.rules.errors import Place, Problem
from tidegate.rules.reader import Fields, Items, Node, Scalar

Schema = dict[str, Any]

HINTS_MAX = 100  # nearest names that one report looks for: nobody reads more
COMPARED_MAX = 50  # names that a word is compared with letter by letter


class _Bad:
    """What a reader returns in place of a value that was refused."""


BAD: Final = _Bad()


class Report:
    """Collects problems, in the order found."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self._hints = 0

    def add(self, code: str, message: str, place: Place, hint: str = "", excerpt: str = "") -> _Bad:
        """Record one problem; returns BAD for the caller to pass on."""
        self.problems.append(Problem(code, message, place, hint, excerpt))
        return BAD

    def warn(self, code: str, message: str, place: Place, hint: str = "") -> None:
        """Record one warning."""
        self.warnings.append(Problem(code, message, place, hint))

    def did_you_mean(self, word: str, known: Iterable[str]) -> str:
        """`did_you_mean`, for the first hundred words of a report."""
        self._hints += 1
        return did_you_mean(word, known) if self._hints <= HINTS_MAX else ""


@dataclass(frozen=True)
class Kind:
    """`read(node, report)` gives the value or BAD; `schema` is the JSON Schema of the node."""

    read: Callable[[Node, Report], Any]
    schema: Schema


@dataclass(frozen=True)
class Key:
    """One key of a record. `doc` is what an editor shows."""

    name: str
    kind: Kind
    doc: str
    required: bool = False


@dataclass
class Record:
    """The values of a mapping by key (those that could be read), with their nodes."""

    node: Fields
    values: dict[str, Any] = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    def has(self, key: str) -> bool:
        """Whether the key is written, readable or not."""
        return key in self.node.entries

    def place(self, key: str = "") -> Place:
        """Where the key's value stands; without a key, the record itself."""
        return self.node.entries[key].place if key in self.node.entries else self.node.place


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, or all of them where they are few."""
    names = sorted(known)
    compared = names if len(names) <= COMPARED_MAX else _alike(word, names)
    close = difflib.get_close_matches(word, compared, n=1) or [
        name for name in names if name.lower() == word.lower()
    ]
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(names)}" if 0 < len(names) <= 12 else ""


def _alike(word: str, names: Iterable[str]) -> list[str]:
    """The names that share most pairs of letters with a word."""
    pairs = _pairs(word)
    return heapq.nlargest(COMPARED_MAX, names, lambda name: len(pairs & _pairs(name)))


@lru_cache(maxsize=20_000)
def _pairs(name: str) -> frozenset[str]:
    return frozenset(map("".join, pairwise(f" {name} ")))


def scalar(what: str, schema: Schema, convert: Callable[[Scalar, Report], Any]) -> Kind:
    """A scalar. `convert` may raise `ValueError` with `message; hint` for the user."""

    def read(node: Node, report: Report) -> Any:
        if not isinstance(node, Scalar):
            return report.add("type", f"expected {what}, found {_named(node)}", node.place)
        try:
            return convert(node, report)
        except ValueError as error:
            message, _, hint = str(error).partition("; ")
            return report.add("value", message, node.place, hint)

    return Kind(read, schema)


def text(what: str = "a text", pattern: str = "", schema: Schema | None = None) -> Kind:
    """A text that is not empty; of a `pattern` if given. Plain numbers are not text."""

    def convert(node: Scalar, report: Report) -> Any:
        value = node.value
        if not isinstance(value, str):
            shown = "nothing" if value is None else node.text
            hint = "" if value is None else f'quote it: "{node.text}"'
            return report.add("type", f"expected {what}, found {shown}", node.place, hint)
        if not value.strip():
            return report.add("value", f"expected {what}, found an empty text", node.place)
        if pattern and not re.fullmatch(pattern, value):
            return report.add("value", f"{value!r} is not {what}", node.place)
        return value

    form: Schema = {"type": "string", "minLength": 1}
    if pattern:
        form["pattern"] = f"^(?:{pattern})$"
    return scalar(what, schema or form, convert)


def parsed(what: str, convert: Callable[[str], Any]) -> Kind:
    """A scalar whose text `convert` reads (plain numbers too); it raises `ValueError`."""
    schema: Schema = {"type": ["string", "number"]}
    return scalar(what, schema, lambda node, _: convert(node.text))


def integer(least: int | None = None, most: int | None = None) -> Kind:
    """A whole number in [least, most]."""
    schema: Schema = {"type": "integer"}
    if least is not None:
        schema["minimum"] = least
    if most is not None:
        schema["maximum"] = most

    def convert(node: Scalar, report: Report) -> Any:
        value = node.value
        if not isinstance(value, int) or isinstance(value, bool):
            message = f"expected a whole number, found {node.text!r}"
            return report.add("type", message, node.place)
        if (least is not None and value < least) or (most is not None and value > most):
            above = f"at least {least}" if most is None else f"from {least} to {most}"
            return report.add("value", f"{value} must be {above}", node.place)
        return value

    return scalar("a whole number", schema, convert)


def _flag(node: Scalar, report: Report) -> Any:
    if isinstance(node.value, bool):
        return node.value
    return report.add("type", f"expected true or false, found {node.text!r}", node.place)


FLAG = scalar("true or false", {"type": "boolean"}, _flag)


def choice(*names: str) -> Kind:
    """One of some words."""
    names = tuple(str(name) for name in names)

    def convert(node: Scalar, report: Report) -> Any:
        if node.text in names:
            return node.text
        hint = report.did_you_mean(node.text, names)
        return report.add(
            "value", f"{node.text!r} is not one of {', '.join(names)}", node.place, hint
        )

    return scalar(f"one of {', '.join(names)}", {"enum": list(names)}, convert)


def listing(item: Kind, least: int = 0) -> Kind:
    """A sequence, read as a tuple of what could be read."""

    def read(node: Node, report: Report) -> Any:
        if not isinstance(node, Items):
            return report.add("type", f"expected a list, found {_named(node)}", node.place)
        if len(node.items) < least:
            return report.add("value", "the list is empty", node.place)
        values = [item.read(child, report) for child in node.items]
        return tuple(value for value in values if value is not BAD)

    schema: Schema = {"type": "array", "items": item.schema}
    if least:
        schema["minItems"] = least
    return Kind(read, schema)


def mapping(value: Kind, key: str, what: str, single: bool = False) -> Kind:
    """A mapping from free names that match the pattern `key` to values of one kind; a `single` one
    has one entry. Values that are refused are kept as BAD, so that their names stay known.
    """

    def read(node: Node, report: Report) -> Any:
        if not isinstance(node, Fields):
            return report.add("type", f"expected a mapping, found {_named(node)}", node.place)
        if single and len(node.entries) != 1:
            message = f"expected one entry, found {len(node.entries)}"
            return report.add("value", message, node.place)
        values: dict[str, Any] = {}
        for name, child in node.entries.items():
            if not re.fullmatch(key, name):
                report.add("name", f"{name!r} is not {what}", node.keys[name])
            values[name] = value.read(child, report)
        return values

    schema: Schema = {
        "type": "object",
        "propertyNames": {"pattern": f"^(?:{key})$"},
        "additionalProperties": value.schema,
    }
    if single:
        schema |= {"minProperties": 1, "maxProperties": 1}
    return Kind(read, schema)


def record(what: str, *keys: Key) -> Kind:
    """A mapping with fixed keys, read as a `Record`."""
    known = {key.name: key for key in keys}

    def read(node: Node, report: Report) -> Any:
        if not isinstance(node, Fields):
            return report.add("type", f"expected {what}, found {_named(node)}", node.place)
        result = Record(node)
        for name, child in node.entries.items():
            if name not in known:
                hint = report.did_you_mean(name, known)
                message = f"unknown key {name!r} in {what}"
                report.add("unknown-key", message, node.keys[name], hint)
                continue
            value = known[name].kind.read(child, report)
            if value is not BAD:
                result.values[name] = value
        for key in keys:
            if key.required and key.name not in node.entries:
                report.add("missing-key", f"{what} needs the key {key.name!r}", node.place, key.doc)
        return result

    schema: Schema = {
        "type": "object",
        "properties": {key.name: {**key.kind.schema, "description": key.doc} for key in keys},
        "required": [key.name for key in keys if key.required],
        "additionalProperties": False,
    }
    return Kind(read, schema)


def by_key(what: str, kinds: Mapping[str, Kind]) -> Kind:
    """One of several records, told apart by the one of these keys that is present."""

    def read(node: Node, report: Report) -> Any:
        if not isinstance(node, Fields):
            return report.add("type", f"expected {what}, found {_named(node)}", node.place)
        present = [key for key in kinds if key in node.entries]
        if len(present) == 1:
            return kinds[present[0]].read(node, report)
        names = ", ".join(kinds)
        if present:
            second = node.keys[present[1]]
            message = f"{what} has only one of {names}, not {' and '.join(present)}"
            return report.add("value", message, second)
        for name in node.entries:
            close = difflib.get_close_matches(name, kinds, n=1)
            if close:
                hint = f"did you mean {close[0]!r}?"
                message = f"unknown key {name!r} in {what}"
                return report.add("unknown-key", message, node.keys[name], hint)
        return report.add("missing-key", f"{what} needs one of {names}", node.place)

    return Kind(read, {"oneOf": [kind.schema for kind in kinds.values()]})


def by_form(
    what: str, *, one: Kind | None = None, many: Kind | None = None, named: Kind | None = None
) -> Kind:
    """A scalar, a sequence or a mapping, each read by its own kind."""
    kinds: dict[type[Node], Kind | None] = {Scalar: one, Items: many, Fields: named}

    def read(node: Node, report: Report) -> Any:
        kind = kinds[type(node)]
        if kind is None:
            return report.add("type", f"expected {what}, found {_named(node)}", node.place)
        return kind.read(node, report)

    return Kind(read, {"anyOf": [kind.schema for kind in kinds.values() if kind]})


def with_node(kind: Kind) -> Kind:
    """The same kind, read as (value, node): for what needs its place later."""

    def read(node: Node, report: Report) -> Any:
        value = kind.read(node, report)
        return BAD if value is BAD else (value, node)

    return Kind(read, kind.schema)


def _named(node: Node) -> str:
    if isinstance(node, Items):
        return "a list"
    if isinstance(node, Fields):
        return "a mapping"
    text = node.text if isinstance(node, Scalar) else ""
    return repr(text) if text else "nothing"
