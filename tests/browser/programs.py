"""The programs that the tests in a browser need: Debian's Chromium and its driver.

    python -m tests.browser.programs

says what is missing, and installs it by apt where this user may.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAMS = {"chromium": "chromium", "chromedriver": "chromium-driver"}
"""Each program, and the package of Debian that has it."""
BY_HAND = "apt-get install chromium chromium-driver"


def found() -> dict[str, Path]:
    """Where each program is; those that are missing are left out."""
    paths = {name: shutil.which(name) for name in PROGRAMS}
    return {name: Path(path) for name, path in paths.items() if path is not None}


def missing() -> list[str]:
    """The packages that are to be installed."""
    return [package for program, package in PROGRAMS.items() if program not in found()]


def install(packages: list[str]) -> bool:
    """Whether they are installed now."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    for command in (
        ["update", "-q"],
        ["install", "-q", "-y", "--no-install-recommends", *packages],
    ):
        if subprocess.run(["apt-get", *command], check=False).returncode != 0:
            return False
    return not missing()


def main() -> int:
    wanted = missing()
    if wanted:
        print(f"the tests in a browser need {' and '.join(wanted)}: installing", file=sys.stderr)
    if wanted and not install(wanted):
        print(f"not installed: {' '.join(missing())}. Do it by hand: {BY_HAND}", file=sys.stderr)
        return 1
    for name, path in found().items():
        print(f"{name}: {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
