"""Mappings in which YAML reads something else than was meant: texts that a comma cuts, keys that
are not indented."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from tidegate.rules.errors import Place
from tidegate.rules.yaml.hints import in_quotes
from tidegate.rules.yaml.reader import Fields, Items, Node, Scalar

_OPENING, _CLOSING = "([", ")]"


@dataclass(frozen=True, slots=True)
class Misplaced:
    """An entry `name`, and the other entries (`pieces`) that were meant to be part of it."""

    name: str
    pieces: tuple[str, ...]
    place: Place
    message: str
    hint: str


def cut_texts(node: Fields, known: Collection[str] | None = None) -> Iterator[Misplaced]:
    """Texts inside { } that a comma cuts: `{on: any(2, a, b)}` has the keys `on`, `a` and `b)`.
    `known`: the fixed keys of the mapping; without them, only an open bracket shows the cut."""
    names = list(node.entries)
    at = 0
    while at < len(names) - 1:
        name, at = names[at], at + 1
        value = node.entries[name]
        if not isinstance(value, Scalar) or value.style or not value.text:
            continue
        if known is None and not _is_open(value.text):
            continue
        text, pieces = value.text, []
        while at < len(names) and _is_piece(node, name, names[at], known):
            pieces.append(names[at])
            text, at = f"{text}, {names[at]}", at + 1
        if pieces:
            message = f"inside {{ }} a comma ends a text: {name!r} is {value.text!r} here"
            hint = f"quote it: {name}: {in_quotes(text)}"
            yield Misplaced(name, tuple(pieces), value.place, message, hint)


def not_indented(
    node: Fields, known: Collection[str], nested: Collection[str] | None = None
) -> Iterator[Misplaced]:
    """Keys without a value, with the entries after them that should be indented below them.

    In a mapping of free names (`nested` None), these entries have names of the `known` keys. In a
    mapping of fixed keys, they have other names than the `known` keys, and follow one of the
    `nested` keys.
    """
    hollow = ""
    pieces: list[str] = []
    for name, value in [*node.entries.items(), ("", None)]:
        inside = (name not in known) if nested is not None else (name in known)
        if value is not None and hollow and inside:
            pieces.append(name)
            continue
        if pieces:
            yield _outdented(node, hollow, pieces)
        pieces = []
        hollow = name if _is_nothing(value) and (nested is None or name in nested) else ""


def listed_names(node: Node) -> list[str]:
    """The names of the items of a list that should be a mapping."""
    found = []
    for item in node.items if isinstance(node, Items) else ():
        if isinstance(item, Scalar):
            found.append(item.text)
        elif isinstance(item, Fields) and item.entries:
            named = item.entries.get("name")
            found.append(named.text if isinstance(named, Scalar) else next(iter(item.entries)))
    return found


def identifier_hint(text: str) -> str:
    """The hint for a name with letters that are not allowed: `write cafe` for `café`; "" for other
    names."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    name = re.sub(r"\W+", "_", plain.strip(), flags=re.ASCII).strip("_")
    name = f"n{name}" if name[:1].isdigit() else name
    return f"write {name}" if name and name != text else ""


def named(node: Node) -> str:
    """A node as messages name it."""
    if isinstance(node, Items):
        return "a list"
    if isinstance(node, Fields):
        return "a mapping"
    text = node.text if isinstance(node, Scalar) else ""
    return repr(text) if text else "nothing"


def shape_hint(like: str, node: Node, known: Iterable[str] = ()) -> str:
    """What to write for a node of the wrong shape: something `like` that, with the `known` keys."""
    if isinstance(node, Scalar):
        name, colon, rest = node.text.partition(":")
        if colon and name in known:
            if rest[:1].isspace():
                return f"the blank behind the colon is U+{ord(rest[0]):04X}: write an ordinary one"
            return f"a space stands behind the colon: {name}: {rest.strip()}"
        if (count := re.fullmatch(r"\{(\w+): \d+\}", like)) and node.text.isdigit():
            return f"write {{{count[1]}: {node.text}}}"
    elif isinstance(node, Items) and len(node.items) == 1:
        (item,) = node.items
        if isinstance(item, Scalar) and item.text and not known:
            return f"write {item.text}, without dash or [ ]"
        if isinstance(item, Fields):
            return "leave out the dash"
    return f"write {like}" if like else ""


def _outdented(node: Fields, hollow: str, pieces: list[str]) -> Misplaced:
    first = node.keys[pieces[0]]
    message = f"{hollow!r} is empty, and {pieces[0]!r} stands beside it"
    hint = f"indent {pieces[0]!r} by two spaces more than {hollow!r}, and what belongs to it"
    return Misplaced(hollow, tuple(pieces), first, message, hint)


def _is_piece(node: Fields, name: str, other: str, known: Collection[str] | None) -> bool:
    unknown = known is None or other not in known
    same_line = node.keys[other].line == node.entries[name].place.line
    return unknown and same_line and _is_nothing(node.entries[other])


def _is_nothing(node: Node | None) -> bool:
    return isinstance(node, Scalar) and not node.raw and not node.text


def _is_open(text: str) -> bool:
    return sum(text.count(c) for c in _OPENING) > sum(text.count(c) for c in _CLOSING)
