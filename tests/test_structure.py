"""The house: which rooms there are, what is in them, and which may import which."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import tidegate
from tests.support.house import (
    EDGES,
    FILES,
    FLOOR,
    IMPORTS,
    PACKAGES,
    ROOT,
    entry,
    imported,
    kernel_modules,
    levels,
    room,
)
from tidegate.engine.core.columns.numba_cache import sources

FOLDER = Path(tidegate.__file__).parent
DECORATORS = r"^((?:@.*\n(?:[ )\]].*\n)*)*)"
TEST = re.compile(DECORATORS + r"def (test_\w+)", re.MULTILINE)
CLAUSE, CLAUSES = re.compile(r"_g(\d\d)"), 31

# What stands beside the rooms of FLOORS
OTHERS = {
    "rules": {"__init__.py", "schema.json", "examples"},
    "engine": {"__init__.py"},
    "connectors": {"__init__.py", "clock.py", "scheduler.py", "delta", "http", "java"},
    "migrations": {"__init__.py", "env.py", "versions"},
}
# Libraries that few rooms may import; and in `rules`, where none of these is let in
LIBRARIES = {
    "click": ("engine.cli",),
    "sqlalchemy": ("engine.store", "migrations"),
    "alembic": ("engine.store", "migrations"),
    "pyspark": ("connectors.delta", "connectors.java", "engine.app", "engine.cli.demo"),
    "py4j": ("connectors.delta", "connectors.java", "engine.app"),
}
HEAVY = {"numpy", "pyarrow", "numba", *LIBRARIES} - {"click"}
# What the tests' reference takes of `rules.expressions`
LANGUAGE = (
    "nodes",
    "windows",
    "formatter",
    "parser",
    "predicates",
    "predicate_parser",
    "aggregate_parser",
)
# Which rooms of `engine` the connectors implement something of
IMPLEMENTED = {
    "connectors.clock": {"core"},
    "connectors.scheduler": {"core"},
    "connectors.delta": {"core"},
    "connectors.java": {"core"},
    "connectors.http": {"core", "control", "store"},
}


# Files below LINES_MIN that stand alone: each is looked for by its name. So are those in FAMILIES.
LINES_MIN = 40
FAMILIES = {"operators", "kinds", "search", "versions"}
SMALL = """
    connectors.clock connectors.http.console.headers engine.act.targets engine.capture.resets
    engine.core.columns.decimals engine.core.columns.user_cache engine.core.instants
    engine.core.signing
    engine.detect.events.kernels.prefetch engine.loop.ports
    engine.store.misfires rules.checks.damping
    rules.checks.scripts rules.checks.selection rules.sql.deletes rules.yaml.files
