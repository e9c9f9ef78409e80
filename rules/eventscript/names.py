"""The names that the blocks of a script know, and those that its `case` and `group` know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lark import Token

from tidegate.rules.errors import did_you_mean
from tidegate.rules.eventscript.parser import Mistakes
from tidegate.rules.eventscript.tree import Expression, Field, Local, Raw, Variable
from tidegate.rules.eventscript.types import Structure, Type


class Names(Protocol):
    """The names of one part of a script. `key`: the types of the key's columns; None: no key can be
    read there."""

    key: tuple[Type, ...] | None

    def read(self, name: Token, mistakes: Mistakes) -> Expression | None:
        """The node of a name; None where it is unknown, or of no type yet."""


Variables = Mapping[str, Type | None]  # None: its type is not known


@dataclass
class BlockNames:
    """The names in a block: the script's variables, and those of the `for` loops around it."""

    variables: Variables
    locals: Variables = field(default_factory=dict)
    key: tuple[Type, ...] | None = ()

    def read(self, name: Token, mistakes: Mistakes) -> Expression | None:
        for names, node in ((self.locals, Local), (self.variables, Variable)):
            if name in names:
                kind = names[name]
                return None if kind is None else node(kind, str(name))
        hint = did_you_mean(name, [*self.variables, *self.locals])
        mistakes.add("unknown-variable", f"nothing assigns the variable {str(name)!r}", name, hint)
        return None


@dataclass
class RawNames:
    """The names in `case` and `group`: the input's name for its value, and the names of its fields
    if it is a structure."""

    input: str
    type: Type
    key: tuple[Type, ...] | None = None

    def read(self, name: Token, mistakes: Mistakes) -> Expression | None:
        raw = Raw(self.type, place=mistakes.place(name))
        if name == self.input:
            return raw
        fields = dict(self.type.fields) if isinstance(self.type, Structure) else {}
        if name in fields:
            return Field(fields[name], raw, str(name))
        hint = did_you_mean(name, [self.input, *fields])
        message = f"{str(name)!r} is not of the input {self.input!r}"
        mistakes.add("unknown-variable", message, name, hint)
        return None
