"""`tidegate why-not`, as a user types it, over signals: the store alone tells, without Spark."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import SIGNALS, Tidegate
from tests.replay.why_not.stored import Stored
from tests.support.make import BEGIN, SECOND
from tidegate.engine.core.text.json_text import instant
from tidegate.engine.store import open_store

TEXT = SIGNALS + "  loud: {on: opened, if: count(*) > 5}\n  named: {per: by, on: opened ; opened}\n"


def at(seconds: float) -> str:
    return str(instant(BEGIN + round(seconds * SECOND)))


@pytest.fixture
def url(tmp_path: Path, empty_store: Path) -> str:
    """Door 7 was opened by Ada, and closed; door 8 was opened by `null`, and 9 by nobody."""
    url = f"sqlite:///{shutil.copy(empty_store, tmp_path / 'doors.db')}"
    with open_store(url, create=False) as store:
        run = Stored(store, TEXT, {})
        run.signal(10, "opened", door=7, by="\x1b[31mAda").signal(11, "closed", door=7).at(12)
        run.signal(20, "opened", door=8, by="null").signal(21, "opened", door=9).at(30)
        run.ledger.lease.release()
    return url


def test_the_first_no_is_told_with_what_came_before(tidegate: Tidegate, url: str) -> None:
    found = tidegate("why-not", "passed", "--key", "door=8", "--store", url)
    assert found.exit_code == 0, found.output
    first, *rungs = found.stdout.splitlines()
    assert first == "passed, door 8, 2026-03-01 09:00:30 to 2026-03-02 09:00:30 (UTC)"
    assert [line.split()[:2] for line in rungs] == [
        ["✓", "active"], ["✓", "seen"], ["✗", "occurrences"],
    ]  # fmt: skip
    assert "No `closed` came for door 8" in rungs[-1]


def test_a_firing_points_to_why(tidegate: Tidegate, url: str) -> None:
    found = tidegate("why-not", "passed", "--key", "door=7", "--store", url)
    *_, fired, why, again = found.stdout.splitlines()
    assert fired.split()[:2] == ["✓", "fired"]
    told = tidegate(*why.split()[1:], "--store", url)
    assert told.exit_code == 0, told.output
    since = again.split()[-1].rstrip("`")
    words = ["why-not", "passed", "--key", "door=7", "--since", since, "--store", url]
    assert "Nothing completed" in tidegate(*words).stdout


def test_json_has_each_rung_with_its_evidence(tidegate: Tidegate, url: str) -> None:
    words = ["why-not", "loud", "--at", at(15), "--store", url]
    found = json.loads(tidegate(*words, "--format", "json").stdout)
    assert found == json.loads(tidegate(*words, "--json").stdout)
    assert {name: found[name] for name in ("rule", "key", "at", "fired", "notes")} == {
        "rule": "loud", "key": {}, "at": at(15), "fired": None, "notes": [],
    }  # fmt: skip
    names = [rung["rung"] for rung in found["rungs"]]
    assert names == ["active", "seen", "occurrences", "rejected", "where", "parts", "context", "if"]
    last = found["rungs"][-1]
    assert (last["ok"], last["evidence"]["values"]) == (False, {"count(*)": 1})


def test_nothing_of_a_value_acts_on_the_terminal(tidegate: Tidegate, url: str) -> None:
    found = tidegate("why-not", "named", "--key", "by=[31mAd", "--store", url)
    assert "[31mAda" in found.stdout
    assert "\x1b" not in found.stdout
    found = tidegate("why-not", "named", "--key", "by=\x1b[31mAda", "--store", url)
    assert "\x1b" not in found.stdout


def test_null_is_a_key_and_a_text(tidegate: Tidegate, url: str) -> None:
    for words in (["--key", "by=null"], ["--null", "by"]):
        found = tidegate("why-not", "named", *words, "--store", url)
        assert "1 of the" in found.stdout or "1 `opened` came" in found.stdout, found.stdout


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["passed"], 1, "the key of passed has 1 column, given: none"),
        (["passed", "--key", "door=x"], 1, "door=x: the values of door are bigint"),
        (["passed", "--key", "gate=1"], 1, "write door=.."),
        (["loud", "--key", "door=1"], 1, "loud has no `per`, and so no key; given: door"),
        (["passed", "--key", "door"], 2, "takes NAME=VALUE"),
        (["passed", "--key", "door=1", "--null", "door"], 2, "both a value and --null"),
        (["passd", "--key", "door=1"], 1, "did you mean 'passed'?"),
        (["passed", "--key", "door=1", "--at", "soon"], 1, "--at: 'soon' is neither a time"),
        (["passed", "--key", "door=1", "--since", "9999999 d"], 1, "--since: '9999999 d' is"),
        (["passed", "--key", "door=1", "--at", "20260302"], 1, "'20260302' reads like a date"),
        (["passed", "--key", "door=1", "--at", "2600", "--since", "2700"], 1, "later than --at"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(
    tidegate: Tidegate, url: str, words: list[str], code: int, says: str
) -> None:
    found = tidegate("why-not", *words, "--store", url)
    assert found.exit_code == code
    assert says in " ".join(found.output.split())
    assert not found.stdout


def test_secrets_of_a_store_are_not_shown(tidegate: Tidegate) -> None:
    found = tidegate("why-not", "r", "--store", "postgresql://ada:hunter2@127.0.0.1:1/x")
    assert found.exit_code == 3
    assert "hunter2" not in found.output
