"""What a rulebook says of its texts is what their suspects are called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tests.quarantine.poison import LOST, Engine
from tests.quarantine.test_feed import SCHEMA, span_of
from tests.support import make
from tests.support.analysts import EveryIdAnalyst
from tidegate import rules
from tidegate.engine.core.ports import ReadRequest
from tidegate.engine.core.statement import encode
from tidegate.engine.core.types.spark import arrow_schema
from tidegate.engine.core.values import Question
from tidegate.engine.evaluate.requirements import Reading, prepare
from tidegate.engine.quarantine.conditions import WatchedConditions
from tidegate.engine.quarantine.feed import WatchedFeed
from tidegate.engine.quarantine.rulebook_texts import texts_of
from tidegate.engine.quarantine.sink import WatchedSink
from tidegate.rules.checks.gaps import all_features
from tidegate.rules.errors import EngineError

BOOK = """\
rulebook: texts
tables: {t: {path: /t, key: [id]}, u: {path: /u}, out: {path: /out}}
events:
  row: {on: insert, table: t, where: id > 1}
  plain: {on: insert, table: t}
  said: {signal: {id: bigint}, where: id > 2}
  both: {signal: {id: bigint}, where: id > 3, from_table: u}
samples: {newest: SELECT max(id) FROM t}
rules:
  a:
    on: row
    if: id > 4
    do: [{sql: INSERT INTO out SELECT id FROM event}, {signal: {said: {id: id}}}, {disable: b}]
    within: 1 h
    otherwise: [{webhook: {url: 'https://x.example.org/a', body: {id: max(id)}}}]
  b: {on: row, hysteresis: {fire: id > 5, rearm: id < 5}, do: [{signal: {said: {id: id}}}]}
  c: {on: 'P(row, [1 hour]:newest, plain)', do: [{signal: {said: {id: 1}}}]}
"""


class Dying:
    """Whatever is asked of it ends Spark."""

    def __getattr__(self, _: str) -> Callable[..., Any]:
        def die(*_: object) -> None:
            raise LOST

        return die


class Fields(EveryIdAnalyst):
    def fields(self, *_: object) -> Reading:
        return Reading(frozenset({"id"}))


def test_each_text_that_can_be_a_suspect_is_one_of_the_rulebooks() -> None:
    engine, dying = Engine(), Dying()
    book = rules.load(BOOK, features=all_features())
    schema = arrow_schema(SCHEMA)
    prepared = prepare(book, {"t": schema, "u": schema, "out": schema}, Fields())
    feed = WatchedFeed(dying, engine.quarantine, book)  # type: ignore[arg-type]
    conditions = WatchedConditions(dying, engine.quarantine)  # type: ignore[arg-type]
    sink = WatchedSink(dying, engine.quarantine)  # type: ignore[arg-type]

    def dies(call: Callable[..., object], *given: object) -> None:
        with pytest.raises(EngineError, match="Spark is gone"):
            call(*given)

    for table, where in (("t", "id > 1"), ("u", "id > 3")):
        request = ReadRequest(("id",), frozenset({"insert"}), {"w": where})
        dies(feed.read, book.tables[table], span_of({1: ()}), request)
    rows = pa.table({"id": [1]})
    for signal, where in (("said", "id > 2"), ("both", "id > 3")):
        dies(feed.decide, rows, {"w": where}, f"signal {signal}")
    for sample in prepared.samples:
        dies(conditions.sample, sample.text, {"t": 1})
    relation = pa.table({"firing_id": ["one"]})
    for name, rule in book.rules.items():
        levels = rule.damping.hysteresis if rule.damping else None
        for asked in (rule.condition, *((levels.fire, levels.rearm) if levels else ())):
            if asked is not None:
                dies(conditions.hold, [Question(name, asked, (), frozenset(), relation)])
    for of, alternative in ((prepared.statements, False), (prepared.otherwise, True)):
        for name, statements in of.items():
            for s in statements:
                entry = make.entry(
                    name, kind=s.kind, text=encode(s), action=s.action, alternative=alternative
                )
                if s.kind != "switch":
                    dies(sink.run, entry, make.firings(name, 1))
    found = defaultdict(set)
    for key in engine.store.struck:
        found[key[0]].add(key[:3])
    said = defaultdict(set)
    for text in texts_of(book):
        said[text[0]].add(text)
    assert found == {kind: texts for kind, texts in said.items() if kind != "seal"}
    assert {kind: len(texts) for kind, texts in found.items()} == {
        "where": 4,
        "sample": 1,
        "condition": 3,
        "action": 5,
    }
    dies(sink.seal, make.entry("a", target="out"))
    assert {key[:3] for key in engine.store.struck if key[0] == "seal"} < said["seal"]
