"""What executors have installed is looked at when an engine starts, each executor of it."""

from __future__ import annotations

import logging
import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.connectors.delta.test_executors import _process
from tidegate.connectors.delta import installation
from tidegate.connectors.delta.executors import ExecutorsError, SparkExecutors
from tidegate.connectors.delta.installation import Installed, check_installed, own_version, said
from tidegate.connectors.delta.jobs import Jobs
from tidegate.rules.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
# A Python that lacks a package: what imports it raises as where it is not installed.
LACKING = """\
#!{python}
import importlib.abc, runpy, sys
class Lacking(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] == "{package}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Lacking())
sys.path.insert(0, {root!r})
del sys.argv[:2]
runpy.run_module("{module}", run_name="__main__", alter_sys=False)
"""


class Registered(SparkExecutors):
    """As if the local session had so many executors."""

    count: int | None = 1

    def _registered(self) -> int | None:
        return self.count


@pytest.fixture
def some(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registered]:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    jobs = Jobs(spark)
    yield Registered(spark, jobs, 600)
    jobs.close()


def test_a_local_session_is_not_looked_at(
    some: Registered, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise AssertionError("a job")

    monkeypatch.setattr(some, "_run", none)
    assert SparkExecutors._registered(some) is None
    some.count = None
    some.check(_process)


def test_where_no_executor_is_registered_that_is_said(
    some: Registered, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    some.count = 0
    some.check(_process)
    assert "Spark has no executor yet: each is looked at when it is first asked" in caplog.messages


def test_every_executor_is_looked_at(
    some: Registered, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two executors this one alone runs tasks, as if the other were busy."""
    caplog.set_level(logging.INFO)
    some.count, tasks = 2, list[int]()
    looked = some._looked
    monkeypatch.setattr(some, "_looked", lambda look, n: tasks.append(n) or looked(look, n))
    some.check(_process)
    assert tasks == [2, 4, 8]
    (line,) = (m for m in caplog.messages if "executors have" in m)
    assert line.startswith(f"1 of Spark's 2 executors have tidegate {own_version()} (Python 3.")
    assert line.endswith(f"{sys.executable})")


def test_another_version_is_named_with_its_python_and_machine(
    some: Registered, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = own_version()
    monkeypatch.setattr(installation, "own_version", lambda: "0.0.1")
    with pytest.raises(EngineError) as raised:
        some.check(_process)
    assert raised.value.code == "executors-differ"
    python = f"Python {platform.python_version()}, {sys.executable} on {platform.node()}"
    assert raised.value.message == (
        f"the engine has tidegate 0.0.1, and Spark's executors have {there} ({python})"
    )


@pytest.mark.parametrize(
    ("package", "how"),
    [
        ("tidegate", "lack it (Python"),
        ("numba", "lack numba, which it needs (Python"),
        ("pyspark", "lack pyspark"),
    ],
)
def test_a_python_that_lacks_a_package_is_named(
    some: Registered, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    package: str, how: str,
) -> None:  # fmt: skip
    python = tmp_path / "python3"
    text = LACKING.format(
        root=str(ROOT), python=sys.executable, package=package, module="pyspark.daemon"
    )
    python.write_text(text)
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    with pytest.raises(EngineError) as raised:
        some.check(_process)
    assert (raised.value.code, how in raised.value.message) == ("executors-differ", True)


def test_a_python_that_is_not_there_is_named(
    some: Registered, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "./environment/bin/python")
    for call in (lambda: some.check(_process), lambda: some.map(_process, [1])):
        with pytest.raises(EngineError, match=r"cannot start \./environment/bin/python") as raised:
            call()
        assert raised.value.code == "executors-differ"


def test_a_look_that_fails_keeps_nothing_from_starting(
    some: Registered, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ExecutorsError("an executor was lost")

    monkeypatch.setattr(some, "_run", fails)
    some.check(_process)
    assert caplog.messages == [
        "Spark's executors were not looked at before they are asked: an executor was lost"
    ]


def test_all_that_differ_are_named_once_each() -> None:
    own, python = own_version(), "Python 3.11.2, /usr/bin/python3"
    fine = Installed("a", 1, python, own, "")
    old = [Installed(host, 1, python, "0.0.1", "") for host in "bcb"]
    none = Installed("d", 1, python, "0.0.1", "No module named 'tidegate.engine'")
    check_installed([fine, fine])
    with pytest.raises(EngineError) as raised:
        check_installed([fine, *old, none])
    told = f"have 0.0.1 ({python} on b; {python} on c), or lack it ({python} on d)"
    assert raised.value.message.endswith(told)


@pytest.mark.parametrize(
    ("details", "how"),
    [
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in "
         "driver: 3.11, PySpark cannot run with", "run Python 3.9"),
        ("ModuleNotFoundError: No module named 'pyarrow'", "lack pyarrow, which it needs"),
        ("/usr/bin/python3: No module named pyspark.daemon", "lack pyspark.daemon, which it needs"),
        ("ModuleNotFoundError: No module named 'tidegate'", "lack it"),
        ("Error: No module named 'tidegate_more'", "lack tidegate_more, which it needs"),
        ("java.io.IOException: No space left on device", None),
    ],
)  # fmt: skip
def test_what_spark_says_of_an_installation(details: str, how: str | None) -> None:
    assert said(details) == how


def test_a_version_is_that_of_the_package_or_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> str:
        raise metadata.PackageNotFoundError

    assert own_version()
    monkeypatch.setattr(installation.metadata, "version", missing)
    assert own_version() == "an unknown version"
