"""`simulate --compare-contexts`: one rule in every context, side by side."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import cases
from tests.replay.traces import simulated, write
from tidegate.engine.cli.main import main
from tidegate.engine.replay import compare as comparing
from tidegate.engine.replay.compare import lanes
from tidegate.engine.replay.compare import page as pages
from tidegate.engine.replay.compare.model import Comparison
from tidegate.rules.errors import InputError
from tidegate.rules.model import Context, in_context

FIGURE_5 = """
rulebook: snoop
events: {e1: {signal: {}}, e2: {signal: {}}, e3: {signal: {}}}
rules:
  x: {on: "any(2, e1, e2) ; e3", context: chronicle}
  window: {on: "A*(e1, e2, [5])"}
"""
HISTORY = [("e2", 1), ("e1", 2), ("e1", 3), ("e2", 4), ("e1", 5), ("e3", 6), ("e3", 8)]
KEYED = """
rulebook: shop
events: {sent: {signal: {id: bigint}}, ack: {signal: {id: bigint}}}
rules: {pair: {on: sent ; ack, per: id}}
"""


def files(folder: Path, book: str, history: list[tuple[Any, ...]]) -> list[str]:
    """The arguments of the command on a rulebook and a history."""
    (folder / "book.yaml").write_text(book)
    lines = ({"event": e, "time": t} | ({"id": i[0]} if i else {}) for e, t, *i in history)
    (folder / "trace.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return ["simulate", str(folder / "book.yaml"), "--trace", str(folder / "trace.jsonl")]


def compared(folder: Path, book: str, history: list[tuple[Any, ...]], *more: str) -> Any:
    command = [*files(folder, book, history), "--compare-contexts", *more]
    return CliRunner().invoke(main, command, catch_exceptions=False)


def times(entries: list[dict[str, Any]]) -> tuple[int, ...]:
    return tuple(entry["time"] for entry in entries)


def by_context(output: str) -> dict[str, list[tuple[tuple[int, ...], tuple[int, ...]]]]:
    """(instants of the constituents, instants of what is consumed), by context."""
    found: dict[str, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {c: [] for c in Context}
    for line in map(json.loads, output.splitlines()):
        found[line["context"]].append((times(line["constituents"]), times(line["used_up"])))
    return found


def test_what_is_detected_and_used_up_in_snoop_s_figure_5(tmp_path: Path) -> None:
    found = by_context(compared(tmp_path, FIGURE_5, HISTORY, "--rule", "x", "--json").stdout)
    assert found["restricted"] == [((4, 5, 6), ()), ((4, 5, 8), ())]
    assert found["recent"] == [((4, 5, 6), (1, 2, 3, 4, 5, 6))]
    assert found["chronicle"] == [((1, 2, 6), (1, 2, 6)), ((3, 4, 8), (3, 4, 8))]
    assert found["continuous"] == [
        ((1, 2, 6), (1,)),
        ((2, 4, 6), (2,)),
        ((3, 4, 6), (3,)),
        ((4, 5, 6), (4,)),
    ]
    assert found["cumulative"] == [((1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 6))]
    assert len(found["unrestricted"]) == 12
    assert not any(used for _, used in found["unrestricted"])


def test_what_opens_a_window_is_used_up_without_being_a_constituent(tmp_path: Path) -> None:
    found = by_context(compared(tmp_path, FIGURE_5, HISTORY, "--rule", "window", "--json").stdout)
    assert found["chronicle"] == [((4,), (2, 4)), ((), (3,)), ((), (5,))]


@detecting
@given(data=st.data())
@example_count(25)
def test_each_context_is_that_of_simulate_and_what_is_used_up_is_gone(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("compare")
    book, history = data.draw(cases(rules_max=1, depth=2))
    rule = book.rules["r0"]
    trace = write(history, folder / "trace.jsonl")
    shown = comparing.compared(book, rule, trace, None)
    for column in shown.columns:
        changed = in_context(rule, column.context)
        alone = replace(book, rules={**book.rules, "r0": changed})
        if not column.error:
            printed = saw([json.loads(found.text) for found in column.found])
            assert printed == simulated(alone, history, folder)
        if column.context in (Context.CHRONICLE, Context.CUMULATIVE, Context.RECENT):
            assert_gone(column.found)


def assert_gone(found: Any) -> None:
    """Nothing that was consumed is in a later detection of the key."""
    gone: dict[str, set[Any]] = {}
    for each in found:
        used = gone.setdefault(each.key, set())
        assert not used & {*each.constituents, *each.used_up}
        used.update(each.used_up)


def test_the_table_has_a_column_a_context_and_a_row_an_instant(tmp_path: Path) -> None:
    output = compared(tmp_path, FIGURE_5, HISTORY, "--rule", "x").stdout
    head, *rest = (line for line in output.splitlines() if "restricted" in line)
    assert head.split() == ["at", "restricted", "recent", "(its", "own)", *[*Context][3:]]
    assert rest  # what the contexts mean
    assert re.search(r"^6 .*● e2@4 e1@5", output, re.MULTILINE)
    assert re.search(r"^8 .*● e2@4 e1@5", output, re.MULTILINE)


def test_nothing_detected_is_said(tmp_path: Path) -> None:
    assert "nothing is detected" in compared(tmp_path, FIGURE_5, [], "--rule", "x").stdout
    history = [("e1", 1)]
    assert "nothing is detected" in compared(tmp_path, FIGURE_5, history, "--rule", "x").stdout


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ([], 1, "has x, window"),
        (["--rule", "windw"], 1, "did you mean 'window'?"),
        (["--rule", "x", "--context", "recent"], 2, "neither --context nor --bucket"),
        (["--rule", "x", "--html", "/no/such/folder/x.html"], 1, "cannot be written"),
    ],
)
def test_a_wrong_command_says_what_to_do(
    tmp_path: Path, more: list[str], code: int, said: str
) -> None:
    result = compared(tmp_path, FIGURE_5, HISTORY, *more)
    assert (result.exit_code, said in result.stderr) == (code, True)


def test_a_picture_without_a_comparison_is_refused(tmp_path: Path) -> None:
    command = [*files(tmp_path, FIGURE_5, HISTORY), "--html", "x.html"]
    result = CliRunner().invoke(main, command)
    assert (result.exit_code, "--compare-contexts" in result.stderr) == (2, True)


def test_a_trace_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "LINES_MAX", 6)
    result = compared(tmp_path, FIGURE_5, HISTORY, "--rule", "x")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "at most 6 lines, not 7" in result.stderr
    assert compared(tmp_path, FIGURE_5, HISTORY, "--rule", "x", "--until", "6").exit_code == 0


def test_a_context_that_finds_too_much_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "DETECTIONS_MAX", 11)
    result = compared(tmp_path, FIGURE_5, HISTORY, "--rule", "x", "--json")
    last = json.loads(result.stdout.splitlines()[-1])
    said = "more than 11 detections, which are not shown"
    assert last == {"context": "unrestricted", "rule": "x", "error": said}
    assert len(result.stdout.splitlines()) == 2 + 1 + 2 + 4 + 1 + 1
    table = compared(tmp_path, FIGURE_5, HISTORY, "--rule", "x").stdout
    assert "more than 11" in " ".join(table.split())


def test_the_page_needs_nothing_else_and_says_all_without_its_pictures(tmp_path: Path) -> None:
    file = tmp_path / "x.html"
    result = compared(tmp_path, FIGURE_5, HISTORY, "--rule", "x", "--html", str(file))
    text = file.read_text()
    assert not re.search(r"<script|https?:|src=|url\(|@import", text)
    pictures = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", text, re.S)]
    strips = [svg for svg in pictures if svg.get("role") == "img"]
    assert [svg.get("aria-label") for svg in strips][:2] == [
        "restricted: 2 detections over 7 occurrences",
        "recent: 1 detection over 7 occurrences",
    ]
    titles = [title.text for title in strips[2].iter("title")]
    assert "[1, 6]  e2@1 e1@2 e3@6\nthen consumed: e2@1 e1@2 e3@6" in titles
    assert "e2@1: consumed at 6" in titles
    assert "<td><div>e2@4 e1@5 e3@6</div></td>" in text  # restricted, in the table
    warned = re.findall(r"^warning: \S+ (.*?)(?::| \()", result.stderr, re.MULTILINE)
    assert warned == ["no bound on what this stores", "5 without a unit is seconds"]
    assert str(file) not in result.stderr


def test_what_is_not_drawn_is_said_on_the_page_and_on_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "KEYS_MAX", 1)
    monkeypatch.setattr(pages, "OCCURRENCES_MAX", 4)
    monkeypatch.setattr(lanes, "ARCS_MAX", 2)
    monkeypatch.setattr(pages, "ARCS_MAX", 2)
    history = [("sent", 1, 7), ("sent", 2, 7), ("sent", 3, 7), ("ack", 4, 7), ("ack", 5, 7)]
    history += [("sent", 6, 8), ("ack", 7, 8), ("sent", 8, 9)]
    file = tmp_path / "x.html"
    result = compared(tmp_path, KEYED, history, "--html", str(file))
    text = file.read_text()
    for said in (
        "the first 1 of 2 keys are drawn",
        "the first 4 of 5 occurrences of id 7 are drawn, up to 4",
        "unrestricted: the first 2 of 3 detections of id 7 are drawn",
    ):
        assert said in text
        assert said in result.stderr
    assert "1 more keys without a detection" in text


def test_iso_times_of_one_day_are_shown_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    history = [("sent", "2026-03-02T09:00:00Z", 7), ("ack", "2026-03-02T09:00:00.5Z", 7)]
    output = compared(tmp_path, KEYED, history).stdout
    assert "times of 2026-03-02, UTC" in output
    assert "● sent 09:00:00 ack 09:00:00.5 " in output
    assert "id 7" in output


def test_a_comparison_without_lines_has_empty_columns(tmp_path: Path) -> None:
    files(tmp_path, KEYED, [])
    found = comparing.compare(tmp_path / "book.yaml", tmp_path / "trace.jsonl", None, None)
    assert isinstance(found, Comparison)
    assert [column.context for column in found.columns] == [*Context]
    with pytest.raises(InputError, match="no instant"):
        comparing.compare(tmp_path / "book.yaml", tmp_path / "trace.jsonl", None, "soon")


def test_what_is_piped_fits_a_screen(tmp_path: Path) -> None:
    names = [f"something_that_happened_{n}" for n in range(3)]
    book = "rulebook: wide\nevents: {" + ", ".join(
        f"{n}: {{signal: {{id: bigint}}}}" for n in names
    )
    book += (
        f"}}\nrules: {{a_rule_of_many: {{on: {' ; '.join(names)}, per: id, context: recent}}}}\n"
    )
    history = [(name, time, 123_456_789_012) for time, name in enumerate(names * 2, 1)]
    result = compared(tmp_path, book, history)
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert sum("●" in line for line in result.stdout.splitlines()) > 1
    simulate = files(tmp_path, book, history[:1])
    told = CliRunner().invoke(main, simulate, catch_exceptions=False).stderr
    assert told.split("\n")[0].startswith("0 detections over 1 line: no line is something_that_")
    assert max(map(len, told.splitlines())) <= 100
