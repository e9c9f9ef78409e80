"""Parts of JSON Schemas, by which editors complete and check what is written, and whole files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

Schema = dict[str, Any]


def either(cases: Sequence[tuple[Schema, Schema]]) -> Schema:
    """The schema of a value of one of several forms. cases[i]: a condition, and the schema where it
    is the first that holds; the last schema stands where no condition before it holds.

    An editor tells what is wrong with the form that was written; of `oneOf` it says only that no
    form fits.
    """
    *others, (_, schema) = cases
    for condition, then in reversed(others):
        schema = {"if": condition, "then": then, "else": schema}
    return schema


def has_one_of(*keys: str) -> Schema:
    """Of mappings with one of these keys."""
    of_one: list[Schema] = [{"required": [key]} for key in keys]
    return of_one[0] if len(of_one) == 1 else {"anyOf": of_one}


def exactly_one(keys: Sequence[str]) -> Schema:
    """Of mappings with exactly one of these keys: the first that is there shuts the others out, and
    where none is there the last is missing."""
    cases = [(has_one_of(key), _without(keys[n + 1 :])) for n, key in enumerate(keys)]
    return either([*cases[:-1], ({}, has_one_of(keys[-1]))])


def _without(keys: Iterable[str]) -> Schema:
    return {"properties": dict.fromkeys(keys, False)}


def schema_file(name: str, doc: str, schema: Schema, defs: Schema | None = None) -> str:
    """The text of a file. `name` is part of its `$id`, `doc` says what it describes, and `defs` is
    what it refers to by `#/$defs/NAME`.

    Example: `schema_file("tests", "Tests of a rulebook", FORM.schema)` has the `$id`
    `urn:tidegate:schema:tests`.
    """
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:tidegate:schema:{name}",
        "title": f"tidegate {name}",
        "description": doc,
        **schema,
        **({"$defs": defs} if defs else {}),
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
