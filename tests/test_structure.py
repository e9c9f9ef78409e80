"""The one-way flow: rules <- engine <- connectors, and stages that never import each other."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tidegate
from tidegate.engine.core.columns.numba_cache import kernel_modules

ROOT = Path(__file__).parent.parent
FOLDER = Path(tidegate.__file__).parent
TEST, CLAUSE, CLAUSES = re.compile(r"^def (test_\w+)", re.MULTILINE), re.compile(r"_g(\d\d)"), 31
STAGES = ("capture", "detector", "evaluate", "act", "store")


def modules() -> Iterator[tuple[str, str]]:
    """(importing module, imported module) over all packages."""
    for package in ("rules", "engine", "connectors", "migrations"):
        for file in (ROOT / package).rglob("*.py"):
            importer = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            yield from ((importer, name.removeprefix("tidegate.")) for name in imported(file))


def imported(file: Path) -> Iterator[str]:
    """The modules that a file imports, and what it imports from them, by full names."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{a.name}" for a in node.names)


EDGES = sorted(set(modules()))


def edges_from(prefix: str) -> list[tuple[str, str]]:
    found = [e for e in EDGES if e[0] == prefix or e[0].startswith(prefix + ".")]
    assert found, f"{prefix} imports nothing: is it somewhere else now?"
    return found


def test_rules_import_neither_engine_nor_connectors_nor_heavy_libraries() -> None:
    refused = {"engine", "connectors", "pyspark", "pyarrow", "numpy", "sqlalchemy", "numba"}
    assert not [e for e in edges_from("rules") if e[1].split(".")[0] in refused]


def test_only_app_and_demo_import_connectors() -> None:
    allowed = ("engine.app", "engine.demo")
    found = [e for e in edges_from("engine") if e[1].split(".")[0] == "connectors"]
    assert not [e for e in found if not e[0].startswith(allowed)]


def test_connectors_know_no_stage() -> None:
    stages = tuple(f"engine.{stage}" for stage in STAGES)
    assert not [e for e in edges_from("connectors") if e[1].startswith(stages)]


@pytest.mark.parametrize("stage", STAGES)
def test_stages_do_not_import_each_other(stage: str) -> None:
    others = tuple(f"engine.{s}" for s in STAGES if s != stage)
    assert not [e for e in edges_from(f"engine.{stage}") if e[1].startswith(others)]


@pytest.mark.parametrize("package", ["engine.detector", "engine.script"])
def test_the_detector_knows_neither_spark_nor_a_database(package: str) -> None:
    refused = {"pyspark", "py4j", "sqlalchemy", "connectors"}
    assert not [e for e in edges_from(package) if e[1].split(".")[0] in refused]


def test_scripts_know_no_stage_but_the_detector() -> None:
    others = tuple(f"engine.{s}" for s in STAGES if s != "detector")
    assert not [e for e in edges_from("engine.script") if e[1].startswith(others)]


def test_kernels_are_made_of_kernel_modules_alone() -> None:
    """What was compiled is found by a digest of these: nothing else may be a part of it."""
    files = [file for file, _ in kernel_modules()]
    names = {".".join(file.relative_to(FOLDER).with_suffix("").parts) for file in files}
    assert len(names) > 10
    allowed = tuple(names | {"engine.compiled", "engine.values"})
    outside = [e for name in names for e in edges_from(name) if e[1].startswith("engine")]
    assert not [e for e in outside if not e[1].startswith(allowed)]


def test_each_clause_of_the_guarantees_is_shown_by_a_test_that_names_it() -> None:
    text = "".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    named = {number for name in TEST.findall(text) for number in CLAUSE.findall(name)}
    assert {f"{number:02}" for number in range(1, CLAUSES + 1)} - named == set()


