"""Commands that show what stands in the way of rules, and get past it: skip, redrive, enable."""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.cli.conftest import SIGNALS, Tidegate
from tests.support import make
from tidegate.engine.cli.screens import entry_lines
from tidegate.engine.core.entries import Fate
from tidegate.engine.core.state import Parked
from tidegate.engine.core.text.layout import fates_text
from tidegate.engine.core.values import Rejected
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store.holder import this_holder
from tidegate.engine.store.totals import Total

NAME = "doors"


@pytest.fixture
def url(tmp_path: Path, empty_store: Path) -> str:
    """A store in which rule `passed` is parked, entry 1 is done, 2 dead and 3 held."""
    url = f"sqlite:///{shutil.copy(empty_store, tmp_path / 'doors.db')}"
    with open_store(url, create=False) as store:
        store.of(NAME).versions.register(SIGNALS + "  other: {on: opened}\n", None)
        epoch = store.of(NAME).lease.acquire(this_holder(), 60)
        fired = make.firings("passed")
        entries = [
            make.entry("passed", 0),
            make.entry("passed", 1, state="dead", error="no", firing_ids=(make.hex_ids(fired)[1],)),
            make.entry("passed", 2),
        ]
        numbered = make.commit(
            store,
            epoch,
            make.plan(rulebook=NAME),
            fired=[fired],
            entries=entries,
            rejected=[Rejected("opened", "inbox", "no door", {"door": "Ada's"}, "Ada was it")] * 2,
            parked=(Parked("passed", "it stores too much", "bound it", make.BEGIN),),
        )
        store.of(NAME, epoch).outbox.settle([make.outcome(numbered[0], "done", 1)])
        held = make.outcome(
            numbered[2], "held", 1, "cast failed", details="cast of 'Ada' failed\nat 2"
        )
        store.of(NAME, epoch).outbox.settle([held])
        store.of(NAME, epoch).lease.release()
    return url


def test_enable_says_that_it_forgives(tidegate: Tidegate) -> None:
    said = " ".join(tidegate("enable", "--help").stdout.split())
    assert "Its texts in quarantine run again" in said


def asked(url: str) -> list[tuple[str, str, str | None]]:
    with open_store(url, create=False) as store:
        return [(c.kind, c.subject, c.option) for c in store.of(NAME).controls.pending()]


def answer(tidegate: Tidegate, *words: object) -> Any:
    result = tidegate(*words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_ways_past_an_entry_are_asked_of_the_engine(tidegate: Tidegate, url: str) -> None:
    at = ("--store", url)
    first = answer(tidegate, "skip", 3, *at)
    assert first == {
        "rulebook": NAME,
        "asked_for": "skip",
        "entry": 3,
        "rule": "passed",
        "state": "held",
        "effective": "no engine runs: `tidegate run` carries it out",
    }
    with open_store(url, create=False) as store:
        store.of(NAME).lease.acquire(this_holder(), 60)
    assert answer(tidegate, "skip", 3, "--unsealed", *at)["effective"].startswith("at the engine")
    answer(tidegate, "redrive", 2, *at)
    answer(tidegate, "redrive", 3, "--may-double", *at)
    answer(tidegate, "enable", "passed", *at)
    answer(tidegate, "disable", "passed", "--purge", *at)
    assert asked(url) == [
        ("skip", "3", None),
        ("skip", "3", "unsealed"),
        ("redrive", "2", None),
        ("redrive", "3", "may-double"),
        ("enable", "passed", None),
        ("disable", "passed", "purge"),
    ]
    shown = answer(tidegate, "status", *at)["asked_for"]
    assert [control["kind"] for control in shown] == [
        "skip",
        "skip",
        "redrive",
        "redrive",
        "enable",
        "disable",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["skip", "4"], "ENTRY: there is no entry 4"),
        (["redrive", "1"], "entry 1 of rule passed is done already"),
        (["skip", "1"], "entry 1 of rule passed is done already"),
        (["enable", "pased"], "RULE: the rulebook doors has no rule or script `pased`\n"),
        (["enable", "pased"], "did you mean 'passed'?"),
        (["firings", "--rule", "no"], "--rule: the rulebook doors has no rule `no`\n"),
        (["firings", "--key", "no=1"], "--key: no such rule has the key column `no`\n"),
        (["enable", "other"], "rule `other` is not parked, and not disabled"),
        (["disable", "pased"], "did you mean 'passed'?"),
        (["dead", "pased"], "RULE: the rulebook doors has no rule `pased`\n"),
        (["redrive", "--all", "pased"], "did you mean 'passed'?"),
        (["firings", "--entry", "4"], "--entry: there is no entry 4"),
        (["firings", "--before", "xyz"], "--before: 'xyz' is no firing's id"),
    ],
)
def test_what_cannot_be_done_is_refused_and_not_asked(
    tidegate: Tidegate, url: str, words: list[str], said: str
) -> None:
    result = tidegate(*words, "--store", url)
    assert (result.exit_code, result.stdout, said in result.stderr) == (1, "", True), result.stderr
    assert asked(url) == []


