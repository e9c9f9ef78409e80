"""How many of the texts in the example rulebooks cost no Spark job (G30)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import yaml

import tidegate
from tidegate.engine.core.evaluator.filters import compile_filter
from tidegate.engine.core.evaluator.firings import compile_condition
from tidegate.engine.core.parameters import OLD
from tidegate.engine.core.types.spark import arrow_type
from tidegate.engine.evaluate.action_events import with_action_events
from tidegate.engine.evaluate.shape import shape_of
from tidegate.rules.model import Rulebook, TableEvent

EXAMPLES = Path(tidegate.__path__[0]) / "rules" / "examples"
_TABLE = re.compile(
    r"CREATE TABLE (?:delta\.)?`?(?:\./)?(?:lake/)?(\w+)`?\s*\((.*?)\)\s*USING", re.S
)
_COLUMN = re.compile(r"\s*(\w+)\s+([^,(]+(?:\([^)]*\))?)[^,]*(?:,|$)")


def columns(ddl: str) -> pa.Schema:
    return pa.schema(
        [(name, arrow_type(kind.split(" NOT ")[0])) for name, kind in _COLUMN.findall(ddl)]
    )


def schemas(file: Path, book: Rulebook) -> Mapping[str, pa.Schema]:
    """Those of `tables.sql`, or of the test beside the rulebook."""
    made = file.with_name("tables.sql")
    ddl = dict(_TABLE.findall(made.read_text())) if made.exists() else {}
    by_path = {
        t.name: ddl[Path(t.path).name]
        for t in book.tables.values()
        if t.path and Path(t.path).name in ddl
    }
    test = file.with_suffix(".test.yaml")
    said = (yaml.safe_load(test.read_text()) or {}).get("schemas", {}) if test.exists() else {}
    return {name: columns(text) for name, text in {**by_path, **said}.items()}


def texts(file: Path) -> Iterator[tuple[str, bool]]:
    """The `where`s and `if`s of a rulebook, and whether Arrow evaluates them."""
    book = tidegate.load(file)
    tables = schemas(file, book)
    for event in book.events.values():
        if isinstance(event, TableEvent) and event.where and not event.change.is_commit:
            types = {field.name: field.type for field in tables[event.table]}
            types |= {f"{OLD}.{name}": kind for name, kind in types.items()}
            yield event.where, compile_filter(event.where, types) is not None
    seen = with_action_events(book, tables)
    for rule in seen.rules.values():
        if rule.condition is not None:
            shape = shape_of(seen, rule, tables)
            text, query = rule.condition.text, rule.condition.query
            found = not query and compile_condition(text, shape.schema, shape.per_firing)
            yield text, bool(found)


def test_g30_nine_of_ten_texts_of_the_examples_cost_no_spark_job() -> None:
    files = [f for f in EXAMPLES.rglob("*.yaml") if not f.name.endswith(".test.yaml")]
    found = [one for file in sorted(files) for one in texts(file)]
    outside = [text for text, inside in found if not inside]
    print(f"{len(found)} texts, outside: {outside}")
    assert len(outside) <= 0.1 * len(found), outside
