"""The parsers of grammars, as lark makes them of `grammar.lark`.

To make the parse table of event expressions takes longer than most commands. `grammar.json` has it,
as lark writes it down. It is used where it was made of this grammar by this lark, else the table is
made anew. After an edit of the grammar:

    python -m tidegate.rules.expressions.grammar
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import resources
from typing import Any

import lark
from lark import Lark

PACKAGE = "tidegate.rules.expressions"
OPTIONS = {"keep_all_tokens": True}
_TABLE = "grammar.json"


@cache
def expression_grammar() -> Lark:
    """The parser of event expressions."""
    said = resources.files(PACKAGE).joinpath(_TABLE).read_text(encoding="utf-8")
    made = json.loads(said, object_hook=_numbered)
    if made["of"] == made_of():
        found: Lark = Lark._load_from_dict(made["data"], made["memo"])  # type: ignore[no-untyped-call]
        return found
    return grammar(PACKAGE, **OPTIONS)


@cache
def grammar(package: str, **options: bool) -> Lark:
    """The parser of a package's `grammar.lark`."""
    return Lark(_text(package), parser="lalr", maybe_placeholders=False, **options)


def made_of() -> str:
    """What a table is made of: lark's version, and the grammar's digest."""
    return f"{lark.__version__} {hashlib.sha256(_text(PACKAGE).encode()).hexdigest()}"


def table_text() -> str:
    """What `grammar.json` is to hold."""
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    data, memo = grammar(PACKAGE, **OPTIONS).memo_serialize([TerminalDef, Rule])
    made = {"of": made_of(), "data": data, "memo": memo}
    return json.dumps(made, separators=(",", ":")) + "\n"


def _text(package: str) -> str:
    return resources.files(package).joinpath("grammar.lark").read_text(encoding="utf-8")


def _numbered(made: dict[str, Any]) -> dict[Any, Any]:
    """JSON has texts for the numbers of states and tokens."""
    return {int(key) if key.isdecimal() else key: value for key, value in made.items()}


if __name__ == "__main__":
    with resources.as_file(resources.files(PACKAGE).joinpath(_TABLE)) as file:
        file.write_text(table_text(), encoding="utf-8")
