"""The scripts for Airflow and Databricks: what they run exists, and each exit code has its end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.docs.pages import blocks
from tests.support.command_lines import check

BLOCKS = {place.split(":")[0]: text for place, text in blocks("python")}
CODES = [0, 1, 2, 3, 4, 130]


class Retried(Exception):
    """AirflowException: the task is tried again."""


class Failed(Retried):
    """AirflowFailException: it is not."""


class Asked:
    """A `subprocess.run` that ends with a code."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.words: list[list[str]] = []
        self.environments: list[dict[str, str] | None] = []

    def __call__(
        self, words: list[str], *, check: bool, env: dict[str, str] | None = None
    ) -> SimpleNamespace:
        assert isinstance(check, bool)
        self.words.append(words)
        self.environments.append(env)
        return SimpleNamespace(returncode=self.code)


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the page's script has declared, under an Airflow that only notes it."""
    noted: dict[str, Any] = {}

    def dag(**settings: Any) -> Callable[..., Any]:
        noted["dag"] = settings
        return lambda function: function

    def task(**settings: Any) -> Callable[..., Any]:
        noted["task"] = settings

        def made(function: Callable[[], None]) -> Callable[[], None]:
            noted["run"] = function
            return lambda: None

        return made

    for name, values in (
        ("airflow", {}),
        ("airflow.sdk", {"dag": dag, "task": task}),
        ("airflow.exceptions", {"AirflowException": Retried, "AirflowFailException": Failed}),
    ):
        module = ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
    exec(compile(BLOCKS["airflow.md"], "airflow.md", "exec"), noted)
    return noted


@pytest.mark.parametrize("code", CODES)
def test_airflow_tries_again_what_may_pass_by_itself(
    airflow: dict[str, Any], monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    asked = Asked(code)
    monkeypatch.setattr(subprocess, "run", asked)
    wanted = {0: None, 3: Retried}.get(code, Failed)
    if wanted is None:
        airflow["run"]()
    else:
        with pytest.raises(Retried) as raised:
            airflow["run"]()
        assert type(raised.value) is wanted
    ((_, option, module, *words),) = asked.words
    assert (option, module) == ("-m", "tidegate")
    assert {"--once", "--if-held"} <= set(words)
    check(words)


def test_airflow_runs_one_at_a_time_and_makes_up_for_nothing(airflow: dict[str, Any]) -> None:
    assert airflow["dag"]["max_active_runs"] == 1
    assert airflow["dag"]["catchup"] is False
    assert airflow["task"]["retries"] > 0


def databricks() -> dict[str, Any]:
    made: dict[str, Any] = {"__name__": "task"}
    exec(compile(BLOCKS["databricks.md"], "databricks.md", "exec"), made)
    return made


@pytest.mark.parametrize("code", CODES)
def test_databricks_fails_with_what_the_code_means(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    script, asked = databricks(), Asked(code)
    monkeypatch.setattr(subprocess, "run", asked)
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "PYTHONPATH"):
        monkeypatch.setenv(name, "/databricks")
    monkeypatch.setenv("TIDEGATE_STORE", "postgresql://rules@db/rules")
    if code:
        with pytest.raises(RuntimeError, match=f"exit code {code}: "):
            script["main"]()
    else:
        script["main"]()
    venv, install, run = asked.words
    assert venv[1:3] == ["-m", "venv"]
    assert "--no-index" in install
    assert run[1:3] == ["-m", "tidegate"]
    check(run[3:])
    own = asked.environments[-1] or {}
    assert "TIDEGATE_STORE" in own
    assert not {"SPARK_HOME", "PYSPARK_PYTHON", "PYTHONPATH"} & own.keys()


def test_a_wrong_rulebook_ends_the_real_command_with_1(tmp_path: Path) -> None:
    """Without Spark, and without a store that is left behind."""
    book = tmp_path / "wrong.yaml"
    book.write_text("rulebook: b\nevents: {a: {signal: {}}}\nrules: {r: {on: zz}}\n")
    words = [sys.executable, *databricks()["COMMAND"][:-1], str(book)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended.stderr
    assert "wrong.yaml:3:17: unknown event 'zz'" in ended.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["wrong.yaml"]
