"""What the pages show of the language is the language."""

from __future__ import annotations

import inspect
import io
import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.docs.pages import PAGES, ROOT, blocks
from tests.support.command_lines import check
from tidegate import Engine, Engines, parse
from tidegate.engine.cli.main import main
from tidegate.engine.explain.explanation import explain
from tidegate.engine.replay.simulate import simulate
from tidegate.rules import load
from tidegate.rules.checks.gaps import SIMULATED
from tidegate.rules.model import Settings

GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
LANGUAGE = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
EXPRESSIONS = re.findall(
    r"^\| `([^`]+)` \| (?!.*\|.*\|)", GUIDE.split("## Finding")[0], re.MULTILINE
)
NAMED = [(place, text) for place, text in blocks("yaml") if text.startswith("rulebook:")]
TESTS = [(place, text) for place, text in NAMED if "\ntests:" in text]
YAML = [each for each in NAMED if each not in TESTS]
SHELL = [
    (f"{page.name}: {line.strip()}", line.strip())
    for page in PAGES
    for line in page.read_text(encoding="utf-8").splitlines()
    if re.match(r" {4}(\S+ +){0,6}(\.venv/bin/)?tidegate +\w", line)
]


def test_every_operator_of_the_grammar_has_its_line() -> None:
    words = re.compile(r"[A-Za-z_]+\*?\(|;|-|\+|&|then")
    named = {word for text in EXPRESSIONS for word in words.findall(text)}
    operators = (
        "all(",
        "any(",
        "not(",
        "A(",
        "A*(",
        "every(",
        "P(",
        "P*(",
        "cron(",
        *";-+&",
        "then",
    )
    assert named.issuperset(operators)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_parse(text: str) -> None:
    parse(text)


@pytest.mark.parametrize("text", [text for _, text in YAML], ids=[place for place, _ in YAML])
def test_rulebooks_load(text: str) -> None:
    file = str(Path(__file__).parent / "page.yaml")  # paths are relative to it
    assert load(text, file=file, features=SIMULATED).rules


def test_every_block_of_yaml_is_a_rulebook_or_a_rule() -> None:
    assert len(YAML) >= 8
    assert [place for place, text in blocks("yaml") if (place, text) not in NAMED] == []


@pytest.mark.parametrize("text", [text for _, text in TESTS], ids=[place for place, _ in TESTS])
def test_tests_pass(text: str, tmp_path: Path) -> None:
    """Those that need no Spark."""
    book = next(text for place, text in YAML if place.startswith("README"))
    (tmp_path / "bank.yaml").write_text(book)
    (tmp_path / "bank.test.yaml").write_text(text)
    found = CliRunner().invoke(main, ["test", str(tmp_path), "--fast", "--json"])
    results = [json.loads(line) for line in found.stdout.splitlines()]
    assert found.exit_code == 0
    assert results
    fast = {one["name"] for one in results if one["outcome"] == "passed"}
    slow = "the account is blocked in the table, too"
    assert {one["name"] for one in results} - fast <= {slow}


def test_the_trace_detects_what_is_said_of_it(tmp_path: Path) -> None:
    ((_, trace),) = blocks("jsonl")
    (tmp_path / "day.jsonl").write_text(trace)
    book = next(text for place, text in YAML if place.startswith("README"))
    (tmp_path / "bank.yaml").write_text(book)
    out = io.BytesIO()
    simulate(tmp_path / "bank.yaml", tmp_path / "day.jsonl", out=out)
    (found,) = map(json.loads, out.getvalue().splitlines())
    assert (found["rule"], found["key"]) == ("in_and_out", {"account_id": 7})
    assert (found["start"], found["end"]) == (1, 4)
    assert "here one: `in_and_out` of account 7, from 1 to 4." in GUIDE


def test_the_sentences_are_those_of_explain(tmp_path: Path) -> None:
    (tmp_path / "bank.yaml").write_text(
        next(text for place, text in YAML if place.startswith("README"))
    )
    (rule,) = json.loads(explain(tmp_path / "bank.yaml", "in_and_out", "json"))["rules"]
    (shown,) = re.findall(
        r"((?:    .*\n)+)", GUIDE.split("in the README it says:")[1].split("Behind")[0]
    )
    assert shown.split() == " ".join(rule["sentences"]).split()


@pytest.mark.parametrize("line", [line for _, line in SHELL], ids=[name for name, _ in SHELL])
def test_commands_and_options_exist(line: str) -> None:
    """They are read as the command line reads them, and not run."""
    words = shlex.split(line, comments=True)
    at = next(n for n, word in enumerate(words) if word.rpartition("/")[2] == "tidegate")
    check(words[at + 1 :])


def test_every_command_and_option_is_in_the_reference() -> None:
    page = LANGUAGE.split("## 3.")[1].split("## 4.")[0]
    commands = dict(main.commands)
    commands |= {f"rules {name}": each for name, each in commands.pop("rules").commands.items()}
    assert [name for name in commands if not re.search(rf"`{name}\b|`[^`|]*, {name}`", page)] == []
    options = {
        option
        for each in commands.values()
        for parameter in each.params
        for option in parameter.opts
        if option.startswith("--")
    }
    beside = LANGUAGE.split("## 3.")[1].split("## 5.")[0]
    assert [option for option in sorted(options) if option not in beside] == []


def test_every_key_of_a_rulebook_is_in_the_reference() -> None:
    schema = json.loads((ROOT / "rules" / "schema.json").read_text())
    page = LANGUAGE.split("## 2.")[0]
    keys = set(schema["properties"])
    for part in ("tables", "events", "scripts", "rules"):
        found = schema["properties"][part]["additionalProperties"]
        forms = [found]
        while forms:
            form = forms.pop()
            if isinstance(form, dict):
                keys |= form.get("properties", {}).keys()
                forms += [form[word] for word in ("then", "else") if word in form]
    assert len(keys) > 60
    assert [key for key in sorted(keys) if not re.search(rf"`{key}`", page)] == []


def test_every_setting_is_in_the_reference_with_its_default() -> None:
    shown = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", LANGUAGE.split("## 6.")[1], re.M))
    unset = {"commit_slack_ms": "0 or 200", "state_path": "beside SQLite"}
    expected = {
        name: unset[name] if default is None else str(default)
        for name, default in ((name, getattr(Settings(), name)) for name in Settings.__slots__)
    }
    assert {name: shown.get(name) for name in expected} == expected


def test_the_reference_says_of_a_setting_what_the_schema_says() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", LANGUAGE.split("## 6.")[1].split("## 7.")[0], re.M
    )
    said = {name: re.sub(r" \([GS]\w+\)$", "", text) for name, text in rows}
    schema = json.loads((ROOT / "rules" / "schema.json").read_text())
    forms = schema["properties"]["settings"]["properties"]
    assert said == {name: form["description"] for name, form in forms.items()}


def test_what_python_shows_exists() -> None:
    page = LANGUAGE.split("## 5.")[1].split("## 6.")[0]
    for name in ("run_once", "run", "stop", "signal", "enable", "disable", "reload", "rules"):
        assert f"`{name}" in page
        assert hasattr(Engine, name)
    assert {"spark", "store"} <= inspect.signature(Engines).parameters.keys()
    for place, code in blocks("python"):
        compile(code, place, "exec")


def test_what_python_runs_prints_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    ((_, code),) = [each for each in blocks("python") if "import pyarrow" in each[1]]
    ((_, shown),) = [each for each in blocks("text") if each[0].startswith("python.md")]
    exec(compile(code, "python.md", "exec"), {})
    assert capsys.readouterr().out == shown


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 200
