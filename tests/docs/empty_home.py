"""The tutorial as a newcomer types it: in an empty home, from a fresh clone, install included.

    python -m tests.docs.empty_home [FOLDER]

types every block of docs/tutorial.md into one shell. It says how long each took, and for how long
the processor was at work, which other programs of the machine do not lengthen. It fails where a
line that the page shows is not printed, or all of it takes more than ten minutes. FOLDER is where
the home is made; without it, where temporary files are.
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
from typing import NamedTuple

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
        if found.re is BLOCK:
            yield Typed(found[1], lines(found[2] or ""))
        else:
            yield Typed(re.sub(r"^ {4}", "", found[1], flags=re.MULTILINE), [])


def lines(text: str) -> list[str]:
    return SECONDS.sub("N s", text).splitlines()


class Done(NamedTuple):
    """A block, what it printed, and its last exit code. `seconds`: how long it took. `at_work`: of
    the processor, of all processes."""

    block: Typed
    seconds: float
    at_work: float
    printed: str
    code: int


def run(home: Path) -> list[Done]:
    """Each block of the page, typed."""
    source = home / "tidegate"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(source)], check=True)
    environment = {n: v for n, v in os.environ.items() if KEPT.fullmatch(n)} | {"HOME": str(home)}
    environment["PATH"] = f"{Path(sys.base_prefix) / 'bin'}{os.pathsep}{environment['PATH']}"
    done, before = [], 0.0
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
            shell.stdin.write(f"{block.commands}echo '{END}'$?; times\n")
            shell.stdin.flush()
            for line in shell.stdout:
                if line.startswith(END):
                    code = int(line.removeprefix(END))
                    break
                printed += line
            shell.stdout.readline()  # of the shell itself
            worked = sum(map(minutes, shell.stdout.readline().split()))
            seconds = time.monotonic() - begun
            done.append(Done(block, seconds, worked - before, printed, code))
            before = worked
        shell.stdin.close()
    return done


def minutes(text: str) -> float:
    """`1m2.5s` as seconds."""
    whole, _, rest = text.rstrip("s").partition("m")
    return int(whole) * 60 + float(rest)


def main(words: list[str]) -> int:
    with tempfile.TemporaryDirectory(dir=words[0] if words else None) as home:
        done = run(Path(home))
    failed = 0
    print("  took  at work")
    for each in done:
        lost = missing(each.block.shown, lines(each.printed))
        wrong = bool(lost) or (each.code != 0 and not each.block.shown)
        failed += wrong
        first = each.block.commands.splitlines()[0]
        print(f"{each.seconds:6.1f}  {each.at_work:6.1f} s  {first[:70]}")
        for line in lost:
            print(f"not printed: {line}")
        if wrong:
            print(each.printed)
    whole = sum(each.seconds for each in done)
    print(f"{whole:6.1f}  {sum(each.at_work for each in done):6.1f} s  in all, of {SECONDS_MAX} s")
    return int(failed > 0 or whole > SECONDS_MAX)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
