"""Kinds of YAML values. A kind reads a node, and has the JSON Schema of it.

`rules.form.form` is made of kinds, and so is both the reader of rulebooks and their schema. A
reader never raises: it adds to the report and returns `BAD`, so that one pass finds every error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidegate.rules.errors import Place, Problem, did_you_mean
from tidegate.rules.yaml.json_schema import Schema, either, exactly_one, has_one_of
from tidegate.rules.yaml.misreadings import (
    Misplaced,
    cut_texts,
    identifier_hint,
    listed_names,
    named,
    not_indented,
    shape_hint,
)
from tidegate.rules.yaml.reader import Fields, Items, Node, Scalar

# By word, the key that was probably meant: of several keys the first that is not written yet. Or a
# function that makes the whole hint of the value that is written for the word.
Words = Mapping[str, str | tuple[str, ...] | Callable[[str], str]]

HINTS_MAX = 100  # nearest names that one report looks for: nobody reads more


class _Bad:
    """The type of BAD, which a reader returns for a value that was refused."""


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
    """How a value is read and described. `read(node, report)` gives the value or BAD. `schema` is
    the JSON Schema. `like`: an example of what to write. `names`: the keys of a mapping with fixed
    keys."""

    read: Callable[[Node, Report], Any]
    schema: Schema
    like: str = ""
    names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Key:
    """One key of a record. `doc` is what an editor shows."""

    name: str
    kind: Kind
    doc: str
    required: bool = False


@dataclass
class Record:
    """A mapping that was read: by key, the values that could be read. `node` has all of them."""

    node: Fields
    values: dict[str, Any] = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    def given(self, *keys: str, **renamed: str) -> dict[str, Any]:
        """The values of those of these keys that could be read: arguments of a model, which has the
        defaults of the others. `renamed`: the model's name of a key, if it is another."""
        names = dict(zip(keys, keys, strict=True)) | renamed
        return {name: self.values[key] for name, key in names.items() if key in self.values}

    def readable(self, key: str) -> dict[str, Any]:
        """The entries that could be read of a mapping from free names."""
        return {n: value for n, value in self.get(key, {}).items() if value is not BAD}

    def has(self, key: str) -> bool:
        """Whether the key is written, readable or not."""
        return key in self.node.entries

    def place(self, key: str = "") -> Place:
        """Where the key's value stands; without a key, the record itself."""
        return self.node.entries[key].place if key in self.node.entries else self.node.place

    def key_place(self, section: str, name: str) -> Place:
        """Where a name is declared in a section: a mapping from free names."""
        node = self.node.entries[section]
        return node.keys[name] if isinstance(node, Fields) else node.place


def listing(item: Kind, least: int = 0) -> Kind:
    """A sequence, read as a tuple of what could be read."""
    like = f"[{item.like}]" if item.like else ""

    def read(node: Node, report: Report) -> Any:
        if not isinstance(node, Items):
            written = _as_item(item, node) or like
            hint = f"write {written}" if written else ""
            return report.add("type", f"expected a list, found {named(node)}", node.place, hint)
        if len(node.items) < least:
            hint = f"write {like}" if like else "list at least one"
            return report.add("value", "the list is empty", node.place, hint)
        values = [item.read(child, report) for child in node.items]
        return tuple(value for value in values if value is not BAD)

    schema: Schema = {"type": "array", "items": item.schema}
    if least:
        schema["minItems"] = least
    return Kind(read, schema, like)


def _as_item(item: Kind, node: Node) -> str:
    """The value written without brackets, with brackets: `[a]` for `a`; "" if it is no such
    value."""
    if not isinstance(node, Scalar) or not node.text:
        return ""
    found = Report()
    if item.read(node, found) is not BAD:
        return f"[{node.text}]"
    remedy = found.problems[0].hint.partition("write ")[2]
    return f"[{remedy}]" if remedy else ""


