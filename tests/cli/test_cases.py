"""`tidegate test` and `tidegate init` as a user types them, without Spark."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Tidegate
from tidegate.engine.cli import cases

BOOK = """\
rulebook: doors
events:
  opened: {signal: {door: bigint, by: string}}
  closed: {signal: {door: bigint}}
rules:
  passed: {on: opened ; closed, per: door, context: recent}
"""
TESTS = """\
rulebook: doors.yaml
tests:
- name: in and out
  steps:
  - {at: 2026-03-02T09:00:00, signal: {opened: {door: 1, by: ann}}}
  - {after: 5 s, signal: {closed: {door: 1}}}
  expect: {firings: {passed: [{key: {door: 1}, at: 2026-03-02T09:00:05}]}}
- name: another door
  steps:
  - {at: 2026-03-02T09:00:00, signal: {opened: {door: 1}, closed: {door: 2}}}
  expect: {firings: {passed: []}}
"""


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    (tmp_path / "doors.yaml").write_text(BOOK)
    file = tmp_path / "doors.test.yaml"
    file.write_text(TESTS)
    return file


def lines(text: str) -> Iterator[dict[str, object]]:
    return map(json.loads, text.splitlines())


def test_a_line_a_test_and_a_count(tidegate: Tidegate, tests: Path) -> None:
    found = tidegate("test", tests.parent)
    assert found.exit_code == 0
    assert found.stdout.splitlines()[:3] == [
        f"{tests}",
        "  passed  in and out",
        "  passed  another door",
    ]
    assert found.stdout.splitlines()[3].startswith("2 passed in ")
    assert found.stderr == ""


def test_a_failure_is_shown_and_ends_with_1(tidegate: Tidegate, tests: Path) -> None:
    tests.write_text(TESTS.replace("09:00:05}]", "09:00:06}]"))
    found = tidegate("test", tests)
    assert found.exit_code == 1
    assert f"FAILED {tests}:3: in and out" in found.stdout
    assert "! at   2026-03-02T09:00:06  2026-03-02T09:00:05" in found.stdout
    assert "1 passed, 1 failed in " in found.stdout
    (first, second) = lines(tidegate("test", tests, "--json").stdout)
    assert first == {
        "file": str(tests),
        "name": "in and out",
        "outcome": "failed",
        "mode": "fast",
        "seconds": first["seconds"],
        "differences": [
            {
                "path": "expect.firings.passed[0].at",
                "expected": "2026-03-02T09:00:06",
                "got": "2026-03-02T09:00:05",
            }
        ],
    }
    assert second["outcome"] == "passed"


def test_tests_are_chosen_by_a_text(tidegate: Tidegate, tests: Path) -> None:
    (found,) = lines(tidegate("test", tests, "-k", "ANOTHER", "--json").stdout)
    assert found["name"] == "another door"
    none = tidegate("test", tests, "-k", "wndow")
    assert none.exit_code == 1  # else a typo in CI is green for ever
    assert "no test has 'wndow' in its name or file" in none.stderr


def test_a_duration_without_a_unit_is_warned_of(tidegate: Tidegate, tests: Path) -> None:
    tests.write_text(TESTS.replace("after: 5 s", "after: 5"))
    found = tidegate("test", tests)
    assert found.exit_code == 0
    assert f"warning: {tests}:6:13: 5 without a unit is seconds" in found.stderr


def test_a_rule_that_is_not_listed_fails_strictly(tidegate: Tidegate, tests: Path) -> None:
    tests.write_text(TESTS.partition("- name: another")[0].partition("  expect")[0])
    found = tidegate("test", tests)
    assert found.exit_code == 0
    assert "in and out; not listed, but fired: passed (1)" in found.stdout
    found = tidegate("test", tests, "--strict")
    assert found.exit_code == 1
    assert "firings.passed was not expected" in found.stdout


def test_what_is_asked_fails_until_it_is_accepted(tidegate: Tidegate, tests: Path) -> None:
    asked = TESTS.replace("[{key: {door: 1}, at: 2026-03-02T09:00:05}]", "?")
    asked = asked.replace("expect: {firings: {passed: []}}", "expect: ? # later")
    tests.write_text(asked)
    assert tidegate("test", tests).exit_code == 1
    assert tests.read_text() == asked
    found = tidegate("test", tests, "--accept")
    assert found.exit_code == 0
    assert f"{tests}: 2 expectations filled in" in found.stderr
    firing = "[{key: {door: 1}, at: 2026-03-02T09:00:05, constituents: 2}]"
    whole = "expect:\n    firings: {}\n    only: true # later"
    assert tests.read_text() == asked.replace("passed: ?", f"passed: {firing}").replace(
        "expect: ? # later", whole
    )
    assert tidegate("test", tests).exit_code == 0


def test_a_wrong_file_ends_with_1_and_the_others_run(tidegate: Tidegate, tests: Path) -> None:
    wrong = tests.with_name("a.test.yaml")
    wrong.write_text("rulebook: doors.yaml\ntests: [{nam: a}]\n")
    found = tidegate("test", tests.parent)
    assert found.exit_code == 1
    assert f"{wrong}:2:10: unknown key 'nam' in a test" in found.stderr
    assert "2 passed, 1 file refused in " in found.stdout


@pytest.mark.parametrize("words", [(), ("no-such-folder",), (".", "--fsat")])
def test_usage_ends_with_2(tidegate: Tidegate, words: tuple[str, ...]) -> None:
    assert tidegate("test", *words).exit_code == 2


def test_a_folder_without_tests_ends_with_1(tidegate: Tidegate, tmp_path: Path) -> None:
    found = tidegate("test", tmp_path)
    assert found.exit_code == 1
    assert "there is no file *.test.yaml in this folder" in found.stderr


def test_results_for_ci(tidegate: Tidegate, tests: Path) -> None:
    file = tests.with_name("out.xml")
    assert tidegate("test", tests, "--junit", file).exit_code == 0
    (suite,) = ElementTree.parse(file).getroot()
    assert [case.get("name") for case in suite] == ["in and out", "another door"]
    found = tidegate("test", tests, "--junit", tests.parent / "none" / "out.xml")
    assert found.exit_code == 1
    assert "the results cannot be written" in found.stderr


def test_tests_run_again_when_a_file_changes(
    tidegate: Tidegate, tests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = iter([("doors.yaml", "rulebook: doors\nrules: {}\n"), ("doors.yaml", BOOK), None])
    monkeypatch.setattr(cases, "POLL_SECONDS", 0.4)

    def told(text: str) -> None:
        if not text.startswith("waiting"):
            return
        change = next(changes)
        if change is None:
            raise KeyboardInterrupt
        file = tests.with_name(change[0])

        def write() -> None:
            file.write_text("")  # in two steps, as some editors do
            time.sleep(0.5)
            file.write_text(change[1])
            os.utime(file, ns=(1, 1))

        threading.Timer(0.05, write).start()

    monkeypatch.setattr(cases.output, "tell", told)
    found = tidegate("test", tests, "--watch")
    assert found.exit_code == 130
    counts = [line for line in found.stdout.splitlines() if " passed" in line and " in " in line]
    shown = [line.partition(" in ")[0] for line in counts if line[0].isdigit()]
    assert shown == ["2 passed", "0 passed, 1 file refused", "2 passed"]


def test_init_writes_what_passes_at_once(tidegate: Tidegate, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    found = tidegate("init", folder)
    assert found.exit_code == 0
    assert f"run the tests: tidegate test {folder}" in found.stdout
    assert tidegate("test", folder, "--strict").exit_code == 0
    assert {one["mode"] for one in lines(tidegate("test", folder, "--json").stdout)} == {"fast"}
    assert tidegate("validate", folder / "rulebook.yaml").stdout.count("warning") == 0
    assert len((folder / "README.md").read_text().splitlines()) == 10
    settings = json.loads((folder / ".vscode" / "settings.json").read_text())
    for schema, of in settings["yaml.schemas"].items():
        assert (folder / schema).exists()
        assert [*folder.glob(of[0])]


def test_init_overwrites_nothing(tidegate: Tidegate, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    found = tidegate("init", tmp_path)
    assert found.exit_code == 1
    assert f"{tmp_path}: files are there that are not overwritten: README.md" in found.stderr
    assert found.stderr.count("tidegate init DIR") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["README.md"]
    other = tmp_path / "other"
    (written,) = lines(tidegate("init", other, "--json").stdout)
    assert written["files"][0] == str(other / "rulebook.yaml")  # type: ignore[index]
