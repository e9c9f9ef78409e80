"""The commands that need no Spark: what they print, and how they end."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from pathlib import Path

import click
import pytest

from tests.cli.conftest import SIGNALS, Tidegate
from tests.support import make, written
from tidegate import Engine, rules
from tidegate.engine.cli import output
from tidegate.engine.store import open_store
from tidegate.rules.errors import EngineError


def test_validate_says_ok_and_counts(tidegate: Tidegate, doors: Path) -> None:
    result = tidegate("validate", doors)
    assert result.exit_code == 0
    assert result.stdout == f"{doors}: ok (0 tables, 2 events, 1 rule)\n"


def test_validate_takes_a_script_alone(tidegate: Tidegate, tmp_path: Path) -> None:
    file = tmp_path / "heating.es"
    file.write_text("in double A\nout long warm\n(A() { !> warm(1); })*\n")
    result = tidegate("validate", file)
    assert result.exit_code == 0
    assert f"{file}: ok (0 tables, 2 events, 0 rules, 1 script)\n" in result.stdout
    file.write_text("in double A\nB()\n")
    assert f"{file}:2:1: unknown event 'B'" in tidegate("validate", file).stdout


def test_validate_looks_through_the_automaton_of_a_script(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    file = tmp_path / "b.yaml"
    text = "rulebook: b\nscripts:\n  s: {text: 'in {} A A() {n = 1;} | A() {n = 2;}'"
    file.write_text(f"{text}}}\n")
    result = tidegate("validate", file)
    assert result.exit_code == 0
    said = f"warning: {file}:3:37: A lets two paths go on, from 3:22 and from 3:37, and both reach"
    assert said in result.stdout
    file.write_text(f"{text}, machine: dfa}}\nsettings: {{script_states_max: 1}}\n")
    result = tidegate("validate", file)
    assert result.exit_code == 1
    assert f"\n{file}:3:3: the script 's' has more than 1 states (setting" in result.stdout
    assert said in result.stdout
    explained = tidegate("explain", file).stdout
    assert "script s (machine dfa: refused: more than 1 state (script_states_max))" in explained


def test_validate_names_every_error_with_its_place_and_ends_with_1(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(
        SIGNALS.replace("closed\n    per", "closde\n    per") + "  worse: {on: opend}\n"
    )
    result = tidegate("validate", file)
    assert result.exit_code == 1
    places = re.findall(rf"^{re.escape(str(file))}:(\d+:\d+): ", result.stdout, re.MULTILINE)
    assert places == ["7:18", "10:15"]
    assert re.findall(r"did you mean '(\w+)'", result.stdout) == ["closed", "opened"]


def test_validate_warns_of_what_only_simulate_has(tidegate: Tidegate, tmp_path: Path) -> None:
    file = tmp_path / "timed.yaml"
    file.write_text(
        "rulebook: x\nevents: {a: {signal: {}}, b: {signal: {}}}\n"
        "rules: {r: {on: 'P(a, [10 ms], [1 s])'}}\n"
    )
    result = tidegate("validate", file)
    assert result.exit_code == 0
    first, ok = result.stdout.split("\n", 1)
    assert first.startswith(f"warning: {file}:3:18: a period below 1,000 ms is refused in `run`")
    assert f"{file}: ok" in ok


def test_validate_warns_beside_the_errors_of_another_rule(tidegate: Tidegate, doors: Path) -> None:
    doors.write_text(
        doors.read_text() + "  wrong: {on: opened and}\n"
        "  timed: {on: 'P(opened, [10 ms], [1 s])', per: door}\n"
        "  kept: {on: opened ; closed, per: door, context: chronicle}\n"
    )
    result = tidegate("validate", doors)
    assert result.exit_code == 1
    said = [line.split(": ", 1)[0] for line in result.stdout.splitlines() if "(rules." in line]
    assert said == ["warning", "warning", f"{doors}:10:25"]
    (line,) = tidegate("validate", doors, "--json").stdout.splitlines()
    assert [w["code"] for w in json.loads(line)["warnings"]] == ["not-live", "unbounded"]


def test_validate_json_gives_a_line_a_file(tidegate: Tidegate, doors: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("rulebook: x\nrules: {a: {on: b}}\n")
    result = tidegate("validate", doors, bad, "--json")
    good, wrong = (json.loads(line) for line in result.stdout.splitlines())
    assert result.exit_code == 1
    assert (good["ok"], good["errors"]) == (True, [])
    assert (wrong["ok"], wrong["errors"][0]["line"]) == (False, 2)
    assert wrong["errors"][0]["path"] == "rules.a.on"


@pytest.mark.parametrize(
    "words", [["validate"], ["validate", "no-such-file.yaml"], ["nonsense"], ["signal"]]
)
def test_wrong_usage_ends_with_2(tidegate: Tidegate, words: list[str]) -> None:
    assert tidegate(*words).exit_code == 2


def test_a_setting_can_be_overridden_and_an_unknown_one_is_refused(
    tidegate: Tidegate, doors: Path
) -> None:
    assert tidegate("validate", doors, "--set", "lease_seconds=5").exit_code == 0
    refused = tidegate("validate", doors, "--set", "lease_second=5")
    assert refused.exit_code == 1
    assert "lease_seconds" in refused.stdout


def test_validate_says_last_that_the_rest_of_the_sql_is_for_tables(
    tidegate: Tidegate, doors: Path
) -> None:
    doors.write_text(SIGNALS + "    if: count(*) > 1\n")
    said = tidegate("validate", doors).stdout.splitlines()
    assert said[0].startswith(f"{doors}: ok")
    assert said[1:] == ["the rest of the SQL is checked by --tables, against the tables themselves"]
    doors.write_text(SIGNALS + "    if: count(* > 1\n")
    refused = tidegate("validate", doors)
    assert refused.stdout == f"{doors}:10:14: '(' is not closed (rules.passed.if)\n"
    assert refused.exit_code == 1


def test_an_unknown_setting_proposes_the_known_ones(tidegate: Tidegate, doors: Path) -> None:
    near = tidegate("validate", doors, "--set", "bucket_rows=5").stdout
    assert "unknown setting bucket_rows" in near
    assert "did you mean 'bucket_rows_max'?" in near
    far = tidegate("validate", doors, "--set", "poll=5").stdout
    assert "known: actions_in_parallel_max, bucket_rows_max, carried_per_ke" in far
    doors.write_text(SIGNALS + "settings: {poll: 5}\n")
    assert "lease_seconds, max_cascade_depth" in tidegate("validate", doors).stdout


def test_simulate_says_warnings_and_why_nothing_is_detected_on_stderr(
    tidegate: Tidegate, doors: Path, tmp_path: Path
) -> None:
    doors.write_text(SIGNALS.replace("opened ; closed", "opened ; closed within 5"))
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"event": "opened", "time": 1, "by": null}\n')
    for more in ([], ["--compare-contexts"]):
        found = tidegate("simulate", doors, "--trace", trace, *more)
        assert found.exit_code == 0
        assert found.stderr.count("warning: ") == 1
        assert f"warning: {doors}:7:32: 5 without a unit is seconds" in found.stderr
    found = tidegate("simulate", doors, "--trace", trace)
    assert found.stdout == ""
    last = "0 detections over 1 line: door is missing in 1 line of opened; no line is closed"
    assert found.stderr.splitlines()[-1] == last


def test_a_misspelt_context_proposes_its_plain_name(
    tidegate: Tidegate, doors: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text("")
    found = tidegate("simulate", doors, "--trace", trace, "--context", "RECNT")
    assert found.exit_code == 1
    assert "did you mean 'recent'?" in found.stderr
    assert (
        "known: chronicle, continuous"
        in tidegate("simulate", doors, "--trace", trace, "--context", "x").stderr
    )


def test_simulate_asks_conditions_where_spark_need_not(tidegate: Tidegate, tmp_path: Path) -> None:
    book, trace = tmp_path / "a.yaml", tmp_path / "trace.jsonl"
    text = "rulebook: a\nevents: {e: {signal: {n: bigint}}}\nrules:\n  r: {on: e, if: %s}\n"
    trace.write_text('{"event": "e", "time": 1, "n": 5}\n')
    book.write_text(text % "max(n) > 4")
    result = tidegate("simulate", book, "--trace", trace, "--if")
    assert (result.exit_code, json.loads(result.stdout)["condition"]) == (0, "held")
    book.write_text(text % "stddev(n) > 4")
    result = tidegate("simulate", book, "--trace", trace, "--if")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "a.yaml:4:18: the condition of rule r needs Spark (rules.r.if)" in result.stderr


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"id": 1, "amnt": 5}', "`moves` has no field `amnt` did you mean 'amount'?"),
        ('{"id": "x"}', "field `id` of `moves` is to be bigint, but is 'x' its fields are id: big"),
        ('{"amount": true}', "field `amount` of `moves` is to be double, but is true its fields"),
    ],
)
def test_simulate_refuses_a_row_that_does_not_fit_its_table(
    tidegate: Tidegate, tmp_path: Path, row: str, said: str
) -> None:
    written.create(tmp_path / "moves", "id BIGINT, amount DOUBLE, at TIMESTAMP", {})
    book, trace = tmp_path / "a.yaml", tmp_path / "trace.jsonl"
    book.write_text(
        "rulebook: a\ntables: {moves: {path: ./moves}}\n"
        "events: {e: {on: insert, table: moves}}\nrules: {r: {on: e}}\n"
    )
    line = '{"table": "moves", "change": "insert", "time": 1, "row": %s}\n'
    trace.write_text(line % '{"id": 1, "amount": 4}')
    assert tidegate("simulate", book, "--trace", trace).exit_code == 0
    trace.write_text(line % '{"id": 1}' + line % row)
    for more in ([], ["--compare-contexts"]):
        result = tidegate("simulate", book, "--trace", trace, *more)
        assert (result.exit_code, result.stdout) == (1, "")
        assert " ".join(result.stderr.split()).startswith(f"{trace}:2:1: {said}")


def test_simulate_prints_a_line_a_detection(
    tidegate: Tidegate, doors: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text(
        '{"event": "opened", "time": 1, "door": 7, "by": "ada"}\n'
        '{"event": "closed", "time": 2.5, "door": 7}\n'
    )
    result = tidegate("simulate", doors, "--trace", trace)
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "rule": "passed",
        "key": {"door": 7},
        "start": 1,
        "end": 2.5,
        "constituents": [
            {"event": "opened", "time": 1, "door": 7, "by": "ada"},
            {"event": "closed", "time": 2.5, "door": 7},
        ],
    }


def test_g04_a_signal_is_durable_before_the_first_run(tidegate: Tidegate, doors: Path) -> None:
    words = ("opened", "door=7", "by=ada", "--id", "x1", "--json")
    first = tidegate("signal", *words, "--rulebook-file", doors)
    assert json.loads(first.stdout)["inserted"] is True
    store = f"sqlite:///{doors.with_suffix('.db')}"
    again = tidegate("signal", *words, "--store", store)
    assert (again.exit_code, json.loads(again.stdout)["inserted"]) == (0, False)
    other = tidegate("signal", "opened", "door=8", "by=x", "--id", "x1", "--store", store)
    assert other.exit_code == 1  # not 3: to try again would not help
    assert "x1" in other.stderr
    status = json.loads(tidegate("status", "--store", store, "--json").stdout)
    assert status["unplaced_signals"] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["opend", "door=7"], "did you mean 'opened'?"),
        (["opened", "dor=7"], "did you mean 'door'?"),
        (["opened", "door=seven"], "is to be bigint"),
        (["opened", "door=7", "--id", ""], "cannot be a signal's id"),
        (["opened", "door=7"], "`by` of `opened` is missing (string)"),
        (["opened", "door=7", "--null", "bye"], "did you mean 'by'?"),
    ],
)
def test_a_wrong_signal_is_refused_and_nothing_is_stored(
    tidegate: Tidegate, doors: Path, words: list[str], said: str
) -> None:
    result = tidegate("signal", *words, "--rulebook-file", doors)
    assert result.exit_code == 1
    assert result.stderr.count(said) == 1
    with open_store(f"sqlite:///{doors.with_suffix('.db')}", create=True) as store:
        assert make.unplaced_by_event(store, "doors") == {}


def test_a_field_without_a_value_is_said_to_be_so(tidegate: Tidegate, doors: Path) -> None:
    words = ("signal", "opened", "door=7", "--null", "by", "--rulebook-file", doors)
    assert tidegate(*words).exit_code == 0
    assert tidegate(*words, "--null", "door").exit_code == 2
    with open_store(f"sqlite:///{doors.with_suffix('.db')}", create=False) as store:
        (raised,) = store.of("doors").signals.unplaced({"opened"}, 0, 9).signals
    assert raised.fields == {"door": 7, "by": None}


def test_commands_of_the_store_ask_for_one(tidegate: Tidegate) -> None:
    result = tidegate("status")
    assert result.exit_code == 2
    assert "TIDEGATE_STORE" in result.stderr


def test_what_is_asked_for_wrongly_is_no_failure_of_the_engine(
    tidegate: Tidegate, doors: Path
) -> None:
    store = f"sqlite:///{doors.with_suffix('.db')}"
    assert tidegate("migrate", doors).exit_code == 0
    for words in (
        ["status", "--store", "bank.db"],  # a path is no URL
        ["status", "--store", store, "--rulebook", "windows"],
        ["migrate", doors.with_name("dors.yaml")],
        ["signal", "opened", "door=7", "door=8", "--rulebook-file", doors],
    ):
        result = tidegate(*words)
        assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    assert [file.name for file in doors.parent.glob("*.db")] == ["doors.db"]


def test_a_store_that_is_not_there_is_named(tidegate: Tidegate, tmp_path: Path) -> None:
    result = tidegate("firings", "--store", f"sqlite:///{tmp_path}/none.db")
    assert result.exit_code == 1
    assert "none.db" in result.stderr
    assert not (tmp_path / "none.db").exists()


def test_reset_is_asked_for_and_shown(tidegate: Tidegate, tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(
        "rulebook: r\ntables: {t: {path: ./t, key: [id]}, out: {path: ./out}}\n"
        "events: {e: {on: insert, table: t}, s: {signal: {a: int}}}\nrules: {x: {on: e}}\n"
    )
    store = f"sqlite:///{file.with_suffix('.db')}"
    assert tidegate("signal", "s", "a=1", "--rulebook-file", file).exit_code == 0
    assert tidegate("reset", "t", "--from", "7", "--store", store).exit_code == 0
    asked = json.loads(tidegate("status", "--store", store, "--json").stdout)["asked_for"]
    by = asked[0].pop("asked_by")
    assert asked == [{"kind": "reset", "subject": "t", "version": 7, "option": None}]
    assert re.fullmatch(r"\S+@\S+", by)
    misspelt = tidegate("reset", "tt", "--from", "now", "--store", store)
    assert (misspelt.exit_code, "did you mean 't'?" in misspelt.stderr) == (1, True)
    assert tidegate("reset", "t", "--from", "yesterday", "--store", store).exit_code == 1
    silent = tidegate("reset", "out", "--from", "now", "--store", store)
    assert (silent.exit_code, "raises no events" in silent.stderr) == (1, True)


def test_reset_says_what_it_skips_or_repeats_and_is_refused_beyond_the_head(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    file, url = tmp_path / "r.yaml", f"sqlite:///{tmp_path / 'r.db'}"
    file.write_text(
        "rulebook: r\ntables: {t: {path: ./t, key: [id]}}\n"
        "events: {e: {on: insert, table: t}}\nrules: {x: {on: e}}\n"
    )
    log = tmp_path / "t/_delta_log"
    log.mkdir(parents=True)
    for version in range(10):
        (log / f"{version:020}.json").touch()
    with open_store(url, create=True) as store:
        store.of("r").versions.register(file.read_text(), str(file))
        epoch = store.of("r").lease.acquire("one", 60)
        make.commit(store, epoch, make.plan(rulebook="r", ranges=(make.a_range("t", 3, 6),)))
        store.of("r", epoch).lease.release()

    def asked(start: str) -> dict[str, str]:
        found = json.loads(tidegate("reset", "t", "--from", start, "--store", url, "--json").stdout)
        return {name: found[name] for name in ("skips", "repeats") if name in found}

    assert asked("4") == {"repeats": "versions 4 to 6, as new occurrences; version 6 was read last"}
    assert asked("7") == {}
    assert asked("9") == {"skips": "versions 7 to 8; version 6 was read last"}
    assert asked("now")["skips"].startswith("all from version 7 on that is there by then (3 now)")
    beyond = tidegate("reset", "t", "--from", "11", "--store", url)
    assert (beyond.exit_code, beyond.stdout) == (1, "")
    assert "version 11 is beyond the head of `t`, version 9" in beyond.stderr
    (table,) = json.loads(tidegate("status", "--store", url, "--json").stdout)["tables"]
    assert (table["version"], table["commits_behind"]) == (6, 3)


def test_migrate_makes_a_store_and_is_idempotent(tidegate: Tidegate, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/s.db"
    first = json.loads(tidegate("migrate", "--store", store, "--json").stdout)
    again = json.loads(tidegate("migrate", "--store", store, "--json").stdout)
    assert (first["from"], again["from"]) == (None, first["to"])


def test_an_error_nobody_foresaw_ends_with_3(
    tidegate: Tidegate, doors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by nought")

    monkeypatch.setattr("tidegate.rules.loader.validated", broken)
    result = tidegate("validate", doors)
    assert result.exit_code == 3
    assert "ZeroDivisionError: by nought" in result.stderr


def test_ctrl_c_is_no_wrong_input(
    tidegate: Tidegate, doors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tidegate.rules.loader.validated", interrupted)
    result = tidegate("validate", doors)
    assert (result.exit_code, result.stdout) == (130, "")


class StartingEngine:
    """Gets a SIGTERM before it has started."""

    ended = False

    def __init__(self, file: Path, *, store: str, **_: object) -> None:
        self.rulebook, self.store_url = rules.load(file), store
        self.stopped, self.waiting = threading.Event(), threading.Event()
        self.stop = self.end = self.stopped.set

    def __enter__(self) -> StartingEngine:
        os.kill(os.getpid(), signal.SIGTERM)
        assert self.stopped.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, **_: object) -> None:
        click.echo("run")


def test_a_signal_ends_an_engine_that_is_still_starting(
    tidegate: Tidegate, doors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.engine.app.engines.Engine", StartingEngine)
    before = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    try:
        result = tidegate("run", doors)
    finally:
        for number, handler in before:
            signal.signal(number, handler)
    assert (result.exit_code, result.stdout) == (0, "run\n")  # which returns at once when stopped


def test_a_row_of_a_table_is_a_line_where_it_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output.table("found", ["firing_id", "error"], [["f" * 32, "why " * 100]])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "why" in line]
    assert ("f" * 32 in line, line.count("why")) == (True, 100)


def test_titles_are_whole_lines_with_and_without_rows(capsys: pytest.CaptureFixture[str]) -> None:
    output.summary({"in_doubt": [{"table": "s", "commits": 1}]}, as_json=False)
    output.mappings("rejected", [], as_json=False)
    titles = capsys.readouterr().out.splitlines()
    assert (titles[0], titles[-1]) == ("in_doubt", "rejected: -")


class HeldEngine(StartingEngine):
    """Ends with an obstacle whose sentence holds a terminal's command."""

    def __enter__(self) -> HeldEngine:
        return self

    def run_once(self, **_: object) -> None:
        pass

    def obstacles(self) -> tuple[str, ...]:
        return ("entry 1 is held: \x1b]0;name\x07\n    `tidegate skip 1`",)


