"""The example `scripts`: it prints what lies beside it, and its README is true."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from tidegate.engine.detect.scripts.doubts import looked_through
from tidegate.engine.explain.explanation import explain
from tidegate.engine.replay.simulate import simulate
from tidegate.rules.loader import validated

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "rules" / "examples" / "scripts"


def printed() -> list[Any]:
    out = io.BytesIO()
    simulate(SCRIPTS / "scripts.yaml", SCRIPTS / "day.jsonl", out=out)
    assert out.getvalue() == (SCRIPTS / "printed.jsonl").read_bytes()
    return [json.loads(line) for line in out.getvalue().splitlines()]


def clock(time: str) -> str:
    return time[11:16]


def test_the_uses_that_the_readme_tells_of() -> None:
    found = printed()
    emitted = [clock(each["time"]) for each in found if each.get("script") == "tools"]
    detected = [clock(each["end"]) for each in found if each.get("rule") == "used_twice"]
    assert (emitted, detected) == (["08:42", "09:02"], ["08:42"])


def test_the_third_abnormal_hour_is_told() -> None:
    found = printed()
    hours = [clock(each["time"]) for each in found if each.get("script") == "hours"]
    told = [clock(each["end"]) for each in found if each.get("rule") == "tell"]
    assert (hours, told) == (["08:05", "09:30", "10:45"], ["10:45"])


def test_nothing_is_ambiguous_or_too_large() -> None:
    book = looked_through(validated(SCRIPTS / "scripts.yaml", {}))
    assert {warning.code for warning in book.warnings} <= {"not-live"}
    for script in book.scripts:
        assert "(machine dfa: " in explain(SCRIPTS / "scripts.yaml", script)


def test_each_script_is_a_rulebook() -> None:
    files = list(SCRIPTS.glob("*.es"))
    assert files
    for file in files:
        assert f"script {file.stem} (machine dfa: " in explain(file)


def test_the_script_of_the_page_does_what_it_says(tmp_path: Path) -> None:
    _, book, _, trace, *_ = (ROOT / "docs" / "eventscript.md").read_text().split("```")
    file, lines, out = tmp_path / "fridges.yaml", tmp_path / "day.jsonl", io.BytesIO()
    file.write_text(book.removeprefix("yaml\n"))
    lines.write_text(trace.removeprefix("\n"))
    simulate(file, lines, out=out)
    emitted = [json.loads(line) for line in out.getvalue().splitlines() if b'"script"' in line]
    said = [(each["event"], each["key"], each["time"], each["value"]) for each in emitted]
    assert said == [
        ("warm", {"room": "cellar"}, 1, {}),
        ("cold", {"room": "cellar"}, 3, 34),
        ("warm", {"room": "cellar"}, 6, {}),
    ]