def test_g18_dead_letters_are_listed_and_redriven_together(tidegate: Tidegate, url: str) -> None:
    at = ("--store", url)
    (row,) = (json.loads(line) for line in tidegate("dead", *at, "--json").stdout.splitlines())
    commands, text = row.pop("commands"), row.pop("text")
    assert (commands, text) == (["tidegate redrive 2", "tidegate skip 2"], "UPDATE a")
    assert isinstance(row.pop("stored_at"), str)
    assert row == {
        "number": 2,
        "rule": "passed",
        "bucket": 1,
        "kind": "sql",
        "target": "a",
        "attempts": 0,
        "error": "no",
        "firings": 1,
    }
    shown = tidegate("dead", "passed", *at).stdout
    assert "tidegate redrive --all" in shown
    assert "UPDATE a" not in shown
    assert tidegate("dead", "other", *at).stdout == "dead letters: -\n"
    assert answer(tidegate, "redrive", "--all", "other", *at)["entries"] == 0
    assert answer(tidegate, "redrive", "--all", "passed", *at) == {
        "rulebook": NAME,
        "asked_for": "redrive",
        "entries": 2,
        "effective": "no engine runs: `tidegate run` carries it out",
    }
    assert answer(tidegate, "redrive", "--all", *at)["entries"] == 0  # asked for already
    assert answer(tidegate, "redrive", "--all", "--may-double", *at)["entries"] == 2
    assert asked(url) == [
        *[("redrive", number, None) for number in "23"],
        *[("redrive", number, "may-double") for number in "23"],
    ]
    assert tidegate("redrive", *at).exit_code == 2
    with open_store(url, create=False) as store:
        store.of(NAME).versions.register(SIGNALS.replace("passed:", "renamed:"), None)
    assert answer(tidegate, "redrive", "--all", *at)["only_to_be_skipped"] == [2, 3]


def test_status_shows_what_and_why_without_values(tidegate: Tidegate, url: str) -> None:
    status = answer(tidegate, "status", "--store", url)
    assert [(e["number"], e["state"], e["commands"][0]) for e in status["entries"]] == [
        (2, "dead", "tidegate redrive 2"),
        (3, "held", "tidegate redrive 3"),
    ]
    assert status["parked_rules"][0]["commands"] == ["tidegate enable passed"]
    text = tidegate("status", "--store", url).stdout
    assert "tidegate redrive 3; tidegate skip 3" in text
    assert "it stores too much" in text
    assert "entry 3 of rule passed: held, 1 attempt, " in text.replace("\n", " ")
    assert "Ada" not in text + json.dumps(status)


