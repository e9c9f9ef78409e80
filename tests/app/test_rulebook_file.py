"""The file of a rulebook that runs: when it is read again."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tidegate import rules
from tidegate.engine.app.reload import RulebookFile
from tidegate.engine.store import KeptRulebook
from tidegate.rules.errors import InputError

TEXT = "rulebook: bank\nevents: {{a: {{signal: {{}}}}}}\nrules: {{{}: {{on: a}}}}\n"


def written(path: Path, text: str, seconds_ago: float = 60) -> None:
    path.write_text(text)
    at = time.time() - seconds_ago
    os.utime(path, (at, at))


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
    written(first, TEXT.format("three"))
    assert file.changed({}) is None
    written(other, TEXT.format("fourth"))
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


def test_what_is_included_is_watched(tmp_path: Path) -> None:
    path, other, more = (tmp_path / name for name in ("bank.yaml", "other.yaml", "more.yaml"))
    written(path, "rulebook: bank\ninclude: other.yaml\nrules: {r: {on: a}}\n")
    written(other, "include: [more.yaml]\n")
    written(more, "events: {a: {signal: {}}}\n")
    book = rules.load(path)
    file = RulebookFile(book, watched=True)
    assert file.changed({}) is None
    written(more, "events: {a: {signal: {}}, b: {signal: {}}}\n")
    found = file.changed({})
    assert found is not None
    assert [*found.load().events] == ["a", "b"]
    assert found.load().files != book.files  # another version
    assert file.changed({}) is None


def test_what_a_refused_text_names_is_watched(tmp_path: Path) -> None:
    """Its fault may be in a file that the rulebook that runs does not know."""
    path, other, script = (tmp_path / name for name in ("bank.yaml", "other.yaml", "a.es"))
    written(path, TEXT.format("r"))
    file = RulebookFile(rules.load(path), watched=True)
    written(path, "rulebook: bank\ninclude: other.yaml\nscripts: {s: {file: a.es}}\n")
    for said, (mended, text) in {
        "no such file": (other, "events: {a: {signal: {}}}\nrules: {r: {on: b}}\n"),
        "there is no file": (script, "in {} A A()"),
        "unknown event 'b'": (other, "events: {a: {signal: {}}}\nrules: {r: {on: a}}\n"),
    }.items():
        found = file.changed({})
        assert found is not None
        with pytest.raises(InputError, match=said):
            found.load()
        assert file.changed({}) is None
        written(mended, text)
    found = file.changed({})
    assert found is not None
    file.runs(found.load())
    assert file.changed({}) is None


def test_the_files_of_scripts_are_watched(tmp_path: Path) -> None:
    path, script = tmp_path / "bank.yaml", tmp_path / "a.es"
    written(path, 'rulebook: bank\nscripts:\n  s: {file: a.es}\n  t: {text: "in {} B B()"}\n')
    written(script, "in {} A A()")
    file = RulebookFile(rules.load(path), watched=True)
    assert file.changed({}) is None
    written(script, "in {} A A()*", seconds_ago=1)
    found = file.changed({})
    assert text_of(found) == path.read_text()
    assert found is not None
    assert found.load().scripts["s"].program.text == "in {} A A()*"
    assert file.changed({}) is None


def test_files_with_variables_and_scripts_in_included_files_are_unchanged_at_first(
    tmp_path: Path,
) -> None:
    """Texts are compared as they are written, each with its own file."""
    path, other, script = (tmp_path / name for name in ("bank.yaml", "other.yaml", "a.es"))
    written(path, "rulebook: bank\nvars: {floor: 100}\ninclude: other.yaml\n")
    written(other, 'scripts: {s: {file: a.es}, t: {text: "in {} B B()"}}\n')
    written(script, "in long A out long B A(x) { x > ${floor} ? !> B(x); }")
    book = rules.load(path)
    assert RulebookFile(book, watched=True).changed({}) is None
    file = RulebookFile(book, watched=True)
    written(other, other.read_text().replace("B()", "B()*"))
    found = file.changed({})
    assert found is not None
    assert found.load().scripts["t"].program.text == "in {} B B()*"
    assert file.changed({}) is None


def test_a_script_goes_together_with_its_file(tmp_path: Path) -> None:
    path, script = tmp_path / "bank.yaml", tmp_path / "a.es"
    written(path, "rulebook: bank\nscripts: {s: {file: a.es}}\n")
    written(script, "in {} A A()")
    file = RulebookFile(rules.load(path), watched=True)
    assert file.changed({}) is None
    script.unlink()
    written(path, "rulebook: bank\nevents: {a: {signal: {}}}\n", seconds_ago=1)
    found = file.changed({})
    assert found is not None
    assert not found.judged("bank").scripts


def test_a_file_that_may_still_be_written_is_not_read_yet(tmp_path: Path) -> None:
    path = tmp_path / "bank.yaml"
    path.write_text(TEXT.format("one"))
    file = RulebookFile(rules.load(path), watched=True)
    written(path, TEXT.partition("rules")[0], seconds_ago=-5)  # by a clock that is ahead
    assert text_of(file.changed({})) == TEXT.partition("rules")[0]
    written(path, "", seconds_ago=0)  # emptied, to be written anew
    assert file.changed({}) is None
    file.reread()  # somebody says that it is whole
    assert text_of(file.changed({})) == ""
    written(path, TEXT.format("second"), seconds_ago=1)
    assert text_of(file.changed({})) == TEXT.format("second")


@pytest.mark.parametrize("text", ["", "bank.yaml", "a list"])
def test_what_a_file_holds_is_never_taken_for_a_path(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.yaml").write_text(TEXT.format("one"))
    file = str(tmp_path / "bank.yaml")
    for given in (text, str(tmp_path / "other.yaml")):
        with pytest.raises(InputError, match=r"bank\.yaml:1:1: ") as refused:
            KeptRulebook(given, file).judged("bank")
        assert "no such file" not in str(refused.value)
