"""The tutorial, typed as it stands into an empty folder: what it shows is what is printed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from tests.docs.pages import ROOT
from tidegate.engine.cli.main import main

PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
WITHOUT_SPARK, LIVE = PAGE.split("## 6. Live")
BLOCK = re.compile(r"^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
SECONDS = re.compile(r"\d+\.\d+ s$", re.MULTILINE)
END = "-- the end of a block --"


class Typed(NamedTuple):
    """A block to be typed, and the lines that are shown below it."""

    commands: str
    shown: list[str]


def blocks(text: str) -> list[Typed]:
    return [Typed(found[1], _lines(found[2] or "")) for found in BLOCK.finditer(text)]


def _lines(text: str) -> list[str]:
    return SECONDS.sub("N s", text).splitlines()


def type_in(folder: Path, typed: list[Typed], seconds: int) -> list[list[str]]:
    """What a shell in the folder prints, block by block."""
    command = folder / "bin" / "tidegate"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tidegate "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    home = folder / "home"
    home.mkdir()
    run = subprocess.run(
        ["bash"],
        cwd=home,
        env=env,
        input="".join(f"{block.commands}echo '{END}'\n" for block in typed),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    return [_lines(part) for part in run.stdout.split(f"{END}\n")[: len(typed)]]


def missing(shown: list[str], printed: list[str]) -> list[str]:
    """Which of the lines that are shown are not printed, in their order."""
    left = iter(printed)
    return [line for line in shown if line not in left]


def type_here(typed: list[Typed]) -> list[list[str]]:
    """The same in this process and folder, which is faster: only what is no `tidegate` needs a
    shell."""
    told = []
    for block in typed:
        said = ""
        for line in re.findall(
            r"^tidegate .*\n|(?:^(?!tidegate ).*\n)+", block.commands, re.MULTILINE
        ):
            if not line.startswith("tidegate "):
                run = subprocess.run(
                    ["bash"], input=line, stdout=subprocess.PIPE, text=True, check=True
                )
                said += run.stdout
                continue
            words, _, file = line.partition(" > ")
            found = CliRunner().invoke(main, shlex.split(words)[1:])
            if file:
                Path(file.strip()).write_text(found.stdout)
            said += "" if file else found.output
        told.append(_lines(said))
    return told


def as_shown(typed: list[Typed], printed: list[list[str]]) -> None:
    assert len(typed) == len(printed) == 7
    assert all(block.shown for block in typed)
    for block, lines in zip(typed, printed, strict=True):
        assert missing(block.shown, lines) == [], (block.commands, lines)


def test_what_the_tutorial_shows_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    typed = blocks(WITHOUT_SPARK)
    as_shown(typed, type_here(typed))


@pytest.mark.long
def test_a_shell_prints_it_too(tmp_path: Path) -> None:
    typed = blocks(WITHOUT_SPARK)
    as_shown(typed, type_in(tmp_path, typed, 240))


@pytest.mark.long
def test_the_live_part_leads_to_a_story(tmp_path: Path) -> None:
    typed = blocks(LIVE)
    told = "tidegate why $(tidegate why --commit alerts@1 | grep -o '[0-9a-f]\\{32\\}')\n"
    demo, asked, story = type_in(tmp_path, [*typed, Typed(told, [])], 500)
    assert any("Written by the rules" in line for line in demo)
    assert any(re.match(r"Entry \d+ of rule \w+ made version 1 of alerts", line) for line in asked)
    assert any(re.match(r" *tidegate why [0-9a-f]{32}$", line) for line in asked)
    assert story[0].startswith("Firing ")


def test_nothing_else_is_to_be_typed() -> None:
    """Only how to install stands in the text as it is: the tests have done it."""
    fences = re.findall(r"^```(\w+)$", PAGE, re.MULTILINE)
    assert set(fences) == {"sh", "text"}
    prose = re.sub(r"^```.*?^```$", "", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"^    (\w+)", prose, re.MULTILINE) == ["make", "export"]


def test_lines_that_are_not_printed_are_found() -> None:
    assert missing(["a", "c"], ["a", "b", "c"]) == []
    assert missing(["c", "a"], ["a", "b", "c"]) == ["a"]
