"""`rules/schema.json`: JSON Schema of a rulebook for editors, printed from `rules.form.form`.

`python -m tidegate.rules.form.schema` writes the file; a test fails while it is stale.
"""

from __future__ import annotations

import json
from pathlib import Path

from tidegate.rules.form.form import RULEBOOK

FILE = Path(__file__).parents[1] / "schema.json"


def schema_text() -> str:
    """The schema as JSON text, as `schema.json` should hold it."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tidegate rulebook",
        **RULEBOOK.schema,
    }
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(schema_text(), encoding="utf-8")
