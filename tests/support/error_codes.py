"""Every error code that the product can raise, as its source says: what flows into the field `code`
of errors, problems and refusals, followed back through parameters to where it is written."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tests.support.house import FILES, ROOT

RAISED = "EngineError"  # its subclasses give it their code
Function = ast.FunctionDef | ast.AsyncFunctionDef
_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.cmpop, ast.arg)
_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
_TAKING = re.compile(r"\bdef (\w+)\([^)]*\bcode: str")
Written = set[tuple[str, str]]  # texts, and where they stand: `rules/loader.py:12`
OTHERS = {"region", "Code"}  # whose `code` is no error's own: a country's, or read from a file


class Call(NamedTuple):
    """A call in a module, and the functions that it stands in, the innermost last."""

    file: Path
    node: ast.Call
    within: tuple[Function, ...]


class Class(NamedTuple):
    """A class, and the module that declares it."""

    file: Path
    node: ast.ClassDef


class Codes:
    """The codes of a source. `found`: where each is written. `lost`: what cannot be followed."""

    def __init__(self) -> None:
        self.constants: dict[tuple[Path, str], ast.expr] = {}
        self.calls: dict[str, list[Call]] = defaultdict(list)
        self.classes: list[Class] = []
        self.origins: dict[tuple[Path, str], Path] = {}
        self.lost: set[str] = set()
        self._following: set[tuple[int, str]] = set()
        self._texts = {file: file.read_text(encoding="utf-8") for file in FILES.values()}
        self._read_files: set[Path] = set()
        mentions = _mentions(self._texts.values())
        for file in [file for file, text in self._texts.items() if mentions.search(text)]:
            self._read(file)

    def _read(self, file: Path) -> None:
        if file not in self._read_files:
            self._read_files.add(file)
            tree = ast.parse(self._texts[file])
            for node in tree.body:
                if isinstance(node, ast.Assign):
                    self._note(file, node.targets[0], node.value)
            self._walk(file, tree, ())

    def _note(self, file: Path, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.constants[file, target.id] = value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, of in zip(target.elts, value.elts, strict=True):
                self._note(file, one, of)

    def _walk(self, file: Path, node: ast.AST, within: tuple[Function, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _LEAVES):
                continue
            inside = (*within, child) if isinstance(child, Function) else within
            if isinstance(child, ast.ClassDef):
                self.classes.append(Class(file, child))
            if isinstance(child, ast.ImportFrom) and child.module:
                origin = FILES.get(child.module.removeprefix("tidegate."), file)
                self.origins |= {(file, alias.name): origin for alias in child.names}
            if isinstance(child, ast.Call) and (name := _name(child.func)):
                self.calls[name].append(Call(file, child, within))
            self._walk(file, child, inside)

    @cached_property
    def found(self) -> dict[str, list[str]]:
        """Each code, and where it is written: `rules/loader.py:12`."""
        found: dict[str, list[str]] = defaultdict(list)
        for kind, position in self._roots():
            for call in self.calls[kind.node.name]:
                given = argument(call.node, position, "code")
                if given is not None and self._is_of(call, kind.node.name, kind.file):
                    self._add(call, given, found)
        for call in self.calls["replace"]:  # replace(problem, code=..)
            if (given := argument(call.node, len(call.node.args), "code")) is not None:
                self._add(call, given, found)
        bodies = {id(s) for kind in self.classes if self._raises(kind) for s in kind.node.body}
        for call in self.calls["__init__"]:
            if call.within and id(call.within[-1]) in bodies and call.node.args:
                self._add(call, call.node.args[0], found)
        return found

    def _roots(self) -> Iterator[tuple[Class, int]]:
        """Classes that are made with a code, and the place of it."""
        for kind in [kind for kind in self.classes if kind.node.name not in OTHERS]:
            fields = [s for s in kind.node.body if isinstance(s, ast.AnnAssign)]
            named = [(ast.unparse(s.target), ast.unparse(s.annotation)) for s in fields]
            made = [s for s in kind.node.body if _name_of(s) == "__init__"]
            texts = _texts(made[0]) if made and isinstance(made[0], ast.FunctionDef) else {}
            if ("code", "str") in named:
                yield kind, named.index(("code", "str"))
            elif "code" in texts:
                yield kind, texts["code"] - 1
            elif self._raises(kind) and not made:
                yield kind, 0

    def _raises(self, kind: Class) -> bool:
        """Whether it is a subclass of EngineError."""
        return RAISED in {_name(base) for base in kind.node.bases}

    def _is_of(self, call: Call, name: str, file: Path) -> bool:
        """Whether a call may be of a class or function of another module."""
        return file in (call.file, self.origins.get((call.file, name)))

    def _add(self, call: Call, given: ast.expr, found: dict[str, list[str]]) -> None:
        for code, place in self._values(call, given):
            found[code] = sorted({*found[code], place})

    def _values(self, call: Call, given: ast.expr) -> Written:
        """The texts that an expression may be, each with its place."""
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            return {(given.value, f"{call.file.relative_to(ROOT)}:{given.lineno}")}
        if isinstance(given, ast.IfExp):
            return self._values(call, given.body) | self._values(call, given.orelse)
        if isinstance(given, ast.Attribute) and given.attr == "code":
            return set()  # of a class that is a root itself
        if isinstance(given, ast.Name):
            return self._of_name(call, given.id)
        if isinstance(given, ast.JoinedStr):
            return self._of_format(call, given)
        if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute):
            return self._of_table(call, given)
        self.lost.add(f"{call.file.relative_to(ROOT)}:{given.lineno} {ast.unparse(given)}")
        return set()

    def _of_name(self, call: Call, name: str) -> Written:
        for depth, within in reversed([*enumerate(call.within)]):
            if name in _texts(within):
                return self._of_parameter(call.file, within, name)
            there = call._replace(within=call.within[: depth + 1])
            for node in ast.walk(within):
                if isinstance(node, ast.Assign) and _name(node.targets[0]) == name:
                    return self._values(there, node.value)
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
                    names = [_name(each) for each in node.targets[0].elts]
                    if name in names and isinstance(node.value, ast.Subscript):
                        return self._of_row(there, node.value, names.index(name))
        origin = self.origins.get((call.file, name), call.file)
        self._read(origin)
        if (made := self.constants.get((origin, name))) is not None:
            return self._values(Call(origin, call.node, ()), made)
        self.lost.add(f"{call.file.relative_to(ROOT)} {name}")
        return set()

    def _of_parameter(self, file: Path, within: Function, name: str) -> Written:
        """What callers hand in."""
        key = (id(within), name)
        if key in self._following or within.name in ("__init__", *OTHERS):  # a root's
            return set()
        self._following.add(key)
        first = [a.arg for a in within.args.args[:1]]
        bound = first in (["self"], ["cls"])
        required = len(within.args.args) - len(within.args.defaults) - bound
        values: Written = set()
        for call in self.calls[within.name]:
            own = self._is_of(call, within.name, file)
            method = isinstance(call.node.func, ast.Attribute) and within.name[0] != "_"
            given = argument(call.node, _texts(within)[name] - bound, name)
            if (own or method) and given is not None and _count(call.node) >= required:
                lost = set(self.lost)
                values |= self._values(call, given)
                if not own and _receiver(call.node) != "report":  # a set's `add`, perhaps
                    self.lost = lost
        self._following.discard(key)
        return values

    def _of_row(self, call: Call, given: ast.Subscript, number: int) -> Written:
        """`what, names = {"rules": ("rule", rules)}[part]`."""
        table: ast.expr | None = given.value
        for node in ast.walk(call.within[-1]):
            if isinstance(node, ast.Assign) and _name(node.targets[0]) == _name(given.value):
                table = node.value
        rows = table.values if isinstance(table, ast.Dict) else []
        parts = [row.elts[number] for row in rows if isinstance(row, ast.Tuple)]
        return {value for each in parts for value in self._values(call, each)}

    def _of_format(self, call: Call, given: ast.JoinedStr) -> Written:
        """`f"unknown-{what}"`, for each text that `what` may be."""
        names = {n.id for n in ast.walk(given) if isinstance(n, ast.Name)}
        if len(names) != 1:
            self.lost.add(f"{call.file.relative_to(ROOT)}:{given.lineno} {ast.unparse(given)}")
            return set()
        (name,) = names
        expression = compile(ast.Expression(given), str(call.file), "eval")
        return {(eval(expression, {name: text}), at) for text, at in self._of_name(call, name)}

    def _of_table(self, call: Call, given: ast.Call) -> Written:
        """`{404: "not-found"}.get(status, "failed")`."""
        table = given.func.value if isinstance(given.func, ast.Attribute) else None
        parts = [*table.values, *given.args[1:]] if isinstance(table, ast.Dict) else []
        return {value for each in parts for value in self._values(call, each)}


def _mentions(texts: Iterable[str]) -> re.Pattern[str]:
    """What stands in each file that has to be read; all of them take three times as long."""
    names = {"code", "report", "mistakes"}
    for text in texts:
        if "code: str" in text or f"({RAISED})" in text:
            names |= {*_CLASS.findall(text), *_TAKING.findall(text)}
    return re.compile(rf"\b(?:{'|'.join(names - {'add', 'warn', '__init__'})})\b")


def argument(node: ast.Call, position: int, name: str) -> ast.expr | None:
    """What a call hands in for a parameter."""
    named = [k.value for k in node.keywords if k.arg == name]
    return named[0] if named else node.args[position] if position < len(node.args) else None


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _receiver(node: ast.Call) -> str:
    return _name(node.func.value) if isinstance(node.func, ast.Attribute) else ""


def _name_of(statement: ast.stmt) -> str:
    return statement.name if isinstance(statement, Function) else ""


def _texts(function: Function) -> dict[str, int]:
    """The parameters of a function that are texts, and their places."""
    given = enumerate(function.args.args)
    return {a.arg: n for n, a in given if a.annotation and ast.unparse(a.annotation) == "str"}


def _count(node: ast.Call) -> int:
    return len(node.args) + len(node.keywords)
