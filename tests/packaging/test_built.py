"""What is built from this source: a wheel and an sdist that hold all of it, and run alone."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.house import PACKAGES, ROOT

SCRIPT = (
    "import setuptools.build_meta as backend\n"
    "print(backend.build_wheel('built'))\n"
    "print(backend.build_sdist('built'))\n"
)


def run(*words: str | Path, cwd: Path, path: Path | None = None) -> str:
    """What a process prints. `path`: the only folder of modules beside those that are installed."""
    environment = {n: v for n, v in os.environ.items() if n != "PYTHONPATH"}
    environment |= {"PYTHONPATH": str(path)} if path else {}
    made = subprocess.run(
        [*map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout


def below(folder: str) -> Iterator[str]:
    """The files of a folder of the source; a folder that is a link is one of them."""
    for file in sorted((ROOT / folder).rglob("*")):
        if (file.is_file() or file.is_symlink()) and "__pycache__" not in file.parts:
            yield file.relative_to(ROOT).as_posix()


SHIPPED = [name for package in PACKAGES for name in below(package)]
FILES = [*SHIPPED, *below("tidegate"), "pyproject.toml", "README.md", "LICENSE"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist, built without a network from a copy of the source."""
    source = tmp_path_factory.mktemp("source")
    for name in FILES:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)
    (source / "built").mkdir()
    run(sys.executable, "-c", SCRIPT, cwd=source)
    (wheel,) = (source / "built").glob("*.whl")
    (sdist,) = (source / "built").glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def alone(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked, with nothing of the source beside it."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(built[0]) as wheel:
        wheel.extractall(folder)
    return folder


def test_the_folders_of_the_source_are_links_in_one_package() -> None:
    """They are what makes `tidegate.rules` of `rules/`."""
    links = {name: os.readlink(ROOT / "tidegate" / name) for name in PACKAGES}
    assert links == {name: f"../{name}" for name in PACKAGES}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a checkout of git")
def test_an_archive_of_git_keeps_the_links() -> None:
    """So that what a code host offers as a download can be built and installed."""
    words = ["git", "-C", str(ROOT), "archive", "--format=tar", "HEAD", "tidegate"]
    made = subprocess.run(words, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(made)) as archive:
        links = {each.name: each.linkname for each in archive.getmembers() if each.issym()}
    assert links == {f"tidegate/{name}": f"../{name}" for name in PACKAGES}


def test_the_wheel_holds_each_file_as_it_is_and_tidegate_alone(built: tuple[Path, Path]) -> None:
    assert len(SHIPPED) > 600
    with zipfile.ZipFile(built[0]) as wheel:
        names = wheel.namelist()
        found = {n: wheel.read(f"tidegate/{n}") for n in SHIPPED if f"tidegate/{n}" in names}
        (metadata,) = (n for n in names if n.endswith("/METADATA"))
        (points,) = (n for n in names if n.endswith("/entry_points.txt"))
        assert "tidegate = tidegate.engine.cli.main:main" in wheel.read(points).decode()
        assert "Requires-Dist: pyspark==" in wheel.read(metadata).decode()
    assert [name for name in SHIPPED if found.get(name) != (ROOT / name).read_bytes()] == []
    tops = {name.split("/")[0] for name in names}
    assert {name for name in tops if not name.endswith(".dist-info")} == {"tidegate"}


def test_the_sdist_holds_each_file_without_links(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as sdist:
        members = {each.name.partition("/")[2]: each for each in sdist.getmembers()}
    assert [name for name in SHIPPED if f"tidegate/{name}" not in members] == []
    assert {"pyproject.toml", "README.md", "LICENSE"} <= members.keys()
    assert [name for name, each in members.items() if each.issym() or each.islnk()] == []


def test_the_wheel_alone_reads_tests_and_checks_rulebooks(alone: Path, tmp_path: Path) -> None:
    """Modules of the user's own with the names of ours do not hide them."""
    for name in PACKAGES:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the file of another')\n")
    said = run(sys.executable, "-c", "import tidegate; print(tidegate.__file__)", cwd=tmp_path,
               path=alone)  # fmt: skip
    assert said.startswith(str(alone))
    tidegate = (sys.executable, "-m", "tidegate")
    schema = run(*tidegate, "schema", cwd=tmp_path, path=alone)
    assert json.loads(schema)["$id"] == "urn:tidegate:schema:rulebook"
    bank = alone / "tidegate" / "rules" / "examples" / "bank"
    checked = run(*tidegate, "validate", bank / "bank.yaml", cwd=tmp_path, path=alone)
    assert f"{bank / 'bank.yaml'}: ok (" in checked
    assert " passed" in run(*tidegate, "test", "--fast", bank, cwd=tmp_path, path=alone)
    assert "remedy" in run(*tidegate, "help", "no-store", "--json", cwd=tmp_path, path=alone)


@pytest.mark.long
def test_an_installed_wheel_runs_the_demo(built: tuple[Path, Path], tmp_path: Path) -> None:
    """In an environment of its own, which takes the libraries from this one."""
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    say = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run(python, "-c", say, cwd=tmp_path).strip())
    # A .pth in what this one names is not read, so that no other tidegate comes with it
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(python, "-m", "pip", "-q", "install", "--no-deps", "--no-index", built[0], cwd=tmp_path)
    said = run(python, "-c", "import tidegate; print(tidegate.__file__)", cwd=tmp_path)
    assert said.startswith(str(site))
    shown = run(python.with_name("tidegate"), "demo", cwd=tmp_path)
    assert "in_and_out" in shown


@pytest.mark.long
def test_a_wheel_of_the_sdist_is_the_same(built: tuple[Path, Path], tmp_path: Path) -> None:
    with tarfile.open(built[1]) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    (source / "built").mkdir()
    run(sys.executable, "-c", SCRIPT, cwd=source)
    (again,) = (source / "built").glob("*.whl")
    with zipfile.ZipFile(again) as two, zipfile.ZipFile(io.BytesIO(built[0].read_bytes())) as one:
        assert {(n.filename, n.CRC) for n in two.filelist if "RECORD" not in n.filename} == {
            (n.filename, n.CRC) for n in one.filelist if "RECORD" not in n.filename
        }
