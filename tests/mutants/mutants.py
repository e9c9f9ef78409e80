"""One-line mutations of the central places, and the tests that must notice them.

`mutants.toml` lists them: the file, the text that stands there once, what stands there instead,
and the tests that are run.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("mutants.toml")


@dataclass(frozen=True, slots=True)
class Mutant:
    """`before` stands in `file` exactly once; `tests` are paths or node ids of pytest."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]

    def mutated(self, source: str) -> str:
        """The source with the mutation. Raises ValueError where it does not apply."""
        count = source.count(self.before)
        if count != 1:
            raise ValueError(f"{self.name}: {self.before!r} stands {count} times in {self.file}")
        return source.replace(self.before, self.after)


def mutants() -> list[Mutant]:
    with LIST.open("rb") as stream:
        found = tomllib.load(stream)["mutant"]
    return [Mutant(**{**fields, "tests": tuple(fields["tests"])}) for fields in found]