def mapping(
    value: Kind,
    key: str,
    what: str,
    single: bool = False,
    like: str = "",
    keywords: Collection[str] = (),
) -> Kind:
    """A mapping from free names to values of one kind. Names match the pattern `key` and are no
    `keywords`. `single`: there is one entry. A value that is refused stays as BAD, so that its name
    is known.
    """
    example = value.like or ".."
    whole = like or f"NAME: {example}"

    def read(node: Node, report: Report) -> Any:
        if not isinstance(node, Fields):
            names = listed_names(node)
            shown = f"{names[0]}: {example}, without dashes or [ ]" if names else whole
            message = f"expected a mapping, found {named(node)}"
            return report.add("type", message, node.place, f"write {shown}")
        wrong = [*cut_texts(node), *not_indented(node, value.names)]
        passed = _say(wrong, report)
        if single and len(node.entries) - sum(len(one.pieces) for one in wrong) != 1:
            message = f"expected one entry, found {len(node.entries)}"
            return report.add("value", message, node.place)
        values: dict[str, Any] = {}
        for name, child in node.entries.items():
            if name in passed:
                if not any(name in one.pieces for one in wrong):
                    values[name] = BAD
                continue
            if name in keywords:
                message = f"{name!r} is a keyword of event expressions"
                report.add("name", message, node.keys[name], f"write another name: {name}_event")
            elif not re.fullmatch(key, name):
                hint = identifier_hint(name)
                report.add("name", f"{name!r} is not {what}", node.keys[name], hint)
            values[name] = value.read(child, report)
        return values

    schema: Schema = {
        "type": "object",
        "propertyNames": {"pattern": f"^(?:{key})$"},
        "additionalProperties": value.schema,
    }
    if single:
        schema |= {"minProperties": 1, "maxProperties": 1}
    return Kind(read, schema, like or f"{{NAME: {example}}}")


def record(
    what: str,
    *keys: Key,
    like: str = "",
    words: Words | None = None,
    one_of: Collection[str] = (),
) -> Kind:
    """A mapping with fixed keys, read as a `Record`. `words`: synonyms of the keys. `one_of`: keys
    of which exactly one is present, as `by_key` has seen to."""
    known = {key.name: key for key in keys}
    nested = frozenset(key.name for key in keys if key.kind.like.startswith(("{", "[")))

    def read(node: Node, report: Report) -> Any:
        if not isinstance(node, Fields):
            return wrong_shape(what, like, node, report, known)
        wrong = [*cut_texts(node, known), *not_indented(node, known, nested)]
        passed = _say(wrong, report)
        result, meant = Record(node), set()
        for name, child in node.entries.items():
            if name in passed:
                continue
            if name not in known:
                possible = [key for key in known if key not in one_of or key in node.entries]
                hint = hint_for(name, possible, words, report, node.entries)
                meant |= {key for key in known if hint == f"did you mean {key!r}?"}
                message = f"unknown key {name!r} in {what}"
                report.add("unknown-key", message, node.keys[name], hint)
                continue
            value = known[name].kind.read(child, report)
            if value is not BAD:
                result.values[name] = value
        for key in keys:
            if key.required and key.name not in node.entries and key.name not in meant:
                hint = f"write {key.name}: {key.kind.like}" if key.kind.like else key.doc
                report.add("missing-key", f"{what} needs the key {key.name!r}", node.place, hint)
        return result

    schema: Schema = {
        "type": "object",
        "properties": {key.name: {**key.kind.schema, "description": key.doc} for key in keys},
        "required": [key.name for key in keys if key.required],
        "additionalProperties": False,
    }
    if one_of:
        schema |= exactly_one(tuple(one_of))
    return Kind(read, schema, like, frozenset(known))


def by_key(
    what: str,
    kinds: Mapping[str, Kind],
    *,
    like: str = "",
    several: str = "",
    words: Words | None = None,
) -> Kind:
    """One of several records, by the key that is present. `several`: the hint if more than one of
    these keys is present."""
    known = frozenset(kinds).union(*(kind.names for kind in kinds.values()))

    def read(node: Node, report: Report) -> Any:
        if not isinstance(node, Fields):
            return wrong_shape(what, like, node, report, known)
        present = [key for key in kinds if key in node.entries]
        if len(present) == 1:
            return kinds[present[0]].read(node, report)
        names = ", ".join(kinds)
        if present:
            second = node.keys[present[1]]
            message = f"{what} has only one of {names}, not {' and '.join(present)}"
            return report.add("value", message, second, several)
        for name in node.entries:
            hint = hint_for(name, kinds, words, report, node.entries)
            if hint.startswith("did you mean") or callable((words or {}).get(name.lower())):
                message = f"unknown key {name!r} in {what}"
                return report.add("unknown-key", message, node.keys[name], hint)
        message = f"{what} needs one of {names}"
        others = [name for name in node.entries if name not in known]
        message += f", not {' and '.join(others[:3])}" if others else ""
        return report.add("missing-key", message, node.place, f"write {like}" if like else "")

    keys: dict[int, list[str]] = {}
    for key, kind in kinds.items():
        keys.setdefault(id(kind), []).append(key)
    schemas = [(has_one_of(*some), kinds[some[0]].schema) for some in keys.values()]
    if len(schemas) > 1:
        choice = {key: kind.schema["properties"][key] for key, kind in kinds.items()}
        schemas.append(({}, {"type": "object", "properties": choice, **has_one_of(*kinds)}))
    return Kind(read, either(schemas), like, known)


