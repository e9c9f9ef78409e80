"""`rules/schema.json` is what the code says, and agrees with the reader of rulebooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support.rulebooks import plain_value
from tidegate.rules.form.form import FILE, schema_text
from tidegate.rules.yaml.reader import read_yaml

FOLDER = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(FILE.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def plain(text: str) -> Any:
    top, problems = read_yaml(text, "b.yaml", 10**6)
    assert not problems
    return plain_value(top)


def test_the_file_is_not_stale() -> None:
    assert FILE.read_text(encoding="utf-8") == schema_text(), "python -m tidegate.rules.form.form"


def test_the_complete_example_is_valid(validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(plain((FOLDER / "bank.yaml").read_text(encoding="utf-8")))


def test_what_is_readable_is_valid(validator: jsonschema.Draft202012Validator) -> None:
    for file in ("unbuilt.txt", "warnings.txt"):
        for block in (FOLDER / file).read_text(encoding="utf-8").split("=== ")[1:]:
            text = block.partition("\n")[2].partition("---\n")[0]
            validator.validate(plain(text))


@pytest.mark.parametrize(
    "text",
    [
        "timezone: UTC",
        "{rulebook: b, rule: {}}",
        "{rulebook: my-bank}",
        "{rulebook: b, tables: {t: {path: /t, table: x}}}",
        "{rulebook: b, events: {or: {signal: {}}}}",
        "{rulebook: b, events: {a: {on: insrt, table: t}}}",
        "{rulebook: b, rules: {r: {}}}",
        "{rulebook: b, rules: {r: {on: a, do: [{sql: x, signal: a}]}}}",
        "{rulebook: b, rules: {r: {on: a, do: [[sql]]}}}",
        "{rulebook: b, rules: {r: {on: a, do: 7}}}",
        "{rulebook: b, rules: {r: {on: a, context: sometimes}}}",
        "{rulebook: b, settings: {lease_seconds: 0}}",
    ],
)
def test_what_is_refused_is_invalid(text: str, validator: jsonschema.Draft202012Validator) -> None:
    assert not validator.is_valid(plain(text))


@pytest.mark.parametrize("form", ["INSERT INTO t", "[INSERT INTO t]", "{sql: x}", "{signal: a}"])
def test_the_forms_of_do_are_valid(form: str, validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(plain(f"{{rulebook: b, rules: {{r: {{on: a, do: {form}}}}}}}"))