@pytest.mark.parametrize("width", [80, 100])
def test_status_says_first_whether_it_runs_and_fits_the_screen(
    tidegate: Tidegate, url: str, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = tidegate("status", "--store", url).stdout.splitlines()
    assert lines[0].startswith("rulebook doors: stopped (not running)")
    assert max(map(len, lines)) <= width
    (row,) = [line for line in lines if line.startswith("passed")]
    assert row.split() == ["passed", "parked", "2026-03-02", "09:02:00", "2", "0", "0", "1", "1"]
    assert sum(line.split()[:3] == ["other", "not", "active"] for line in lines) == 1
    with open_store(url, create=False) as store:
        epoch = store.of(NAME).lease.acquire(this_holder(), 60)
        first = tidegate("status", "--store", url).stdout.splitlines()[0]
        assert first.startswith(f"rulebook doors: starting (process {os.getpid()} on ")
        store.of(NAME, epoch).lease.set_stopped("no disk")
        store.of(NAME, epoch).lease.release()
    assert tidegate("status", "--store", url).stdout.startswith("rulebook doors: stopped: no disk")


def test_an_entry_of_a_rule_that_is_gone_can_only_be_skipped(tidegate: Tidegate, url: str) -> None:
    with open_store(url, create=False) as store:
        store.of(NAME).versions.register(SIGNALS.replace("passed:", "renamed:"), None)
    entries = answer(tidegate, "status", "--store", url)["entries"]
    assert [e["commands"] for e in entries] == [["tidegate skip 2"], ["tidegate skip 3"]]


def test_firings_are_the_newest_with_their_rows_and_what_became_of_them(
    tidegate: Tidegate, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "75")
    with open_store(url, create=False) as store:
        epoch = store.of(NAME).lease.acquire(this_holder(), 60)
        columns = {"account_id": pa.array([None, Decimal("-1E-18")], pa.decimal128(38, 18))}
        fired = make.firings("other", 2, 2, **columns)
        make.commit(store, epoch, make.plan(2, rulebook=NAME), fired=[fired])
        store.of(NAME, epoch).lease.release()
        ids = [firing["firing_id"] for firing in store.of(NAME).firings.listed()]

    def shown(*words: object) -> list[str]:
        return tidegate("firings", *words, "--store", url).stdout.splitlines()

    lines = shown()
    title = "4 of 4 detections (times in UTC): 4 fired; of these 1 dead"
    assert lines[0] == f"the newest {title}"
    assert max(map(len, lines)) <= 75
    assert lines[-1] == "`tidegate why ID` tells why one is there, and what became of it"
    heads = [line for line in lines[1:-1] if not line.startswith(" ")]
    assert [line.split("  ")[0] for line in heads] == [one[:8] for one in ids]
    assert heads[1].endswith("2026-03-02 09:02:00  passed  account_id=8  #1 done, #2 dead, #3")
    assert lines[lines.index(heads[1]) + 1] == "  held"
    assert heads[2].endswith("other  account_id=null")
    assert "account_id=-0.000000000000000001" in heads[3]
    assert sum(line.startswith("    withdrawal  ") for line in lines) == 4
    (first, *_) = shown("--rule", "passed", "--limit", 1)
    assert first == f"the newest {title.replace('4 of 4', '1 of 2').replace('4 fired', '2 fired')}"
    for words, chosen in (
        (["--before", ids[2][:8]], ids[:2]),
        (["--rule", "other", "--all"], ids[2:]),
        (["--state", "dead"], [ids[1]]),
        (["--since", "2026-03-02T10:00:00"], ids[2:]),
        (["--until", "2026-03-02T09:01:00Z"], ids[:1]),
    ):
        found = tidegate("firings", *words, "--store", url, "--json").stdout.splitlines()
        assert [json.loads(line)["firing_id"] for line in found] == chosen, words
    wrong = tidegate("firings", "--key", "dor=7", "--store", url)
    assert (wrong.exit_code, "did you mean 'door'?" in wrong.stderr) == (1, True)
    none = title.replace("4 of 4", "0 that match of 4")
    assert " ".join(map(str.strip, shown("--key", "door=7"))) == f"the newest {none}"


def test_a_time_without_an_offset_is_one_of_the_rulebooks_zone(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    url, text = f"sqlite:///{tmp_path / 'zone.db'}", f"{SIGNALS}timezone: Asia/Tokyo\n"
    with open_store(url, create=True) as store:
        store.of(NAME).versions.register(text, None)
        epoch = store.of(NAME).lease.acquire(this_holder(), 60)
        make.commit(store, epoch, make.plan(rulebook=NAME), fired=[make.firings("passed", 1)])
        store.of(NAME, epoch).lease.release()
    ended = answer(tidegate, "firings", "--store", url)["end"].removesuffix("Z")
    there = datetime.fromisoformat(ended) + timedelta(hours=9)
    before, after = ((there + timedelta(seconds=n)).isoformat() for n in (-1, 1))
    for option, first, second in (("--since", 1, 0), ("--until", 0, 1)):
        for time, count in ((before, first), (there.isoformat(), 1), (after, second)):
            found = tidegate("firings", option, time, "--store", url, "--json").stdout
            assert len(found.splitlines()) == count, (option, time)


def test_people_read_times_in_the_rulebooks_zone_and_programs_in_utc(
    tidegate: Tidegate, url: str
) -> None:
    text = f"{SIGNALS}  other: {{on: opened}}\ntimezone: Asia/Tokyo\n"
    with open_store(url, create=False) as store:
        store.of(NAME).versions.register(text, None)
    at = ("--store", url)
    (first, head, row, *_) = tidegate("firings", *at).stdout.splitlines()
    assert first.startswith("the newest 2 of 2 detections (times in Asia/Tokyo): 2 fired")
    assert "  2026-03-02 18:01:00  passed  " in head, "09:01:00 UTC"
    assert row.startswith("    withdrawal  18:0")
    assert answer(tidegate, "firings", "--limit", 1, *at)["end"] == "2026-03-02T09:02:00Z"
    entry = tidegate("firings", "--entry", 2, *at).stdout
    assert "firings: 1 (times in Asia/Tokyo)" in entry
    assert "  2026-03-02 18:02:00  passed" in entry
    stored = answer(tidegate, "firings", "--entry", 2, *at)["stored_at"].removesuffix("Z")
    there = datetime.fromisoformat(stored) + timedelta(hours=9)
    assert f"stored_at: {there:%Y-%m-%d %H:%M:%S}" in entry.splitlines()
    letters = tidegate("dead", *at).stdout
    assert letters.startswith("dead letters (times in Asia/Tokyo)\n")
    assert f"{there:%Y-%m-%d %H:%M:%S}" in letters
    status = tidegate("status", *at).stdout
    assert "; times are in Asia/Tokyo\n" in status
    assert "everything up to 2026-03-02 19:00:00," in status
    assert answer(tidegate, "status", *at)["timezone"] == "Asia/Tokyo"
    heard = tidegate("listen", "passed", "--since", "earliest", "--once", *at).stdout
    assert "  2026-03-02 09:01:00Z  passed" in heard, "listen has no head line"


def test_what_became_of_detections_adds_up() -> None:
    total = Total(31, fired=20, condition_failed=5, damped={"cooldown": 2}, dead=2)
    said = "20 fired, 5 whose condition failed, 2 damped, 4 whose condition has no answer"
    assert fates_text(total.fates) == said
    assert sum(total.fates.values()) == 31


def test_one_firing_is_said_in_the_singular(tidegate: Tidegate, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'one.db'}"
    with open_store(url, create=True) as store:
        store.of(NAME).versions.register(SIGNALS, None)
        epoch = store.of(NAME).lease.acquire(this_holder(), 60)
        make.commit(store, epoch, make.plan(rulebook=NAME), fired=[make.firings("passed", 1)])
        store.of(NAME, epoch).lease.release()
    shown = tidegate("firings", "--store", url).stdout.splitlines()
    assert shown[0] == "the newest 1 of 1 detection (times in UTC): 1 fired"
    assert tidegate("firings", "--all", "--store", url).stdout.startswith("all 1 of 1 detection (")


def test_values_are_shown_where_they_are_asked_for(tidegate: Tidegate, url: str) -> None:
    at = ("--store", url)
    plain = tidegate("rejected", *at)
    assert plain.stdout.count("no door") == 2
    assert "Ada" not in plain.stdout
    for words in (["rejected", "-v", "--limit", 1], ["rejected", "-v", "--limit", 1, "--json"]):
        shown = tidegate(*words, *at).stdout
        assert (shown.count("Ada was it"), "Ada's" in shown) == (1, True)
    assert "Ada" not in tidegate("firings", *at).stdout
    entry = answer(tidegate, "firings", "--entry", 3, *at)
    assert entry["details"] == "cast of 'Ada' failed\nat 2"
    assert (entry["text"], len(entry["firings"])) == ("UPDATE a", 2)
    assert "cast of 'Ada' failed" in tidegate("firings", "--entry", 3, *at).stdout
    assert len(answer(tidegate, "firings", "--entry", 2, *at)["firings"]) == 1
    assert tidegate("firings", "--entry", 3, "--limit", 2, *at).exit_code == 2


def test_what_an_entry_says_fits_the_screen_and_its_text_stays_as_it_is() -> None:
    text = f"INSERT INTO t\n  {'a ' * 80}"
    entry = {"error": "word " * 60, "text": text, "details": "sum(a)\n    ^^^", "firings": ()}
    said = list(entry_lines(entry, "UTC", 100))
    assert " ".join(" ".join(said).split()).startswith("error: " + "word " * 60)
    assert [len(line) > 100 for line in said].count(True) == 1
    assert said[-5:] == [
        "text: INSERT INTO t", "      " + "a " * 80, "details: sum(a)", "        ^^^",
        "firings: 0 (times in UTC)",
    ]  # fmt: skip


def test_an_entry_of_unknown_fate_names_the_options(tidegate: Tidegate, url: str) -> None:
    with open_store(url, create=False) as store:
        doubt(store)
    (_, held) = answer(tidegate, "status", "--store", url)["entries"]
    assert held["commands"] == ["tidegate redrive 3 --may-double", "tidegate skip 3 --unsealed"]


def doubt(store: SqlStore) -> None:
    entry = store.of(NAME).outbox.entry(3)
    assert entry is not None
    epoch = store.of(NAME).lease.acquire(this_holder(), 60)
    store.of(NAME, epoch).outbox.settle(
        [make.outcome(entry, "held", 3, "no answer", fate=Fate.UNKNOWN.value)]
    )
    store.of(NAME, epoch).lease.release()


@pytest.mark.parametrize("text", ["yesterday", "", "3x"])
def test_a_time_that_is_none_is_told_the_forms_that_are(
    tidegate: Tidegate, url: str, text: str
) -> None:
    result = tidegate("firings", "--store", url, "--since", text)
    assert result.exit_code == 1
    said = (
        f"--since: {text!r} is neither a time nor how long ago it was write 2026-01-01T09:00:00Z,"
    )
    said += " or the seconds since 1970: 1767258000, or `1 h` for an hour ago; without an offset it"
    assert " ".join(result.stderr.split()) == f"{said} is in UTC"
    for number in ("2026", "202603", "20260302", "202603020930", "20260302093000"):
        result = tidegate("firings", "--store", url, "--since", number)
        assert result.exit_code == 1
        said = f"--since: '{number}' reads like a date, but a number alone is seconds since 1970"
        assert " ".join(result.stderr.split()).startswith(f"{said} write 2026-01-01T09:00:00Z,")
    for form in ("2026-01-01T09:00:00Z", "1767258000", "2026030209", "20269902", "2600", "1 h"):
        assert tidegate("firings", "--store", url, "--since", form).exit_code == 0


def test_a_script_is_named_where_only_a_rule_can_stand(tidegate: Tidegate, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'echo.db'}"
    script = "scripts: {echo: {text: 'in {} opened out {} again (opened() {!> again();})*'}}\n"
    with open_store(url, create=True) as store:
        store.of(NAME).versions.register(SIGNALS + script, None)
    said = tidegate("disable", "echo", "--key", "door=7", "--store", url)
    assert (said.exit_code, "it is a script" in said.stderr) == (1, True), said.stderr
    answer(tidegate, "disable", "echo", "--store", url)
    assert asked(url) == [("disable", "echo", None)]
