"""DELETE is no action: one that deletes nothing leaves no marker. The MERGE that does the same."""

from __future__ import annotations

import re

from tidegate.rules.sql.words import QUERIES, sql_tokens

MESSAGE = "DELETE is refused: one that deletes nothing leaves no marker and could be repeated"
_WITHIN = re.compile(r"([\w.`]+)\s+in\s*\((.*)\)", re.IGNORECASE | re.DOTALL)


def delete_as_merge(text: str) -> str:
    """What to write for a text that is a DELETE: a MERGE, which leaves a marker even if it deletes
    nothing; a line a clause."""
    found = sql_tokens(text)
    upper = [token.text.upper() for token in found]
    deletes = upper.index("DELETE") if "DELETE" in upper else 0
    begin = upper.index("FROM", deletes) + 1 if "FROM" in upper[deletes:] else deletes + 1
    where = upper.index("WHERE", begin) if "WHERE" in upper[begin:] else len(found)
    named = [token.text for token in found[begin:where] if token.text != ";"]
    table, alias = _names(named)
    condition = "true"
    if where < len(found):
        condition = text[found[where].offset + len("WHERE") :].strip().rstrip(";").rstrip()
    source, on = _joined(condition, alias or table)
    target = f"{table} AS {alias}" if alias else table
    clauses = (f"write: MERGE INTO {target}", f"USING {source}", f"ON {on}")
    return "\n".join((*clauses, "WHEN MATCHED THEN DELETE"))


def _names(tokens: list[str]) -> tuple[str, str]:
    """`a.t`, `a.t x` and `a.t AS x`: the table and its alias."""
    table = tokens[:1]
    rest = tokens[1:]
    while rest[:1] == ["."]:
        table, rest = [*table, *rest[:2]], rest[2:]
    rest = rest[1:] if rest and rest[0].upper() == "AS" else rest
    return "".join(table) or "<table>", rest[0] if rest else ""


def _joined(condition: str, name: str) -> tuple[str, str]:
    """The source of the MERGE, and on what it matches."""
    words = {token.text.upper() for token in sql_tokens(condition)}
    within = _WITHIN.fullmatch(condition)
    if within and next((t.text.upper() for t in sql_tokens(within[2])), "") in QUERIES:
        column = within[1] if "." in within[1] else f"{name}.{within[1]}"
        source = f"(SELECT DISTINCT * FROM ({within[2].strip()}) AS s(doomed)) AS d"  # noqa: S608
        return source, f"{column} = d.doomed"
    if "SELECT" in words:
        return "(<a query of the rows to delete>) AS d", "<a row of d is the target's>"
    return "(SELECT 1) AS one", condition
