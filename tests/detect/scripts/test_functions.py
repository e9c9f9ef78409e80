"""Python functions in scripts: those of the operator's list, and no others (G27)."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tidegate import Engine
from tidegate.engine.replay.simulate import simulate
from tidegate.rules.errors import EngineError, InputError

SCRIPT = """\
function double hypot(double, double)
function double cbrt(double)
in {double x; double y;} Moved
out double Far
(Moved(p) {!> Far(hypot(p.x, p.y)); !> Far(cbrt(p.x));})*
"""


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "moved.es").write_text(SCRIPT)
    line = {"event": "Moved", "time": 1, "x": 27, "y": 36}
    (tmp_path / "day.jsonl").write_text(json.dumps(line) + "\n")
    file = tmp_path / "policy.yaml"
    monkeypatch.setenv("TIDEGATE_POLICY", str(file))
    return file


def values(folder: Path) -> list[float]:
    out = io.BytesIO()
    simulate(folder / "moved.es", folder / "day.jsonl", out=out)
    return [json.loads(line)["value"] for line in out.getvalue().splitlines()]


def test_g27_scripts_call_what_the_policy_names(policy: Path) -> None:
    policy.write_text("python: [math.hypot, math.cbrt]\n")
    assert values(policy.parent) == pytest.approx([45, 3])


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ("math.hypot", "calls cbrt, which the operator's policy does not allow"),
        ("math.hypot, math.cbrt, numpy.cbrt", "it allows math.cbrt and numpy.cbrt"),
        ("math.hypot, nowhere.cbrt", "nowhere.cbrt, which cannot be imported: ModuleNotFoundError"),
        ("math.hypot, cbrt", "calls cbrt, which the operator's policy does not allow"),
    ],
)
def test_g27_and_no_others(policy: Path, listed: str, said: str) -> None:
    policy.write_text(f"python: [{listed}]\n")
    with pytest.raises(EngineError) as refused:
        values(policy.parent)
    assert refused.value.code == "script-function"
    assert said in refused.value.message


def test_a_dfa_that_is_too_large_is_refused_before_the_engine_starts(tmp_path: Path) -> None:
    book = "rulebook: b\nsettings: {script_states_max: 10}\nscripts:\n  s:\n    machine: dfa\n"
    book += "    text: in {} A, {} B .* A() .{6}\n"
    with pytest.raises(InputError) as refused:
        Engine(book, store=f"sqlite:///{tmp_path / 's.db'}")
    assert [problem.code for problem in refused.value.problems] == ["script-states"]
