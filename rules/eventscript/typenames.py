"""The types that a script declares: `type NAME = type`, in any order. No type is part of itself."""

from __future__ import annotations

from lark import Token

from tidegate.rules.errors import did_you_mean
from tidegate.rules.eventscript.parser import NESTING_MAX, Mistakes, Parsed
from tidegate.rules.eventscript.types import Array, Basic, Structure, Type

PARTS_MAX = 1_000  # fields of a type, those of its parts counted; names could make them 2^n
_OTHERS = {
    **dict.fromkeys(("int", "integer", "short", "byte"), "write long"),
    **dict.fromkeys(("float", "decimal", "number"), "write double"),
    **dict.fromkeys(("String", "str", "text", "char"), "write string"),
    **dict.fromkeys(("bool", "Boolean"), "write boolean"),
    **dict.fromkeys(("timestamp", "date", "instant", "Date"), "write time"),
    **dict.fromkeys(("Object", "any"), "write object"),
    **dict.fromkeys(
        ("duration", "interval"),
        "durations stay in a script: write long, which is what microseconds(d) gives",
    ),
    **dict.fromkeys(("void", "nothing", "event"), "write {} for an event that carries nothing"),
}
_NAMED = [each for each in Basic if each != Basic.DURATION]
_Sized = tuple[Type, int, int]  # a type, how many parts it has, how deep they lie


class TypeNames:
    """Reads types. `_declared`: the parse tree of each named type."""

    def __init__(self) -> None:
        self._declared: dict[str, Parsed] = {}
        self._read: dict[str, _Sized | None] = {}
        self._reading: list[str] = []
        self._level = 0

    def declare(self, name: Token, tree: Parsed, mistakes: Mistakes) -> None:
        if name in list(Basic) or name in self._declared:
            message = f"the type {str(name)!r} is known already"
            mistakes.add("name", message, name, "give it another name")
            return
        self._declared[str(name)] = tree

    def read_all(self, mistakes: Mistakes) -> None:
        """Read all declared types, those that nothing uses, too."""
        for name, tree in self._declared.items():
            self._named(name, tree, mistakes)

    def read(self, tree: Parsed, mistakes: Mistakes) -> Type | None:
        """The type that stands in the text; None where it is wrong."""
        sized = self._sized(tree, mistakes)
        return sized and sized[0]

    def _sized(self, tree: Parsed, mistakes: Mistakes) -> _Sized | None:
        if self._level > NESTING_MAX:
            mistakes.add("nesting", "types that name each other too deeply", tree)
            return None
        self._level += 1
        sized = self._parts(tree, mistakes)
        self._level -= 1
        return sized

    def _parts(self, tree: Parsed, mistakes: Mistakes) -> _Sized | None:
        if tree.data == "named_type":
            name = tree.children[0]
            return self._name(name, mistakes)
        if tree.data == "array":
            below = tree.children[0]
            of = self._sized(below, mistakes)
            return of and self._limited((Array(of[0]), of[1] + 1, of[2] + 1), tree, mistakes)
        fields: dict[str, Type] = {}
        size, depth, whole = 1, 0, True
        for member in tree.children:
            kind, name = member.children
            if name in fields:
                mistakes.add("name", f"the field {str(name)!r} stands twice", name)
            part = self._sized(kind, mistakes)
            if part is None:
                whole = False
                continue
            fields[str(name)] = part[0]
            size, depth = size + part[1], max(depth, part[2])
        if not whole:
            return None
        return self._limited((Structure(tuple(fields.items())), size, depth + 1), tree, mistakes)

    def _limited(self, of: _Sized, tree: Parsed, mistakes: Mistakes) -> _Sized | None:
        _, size, depth = of
        if size <= PARTS_MAX and depth <= NESTING_MAX:
            return of
        what = f"of more than {PARTS_MAX} parts" if size > PARTS_MAX else "nested too deeply"
        mistakes.add("nesting", f"a type {what}", tree)
        return None

    def _name(self, name: Token, mistakes: Mistakes) -> _Sized | None:
        if name in _NAMED:
            return Basic(str(name)), 1, 1
        tree = self._declared.get(str(name))
        if tree is None:
            hint = _OTHERS.get(str(name)) or did_you_mean(name, [*_NAMED, *self._declared])
            mistakes.add("unknown-type", f"unknown type {str(name)!r}", name, hint)
            return None
        if name in self._reading:
            chain = [*self._reading[self._reading.index(name) :], str(name)]
            mistakes.add("cycle", f"a type is part of itself: {' -> '.join(chain)}", name)
            return None
        return self._named(str(name), tree, mistakes)

    def _named(self, name: str, tree: Parsed, mistakes: Mistakes) -> _Sized | None:
        if name not in self._read:
            self._reading.append(name)
            self._read[name] = self._sized(tree, mistakes)
            self._reading.pop()
        return self._read[name]
