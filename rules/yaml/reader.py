"""Safe YAML: text -> nodes that know where they stood. YAML 1.2, core schema.

Refused, each with its place: duplicate keys, tags, anchors and aliases, several documents, keys
that are not text, deep nesting, texts over `yaml_bytes_max`. Nothing here knows about rulebooks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from tidegate.rules.errors import InputError, Place, Problem, places
from tidegate.rules.yaml.hints import COMMENT, odd_blank, tag_hint, yaml_hint

NESTING_MAX = 50

# Characters that YAML forbids, and those that its versions disagree on: line breaks or not, blank
# or not. Nobody sees them, so what they do may not depend on the version.
_FORBIDDEN = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_ESCAPED = ("\x85", "\u2028", "\u2029", "\ufeff")

_CORE: tuple[tuple[re.Pattern[str], Any], ...] = (
    (re.compile(r"null|Null|NULL|~|"), lambda _: None),
    (re.compile(r"true|True|TRUE"), lambda _: True),
    (re.compile(r"false|False|FALSE"), lambda _: False),
    (re.compile(r"[-+]?[0-9]{1,400}"), int),
    (re.compile(r"0o[0-7]{1,400}"), lambda text: int(text[2:], 8)),
    (re.compile(r"0x[0-9a-fA-F]{1,400}"), lambda text: int(text, 16)),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
    (re.compile(r"[-+]?\.(inf|Inf|INF)"), lambda text: float(text.replace(".", ""))),
    (re.compile(r"\.(nan|NaN|NAN)"), lambda _: float("nan")),
)

_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\r?\n[ \t]*|.)")
_BLANK = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Node:
    """A value in a YAML text. `place` is where it begins, with its dotted path."""

    place: Place


@dataclass(frozen=True, slots=True)
class Scalar(Node):
    """A scalar: `text` is its content, `raw` what was written, with quotes or block header.
    `commented`: a comment follows on the line where it ends."""

    text: str
    style: str
    raw: str = ""
    commented: bool = False

    @property
    def value(self) -> str | int | float | bool | None:
        """By the core schema: only a plain scalar can be anything but text."""
        if self.style:
            return self.text
        for pattern, convert in _CORE:
            if pattern.fullmatch(self.text):
                converted: str | int | float | bool | None = convert(self.text)
                return converted
        return self.text

    def locate(self, offset: int) -> Place:
        """The place of the character at `offset` of the content."""
        upto = replace(self, text=self.text[: offset + 1]) if self.raw != self.text else self
        return upto.locator()(offset)

    def locator(self) -> Callable[[int], Place]:
        """`locate`, for one who asks often."""
        at = places(self.raw, self.place)
        if self.raw == self.text:
            return at
        offsets = content_offsets(self.raw, self.text, self.style)
        return lambda offset: at(offsets[offset])


@dataclass(frozen=True, slots=True)
class Items(Node):
    """A sequence."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Fields(Node):
    """A mapping, in the order written; `keys` says where each key stands."""

    entries: Mapping[str, Node]
    keys: Mapping[str, Place]


def read_yaml(
    source: str,
    file: str,
    bytes_max: int,
    *,
    what: str = "a rulebook",
    begin: str = "rulebook: NAME",
) -> tuple[Fields, list[Problem]]:
    """Read one YAML document whose top is a mapping. Returns the mapping, and the problems of what
    was refused and left out. For messages: `what` the document is, and how it may `begin`.

    Raises `InputError` where nothing can be read: malformed or oversize text, or no mapping.
    """
    check_size(source, file, bytes_max)
    reader = _Reader(source, file)
    top = reader.document()
    if not isinstance(top, Fields):
        hint = f"begin with: {begin}"
        place = Place(file) if top is None else top.place
        found = Problem("yaml", f"{what} is a mapping", place, hint)
        raise InputError([*reader.problems, found])
    return top, reader.problems