def variants(
    what: str, firsts: Collection[Key], *keys: Key, like: str = "", words: Words | None = None
) -> dict[str, Kind]:
    """A record of one of the `firsts` and of `keys`: by the name of each first, for `by_key`."""
    names = [first.name for first in firsts]
    kind = record(what, *firsts, *keys, like=like, words=words, one_of=names)
    return dict.fromkeys(names, kind)


def by_form(
    what: str,
    *,
    one: Kind | None = None,
    many: Kind | None = None,
    named: Kind | None = None,
    like: str = "",
) -> Kind:
    """A scalar, a sequence or a mapping, each read by its own kind."""
    kinds: dict[type[Node], Kind | None] = {Scalar: one, Items: many, Fields: named}
    given = [kind for kind in kinds.values() if kind]
    like = like or given[0].like
    forms = [("object", named), ("array", many), ("scalar", one)]
    schemas = [({"type": form}, kind.schema) for form, kind in forms if kind]

    def read(node: Node, report: Report) -> Any:
        kind = next(kinds[k] for k in type(node).__mro__ if k in kinds)
        if kind is None:
            return wrong_shape(what, like, node, report)
        return kind.read(node, report)

    return Kind(read, either(schemas), like)


def one_or_many(what: str, item: Kind) -> Kind:
    """A value, or a list of at least one: `key: id` as `key: [id]`. Both are read as a tuple."""

    def read(node: Node, report: Report) -> Any:
        value = item.read(node, report)
        return BAD if value is BAD else (value,)

    return by_form(what, one=Kind(read, item.schema, item.like), many=listing(item, 1))


def short(key: str, record: Kind, schema: Schema, like: str) -> Kind:
    """A value alone that stands for a record with this one `key`: `Use: use` for `Use: {event:
    use}`."""

    def read(node: Node, report: Report) -> Any:
        return record.read(Fields(node.place, {key: node}, {key: node.place}), report)

    return Kind(read, schema, like)


def with_node(kind: Kind) -> Kind:
    """The same kind, read as (value, node): for what needs its place later."""

    def read(node: Node, report: Report) -> Any:
        value = kind.read(node, report)
        return BAD if value is BAD else (value, node)

    return Kind(read, kind.schema, kind.like, kind.names)


def hint_for(
    word: str,
    known: Iterable[str],
    words: Words | None,
    report: Report,
    entries: Mapping[str, Node] | None = None,
) -> str:
    """A hint for an unknown word: the name that it is a synonym of, else the nearest known name.
    `entries`: those of the mapping that the word is a key of."""
    other = (words or {}).get(word.lower())
    keys = entries or {}
    if callable(other):
        value = keys.get(word)
        return other(value.text if isinstance(value, Scalar) else "")
    if isinstance(other, tuple):
        other = next((name for name in other if name not in keys), other[-1])
    return f"did you mean {other!r}?" if other else report.did_you_mean(word, known)


def _say(wrong: Iterable[Misplaced], report: Report) -> set[str]:
    """Report what is misplaced; returns the names of the entries that it concerns."""
    passed: set[str] = set()
    for one in wrong:
        report.add("yaml", one.message, one.place, one.hint)
        passed |= {one.name, *one.pieces}
    return passed


def wrong_shape(what: str, like: str, node: Node, report: Report, keys: Iterable[str] = ()) -> Any:
    """Refuse a node of the wrong shape: a scalar, list or mapping where another is expected."""
    expected = what if " " in what else f"a mapping for {what}"
    message = f"expected {expected}, found {named(node)}"
    return report.add("type", message, node.place, shape_hint(like, node, keys))
