"""Files that a rulebook includes: `include: [tables.yaml]`. Their sections become its own."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidegate.rules.errors import InputError, Problem, did_you_mean
from tidegate.rules.yaml.files import read_file
from tidegate.rules.yaml.reader import Fields, Items, Node, Scalar, read_yaml

MERGED = ("tables", "events", "scripts", "rules", "samples", "vars")
LISTED = ("reads", "cycles")
INCLUDED_MAX = 100
_ONLY_OWN = ("rulebook", "timezone", "settings", "defaults")
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]+:")
_RELATIVE = {"tables": "path", "scripts": "file"}


@dataclass(frozen=True, slots=True)
class Document:
    """A file of a rulebook. `name`: its path from the rulebook's folder, empty for the rulebook."""

    name: str
    top: Fields


class Includes:
    """Reads what a rulebook includes. `file`: the rulebook's; None for a text. `texts`: of files
    that are known already, by name; others are read from disk, and added. `bytes_max`: how long
    they may be together. What is wrong is added to `problems`."""

    def __init__(
        self,
        file: str | None,
        texts: Mapping[str, str],
        bytes_max: int,
        problems: list[Problem],
    ) -> None:
        self._folder = None if file is None else os.path.dirname(os.path.abspath(file))
        self._own = "" if file is None else os.path.basename(file)
        self._bytes_max, self._left, self._problems = bytes_max, bytes_max, problems
        self.texts = dict(texts)
        self.read: list[str] = []
        """The names of the files that were included."""

    def documents(self, top: Fields) -> list[Document]:
        """The rulebook and all files that it includes, each once."""
        return [Document("", top), *self._of(top, (self._own,))]

    def _of(self, top: Fields, chain: tuple[str, ...]) -> list[Document]:
        given = top.entries.get("include")
        nodes = given.items if isinstance(given, Items) else [given] if given else []
        found: list[Document] = []
        for node in nodes:
            if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
                found += self._one(node, chain)
            elif len(chain) > 1:  # of the rulebook itself it is refused where it is read
                self._refused(node, "include names files", "write include: [tables.yaml]")
        return found

    def _one(self, node: Scalar, chain: tuple[str, ...]) -> list[Document]:
        begin = posixpath.dirname(chain[-1])
        name = posixpath.normpath(posixpath.join(begin, node.text.strip()))
        if name in chain:
            circle = " includes ".join((*chain[chain.index(name) :], name))
            return self._refused(node, f"a circle of files: {circle}", "leave one of them out")
        if name in self.read:
            return []
        if len(self.read) == INCLUDED_MAX:
            message = f"more than {INCLUDED_MAX} files are included"
            return self._refused(node, message, "put some of them into one")
        self.read.append(name)
        try:
            text = self._text(name)
            self._left -= len(text.encode("utf-8", "surrogatepass"))
            if self._left < 0:
                raise _NotReadError(*self._too_long())
            shown = os.path.join(self._folder or "", name)
            top, refused = read_yaml(
                text, shown, self._bytes_max, what="an included file", begin="tables: .."
            )
        except _NotReadError as error:
            return self._refused(node, *error.said)
        except InputError as error:
            self._problems += error.problems
            return []
        self._problems += refused
        for key in top.entries:
            self._check(key, top)
        return [Document(name, top), *self._of(top, (*chain, name))]

    def _too_long(self) -> tuple[str, str]:
        most = f"yaml_bytes_max = {self._bytes_max}"
        message = f"the included files are together more bytes than {most}"
        return message, "include fewer, or pass --set yaml_bytes_max=.."

    def _text(self, name: str) -> str:
        if name not in self.texts:
            if self._folder is None:
                raise _NotReadError("a rulebook without a file includes none", "write a file")
            path = os.path.join(self._folder, name)
            if os.path.exists(path) and not os.path.isfile(path):
                raise _NotReadError(f"{name} is no regular file", "name a YAML file")
            try:
                self.texts[name] = read_file(path)
            except InputError as error:
                [problem] = error.problems
                if problem.place.line:
                    raise
                raise _NotReadError(f"{name}: {problem.message}", problem.hint) from None
        return self.texts[name]

    def _check(self, key: str, top: Fields) -> None:
        known = (*MERGED, *LISTED, "include")
        if key in known:
            return
        own = "it stands in the rulebook itself" if key in _ONLY_OWN else did_you_mean(key, known)
        message = f"an included file has no key {key!r}"
        self._problems.append(Problem("unknown-key", message, top.keys[key], own))

    def _refused(self, node: Node, message: str, hint: str) -> list[Document]:
        self._problems.append(Problem("include", message, node.place, hint))
        return []


class _NotReadError(Exception):
    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.said = message, hint


def merged(documents: list[Document], problems: list[Problem]) -> Fields:
    """All documents as one rulebook. Names that stand in two are refused."""
    top = documents[0].top
    entries, keys = dict(top.entries), dict(top.keys)
    for document in documents[1:]:
        added = _from_folder(document)
        for section in (*MERGED, *LISTED):
            new = added.entries.get(section)
            if new is None:
                continue
            old = entries.get(section)
            keys.setdefault(section, added.keys[section])
            entries[section] = new if old is None else _joined(section, old, new, problems)
    return Fields(top.place, entries, keys)


def _joined(section: str, old: Node, new: Node, problems: list[Problem]) -> Node:
    if isinstance(old, Items) and isinstance(new, Items):
        return replace(old, items=(*old.items, *new.items))
    if not (isinstance(old, Fields) and isinstance(new, Fields)):
        if isinstance(new, Fields | Items):
            message = f"{section} has another form in {old.place}"
            hint = "write both as mappings, or both as lists"
            problems.append(Problem("type", message, new.place, hint))
            return old
        return new  # which is refused where it is read
    for name in new.entries.keys() & old.entries.keys():
        message = f"{name!r} of {section} stands in {old.keys[name]}, too"
        problems.append(Problem("twice", message, new.keys[name], "rename one of them"))
    names = [name for name in new.entries if name not in old.entries]
    entries = {**old.entries, **{name: new.entries[name] for name in names}}
    return Fields(old.place, entries, {**old.keys, **{name: new.keys[name] for name in names}})


def _from_folder(document: Document) -> Fields:
    """A document whose relative paths count from the rulebook's folder."""
    folder = posixpath.dirname(document.name)
    entries = dict(document.top.entries)
    for section, key in _RELATIVE.items():
        found = entries.get(section)
        if folder and isinstance(found, Fields):
            one = {name: _moved(node, key, folder) for name, node in found.entries.items()}
            entries[section] = replace(found, entries=one)
    return replace(document.top, entries=entries)


def _moved(node: Node, key: str, folder: str) -> Node:
    path = node.entries.get(key) if isinstance(node, Fields) else None
    if not isinstance(node, Fields) or not isinstance(path, Scalar):
        return node
    if not path.text.strip() or _ABSOLUTE.match(path.text):
        return node
    moved = posixpath.normpath(posixpath.join(folder, path.text))
    kept = Scalar(path.place, moved, path.style or "'", moved)
    return replace(node, entries={**node.entries, key: kept})
