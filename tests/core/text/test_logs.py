"""What an engine tells of itself: what takes long, that it is idle, which rules fired."""

from __future__ import annotations

import json
import time

import pyarrow as pa
import pytest

from tests.support import make
from tidegate.engine.act.messages import tell
from tidegate.engine.cli import output
from tidegate.engine.core.state import BucketReport, StoredBucket
from tidegate.engine.core.text import logs
from tidegate.engine.core.values import Carried


def test_what_takes_long_is_told_and_told_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(logs, "FIRST_SECONDS", 0.01)
    with logs.doing("starting Spark"):
        while caplog.text.count("still starting Spark") < 2:
            time.sleep(0.01)
    stage = logs.Stage("running actions")
    with logs.telling(lambda: stage):
        while "still running actions" not in caplog.text:
            time.sleep(0.01)


def test_what_takes_long_says_how_far_it_is_and_names_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "FIRST_SECONDS", 0.01)
    said: list[str] = []

    def wait_for(text: str) -> None:
        while said[-1:] != [text]:
            time.sleep(0.001)

    at: list[logs.Stage | None] = [None]
    with logs.telling(lambda: at[0], said.append), logs.stage_of("making firings") as at[0]:
        wait_for("making firings")
        logs.begin("taking samples", 2)
        logs.go_on("taking samples")
        wait_for("taking samples, 1 of 2")
        logs.begin("asking conditions", 120)
        logs.go_on("asking conditions", 50)
        wait_for("asking conditions, 1 to 50 of 120")
        logs.go_on("asking conditions")
        logs.go_on("running actions")  # it is at something else
        wait_for("asking conditions, 51 of 120")
        logs.go_on("asking conditions", 100)  # some are asked once more, each alone
        wait_for("asking conditions, 52 to 120 of 120")
        logs.go_on("asking conditions")
        wait_for("asking conditions, 120 of 120")
        at[0] = None
        wait_for("")


def test_how_long_it_takes_counts_from_where_it_began() -> None:
    with logs.stage_of("making firings") as stage:
        stage.since = 0.0
        logs.begin("asking conditions", 2)
        begun = stage.since
        assert begun > 0
        logs.begin("asking conditions", 3, 1)
        assert stage.since == begun


def test_an_idle_engine_is_told_of_now_and_then(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    quiet = logs.Quiet()
    for second in range(0, 7_200, 10):
        now[0] = second
        quiet.go_on(second > 3_600)
    told = [record.getMessage() for record in caplog.records]
    assert [line.split()[4] for line in told] == ["1", "3", "7", "15", "31", "63"]
    assert told[-1] == "idle: nothing new for 63 min; an action waits for its next attempt"


def test_which_rules_fired_is_told_without_a_value(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    fired = [
        make.firings("a", 3),
        make.firings("b", 3, condition=pa.array(["held", "failed", "held"])),
        make.firings("c", 3, account_id=pa.array([7, 7, 8])),
        make.firings("d", 1, condition=pa.array(["failed"])),
        make.firings("e", 2, condition=pa.array(["dead", "dead"])),
        make.firings("h", 2, condition=pa.array(["held", "dead"])),
        make.firings("f", 2, damped=pa.array([None, "cooldown"])),
        make.firings("g", 1, damped=pa.array(["throttle"])),
    ]
    dead = make.entry("e", 0, kind="condition", state="dead", error="[DIVIDE_BY_ZERO] no", number=9)
    part = make.altered(dead, rule="h", number=10, error="[GONE] no")
    later = make.firings("b", 1, bucket=2)
    tell(StoredBucket(make.plan(), Carried({}), {}, (later, *reversed(fired)), (dead, part)))
    assert [record.getMessage() for record in caplog.records] == [
        "rule e: entry 9 is dead: [DIVIDE_BY_ZERO] no",
        "rule h: entry 10 is dead: [GONE] no",
        "a fired for 3 keys",
        "b fired for 2 keys; its condition does not hold for 1 more",
        "c fired 3 times for 2 keys",
        "d did not fire: its condition holds for none of 1 detection",
        "f fired for 1 key; 1 more damped",
        "g did not fire: 1 firing damped",
        "h fired for 1 key",
        "b fired for 1 key",
    ]


def test_what_is_watched_is_named_with_the_versions_to_come() -> None:
    assert logs.watching_text({"b": 3, "a": 1}) == "watching 2 tables from version: a 1, b 3"
    assert logs.watching_text({}) == "watching for signals"
    many = logs.watching_text({f"t{n:02}": 1 for n in range(20)})
    assert (many[:18], many[-9:]) == ("watching 20 tables", "t05 1, ..")
    for name in ("t", "transactions_of_accounts"):
        for count in (2, 10, 100):
            assert len(logs.watching_text({f"{name}{n}": 10**6 for n in range(count)})) <= 80


def test_a_buckets_line_says_how_many_rows_were_rejected_if_any(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for count in (0, 2):
        report = BucketReport(7, 1, 3, count, 1, 0, 0, 0, {})
        output.bucket_printer(as_json=False)("", report)
        output.bucket_printer(as_json=True)("", report)
    none, as_json, some, more = capsys.readouterr().out.splitlines()
    assert "bucket 7: 3 rows, 1 detection" in none
    assert "bucket 7: 3 rows, 2 rejected, 1 detection" in some
    assert [json.loads(line)["rejected"] for line in (as_json, more)] == [0, 2]


def test_a_buckets_line_with_its_stages_fits_a_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    seconds = dict.fromkeys(logs.STAGES, 1234.5678)
    output.bucket_printer(as_json=False, stages=True)(
        "",
        BucketReport(
            123_456, 1, 1_234_567, 1_234_567, 1_234_567, 1_234_567, 1_234_567, 1_234_567, seconds
        ),
    )
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    words = " ".join(" ".join(lines).split())
    assert all(f"{stage} 1234.568" in words for stage in logs.STAGES)
    assert [line[:2] == "  " for line in lines] == [False, *[True] * (len(lines) - 1)]
