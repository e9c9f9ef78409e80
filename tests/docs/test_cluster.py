"""What the page on clusters sets in: commands, an image and settings of Spark."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pyspark

from tests.docs.pages import ROOT
from tests.support import cluster

PAGE = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
PROPERTIES = re.findall(r"^```properties\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_settings_are_those_of_spark_each_once() -> None:
    assert len(PROPERTIES) == 2
    for block in PROPERTIES:
        pairs = [line.split() for line in block.splitlines()]
        assert all(len(pair) == 2 and pair[0].startswith("spark.") for pair in pairs), block
        assert len({name for name, _ in pairs}) == len(pairs)


def test_the_environment_that_is_sent_is_the_one_whose_python_is_named() -> None:
    settings = dict(line.split() for line in PROPERTIES[0].splitlines())
    archive, _, folder = settings["spark.archives"].partition("#")
    assert settings["spark.pyspark.python"] == f"./{folder}/bin/python"
    assert PAGE.count(f" -o {archive}") == 2  # by conda-pack, by venv-pack


def test_what_is_started_by_hand_is_what_the_tests_start() -> None:
    (root,) = pyspark.__path__
    assert (Path(root) / "bin" / "spark-class").exists()
    started = re.findall(r"spark-class (org\.apache\.spark\.deploy\.\S+)", PAGE)
    source = Path(cluster.__file__).read_text(encoding="utf-8")
    assert len(started) == 2
    parts = [name.removeprefix("org.apache.spark.deploy.") for name in started]
    assert all(part in source for part in parts), parts


def test_versions_are_those_of_this_project() -> None:
    assert {*re.findall(r"tidegate==([\d.]+)", PAGE)} == {PROJECT["version"]}
    assert {*re.findall(r"apache/spark:([\d.]+)", PAGE)} == {pyspark.__version__}
    (python,) = {*re.findall(r"python=([\d.]+)", PAGE)}
    assert PROJECT["requires-python"].startswith(f">={python}")