"""


def circles(edges: Mapping[str, set[str]]) -> list[set[str]]:
    """Modules that import each other, directly or through others: what is left when all that
    import nothing, or are imported by nothing, have been taken away."""
    left = {name: names & edges.keys() for name, names in edges.items()}
    while True:
        used = {name for names in left.values() for name in names}
        away = {name for name, names in left.items() if not names or name not in used}
        if not away:
            return [{name, *names} for name, names in left.items()]
        left = {name: names - away for name, names in left.items() if name not in away}


def test_every_entry_is_a_room() -> None:
    for package in PACKAGES:
        rooms = {name.split(".")[1] for name in FLOOR if name.startswith(f"{package}.")}
        entries = {p.name for p in (ROOT / package).iterdir() if p.name != "__pycache__"}
        assert {e[:-3] if e[:-3] in rooms else e for e in entries} == OTHERS[package] | rooms


def test_every_import_goes_down() -> None:
    """With that, no room reaches one beside it through a third file either. What is imported for
    type checkers alone counts, and what is imported inside functions."""
    ours = [(a, b) for a, b in EDGES if b in FILES and room(a) != room(b) and a != "tidegate"]
    assert len(ours) > 1_000
    assert [(a, b) for a, b in ours if a != "engine" and FLOOR[room(a)] <= FLOOR[room(b)]] == []
    assert circles(IMPORTS) == []


def test_the_house_is_small_enough_to_remember() -> None:
    """Its rooms, here, are `rules`, `connectors`, `migrations` and the entries of `engine`; a floor
    is the length of the longest way up to a room. `pytest -s` prints them."""
    ends = [(entry(a), entry(b)) for a, b in EDGES if b in FILES]
    arrows = {(a, b) for a, b in ends if a != b and "tidegate" not in (a, b)}
    floors = levels(arrows)
    print(f"{len(floors)} rooms on {max(floors.values())} floors, {len(arrows)} arrows")
    assert 13 <= len(floors) <= 19
    assert max(floors.values()) <= 8


def test_small_files_are_few() -> None:
    alone = {
        name
        for name, file in FILES.items()
        if file.name != "__init__.py" and not FAMILIES & {*name.split(".")}
        and name.split(".")[0] != "migrations"
    }  # fmt: skip
    small = {name for name in alone if FILES[name].read_text().count("\n") < LINES_MIN}
    assert small == set(SMALL.split())


@pytest.mark.parametrize("library", LIBRARIES)
def test_few_rooms_know_a_library(library: str) -> None:
    users = {importer for importer, name in EDGES if name.split(".")[0] == library}
    assert users
    assert {name for name in users if not name.startswith(LIBRARIES[library])} == set()


def test_the_language_needs_no_heavy_library() -> None:
    assert [e for e in EDGES if room(e[0])[:5] == "rules" and e[1].split(".")[0] in HEAVY] == []


@pytest.mark.parametrize("connector", IMPLEMENTED)
def test_connectors_implement_ports_and_know_no_stage(connector: str) -> None:
    known = {room(b) for a, b in EDGES if a.startswith(connector) and b.startswith("engine.")}
    assert known <= {f"engine.{name}" for name in IMPLEMENTED[connector]}


def test_only_app_and_the_demo_import_connectors() -> None:
    users = {a for a, b in EDGES if room(b) == "connectors" and room(a) != "connectors"}
    assert {
        name for name in users if not name.startswith(("engine.app", "engine.cli.demo"))
    } == set()


def test_kernels_are_made_of_kernel_modules_alone() -> None:
    """What was compiled is found by a digest of what its module imports: all of it counts, and it
    is little."""
    files = {FOLDER / file.relative_to(ROOT): name for name, file in FILES.items()}
    kernels = {files[file] for file in kernel_modules()}
    assert len(kernels) > 10
    own = (
        "columns.memory",
        "columns.numba_cache",
        "columns.user_cache",
        "values",
        "relation_files",
    )
    beside = {f"engine.core.{name}" for name in own}
    for file, name in files.items():
        if name in kernels:
            used = {files[source] for source in sources(file)}
            assert used <= kernels | beside
            taken = {b for a in used for b in IMPORTS[a] if b.startswith("engine.")}
            assert taken <= used


def test_each_clause_of_the_guarantees_is_shown_by_a_short_test_that_names_it() -> None:
    text = "".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    found = [name for marks, name in TEST.findall(text) if "@pytest.mark.long\n" not in marks]
    named = {number for name in found for number in CLAUSE.findall(name)}
    assert {f"{number:02}" for number in range(1, CLAUSES + 1)} - named == set()


def test_each_operator_has_its_table_of_histories() -> None:
    """Beside them stands what several of them share."""
    place = "detect/events/graph/operators"
    found = [f for f in (ROOT / "engine" / place).glob("*.py") if f.stem != "__init__"]
    operators = {file.stem for file in found if "def step(" in file.read_text()}
    assert {file.stem for file in found} - operators == {"closed_windows", "open_windows"}
    shown = {file.stem for file in (ROOT / "tests" / place).glob("test_*.py")}
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
    of_trees = ("engine.core.types.spark", "engine.core.evaluator.")  # of what `rules.sql` read
    readers = {e[0] for e in EDGES if e[1].split(".")[0] == "sqlglot"}
    assert readers
    assert {name for name in readers if not name.startswith(("rules.sql.", *of_trees))} == set()
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
    read = ("errors", "eventscript", "model", "yaml", "form.windows")
    language = (*read, *(f"expressions.{n}" for n in LANGUAGE))
    shared = tuple(f"tidegate.rules.{name}." for name in language)
    folders = ("reference", "golden")
    files = [f for folder in folders for f in (ROOT / "tests" / folder).rglob("*.py")]
    names = [name for f in files for name in imported(f)]
    ours = [name for name in names if name.split(".")[0] == "tidegate"]
    assert ours
    assert not [name for name in ours if not f"{name}.".startswith(shared)]
    beside = [name for name in names if name.split(".")[0] == "tests"]
    assert not [name for name in beside if name.split(".")[1] not in folders]


def test_everything_is_imported_as_a_part_of_tidegate() -> None:
    """A user's own `rules.py` or `engine/` is never taken for ours, nor ours imported twice."""
    names = {"rules", "engine", "connectors", "migrations"}
    folders = [*names, "tests", "benchmarks", "docs"]
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 300
    may = re.compile(rf"^\s*(?:from|import)\b(?:.*\W)?(?<!\.)(?:{'|'.join(names)})\b", re.MULTILINE)
    suspects = [file for file in files if may.search(file.read_text(encoding="utf-8"))]
    assert suspects
    assert not [(f, name) for f in suspects for name in imported(f) if name.split(".")[0] in names]
