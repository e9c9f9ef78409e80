"""`python -m tests.mutants [NAME ..]`: applies each mutation to a copy, runs its tests, and prints
the survivors. Exit 1 if there are any, or if the tests fail without a mutation.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.mutants import ROOT, Mutant, mutants

COPIED = (
    "tidegate",
    "rules",
    "engine",
    "connectors",
    "migrations",
    "tests",
    "pyproject.toml",
    "README.md",
    "docs",
)
WORKERS = 2
SECONDS_MAX = 240  # a mutant that never ends is noticed
SAID_MAX = 3_000  # characters of what pytest said
UNMUTATED_SECONDS_MAX = 3_600  # all tests that any of them runs


def main(names: list[str]) -> int:
    chosen = [mutant for mutant in mutants() if not names or mutant.name in names]
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(WORKERS):
            copies.put(copied(Path(folder) / str(number)))
        tests = sorted({test for mutant in chosen for test in mutant.tests})
        copy = copies.get()
        if said := failure(copy, tests, UNMUTATED_SECONDS_MAX):
            print(f"{said}\nthe tests fail without a mutation")
            return 1
        copies.put(copy)

        def survives(mutant: Mutant) -> bool:
            copy = copies.get()
            file = copy / mutant.file
            source = file.read_text(encoding="utf-8")
            try:
                file.write_text(mutant.mutated(source), encoding="utf-8")
                lives = not failure(copy, list(mutant.tests))
            finally:
                file.write_text(source, encoding="utf-8")
                copies.put(copy)
            print(f"{'SURVIVES' if lives else 'dies':8} {mutant.name}", flush=True)
            return lives

        with ThreadPoolExecutor(WORKERS) as pool:
            survivors = sum(pool.map(survives, chosen))
    print(f"{survivors} of {len(chosen)} mutants survive")
    return 1 if survivors else 0


def copied(folder: Path) -> Path:
    """A checkout of its own, without what was compiled."""
    folder.mkdir()
    skipped = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=skipped)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def failure(copy: Path, tests: list[str], seconds: int = SECONDS_MAX) -> str:
    """What pytest says at its end; empty where all tests pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        ended = subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return f"it took longer than {seconds} s"
    return ended.stdout[-SAID_MAX:] or ended.stderr if ended.returncode else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
