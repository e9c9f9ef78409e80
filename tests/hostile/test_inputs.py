"""Hostile input from outside: what comes in is taken or refused, never an internal error."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.connectors.http.conftest import BOOK, Serve, serve, store, url  # noqa: F401 - fixtures
from tidegate import rules
from tidegate.engine.control.signals import make_signal
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import InputError
from tidegate.rules.expressions.parser import parse

SIZES = [500, pytest.param(10_000, marks=pytest.mark.long)]
BOOKS = sorted(Path(rules.__file__).parent.glob("examples/*/*.yaml"))
EXAMPLES = [file for file in BOOKS if not file.name.endswith(".test.yaml")]
# What a parser, a shell, a database or a terminal could take for its own.
PIECES = (
    "'", '"', "`", ";", "--", "/*", "*/", "\\", "\0", "\x1b[2J", "\u202e", "\ufeff", "\ud800", "é",
    "${env:HOME}", "{{7*7}}", "$(id)", "%n", "'; DROP TABLE signals; --", "\n\n", "\t", "&a", "*a",
    "<<: *a", "!!python/object/apply:os.system [id]", "---", "[", "]", "{", "}", ": ", "- ", "|",
    ">", "#", "null", "~", "1e999", "-0", "0x7f", "9" * 400, "(" * 300, "[" * 300, "within", "or",
    "; ;", "then", "*", "a*", "P*(", "[-1 s]", "999999999999 years", "begin_of", "rules:", "on:",
)  # fmt: skip
VALUES = (
    None, True, 0, -1, 2**63, -(2**99), 0.5, math.inf, math.nan, "", "x" * 100_000, "\0", "\ud800",
    "2026-11-23T00:00:00", "9999-99-99", b"x", [], [[]], [None], {}, {"x": 1}, {"x": {"y": []}},
)  # fmt: skip
LEAKS = ("Traceback", "sqlite", "/work", "/tmp", "site-packages", "psycopg", "t" * 20)


def mangled(text: str, chance: random.Random) -> str:
    """A text with one or two pieces put in, taken out, or repeated."""
    for _ in range(chance.randint(1, 2)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice((0, 0, 1, 5, 40)))
        piece = chance.choice(
            (*chance.choices(PIECES, k=4), text[start:end] * 2, "", " ", "b", "1")
        )
        text = text[:start] + piece + text[end:]
    return text


@pytest.mark.parametrize("count", SIZES)
def test_rulebooks_are_read_or_refused_with_a_place(count: int) -> None:
    chance = random.Random(14)
    texts = [file.read_text().replace("./lake", "/lake") for file in EXAMPLES] + [BOOK]
    assert len(texts) > 5
    told: Counter[str] = Counter()
    for _ in range(count // 5):
        text = mangled(chance.choice(texts), chance)
        try:
            rules.load("\n" + text)
        except InputError as error:
            told["refused"] += 1
            told["with messages"] += all(p.message for p in error.problems)
            str(error)
        else:
            told["read"] += 1
    assert told["with messages"] == told["refused"]
    assert min(told["read"], told["refused"]) > count / 50


@pytest.mark.parametrize("count", SIZES)
def test_expressions_are_read_or_refused_with_a_place(count: int) -> None:
    chance = random.Random(15)
    texts = [
        "(a ; b) - c within 10 min", "A*(a, b[2], not(b)[a, [5 min]])", "P*(a, [10 s]: q, c)",
        "any(2, first:(a), every(3, b), c*)", "at <(08:00:00)*/*/*> & cron('0 17 * * mon-fri')",
    ]  # fmt: skip
    told: Counter[str] = Counter()
    for _ in range(count):
        text = mangled(chance.choice(texts), chance)
        try:
            parse(text)
        except InputError as error:
            told["refused"] += 1
            str(error)
        else:
            told["read"] += 1
    assert min(told["read"], told["refused"]) > count / 50


@pytest.mark.parametrize("count", SIZES)
def test_signals_are_stored_as_they_came_or_refused(store: SqlStore, count: int) -> None:  # noqa: F811
    chance = random.Random(16)
    book = rules.load(BOOK)
    told: Counter[str] = Counter()
    kept: dict[str, Any] = {}
    for number in range(count):
        event = chance.choice(["atm_empty", "moved", "ordered", "rung", "placed", "x'; --"])
        names = ["atm_id", "amount", "pos", "tags", "at", "id", "x'; DROP TABLE signals; --"]
        fields = {chance.choice(names): hostile(chance) for _ in range(chance.randint(0, 3))}
        try:
            made = make_signal(book, event, fields, f"{number}{hostile_text(chance)}", number)
        except InputError as error:
            told["refused"] += 1
            str(error)
            continue
        told["made"] += 1
        if len(kept) < 200:
            store.of("shop").signals.raise_signal(made)
            kept[made.id] = made.fields
    assert min(told.values()) > count / 100
    found = store.of("shop").signals.unplaced(sorted(book.events), 0, count).signals
    assert {one.id: one.fields for one in found} == kept


@pytest.mark.parametrize("count", SIZES)
def test_the_inbox_answers_each_request_and_tells_nothing_of_itself(
    serve: Serve,  # noqa: F811
    count: int,
) -> None:
    chance = random.Random(17)
    client = serve(settings={"inbox_requests_per_second_max": "1000000"})
    told: Counter[int] = Counter()
    for _ in range(count):
        event = chance.choice(
            ["atm_empty", "rung", "rung", "placed", "..%2f..", hostile_text(chance)]
        )
        path = chance.choice([f"/signals/{event}"] * 5 + ["/signals", "/status", f"/{event}"])
        fields = {} if event == "rung" else {chance.choice(["atm_id", "id", "é"]): plain(chance)}
        body = json.dumps(fields)
        if chance.random() < 0.5:
            body = mangled(body, chance)
        answer = client.request(
            chance.choice(["POST", "POST", "POST", "PUT", "GET", "HEAD", "TRACE"]),
            quote(path, safe="/%", errors="replace"),
            content=body.encode(errors="replace"),
            headers={"content-type": chance.choice(["application/json", "application/json", "x"])},
        )  # fmt: skip
        told[answer.status_code] += 1
        assert answer.status_code < 500, (path, answer.text)
        assert not [word for word in LEAKS if word in answer.text], answer.text
    assert told[202] > count / 100
    assert told[400] > count / 100


def hostile(chance: random.Random) -> Any:
    return chance.choice((*VALUES, hostile_text(chance)))


def plain(chance: random.Random) -> Any:
    """A hostile value that JSON has."""
    return chance.choice((1, None, [], {}, 1e300, "a", "2", hostile_text(chance), 2**70))


def hostile_text(chance: random.Random) -> str:
    return "".join(chance.choices(PIECES[:20], k=chance.randint(0, 3)))
