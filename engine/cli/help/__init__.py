"""`tidegate help`: what each error code means and what to do, and a page for each operator. Both
stand in the two files beside this one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any

import click

from tidegate.engine.cli import output
from tidegate.engine.cli.group import brief, main
from tidegate.engine.cli.options import as_json
from tidegate.engine.core.text.layout import screen_width, wrapped
from tidegate.rules.errors import InputError, Problem, did_you_mean, word_place

_LINK = re.compile(r"\[([^]]+)\]\(([\w.]+)(?:#[^)]*)?\)")
POINTED_MAX = 3  # codes that `validate` names beside the first
_LISTED = "`tidegate help` lists what there is; docs/errors.md has all codes"


@dataclass(frozen=True, slots=True)
class Code:
    """What stands behind an error's code. `topic`: the heading under which it is listed."""

    code: str
    topic: str
    cause: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator's page. `names`: the words by which it is found. `example`: in the notation of
    docs/semantics.md."""

    names: list[str]
    form: str
    meaning: str
    example: str
    contexts: str


@cache
def codes() -> Mapping[str, Code]:
    """Every code, in the order of the topics."""
    return {
        code: Code(code, topic, cause, remedy)
        for topic, entries in _data("codes").items()
        for code, (cause, remedy) in entries.items()
    }


@cache
def operators() -> Sequence[Operator]:
    """The pages of all operators, windows and contexts."""
    return [Operator(**page) for page in _data("operators").values()]


def _data(name: str) -> dict[str, Any]:
    file = resources.files(__package__) / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def errors_page() -> str:
    """docs/errors.md."""
    lines = [
        "# Errors",
        "",
        "Each error, warning and refusal has a code: `validate --format json` and `sarif` show it,",
        "and so do answers of the inbox. `tidegate help CODE` prints its entry of this page.",
        "The command `make pages` writes the page from `engine/cli/help/codes.toml`.",
    ]
    topic = ""
    for each in codes().values():
        if each.topic != topic:
            topic = each.topic
            lines += ["", f"## {topic}"]
        lines += ["", f"### {each.code}", "", each.cause, "", f"**What to do.** {each.remedy}"]
    return "\n".join(lines) + "\n"


def found(word: str) -> list[Code | Operator]:
    """What there is of a word: a code, an operator, or both. Raises InputError."""
    known = codes()
    pages = operators()
    # `a` is no operator, but `AND` is `and`: letters are one only where nothing else is meant
    for asked in dict.fromkeys((word, word.lower(), word.upper())):
        pointed: list[Code | Operator] = [page for page in pages if asked in page.names]
        if asked in known:
            pointed.append(known[asked])
        if pointed:
            return pointed
    names = [*known, *(name for page in pages for name in page.names), *main.commands]
    hint = did_you_mean(word, names) or _LISTED
    message = f"there is no code, operator or command {word!r}"
    raise InputError([Problem("unknown-topic", message, word_place("WORD"), hint)])


@main.command("help")
@click.argument("words", nargs=-1, metavar="[CODE|OPERATOR|COMMAND]")
@as_json
@click.pass_context
@brief()
def help_(context: click.Context, words: tuple[str, ...], as_json: bool) -> None:
    """What an error's code means and what to do; what an operator means: help 'A*'."""
    word = " ".join(words)
    if not word:
        _topics(as_json=as_json)
        return
    command = main.commands.get(word)
    try:
        pages = found(word)
    except InputError:
        if command is None:
            raise
        pages = []
    for number, page in enumerate(pages):
        if number:
            output.say("")
        output.told(asdict(page), _lines(page), as_json=as_json)
    if command is not None and not pages and context.parent is not None:
        with click.Context(command, info_name=word, parent=context.parent) as of:
            output.say(command.get_help(of))


def _topics(*, as_json: bool) -> None:
    """What there is help for."""
    if as_json:
        pages: list[Code | Operator] = [*codes().values(), *operators()]
        output.json_lines(map(asdict, pages))
        return
    width = screen_width()
    topics: dict[str, int] = {}
    for each in codes().values():
        topics[each.topic] = topics.get(each.topic, 0) + 1
    shown = [
        "tidegate help CODE: the cause of an error and what to do (all: docs/errors.md)",
        *(f"    {topic}: {count}" for topic, count in topics.items()),
        "tidegate help OPERATOR: what it means, with an example",
        "    " + "  ".join(page.names[0] for page in operators()),
        "tidegate help COMMAND: the same as tidegate COMMAND --help",
    ]
    for line in shown:
        for part in wrapped(line, width, indent=" " * (len(line) - len(line.lstrip()))):
            output.say(part)


def _lines(page: Code | Operator) -> Iterator[str]:
    width = screen_width()
    if isinstance(page, Code):
        yield page.code
        yield from wrapped(plainly(page.cause), width, indent="    ")
        yield from wrapped(f"what to do: {plainly(page.remedy)}", width, indent="    ")
        return
    yield page.form
    yield from wrapped(page.meaning, width, indent="    ")
    yield from wrapped(f"contexts: {page.contexts}", width, indent="    ")
    yield "for example"
    yield from (f"    {line}" for line in page.example.strip().splitlines())
    yield from wrapped("a@1 is an a at second 1, [1,2] an interval: docs/semantics.md", width)


def plainly(text: str) -> str:
    """A text without links: what they lead to stands behind their words."""
    return _LINK.sub(r"\1 (docs/\2)", text)


def pointer(codes: Mapping[str, object]) -> str:
    """The line that names the help for codes that were just reported."""
    first, *others = codes
    left = len(others) - POINTED_MAX
    shown = [*others[:POINTED_MAX], *([f"{left} more"] if left > 0 else [])]
    more = f" (also {', '.join(shown)})" if shown else ""
    return f"`tidegate help {first}` says more{more}"
