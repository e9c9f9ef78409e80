"""The blocks that pages set in without a fence: commands to type, pieces of YAML, what is printed.
Each is read here, or by the test that is named. `test_blocks` reads the options of the commands."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from tests.docs.pages import PAGES, ROOT, blocks
from tests.replay.backtest.made import backtest, firing
from tests.replay.why_not.runs import SECOND, at, run
from tests.replay.why_not.test_windows import said as said_of_windows
from tests.support import make
from tests.support.command_lines import check
from tidegate.engine.act.messages import fired_text
from tidegate.engine.cli.beginning import WRITTEN
from tidegate.engine.cli.main import main
from tidegate.engine.cli.verdicts import Verdict, tell
from tidegate.engine.control.retention import Keeping
from tidegate.engine.core.policy import load_policy
from tidegate.engine.core.text.logs import watching_text
from tidegate.engine.explain.explanation import explain
from tidegate.engine.replay.backtest.against import compared
from tidegate.engine.replay.backtest.report import json_lines
from tidegate.engine.replay.why.model import Condition, Constituent, Entry, Story
from tidegate.engine.replay.why.rule_words import sentence
from tidegate.engine.replay.why.text import lines
from tidegate.engine.replay.why_not.answer import WhyNot
from tidegate.engine.replay.why_not.evidence import ActiveSpan
from tidegate.engine.replay.why_not.ladder import climbed
from tidegate.engine.replay.why_not.words import Words
from tidegate.rules import load
from tidegate.rules.eventscript.reader import read

COMMAND = re.compile(
    r"(?:\.venv/bin/)?(?:tidegate|make|export|curl|docker|python3?|pip|systemctl|\*/5) "
)
SET_IN = re.compile(r"(?<=\n\n)(?:(?: {4}.*)?\n)+?(?=\S)")
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
README = next(text for place, text in blocks("yaml") if place.startswith("README"))


class Block(NamedTuple):
    """`place`: its page and first line."""

    place: str
    lines: list[str]

    @property
    def typed(self) -> bool:
        """Whether it is to be typed."""
        return COMMAND.match(self.lines[0]) is not None


def set_in(page: Path) -> list[Block]:
    text = FENCED.sub(lambda fence: "\n" * fence[0].count("\n") + "```", page.read_text("utf-8"))
    found = []
    for block in SET_IN.finditer(text):
        if block[0].strip():
            number = text.count("\n", 0, block.start()) + 1
            shown = block[0].rstrip().splitlines()
            found.append(Block(f"{page.name}:{number}", [line[4:] for line in shown]))
    return found


BLOCKS = [block for page in PAGES for block in set_in(page)]
TYPED = [block for block in BLOCKS if block.typed]


def shown(page: str, first: str) -> list[str]:
    """The block of a page that begins so."""
    (found,) = (
        block.lines
        for block in BLOCKS
        if block.place.startswith(f"{page}:") and block.lines[0].startswith(first)
    )
    return found


def test_what_run_logs() -> None:
    told = [
        f"ready, {watching_text({'transactions': 12})}",
        f"in_and_out {fired_text(make.firings('in_and_out', 2))}",
        "in_and_out wrote accounts version 4, rows: 2",
    ]
    for page in ("README.md", "operating.md"):
        assert [line[9:] for line in shown(page, "14:02:17")] == told
    effects = (ROOT / "connectors" / "delta" / "effects.py").read_text(encoding="utf-8")
    assert '"%s wrote %s version %d, rows: %s"' in effects


def test_the_same_question_as_an_expression_and_as_a_script() -> None:
    expression, script = shown("eventscript.md", "on: not(")
    on, _, said = expression.removeprefix("on:").strip().partition("  #")
    per, context = re.findall(r"per: (\w+), context: (\w+)", said)[0]
    book = (
        "rulebook: tools\nevents: {used: {signal: {tool: int}}, inspected: {signal: {tool: int}}}"
    )
    assert load(f"{book}\nrules: {{r: {{on: {on!r}, per: {per}, context: {context}}}}}").rules
    heads = "in {} used, {} inspected\nout long again\n"
    program, _ = read(heads + script)
    assert {*program.outputs} == {"again"}


def test_keys_of_the_console(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("\n".join(shown("console.md", "console_keys")))
    assert load_policy(file).console_keys["bob"] == {"view"}


def test_a_context_that_is_a_mapping() -> None:
    (context,) = shown("semantics.md", "context: {select")
    events = "events: {a: {signal: {}}, b: {signal: {}}}"
    book = load(f"rulebook: s\n{events}\nrules:\n  r:\n    on: a ; b\n    {context}\n")
    assert book.rules["r"].pattern.selection is not None


def test_what_test_prints_and_how_a_failure_is_shown(tmp_path: Path) -> None:
    tests = next(t for place, t in blocks("yaml") if place.startswith("testing") and "only:" in t)
    (tmp_path / "bank.yaml").write_text(README)
    file = tmp_path / "bank.test.yaml"
    file.write_text(tests)
    assert printed(file) == shown("testing.md", "bank.test.yaml")
    file.write_text(tests.replace("at: 2026-03-02T09:00:30", "at: 2026-03-02T09:00:31"))
    failed = shown("testing.md", "FAILED")
    assert [line for line in printed(file) if line in failed] == failed


def printed(file: Path) -> list[str]:
    found = CliRunner().invoke(main, ["test", str(file), "--fast"]).output
    found = found.replace(str(file), file.name)
    return re.sub(r"in \d+\.\d+ s", "in 0.3 s", found).splitlines()


def test_the_first_line_of_what_init_writes() -> None:
    (line,) = shown("testing.md", "# yaml-language-server")
    assert line == WRITTEN["rulebook.yaml"].read_text(encoding="utf-8").splitlines()[0]


def test_the_story_of_a_firing(tmp_path: Path) -> None:
    file = tmp_path / "bank.yaml"
    file.write_text(README)
    book = load(README, file=str(file))
    (rule,) = json.loads(explain(file, "in_and_out", "json"))["rules"]
    end = at(-49 * 60)  # 08:11
    start = end - 42 * SECOND
    row = {"account_id": 10, "amount": "1000.00"}
    made_of = (
        Constituent("large_deposit", start, "transactions", 1, bucket=1, waited_seconds=42.0,
                    row=row),
        Constituent("withdrawal", end, "transactions", 3, bucket=3,
                    row={**row, "amount": "900.00"}),
    )  # fmt: skip
    begun = end + 1_200_000
    entry = Entry(
        1, "sql", "done", 1, "accounts", 4, 1, None, "runs `MERGE INTO accounts ..`",
        begun_at=begun, settled_at=begun + 800_000,
    )  # fmt: skip
    held = Condition("min(amount) >= 900", "held", {"min(amount)": Decimal("900.00")})
    told = Story(
        "f20594a80ad0b00798e8a1c6e6e5ab96", "bank", "UTC", "in_and_out", {"account_id": 10}, start,
        end, end + SECOND, 3, sentence(book.rules["in_and_out"]), made_of, held, None, (entry,),
        (), (), sentences=tuple(rule["sentences"]),
    )  # fmt: skip
    assert [line.rstrip() for line in lines(told, 92)] == shown("why.md", "Firing ")


def test_the_answer_of_why_not() -> None:
    signal = "{signal: {card: bigint, amount: bigint}, where: amount > 100}"
    text = f"rulebook: cards\nevents: {{large: {signal}}}\nrules:\n  quick:\n"
    text += '    per: card\n    on: "large ; large within 5 min"\n'
    came = [("large", seconds, {"card": 7, "amount": 500}) for seconds in (0, 312)]
    small = ("large", -400, {"card": 7, "amount": 5})
    active = {"quick": [ActiveSpan(at(-241_069))]}
    evidence = run(text, [*came, small], 604, active=active)
    key, until, since = {"card": 7}, at(600), at(600 - 86_400)
    found = climbed(evidence, "quick", key, until, since)
    words = Words(evidence.book, key, until)
    rule = evidence.book.rules["quick"]
    told = WhyNot("quick", key, until, since, found.rungs, (), words, rule, found.timeline)
    assert [*told.lines()] == shown("why.md", "quick, card 7")


def test_what_why_not_says_of_windows() -> None:
    """They are told of other events and keys, to be read more easily."""
    holds = said_of_windows("{holds: over, until: ok, for: 5 min}", "over@0 ok@180", 900)
    fire = "{over: {window: 1 min, of: over, fire: avg(v) > 10}}"
    crossed = said_of_windows(fire, "over@130(8.0) over@150(8.2) over@180(8.4)", 185)
    opened = said_of_windows("{window: 5 min, of: over}", "over@60 over@70", 200)
    for number, said in enumerate((holds, crossed, opened)):
        line = shown("why.md", "`hot` held")[number]
        assert skeleton(line) == skeleton(said)


def skeleton(sentence: str) -> list[str]:
    """The words of a sentence but for what is in quotes, keys, and figures."""
    bare = re.sub(r"for (sensor|host|k) \w+", "for KEY", re.sub(r"`[^`]*`", "`..`", sentence))
    return re.sub(r"\d[\d:.]*|\b(avg|min)\(\w+\)", "N", bare).split()


def test_how_long_tables_keep_their_past(capsys: pytest.CaptureFixture[str]) -> None:
    rules = ", ".join(f"r{n}: {{on: a}}" for n in range(4))
    book = load(
        "rulebook: b\ntables: {transactions: {path: /t}, accounts: {path: /a}}\n"
        "events: {a: {on: insert, table: transactions}, b: {signal: {}}, c: {signal: {}}}\n"
        f"rules: {{{rules}}}"
    )
    kept = [Keeping("transactions", None, 7 * 86_400 * SECOND)]
    tell([Verdict(Path("bank.yaml"), book, (), (), kept)], "text")
    _, *said = shown("operating.md", "tidegate validate --tables bank.yaml")
    assert capsys.readouterr().out.splitlines() == said


READ = {
    "Fires when `withdrawal`": "test_blocks",
    "14:02:17 ready": test_what_run_logs,
    "on: not(": test_the_same_question_as_an_expression_and_as_a_script,
    "console_keys": test_keys_of_the_console,
    "context: {select": test_a_context_that_is_a_mapping,
    "bank.test.yaml": test_what_test_prints_and_how_a_failure_is_shown,
    "FAILED": test_what_test_prints_and_how_a_failure_is_shown,
    "# yaml-language-server": test_the_first_line_of_what_init_writes,
    "Firing ": test_the_story_of_a_firing,
    "quick, card 7": test_the_answer_of_why_not,
    "`hot` held": test_what_why_not_says_of_windows,
    "SPARK=$(": "test_cluster",
    "conda create": "test_cluster",
    "FROM docker.io/apache/spark": "test_cluster",
}
"""By how it begins, what reads a block that is not typed."""


def test_each_block_is_read_by_a_test() -> None:
    assert len(BLOCKS) > 30
    begins = [block.lines[0] for block in BLOCKS if not block.typed]
    assert [b for b in begins if not b.startswith((*READ,))] == []
    assert [b for b in READ if not any(line.startswith(b) for line in begins)] == []


def test_each_fenced_block_is_in_a_language_that_a_test_reads() -> None:
    fences = {
        word for page in PAGES for word in re.findall(r"^```(\w*)$", page.read_text("utf-8"), re.M)
    }
    assert fences - {""} == READERS.keys()
    for name in READERS.values():
        assert (Path(__file__).parent / f"{name}.py").exists()


READERS = {
    "golden": "test_worked_examples",
    "json": "test_set_in",
    "jsonl": "test_blocks",
    "properties": "test_cluster",
    "python": "test_blocks",
    "script": "test_scripts",
    "sh": "test_tutorial",
    "text": "test_tutorial",  # and those of other tools: test_peers
    "yaml": "test_blocks",
}
"""By the language of fenced blocks, the test that executes or compiles them."""


def test_the_difference_of_two_backtests_as_lines() -> None:
    ((_, text),) = blocks("json")
    only, other = map(json.loads, text.splitlines())
    end = micros("2026-03-02T07:00:05")
    alone = firing("pay", '{"account_id":7}', end, "x", constituents=4, start=end - 4 * SECOND)
    end = micros("2026-03-02T07:00:09")
    mine = firing("pay", '{"account_id":8}', end, "y", constituents=4, start=end - 8 * SECOND)
    its = {**mine, "made_of": "z", "constituents": 3, "start": end - 6 * SECOND}
    failed = {**alone, "condition": "failed"}
    one = backtest([{**alone, "condition": "held"}, {**mine, "condition": "held"}])
    two = backtest([failed, {**its, "condition": "held"}], label="bank-2.yaml")
    found = [json.loads(line) for line in json_lines(compared(one, two))]
    assert [without_ids(line) for line in found] == [without_ids(only), without_ids(other)]


def without_ids(line: Any) -> Any:
    match line:
        case dict():
            return {n: v if n != "firing_id" else "" for n, v in line.items()} | {
                n: without_ids(v) for n, v in line.items() if isinstance(v, list)
            }
        case list():
            return [without_ids(each) for each in line]
    return line


def micros(text: str) -> int:
    return round(datetime.fromisoformat(f"{text}+00:00").timestamp()) * SECOND


def test_what_is_typed_is_shell() -> None:
    """It is parsed, and not run; a line of a crontab has its times before it."""
    assert len(TYPED) > 20
    text = "".join(
        re.sub(r"^(?:[\d*/-]+ +){5}", "", line) + "\n"
        for block in TYPED
        if not block.lines[0].startswith("tidegate validate --tables bank.yaml")
        for line in block.lines
    )
    parsed = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert (parsed.returncode, parsed.stderr) == (0, "")


def test_a_target_of_make_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    named = {
        word
        for page in PAGES
        for words in re.findall(r"(?:`|^ {4})make ([a-z -]+)", page.read_text("utf-8"), re.M)
        for word in words.split("  ")[0].split()
    }
    assert {"install", "test", "docs", "wheels"} <= named
    assert named - targets == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_command_in_a_sentence_exists(page: Path) -> None:
    for text in re.findall(r"`tidegate ([^`]+)`", FENCED.sub("", page.read_text("utf-8"))):
        words = shlex.split(text.replace("..", ""), comments=True)
        while words and words[0].startswith("-"):
            del words[0]
        if words and words[0].islower():
            check(words)
