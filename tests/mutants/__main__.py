"""`python -m tests.mutants [NAME ..]`: applies each mutation to a copy, runs its tests, and prints
which test it dies of, or that it survives. Exit 1 if one does, if a name is unknown, or if the
tests fail without a mutation.
"""

from __future__ import annotations

import compileall
import os
import re
import shutil
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import pytest

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
    "LICENSE",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "mkdocs.yml",
    "docs",
)
WORKERS = 2
SECONDS_MAX = 600
TEST_SECONDS_MAX = 120  # a mutant that never ends is noticed
# With all examples of the property tests, those of the short suite among them
PYTEST = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--hypothesis-profile=same")
SAID_MAX = 3_000  # characters of what pytest said
UNMUTATED_SECONDS_MAX = 3_600  # all tests that any of them runs


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("names", nargs="*", metavar="NAME", help="all, if none is given")
    parser.add_argument("--workers", type=int, default=WORKERS, help=f"default: {WORKERS}")
    parser.add_argument(
        "--no-baseline", action="store_true", help="the tests are known to pass without a mutation"
    )
    options = parser.parse_args(arguments)
    listed = {mutant.name: mutant for mutant in mutants()}
    if unknown := [name for name in options.names if name not in listed]:
        print(f"no such mutant: {', '.join(unknown)}")
        return 1
    chosen = [listed[name] for name in options.names or listed]
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.workers):
            copies.put(copied(Path(folder) / str(number)))
        tests = sorted({test for mutant in chosen for test in mutant.tests})
        copy = copies.get()
        if not options.no_baseline and (said := failure(copy, tests, UNMUTATED_SECONDS_MAX)):
            print(f"{said}\nthe tests fail without a mutation")
            return 1
        copies.put(copy)

        def survives(mutant: Mutant) -> bool:
            copy = copies.get()
            file = copy / mutant.file
            source = file.read_text(encoding="utf-8")
            try:
                file.write_text(mutant.mutated(source), encoding="utf-8")
                said = failure(copy, list(mutant.tests))
            finally:
                file.write_text(source, encoding="utf-8")
                copies.put(copy)
            fate = f"dies of {cause(said)}" if said else "SURVIVES"
            print(f"{mutant.name} {fate}", flush=True)
            return not said

        with ThreadPoolExecutor(options.workers) as pool:
            survivors = sum(pool.map(survives, chosen))
    print(f"{survivors} of {len(chosen)} mutants survive")
    return 1 if survivors else 0


def copied(folder: Path) -> Path:
    """A checkout of its own. Its sources are compiled once, not in each run."""
    folder.mkdir()
    skipped = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=skipped)
        else:
            shutil.copy(ROOT / name, folder / name)
    compileall.compile_dir(folder, quiet=2)
    return folder


def failure(copy: Path, tests: list[str], seconds: int = SECONDS_MAX) -> str:
    """What pytest says at its end; empty where all tests pass."""
    named = ("-m", "not browser") if all("::" in test for test in tests) else ()
    command = [sys.executable, *PYTEST, *named, f"--timeout={TEST_SECONDS_MAX}", *tests]
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
    if ended.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise ValueError(f"nothing is run of {' '.join(tests)}: a long test is named by its id")
    if not ended.returncode:
        return ""
    return ended.stdout[-SAID_MAX:] or ended.stderr or f"exit code {ended.returncode}"


def cause(said: str) -> str:
    """The test that failed, or the last line of what was said."""
    found = re.findall(r"^(?:FAILED|ERROR) (.*)", said, re.MULTILINE)
    return found[-1] if found else said.strip().splitlines()[-1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
