"""`schema.json` of test files is what the code says, and agrees with their reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support.rulebooks import plain_value
from tidegate.engine.cli.beginning import WRITTEN
from tidegate.engine.replay.cases.form import FILE, schema_text
from tidegate.engine.replay.cases.reader import read_nodes

STEPS = "steps: [{at: 2026-03-02, insert: {a: {x: 1}}, delete: {b: [x = 1]}}]"
EXPECT = "expect: {firings: {r: [{key: {a: 1}, constituents: [{event: a}]}]}, dead: 0}"


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(FILE.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def plain(text: str) -> Any:
    top, problems = read_nodes(text, "a.test.yaml")
    assert not problems
    return plain_value(top)


def test_the_file_is_not_stale() -> None:
    said = "python -m tidegate.engine.replay.cases.form"
    assert FILE.read_text(encoding="utf-8") == schema_text(), said


@pytest.mark.parametrize("text", [WRITTEN["rulebook.test.yaml"], f"{STEPS}, {EXPECT}"])
def test_what_is_readable_is_valid(
    validator: jsonschema.Draft202012Validator, text: Path | str
) -> None:
    whole = f"{{rulebook: b.yaml, tests: [{{name: a, {text}}}]}}"
    validator.validate(plain(text.read_text() if isinstance(text, Path) else whole))


@pytest.mark.parametrize(
    "text",
    [
        "{tests: []}",
        "{rulebook: b.yaml}",
        "{rulebook: b.yaml, tests: [], test: []}",
        f"{{rulebook: b.yaml, tests: [{{{STEPS}}}]}}",
        "{rulebook: b.yaml, tests: [{name: a, steps: []}]}",
        f"{{rulebook: b.yaml, tests: [{{name: a, {STEPS}, expect: {{firing: {{}}}}}}]}}",
        f"{{rulebook: b.yaml, tests: [{{name: a, {STEPS}, expect: {{dead: x}}}}]}}",
        f"{{rulebook: b.yaml, tests: [{{name: a, {STEPS}, expect: {{firings: {{r: 3}}}}}}]}}",
    ],
)
def test_what_is_wrong_is_not(validator: jsonschema.Draft202012Validator, text: str) -> None:
    assert not validator.is_valid(plain(text))
