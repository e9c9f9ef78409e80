"""The house: its rooms, its floors, and who imports whom, as the code says."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("rules", "engine", "connectors", "migrations")

# From the ground up: a room imports rooms of lower floors, and itself. A floor is a line.
FLOORS = """
    rules.errors
    rules.yaml rules.expressions
    rules.eventscript
    rules.model
    rules.algebra rules.sql
    rules.analysis
    rules.checks rules.form
    rules.loader
    rules
    engine.core
    engine.capture engine.detect engine.evaluate engine.act engine.store engine.quarantine
    engine.loop engine.explain migrations
    engine.control
    engine.replay
    connectors
    engine.app
    engine.cli
    tidegate
"""
FLOOR = {room: n for n, line in enumerate(FLOORS.split("\n")) for room in line.split()}


def kernel_modules() -> list[Path]:
    """The modules with kernels: they import `numba_cache`, or numba."""
    every = sorted((ROOT / "tidegate" / "engine").rglob("*.py"))
    contents = {file: file.read_bytes() for file in every if file.stem != "numba_cache"}
    marks = (b"numba_cache import", b"\nfrom numba")
    return [file for file, content in contents.items() if any(mark in content for mark in marks)]


def files() -> dict[str, Path]:
    """Every module of the product, by its name without `tidegate.`."""
    found = {"tidegate": ROOT / "tidegate" / "__init__.py"}
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = file
    return found


FILES = files()


@cache
def imported(file: Path) -> list[str]:
    """The modules that a file imports, and what it imports from them, by full names."""
    found: list[str] = []
    for node in statements(ast.parse(file.read_text()).body):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += (f"{node.module}.{a.name}" for a in node.names)
    return found


def statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All statements, those in others too. `ast.walk` looks through expressions as well, and takes
    many times as long."""
    for node in body:
        yield node
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            yield from statements(getattr(node, name, ()))


def target(name: str) -> str:
    """What is imported, as a module of the product, or as the name of a library."""
    if name.split(".")[0] != "tidegate":
        return name
    short = name.removeprefix("tidegate.")
    return next((m for m in (short, short.rpartition(".")[0]) if m in FILES), "tidegate")


IMPORTS = {name: {target(t) for t in imported(file)} - {name} for name, file in FILES.items()}
EDGES = sorted((importer, name) for importer, names in IMPORTS.items() for name in names)


def room(module: str) -> str:
    """`engine.act.run` is in `engine.act`, `connectors.delta.log` in `connectors`."""
    first, *rest = module.split(".")
    return f"{first}.{rest[0]}" if rest and first in ("rules", "engine") else first


def entry(module: str) -> str:
    """A room as it is remembered: `rules`, `connectors`, `migrations`, or an entry of `engine`."""
    return room(module) if module.startswith("engine") else module.split(".")[0]


def levels(arrows: Collection[tuple[str, str]]) -> dict[str, int]:
    """The floor of each room: the length of the longest way up to it, from 1. `arrows`: from who
    imports to what is imported."""
    below = {a: {b for x, b in arrows if x == a} for pair in arrows for a in pair}
    floors: dict[str, int] = {}
    for name in TopologicalSorter(below).static_order():
        floors[name] = 1 + max((floors[under] for under in below[name]), default=0)
    return floors
