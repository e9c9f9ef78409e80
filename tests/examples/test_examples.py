"""The tests beside the examples and the cookbook pass: those that need no Spark.

With Spark all of them run in `test_examples_spark.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.cases import EXAMPLES, FILES, MISSING, driver, every_case, read, told
from tidegate.engine.core.text.times import of_text
from tidegate.engine.replay.cases.accept import accept, accepted
from tidegate.engine.replay.cases.model import Case
from tidegate.rules.loader import validated

SESSIONS = ("12-sessions.yaml", "33-abandoned-cart.yaml")


@pytest.mark.parametrize(("file", "case"), every_case())
def test_a_case_of_an_example(file: Path, case: Case) -> None:
    result = driver(file).run_fast(case)
    if result.outcome == "skipped":
        pytest.skip(f"with Spark: {result.reason}")
    assert result.outcome == "passed", told(result)


def test_every_example_has_tests_and_no_warnings() -> None:
    books = sorted(set(EXAMPLES.rglob("*.yaml")) - set(FILES))
    assert [file.with_suffix(".test.yaml") for file in books] == FILES
    for book in books:
        warnings = {each.code for each in validated(book, {}).warnings} - {"not-live"}
        assert warnings == ({"unbounded"} if book.name in SESSIONS else set()), book
    problems = [int(book.name[:2]) for book in books if book.parent.name == "cookbook"]
    assert problems == list(range(1, 35))


def test_what_is_missing_is_the_name_of_a_case() -> None:
    assert {case.name for file in FILES for case in read(file).cases} >= set(MISSING)


def test_what_is_written_in_place_of_a_question_is_what_was_worked_out_by_hand(
    tmp_path: Path,
) -> None:
    """Each list of an expectation becomes `?`, is filled in, and holds what the example's does."""
    book = EXAMPLES / "cookbook" / "02-silent-host.yaml"
    (tmp_path / book.name).write_text(book.read_text())
    text = book.with_suffix(".test.yaml").read_text()
    lines = text[: text.index("\n- name: two beats")].split("\n")
    asked = [line for line in lines if not line.startswith("      - {key")]
    asked = [line + " ?" if line.startswith("      ") else line for line in asked]
    file = tmp_path / "silent.test.yaml"
    file.write_text("\n".join(asked))
    assert file.read_text().count(" ?\n") == 2
    results = [driver(file).run_fast(case) for case in read(file).cases]
    assert (
        accept(
            file,
            file.read_text(),
            [answer for each in map(accepted, results) for answer in each.answers],
        )
        == 2
    )
    read.cache_clear()
    driver.cache_clear()
    (case,) = read(file).cases
    assert driver(file).run_fast(case).outcome == "passed"
    (by_hand, *_) = read(book.with_suffix(".test.yaml")).cases
    assert case.expect is not None
    assert by_hand.expect is not None
    for rule, wanted in by_hand.expect.firings.items():
        ends = [of_text(row["at"].value) for row in wanted.rows]
        assert [of_text(row["at"].value) for row in case.expect.firings[rule].rows] == ends
