"""`rules/schema.json` is what the code says, and agrees with the reader of rulebooks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import tidegate.rules
from tests.support.rulebooks import plain_value
from tidegate.rules.form.form import FILE, schema_text
from tidegate.rules.yaml.reader import read_yaml

FOLDER = Path(__file__).parents[1]
EXAMPLES = Path(tidegate.rules.__file__).parent / "examples"


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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{events: {a: {on: insrt, table: t}}}", "events.a.on: 'insrt' is not one of"),
        ("{events: {a: {signal: {}, every: 1 h}}}", "events.a: .* \\('every' was unexpected"),
        ("{rules: {r: {on: a, do: [{sql: x, signal: y}]}}}", "rules.r.do.0: False .* 'y'"),
        (
            "{rules: {r: {on: a, do: [{webhook: {body: {}}}]}}}",
            "rules.r.do.0.webhook: 'url' is a r",
        ),
        ("{rules: {r: {on: {window: 1 h, of: {}}}}}", "rules.r.on.of: {} is not of type 'string'"),
        ("{rules: {r: {on: {of: a}}}}", "rules.r.on: .* is not valid under any"),
        ("{tables: {t: {path: /t, table: x}}}", "tables.t: False schema does not allow 'x'"),
    ],
)
def test_one_error_names_what_is_wrong_with_the_form_that_was_written(
    text: str, told: str, validator: jsonschema.Draft202012Validator
) -> None:
    (error,) = validator.iter_errors({"rulebook": "b", **plain(text)})
    assert re.match(told, ".".join(map(str, error.absolute_path)) + ": " + error.message)


def test_no_part_of_the_schema_hides_which_form_was_meant() -> None:
    assert not re.findall(r'"(?:oneOf|anyOf)": \[\s*\{\s*"(?:type|properties)"', schema_text())


@pytest.mark.parametrize("file", sorted(EXAMPLES.rglob("*.yaml")), ids=lambda file: file.name)
def test_each_example_names_its_schema_in_its_first_line(file: Path) -> None:
    first, _, text = file.read_text(encoding="utf-8").partition("\n")
    named = file.parent / first.removeprefix("# yaml-language-server: $schema=")
    schema = json.loads(named.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(plain(text))


@pytest.mark.parametrize("form", ["INSERT INTO t", "[INSERT INTO t]", "{sql: x}", "{signal: a}"])
def test_the_forms_of_do_are_valid(form: str, validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(plain(f"{{rulebook: b, rules: {{r: {{on: a, do: {form}}}}}}}"))
