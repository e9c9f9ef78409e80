"""What the texts of a rulebook read, as far as that can be told without Spark. Implements
`engine.core.ports.Analyst`. Each text counts as reading all of `event`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import pyarrow as pa

from tidegate.engine.core.values import Reading
from tidegate.rules.errors import Place
from tidegate.rules.model import Rule, SignalAction, Sql, Webhook
from tidegate.rules.sql.statement import statement


class MemoryAnalyst:
    """The readings of a rulebook with these tables. What does not fit is not refused: only Spark
    can tell, once it runs the statement."""

    def __init__(self, tables: Collection[str]) -> None:
        self._tables = {name.lower(): name for name in tables}

    def action(
        self,
        rule: Rule,  # noqa: ARG002
        action: Sql,
        event: pa.Schema,
        parameters: Sequence[str],  # noqa: ARG002
        *,
        resolve: bool = True,  # noqa: ARG002
    ) -> Reading:
        """See `engine.core.ports.Analyst`."""
        every, read = frozenset(event.names), statement(action.text)
        if read is None or not read.writes:
            return Reading(every)
        one = read.writes[0]
        return Reading(
            every,
            target=self._tables.get(one.table),
            tables=self._declared(mention.name for mention in read.relations),
            appends=one.appends and one.table not in one.tables,
        )

    def condition(
        self,
        rule: Rule,
        event: pa.Schema,
        per_firing: Sequence[str],  # noqa: ARG002
        *,
        resolve: bool = True,  # noqa: ARG002
    ) -> Reading:
        """See `engine.core.ports.Analyst`."""
        condition, every = rule.condition, frozenset(event.names)
        if condition is None or not condition.query:
            return Reading(every)
        read = statement(condition.text)
        names = () if read is None else (mention.name for mention in read.relations)
        return Reading(every, tables=self._declared(names))

    def sample(self, text: str, place: Place) -> tuple[Reading, pa.DataType]:  # noqa: ARG002
        """See `engine.core.ports.Analyst`. The query's type is not known here: it is void."""
        read = statement(text)
        names = () if read is None else (mention.name for mention in read.relations)
        return Reading(frozenset(), tables=self._declared(names)), pa.null()

    def fields(
        self,
        rule: Rule,  # noqa: ARG002
        action: SignalAction | Webhook,  # noqa: ARG002
        event: pa.Schema,
        per_firing: Sequence[str],  # noqa: ARG002
        types: Mapping[str, str],  # noqa: ARG002
    ) -> Reading:
        """See `engine.core.ports.Analyst`."""
        return Reading(frozenset(event.names))

    def _declared(self, names: Iterable[str]) -> frozenset[str]:
        lower = (name.lower() for name in names)
        return frozenset(self._tables[name] for name in lower if name in self._tables)
