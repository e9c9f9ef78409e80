"""The one-way flow: rules <- engine <- connectors, and stages that never import each other."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
STAGES = ("capture", "detector", "evaluate", "act", "store")


def modules() -> Iterator[tuple[str, str]]:
    """(importing module, imported module) over all packages."""
    for package in ("rules", "engine", "connectors", "migrations"):
        for file in (ROOT / package).rglob("*.py"):
            importer = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import):
                    yield from ((importer, alias.name) for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module:
                    yield importer, node.module
                    yield from ((importer, f"{node.module}.{a.name}") for a in node.names)


EDGES = sorted(set(modules()))


def edges_from(prefix: str) -> list[tuple[str, str]]:
    return [e for e in EDGES if e[0] == prefix or e[0].startswith(prefix + ".")]


def test_rules_import_neither_engine_nor_connectors_nor_heavy_libraries() -> None:
    refused = {"engine", "connectors", "pyspark", "pyarrow", "numpy", "sqlalchemy", "numba"}
    assert not [e for e in edges_from("rules") if e[1].split(".")[0] in refused]


def test_only_app_and_demo_import_connectors() -> None:
    allowed = ("engine.app", "engine.demo")
    found = [e for e in edges_from("engine") if e[1].split(".")[0] == "connectors"]
    assert not [e for e in found if not e[0].startswith(allowed)]


@pytest.mark.parametrize("stage", STAGES)
def test_stages_do_not_import_each_other(stage: str) -> None:
    others = tuple(f"engine.{s}" for s in STAGES if s != stage)
    assert not [e for e in edges_from(f"engine.{stage}") if e[1].startswith(others)]


def test_the_detector_knows_neither_spark_nor_a_database() -> None:
    refused = {"pyspark", "py4j", "sqlalchemy", "connectors"}
    assert not [e for e in edges_from("engine.detector") if e[1].split(".")[0] in refused]


@pytest.mark.parametrize("command", ["validate", "simulate"])
def test_light_commands_start_without_spark_and_sqlalchemy(command: str) -> None:
    script = (
        "import sys, runpy\n"
        f"sys.argv = ['tidegate', '{command}', '--help']\n"
        "import engine.cli\n"
        "try: engine.cli.main()\n"
        "except SystemExit: pass\n"
        + f"import {'rules' if command == 'validate' else 'engine.replay.simulate'}\n"
        + "assert not {'pyspark', 'sqlalchemy', 'py4j'} & set(sys.modules), 'heavy import'\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, capture_output=True)