def test_each_operator_has_its_table_of_histories() -> None:
    """`closed`, `opened` and `shape` hold what operators share."""
    files = [
        f
        for f in (ROOT / "engine/detect/events/graph/operators").glob("*.py")
        if f.stem != "__init__"
    ]
    operators = {file.stem for file in files if "def step(" in file.read_text()} - {"shape"}
    assert {file.stem for file in files} - operators == {"closed", "opened", "shape"}
    shown = {file.stem for file in (ROOT / "tests/detect/events/graph/operators").glob("test_*.py")}
    assert shown == {f"test_{name}" for name in operators}


@pytest.mark.parametrize("command", ["validate", "simulate"])
def test_light_commands_start_without_spark_and_sqlalchemy(command: str) -> None:
    script = (
        "import sys\n"
        f"sys.argv = ['tidegate', '{command}', '--help']\n"
        "import tidegate.engine.cli.main\n"
        "try: tidegate.engine.cli.main.main()\n"
        "except SystemExit: pass\n"
        + f"import tidegate.{'rules' if command == 'validate' else 'engine.replay.simulate'}\n"
        + "assert not {'pyspark', 'sqlalchemy', 'py4j'} & set(sys.modules), 'heavy import'\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, capture_output=True)


def test_sql_is_read_in_one_place_and_its_reader_is_imported_with_the_first_text() -> None:
    readers = {e[0] for e in EDGES if e[1].split(".")[0] == "sqlglot"} - {"engine.sparktypes"}
    assert readers
    assert {name for name in readers if not name.startswith("rules.sql.")} == set()
    script = (
        "import sys, tidegate\n"
        "text = 'rulebook: b\\nevents: {a: {signal: {x: bigint}}}\\nrules: {r: {on: a ; a}}\\n'\n"
        "tidegate.load(text)\n"
        "assert 'sqlglot' not in sys.modules\n"
        "tidegate.load(text.replace('a ; a', 'a ; a, if: x > 1'))\n"
        "assert 'sqlglot' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, capture_output=True)


def test_the_reference_shares_the_language_with_the_detector_and_no_ruling() -> None:
    """What both took from one place would be wrong in both."""
    language = ("errors", "eventscript", "expression", "formatter", "model", "parser")
    shared = [["rules", name] for name in language]
    folders = ("reference", "golden")
    files = [f for folder in folders for f in (ROOT / "tests" / folder).rglob("*.py")]
    names = [name for f in files for name in imported(f)]
    ours = [name for name in names if name.split(".")[0] == "tidegate"]
    assert ours
    assert not [name for name in ours if name.split(".")[1:3] not in shared]
    beside = [name for name in names if name.split(".")[0] == "tests"]
    assert not [name for name in beside if name.split(".")[1] not in folders]


def test_everything_is_imported_as_a_part_of_tidegate() -> None:
    """A user's own `rules.py` or `engine/` is never taken for ours, nor ours imported twice."""
    names = {"rules", "engine", "connectors", "migrations"}
    folders = [*names, "tests", "benchmarks"]
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 300
    assert not [(f, name) for f in files for name in imported(f) if name.split(".")[0] in names]


def test_the_wheel_holds_tidegate_alone_and_a_folder_of_ones_own_does_not_hide_it(
    tmp_path: Path,
) -> None:
    for name in ("rules", "engine", "connectors", "migrations"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the file of another')\n")
    source = tmp_path / "source"
    copied = ("tidegate", "rules", "engine", "connectors", "migrations")
    for folder in copied:
        shutil.copytree(
            ROOT / folder,
            source / folder,
            symlinks=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "install"]
    pip += ["--no-deps", "--no-build-isolation", "--target", str(tmp_path / "site"), str(source)]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    tops = sorted(p.name for p in (tmp_path / "site").iterdir() if p.name != "bin")
    assert [name for name in tops if not name.endswith(".dist-info")] == ["tidegate"]
    script = (
        "import tidegate.engine.cli.main, tidegate.rules, tidegate\n"
        "tidegate.load('rulebook: b\\nevents: {a: {signal: {}}}\\nrules: {r: {on: a ; a}}\\n')\n"
        "tidegate.Engine\n"
        "print(tidegate.__file__)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.startswith(str(tmp_path / "site"))
