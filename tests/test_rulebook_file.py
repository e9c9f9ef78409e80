"""The file of a rulebook that runs: when it is read again."""

from __future__ import annotations

from pathlib import Path

from tidegate import rules
from tidegate.engine.app.changes import RulebookFile
from tidegate.engine.store import KeptRulebook

TEXT = "rulebook: bank\nevents: {{a: {{signal: {{}}}}}}\nrules: {{{}: {{on: a}}}}\n"


def text_of(found: KeptRulebook | None) -> str | None:
    return None if found is None else found.text


def test_the_file_that_the_engine_took_over_last_is_watched(tmp_path: Path) -> None:
    first, other = tmp_path / "first.yaml", tmp_path / "other.yaml"
    first.write_text(TEXT.format("one"))
    other.write_text(TEXT.format("two"))
    file = RulebookFile(rules.load(first), watched=True)
    assert file.changed({}) is None
    file.runs(rules.load(other))
    assert file.changed({}) is None
    first.write_text(TEXT.format("three"))
    assert file.changed({}) is None
    other.write_text(TEXT.format("fourth"))
    found = file.changed({"x": "{on: a}"})
    assert (text_of(found), found and found.added) == (TEXT.format("fourth"), {"x": "{on: a}"})
    assert file.changed({}) is None


def test_without_watching_it_is_read_where_somebody_asks(tmp_path: Path) -> None:
    path = tmp_path / "bank.yaml"
    path.write_text(TEXT.format("one"))
    file = RulebookFile(rules.load(path), watched=False)
    path.write_text(TEXT.format("second"))
    assert file.changed({}) is None
    file.reread()
    assert [text_of(file.changed({})) for _ in range(2)] == [TEXT.format("second"), None]


def test_the_files_of_scripts_are_watched(tmp_path: Path) -> None:
    path, script = tmp_path / "bank.yaml", tmp_path / "a.es"
    path.write_text('rulebook: bank\nscripts:\n  s: {file: a.es}\n  t: {text: "in {} B B()"}\n')
    script.write_text("in {} A A()")
    file = RulebookFile(rules.load(path), watched=True)
    assert file.changed({}) is None
    script.write_text("in {} A A()*")
    found = file.changed({})
    assert text_of(found) == path.read_text()
    assert file.changed({}) is None