def test_what_stands_in_the_way_is_told_without_acting_on_the_terminal(
    tidegate: Tidegate, doors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.engine.app.engines.Engine", HeldEngine)
    monkeypatch.setattr("tidegate.engine.app.stop_on_signals", lambda _: None)
    result = tidegate("run", "--once", doors)
    told = "entry 1 is held: \\x1b]0;name\\x07\n    `tidegate skip 1`\n"
    assert (result.exit_code, result.stderr) == (4, told)


def test_a_held_lease_is_waited_for_or_left_alone(
    tidegate: Tidegate, doors: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite:///{doors.with_suffix('.db')}"
    with open_store(url, create=True) as store:
        store.of("doors").lease.acquire("elsewhere/1", 600)
    left = tidegate("run", doors, "--once", "--if-held", "skip")
    assert (left.exit_code, left.stdout, left.stderr) == (0, "", "")
    assert "left alone: rulebook 'doors' is run by elsewhere/1 (machine/process)" in caplog.text
    waited = tidegate("run", doors, "--once", "--lease-wait", "300 ms")
    assert waited.exit_code == 3
    assert "waiting up to 0 s: rulebook 'doors' is run by elsewhere/1" in caplog.text
    assert "--lease-wait" in waited.stderr
    assert tidegate("run", doors, "--lease-wait", "soon").exit_code == 2


def test_g07_status_knows_why_a_rulebook_could_not_be_started(
    tidegate: Tidegate, doors: Path
) -> None:
    url = f"sqlite:///{doors.with_suffix('.db')}"
    assert tidegate("signal", "closed", "door=7", "--rulebook-file", doors).exit_code == 0
    with open_store(url, create=False) as store:
        store.of("doors").versions.register(doors.read_text(), str(doors))  # as an engine does
    doors.write_text(doors.read_text().replace("opened ; closed", "opened ; closde"))
    assert tidegate("run", doors, "--once").exit_code == 1
    said = tidegate("status", "--store", url).stdout
    assert said.startswith("rulebook doors: stopped:")
    assert "closde" in said


def test_an_engine_that_is_not_open_says_what_to_write(doors: Path) -> None:
    engine = Engine(doors)
    for call in (engine.run_once, engine.run, engine.obstacles, lambda: engine.signal("closed")):
        with pytest.raises(EngineError, match=r"write `with Engine\(..\) as engine:`"):
            call()  # type: ignore[operator]


def test_what_runs_stays_what_runs_when_a_signal_brings_another_text(
    tidegate: Tidegate, doors: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'own.db'}"
    with open_store(url, create=True) as store:
        store.of("doors").versions.register(doors.read_text(), str(doors))
        store.of("doors").lease.acquire("machine/1/7", 600)
        other = tmp_path / "other.yaml"
        other.write_text(doors.read_text() + "\n# another text\n")
        at = ("--rulebook-file", str(other), "--store", url)
        assert tidegate("signal", "opened", "door=7", "by=x", *at).exit_code == 0
        kept = store.rulebooks()["doors"]
        assert (kept.text, kept.version) == (doors.read_text(), 1)


@pytest.mark.parametrize(
    ("said", "meant"), [("resett", None), ("rset", None), ("valdate", "validate")]
)
def test_no_command_is_suggested_that_changes_state(
    tidegate: Tidegate, said: str, meant: str | None
) -> None:
    result = tidegate(said)
    assert result.exit_code == 2
    assert f"No such command '{said}'" in result.stderr
    assert ("Did you mean" in result.stderr) == (meant is not None)
    assert meant is None or f"Did you mean '{meant}'?" in result.stderr


def test_validate_refuses_functions_that_neither_spark_nor_the_policy_has(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    file, policy = tmp_path / "b.yaml", tmp_path / "policy.yaml"
    file.write_text(
        "rulebook: b\nevents: {a: {signal: {x: int}}}\n"
        "rules:\n  r: {on: a, if: risk(sum(x)) > 1}\n"
        + "".join(f"  r{n}: {{on: a within 5}}\n" for n in range(36))
    )
    refused = tidegate("validate", file)
    assert refused.exit_code == 1
    assert f"{file}:4:18: there is no function risk (rules.r.if)" in refused.stdout
    policy.write_text("functions: [Risk]\n")
    held = tidegate("validate", file, "--policy", policy)
    assert held.exit_code == 0
    assert held.stdout.count("5 without a unit is seconds") == 1
    assert "the same at 6:21, 7:21, 8:21, 9:21, 10:21 and 30 more" in held.stdout
