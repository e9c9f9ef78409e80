"""DELETE is refused as an action, for one that deletes nothing leaves no marker. A MERGE can do the
same."""

from __future__ import annotations

MESSAGE = "DELETE is refused: one that deletes nothing leaves no marker and could be repeated"


def delete_as_merge(text: str) -> str:
    """The hint for a DELETE: the MERGE to write instead, one clause a line. A MERGE leaves a marker
    even if it deletes nothing."""
    from sqlglot import exp

    from tidegate.rules.sql.tree import tree_of

    tree = tree_of(text)
    found = tree.find(exp.Delete) if tree else None
    if found and not isinstance(found.this, exp.Table):
        found = None  # DELETE without FROM
    target, source, on = "<table>", "(SELECT 1) AS one", "true" if found else "<a condition>"
    if found:
        target = found.this.sql("spark")
        where = found.args.get("where")
        asked = where.this if where else exp.true()
        query = asked.args.get("query") if isinstance(asked, exp.In) else None
        if query:
            column = asked.this.sql("spark")
            name = column if "." in column else f"{found.this.alias_or_name}.{column}"
            source = f"(SELECT DISTINCT * FROM {query.sql('spark')} AS s(doomed)) AS d"  # noqa: S608
            on = f"{name} = d.doomed"
        elif asked.find(exp.Select):
            source, on = "(<a query of the rows to delete>) AS d", "<a row of d is the target's>"
        elif where:
            on = asked.sql("spark")
    clauses = (f"write: MERGE INTO {target}", f"USING {source}", f"ON {on}")
    return "\n".join((*clauses, "WHEN MATCHED THEN DELETE"))