def check_size(text: str, file: str, bytes_max: int, what: str = "rulebook") -> None:
    """Raise `InputError` for a text of more bytes than `yaml_bytes_max`."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > bytes_max:
        message = f"the text is {size} bytes, more than yaml_bytes_max = {bytes_max}"
        hint = f"split the {what}, or pass --set yaml_bytes_max=.."
        raise InputError([Problem("yaml-too-large", message, Place(file), hint)])


class _Reader:
    def __init__(self, source: str, file: str) -> None:
        self.source = source.removeprefix("\ufeff")
        self.file = file
        self.problems: list[Problem] = []
        self.events = self._parse()

    def document(self) -> Node | None:
        """The first document, or None for an empty text."""
        top: Node | None = None
        documents = 0
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._refuse(event, "", "a second document in one file", "use one file each")
                    break
                top = self._node(next(self.events), "", 0)
        return top

    def _parse(self) -> Iterator[Any]:
        forbidden = _FORBIDDEN.search(self.source)
        if forbidden:
            raise InputError([self._forbidden(forbidden)])
        try:
            yield from yaml.parse(self.source, yaml.CSafeLoader)
        except yaml.MarkedYAMLError as error:
            raise InputError([self._malformed(error)]) from None

    def _forbidden(self, found: re.Match[str]) -> Problem:
        before = self.source[: found.start()]
        place = Place(self.file, before.count("\n") + 1, len(before) - before.rfind("\n"))
        number = f"{ord(found[0]):04X}"
        hint = f'write "\\u{number}", in double quotes' if found[0] in _ESCAPED else ""
        return Problem("yaml", f"the character U+{number} is not allowed in YAML", place, hint)

    def _malformed(self, error: yaml.MarkedYAMLError) -> Problem:
        mark = error.problem_mark or error.context_mark
        if error.context_mark and "end of stream" in str(error.problem):
            mark = error.context_mark  # a quote that is not closed
        if mark is None:
            return Problem("yaml", f"YAML: {error.problem}", Place(self.file))
        context = f" {error.context}" if error.context else ""
        at = self.source[mark.index : mark.index + 1]
        problem = (error.problem or "malformed").replace("found character", f"found {at!r}")
        place = Place(self.file, mark.line + 1, mark.column + 1)
        begun = error.context_mark.line if error.context_mark else None
        if blank := odd_blank(self.source, mark.line):
            at_line, at_column, said = blank
            hint = "write an ordinary blank in its place"
            return Problem("yaml", said, Place(self.file, at_line + 1, at_column + 1), hint)
        hint = yaml_hint(problem, self.source, mark.line, mark.column, begun)
        return Problem("yaml", f"YAML{context}: {problem}", place, hint)

    def _node(self, event: Any, path: str, depth: int) -> Node:
        place = self._place(event, path)
        if isinstance(event, AliasEvent):
            self._refuse(event, path, "aliases are not allowed", "write the value out")
            return Scalar(place, "", "")
        if event.anchor:
            self._refuse(event, path, "anchors are not allowed", "write the value out")
        if event.tag:
            hint = tag_hint(event.tag, getattr(event, "value", ""))
            self._refuse(event, path, f"tags are not allowed: {event.tag}", hint)
        if depth > NESTING_MAX:
            message = f"nested deeper than {NESTING_MAX} levels"
            raise InputError([*self.problems, Problem("yaml", message, place)])
        if isinstance(event, ScalarEvent):
            raw = self.source[event.start_mark.index : event.end_mark.index]
            commented = COMMENT.match(self.source, event.end_mark.index) is not None
            return Scalar(place, event.value, event.style or "", raw, commented)
        if isinstance(event, SequenceStartEvent):
            items: list[Node] = []
            while not isinstance(child := next(self.events), SequenceEndEvent):
                items.append(self._node(child, f"{path}[{len(items)}]", depth + 1))
            return Items(place, tuple(items))
        return self._fields(place, path, depth)

    def _fields(self, place: Place, path: str, depth: int) -> Fields:
        entries: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        while not isinstance(event := next(self.events), MappingEndEvent):
            plain = isinstance(event, ScalarEvent) and not (event.anchor or event.tag)
            key = None if plain else self._node(event, path, depth + 1)
            name = event.value if plain else key.text if isinstance(key, Scalar) else ""
            below = f"{path}.{name}" if path else name
            place_of_key = self._place(event, below)
            value = self._node(next(self.events), below, depth + 1)
            if isinstance(value, Scalar) and not value.raw:
                # An omitted value stands nowhere: the parser says where the next token is.
                value = replace(value, place=place_of_key)
            if not (plain or isinstance(key, Scalar)):
                self._refuse(event, path, "a key must be text", "write it as name: value")
            elif name in entries:
                first = keys[name]
                hint = f"the first one is at line {first.line}; keep one"
                self._refuse(event, below, f"duplicate key {name!r}", hint)
            else:
                entries[name] = value
                keys[name] = place_of_key
        return Fields(place, entries, keys)

    def _place(self, event: Any, path: str) -> Place:
        mark = event.start_mark
        return Place(self.file, mark.line + 1, mark.column + 1, path)

    def _refuse(self, event: Any, path: str, message: str, hint: str) -> None:
        self.problems.append(Problem("yaml", message, self._place(event, path), hint))


def content_offsets(raw: str, content: str, style: str) -> list[int]:
    """Offsets into `raw` of every character of `content`, and one more for its end.

    `raw` is the scalar as written, quotes or block header included; `style` is YAML's: `"`, `'`,
    `|`, `>` or empty for plain. Folding only touches blanks, so the other characters of both
    texts are the same in the same order; a blank stands right behind the character before it.
    """
    units = _units(raw, style)
    offsets: list[int] = []
    position = 0
    for character in content:
        if character not in _BLANK:
            while position < len(units) and units[position][1] in _BLANK:
                position += 1
        if position < len(units):
            offsets.append(units[position][0])
            if character not in _BLANK or units[position][1] in _BLANK:
                position += 1
        else:
            offsets.append(len(raw))
    offsets.append(units[position][0] if position < len(units) else _end(raw, style))
    return offsets


def _end(raw: str, style: str) -> int:
    return len(raw) - 1 if style in ('"', "'") else len(raw.rstrip())


def _units(raw: str, style: str) -> list[tuple[int, str]]:
    """(offset, decoded character) of the scalar's body; an escaped character stands for itself."""
    if style in ("|", ">"):
        body = raw.find("\n") + 1
        return [(n, raw[n]) for n in range(body, len(raw))]
    if style == "'":
        quoted = raw[1:-1].replace("''", "'\0")
        return [(n + 1, quoted[n]) for n in range(len(quoted)) if quoted[n] != "\0"]
    if style != '"':
        return list(enumerate(raw))
    units: list[tuple[int, str]] = []
    position = 1
    while position < len(raw) - 1:
        escape = _ESCAPE.match(raw, position) if raw[position] == "\\" else None
        if escape is None:
            units.append((position, raw[position]))
            position += 1
            continue
        if escape[0][1] not in "\r\n":
            units.append((position, " " if escape[0][1] in "tnrNLP_ " else "x"))
        position = escape.end()
    return units
