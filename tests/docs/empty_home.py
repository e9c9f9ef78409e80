"""The tutorial as a newcomer types it: in an empty home, from a fresh clone, install included.

    python -m tests.docs.empty_home [FOLDER]

types every block of docs/tutorial.md into one shell, and says how long each took. It fails where a
line that the page shows is not printed, or all of it takes more than ten minutes. FOLDER is where
the home is made; without it a temporary one, which is removed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import ROOT
from tests.docs.test_tutorial import BLOCK, PAGE, SECONDS, Typed, missing

SECONDS_MAX = 600
KEPT = re.compile(r"PATH|LANG|LC_\w+|TERM|PIP_\w+|TIDEGATE_MAVEN|\w+_(?:proxy|PROXY)|JAVA_HOME")
"""What of the environment a newcomer has, too: where packages come from, not what is cached."""
SET_IN = re.compile(r"^((?: {4}(?:make|export) .*\n)+)", re.MULTILINE)
END = "-- the end of a block, with exit code "


def typed() -> Iterator[Typed]:
    """All that is typed, in its order: how to install is set in, without a fence."""
    places = [(found.start(), found) for form in (SET_IN, BLOCK) for found in form.finditer(PAGE)]
    for _, found in sorted(places, key=lambda each: each[0]):
        shown = found[2] if found.re is BLOCK and found[2] else ""
        yield Typed(re.sub(r"^ {4}", "", found[1], flags=re.MULTILINE), lines(shown))


def lines(text: str) -> list[str]:
    return SECONDS.sub("N s", text).splitlines()


def run(home: Path) -> list[tuple[Typed, float, str, int]]:
    """Each block with the seconds it took, what it printed, and its last exit code."""
    source = home / "tidegate"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(source)], check=True)
    environment = {n: v for n, v in os.environ.items() if KEPT.fullmatch(n)} | {"HOME": str(home)}
    environment["PATH"] = f"{Path(sys.base_prefix) / 'bin'}{os.pathsep}{environment['PATH']}"
    done = []
    with subprocess.Popen(
        ["bash"],
        cwd=source,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        for block in typed():
            begun, printed, code = time.monotonic(), "", 0
            shell.stdin.write(f"{block.commands}echo '{END}'$?\n")
            shell.stdin.flush()
            for line in shell.stdout:
                if line.startswith(END):
                    code = int(line.removeprefix(END))
                    break
                printed += line
            done.append((block, time.monotonic() - begun, printed, code))
        shell.stdin.close()
    return done


def main(words: list[str]) -> int:
    with tempfile.TemporaryDirectory(dir=words[0] if words else None) as home:
        done = run(Path(home))
    failed = 0
    for block, seconds, printed, code in done:
        lost = missing(block.shown, lines(printed))
        failed += bool(lost) or (code != 0 and not block.shown)
        print(f"{seconds:7.1f} s  {block.commands.splitlines()[0][:70]}")
        for line in lost:
            print(f"           not printed: {line}")
        if lost or (code != 0 and not block.shown):
            print(printed)
    whole = sum(seconds for _, seconds, _, _ in done)
    print(f"{whole:7.1f} s  in all, of {SECONDS_MAX} s")
    return int(failed > 0 or whole > SECONDS_MAX)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
