"""`validate --format`: the same findings for people, programs, code scanning and pull requests."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Tidegate
from tidegate import rules
from tidegate.engine.cli.help import codes
from tidegate.engine.cli.verdicts import Verdict, tell
from tidegate.engine.core.keeping import DAY_MICROS, FILES, LOG, Keeping
from tidegate.rules.errors import Place, Problem

EXAMPLES = Path(__file__).parents[2] / "rules" / "examples" / "scripts"
WRONG = """\
rulebook: b
events:
  a: {signal: {}}
rules:
  r: {on: a ; a}
  "s:,%": {on: zz}
"""


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a b.yaml").write_text(WRONG)
    return Path("a b.yaml")


def test_each_form_has_the_same_findings(tidegate: Tidegate, wrong: Path) -> None:
    (line,) = tidegate("validate", wrong, "--format", "json").stdout.splitlines()
    found = json.loads(line)
    assert tidegate("validate", wrong, "--json").stdout.strip() == line
    places = [
        (level, one["code"], one["line"], one["column"])
        for level in ("warning", "error")
        for one in found[f"{level}s"]
    ]
    assert len({level for level, *_ in places}) == 2
    log = json.loads(tidegate("validate", wrong, "--format", "sarif").stdout)
    (run,) = log["runs"]
    regions = [one["locations"][0]["physicalLocation"] for one in run["results"]]
    assert places == [
        (one["level"], one["ruleId"], at["region"]["startLine"], at["region"]["startColumn"])
        for one, at in zip(run["results"], regions, strict=True)
    ]
    assert {at["artifactLocation"]["uri"] for at in regions} == {"a%20b.yaml"}
    rules_ = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules_] == sorted({p[1] for p in places})
    for rule in rules_:
        assert rule["shortDescription"]["text"] == codes()[rule["id"]].cause
        assert rule["help"]["text"]
    told = tidegate("validate", wrong, "--format", "github").stdout.splitlines()
    assert [line.partition("::")[2].partition("::")[0] for line in told] == [
        f"{level} file=a b.yaml,line={at},col={column},title={code}"
        for level, code, at, column in places
    ]


def test_a_finding_is_one_command_whatever_is_written(tidegate: Tidegate, wrong: Path) -> None:
    wrong.rename("a,b:c%.yaml")
    *_, last = tidegate("validate", "a,b:c%.yaml", "--format", "github").stdout.splitlines()
    assert last.startswith("::error file=a%2Cb%3Ac%25.yaml,line=6,col=")
    assert "(rules.s:,%25.on)" in last


def test_without_findings_programs_read_nothing(tidegate: Tidegate, wrong: Path) -> None:
    wrong.write_text("rulebook: b\nevents: {a: {signal: {}}}\nrules: {r: {on: a}}\n")
    assert tidegate("validate", wrong, "--format", "github").stdout == ""
    (run,) = json.loads(tidegate("validate", wrong, "--format", "sarif").stdout)["runs"]
    assert run["results"] == []
    assert tidegate("validate", wrong).stdout.startswith("a b.yaml: ok (0 tables, 1 event, 1 rule)")


def test_a_word_of_the_command_line_has_no_place_in_a_file(tidegate: Tidegate, wrong: Path) -> None:
    words = ["validate", wrong, "--set", "lease_second=5", "--format"]
    (run,) = json.loads(tidegate(*words, "sarif").stdout)["runs"]
    assert [] in [one["locations"] for one in run["results"]]
    assert "::error title=unknown-key::unknown setting" in tidegate(*words, "github").stdout
    assert "%0Adid you mean 'lease_seconds'" in tidegate(*words, "github").stdout


def test_what_is_wrong_with_a_whole_file_has_the_file_and_no_line(
    wrong: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = Problem("unknown-key", "no good", Place(str(wrong), 0, 0))
    verdicts = [Verdict(wrong, None, [whole, whole], ())]
    tell(verdicts, "sarif")
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert [one["locations"] for one in run["results"]] == [
        [{"physicalLocation": {"artifactLocation": {"uri": "a%20b.yaml"}}}]
    ] * 2
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["unknown-key"]
    tell(verdicts, "github")
    assert capsys.readouterr().out == "::error file=a b.yaml,title=unknown-key::no good\n" * 2


def test_scripts_are_counted_where_there_are_any(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = rules.load(WRONG.replace('  "s:,%": {on: zz}', ""))
    (script, *_) = rules.load(EXAMPLES / "scripts.yaml").scripts.values()
    for scripts in ({}, {"p": script, "q": script}):
        tell([Verdict(tmp_path / "b.yaml", replace(book, scripts=scripts), (), ())], "text")
    without, two = capsys.readouterr().out.splitlines()
    assert without.endswith("ok (0 tables, 1 event, 1 rule)")
    assert two.endswith("ok (0 tables, 1 event, 1 rule, 2 scripts)")


@pytest.mark.parametrize(("words", "of"), [([], "rulebook"), (["tests"], "tests")])
def test_a_schema_is_printed(tidegate: Tidegate, words: list[str], of: str) -> None:
    schema = json.loads(tidegate("schema", *words).stdout)
    assert schema["$id"] == f"urn:tidegate:schema:{of}"


def test_how_long_tables_keep_their_past_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = rules.load(WRONG.replace('  "s:,%": {on: zz}', ""))
    kept = [Keeping("orders", None, 7 * DAY_MICROS), Keeping("log", DAY_MICROS, 7 * DAY_MICROS)]
    verdict = Verdict(tmp_path / "b.yaml", book, (), (), kept)
    tell([verdict], "text")
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"table orders keeps its commits for 7 days ({FILES})",
        f"table log keeps its commits for 24 h ({LOG})",
    ]
    tell([verdict], "json")
    assert json.loads(capsys.readouterr().out)["tables"] == [
        {"table": "orders", "stands_seconds": 604_800, "by": FILES},
        {"table": "log", "stands_seconds": 86_400, "by": LOG},
    ]
