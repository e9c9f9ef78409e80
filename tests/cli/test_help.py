"""`tidegate help`: an entry for each code that the source can raise, a page for each operator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.cli.conftest import Tidegate
from tests.golden.compare import agree
from tests.golden.load import Case, read_all
from tests.reference.evaluate import reference
from tests.support.error_codes import Codes
from tidegate.engine.cli.help import Operator, codes, operators, pointer
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Context

PAGES = operators()
# Made of others by the parser's helpers, or another form of the page of windows, clocks, edges
WITHOUT_EXAMPLE = {
    *("Edge", "Failed", "Resolved", "Resolution", "BoundedSeq", "AnyRepeat", "Cron"),
    *("Window", "Sliding", "Session", "Crossing", "Holding"),
}


@pytest.fixture(scope="module")
def source() -> Codes:
    return Codes()


def test_the_source_is_followed_to_each_code(source: Codes) -> None:
    assert len(source.found) > 280
    assert source.lost == set()


def test_each_code_that_can_be_raised_has_an_entry_and_no_entry_is_stale(source: Codes) -> None:
    known = codes()
    lacking = {code: places for code, places in source.found.items() if code not in known}
    assert lacking == {}, "write its cause and remedy into engine/cli/help/codes.toml"
    assert known.keys() - source.found.keys() == set()


def test_what_flows_through_parameters_formats_and_tables_is_found(source: Codes) -> None:
    shown = (
        "unknown-signal",  # f"unknown-{..}"
        "history-begins-later",  # super().__init__
        "not-live",  # replace(.., code=)
        "starting",  # a constant of another module
        "not-found",  # {404: ..}.get
    )
    assert set(shown) <= source.found.keys()


def test_an_entry_is_sentences_that_name_what_they_are_about() -> None:
    """No pronoun stands for what the reader cannot see, as in "This can never happen"."""
    for each in codes().values():
        for text in (each.cause, each.remedy):
            assert text[-1] == ".", each.code
            assert len(text.split()) >= 4, each.code
            assert text.count("`") % 2 == 0, each.code
        assert each.cause.split()[0] not in {"It", "Its", "That", "They", "This", "What"}, each.code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.names[0])
def test_an_example_is_what_is_detected(page: Operator) -> None:
    (case,) = _cases(page)
    assert case.expected
    for context in case.expected:
        found = reference(case.rulebook, case.history, until=case.until, context=context)
        agree(found, case, context)


def test_each_operator_context_and_window_has_one_page() -> None:
    names = [name for page in PAGES for name in page.names]
    assert len(set(names)) == len(names)
    assert {context.value for context in Context} <= set(names)
    books = [case.rulebook for page in PAGES for case in _cases(page)]
    rules = [rule for book in books for rule in book.rules.values()]
    shown = {type(node) for rule in rules for node in rule.pattern.on.walk()}
    lacking = {kind.__name__ for kind in _kinds(x.Expression)} - {kind.__name__ for kind in shown}
    assert lacking == WITHOUT_EXAMPLE


def _kinds(kind: type) -> Iterator[type]:
    for below in kind.__subclasses__():
        if below.__module__.startswith("tidegate.rules."):
            yield below
        yield from _kinds(below)


def _cases(page: Operator) -> list[Case]:
    return read_all(f"title: {page.form}\n{page.example.strip()}\n", page.names[0])


def test_a_code(tidegate: Tidegate) -> None:
    found = tidegate("help", "unknown-event")
    assert found.exit_code == 0
    assert found.stdout.startswith("unknown-event\n    An expression, an action")
    assert "what to do: Use the name that the message suggests" in found.stdout
    (line,) = tidegate("help", "store-older", "--json").stdout.splitlines()
    assert json.loads(line) == {
        "code": "store-older",
        "topic": "The store",
        "cause": codes()["store-older"].cause,
        "remedy": codes()["store-older"].remedy,
    }


def test_links_of_an_entry_are_read_without_a_browser(tidegate: Tidegate) -> None:
    shown = " ".join(tidegate("help", "window").stdout.split())
    assert "windows (docs/windows.md) shows all forms" in shown


@pytest.mark.parametrize(
    ("words", "form"),
    [
        (["A*"], "A*(a, b, c)"),
        (["a*"], "A*(a, b, c)"),
        (["A"], "A(a, b, c)"),
        ([";"], "a ; b"),
        (["-"], "a without b"),
        (["WITHIN"], "a within 5 min"),
        (["then", "no"], "a then no b for"),
        (["latest"], "context: restricted"),
    ],
)
def test_an_operator(tidegate: Tidegate, words: list[str], form: str) -> None:
    found = tidegate("help", *words)
    assert found.exit_code == 0
    assert found.stdout.startswith(form)
    assert "contexts: " in found.stdout
    assert "    on: " in found.stdout


def test_a_command(tidegate: Tidegate) -> None:
    assert tidegate("help", "serve").stdout == tidegate("serve", "--help").stdout


def test_a_word_that_is_not_known(tidegate: Tidegate) -> None:
    found = tidegate("help", "unknwon-event")
    assert found.exit_code == 1
    assert "did you mean 'unknown-event'?" in found.stderr
    assert "`tidegate help` lists what there is" in tidegate("help", "qqqqqqq").stderr


def test_few_of_many_codes_are_named() -> None:
    named = pointer(dict.fromkeys("abcdefg"))
    assert named == "`tidegate help a` says more (also b, c, d, 3 more)"
    assert pointer({"a": None}) == "`tidegate help a` says more"


def test_alone_it_lists_what_there_is(tidegate: Tidegate) -> None:
    shown = tidegate("help").stdout
    assert len(shown.splitlines()) < 24
    for topic in {each.topic for each in codes().values()}:
        assert topic in shown
    assert "chronicle" in shown
    assert len(tidegate("help", "--json").stdout.splitlines()) == len(codes()) + len(PAGES)


@pytest.mark.parametrize("terminal", [True, False])
def test_validate_names_the_help_to_people_beside_its_results(
    tidegate: Tidegate,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
) -> None:
    book = tmp_path_factory.mktemp("books") / "b.yaml"
    book.write_text("rulebook: b\nevents: {a: {signal: {}}}\nrules: {r: {on: zz}, 's-': {on: a}}\n")
    of_people = SimpleNamespace(stderr=SimpleNamespace(isatty=lambda: terminal))
    monkeypatch.setattr("tidegate.engine.cli.main.sys", of_people)
    found = tidegate("validate", book)
    pointer = "`tidegate help unknown-event` says more (also name)\n"
    assert found.stderr == (pointer if terminal else "")
    assert pointer not in found.stdout
    assert tidegate("validate", book, "--json").stderr == ""
    book.write_text("rulebook: b\nevents: {a: {signal: {}}}\nrules: {r: {on: a}}\n")
    assert tidegate("validate", book).stderr == ""
