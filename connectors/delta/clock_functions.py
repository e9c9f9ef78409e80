"""What gives another value another time: functions, and texts that mean a moment of now (G25)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tidegate.connectors.delta.plans import Part, Parts, words

_CLOCKS = words(
    "CurrentBatchTimestamp CurrentDate CurrentTime CurrentTimestamp CurrentTimestampLike "
    "LocalTimestamp Now"
)
_ORDERED = words("AggregateExpression AnyValue CollectList CollectSet First Last ListAgg")
_TIMES = words("date timestamp timestamp_ntz")  # types that know such texts
_ROWS_OWN = words("AttributeReference GetStructField")  # never constant, so not worth a question
_PLAIN = re.compile(r"[a-z_]*\s*r?['\"]\s*([-+]?\d|epoch\b)", re.IGNORECASE)
_MOMENT = re.compile(r"\W*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)


def changing(parts: Iterable[Part]) -> str | None:
    """The first function found that gives another value another time, as text. Those that only
    depend on the order of rows do not count: `event` has one. The first part holds the others."""
    found = list(parts)
    for part in found:
        if part.kind in _CLOCKS:
            return f"{part.java.prettyName()}(..)"
    if found and found[0].java.deterministic():
        return None
    loose = {p.number for p in found if not p.plan and not p.java.deterministic()}
    owners = {p.owner for p in found if p.number in loose}
    for part in found:
        if part.number in loose - owners and part.kind not in _ORDERED:
            return f"{part.java.prettyName()}(..)"
    return None


def moment_written(parts: Iterable[Part], text: str) -> tuple[str, int] | None:
    """The first literal in a parsed text that may mean a moment of now, and its offset: Spark puts
    the value in the literal's place, so that only the text tells."""
    for part in parts:
        if part.kind == "Literal" and part.said("dataType") in _TIMES:
            at = part.start
            if at is None or part.stop is None:
                return part.said("dataType"), 0
            if not _PLAIN.match(text, at):
                return text[at : part.stop + 1], at
    return None


def moment_cast(parts: Parts) -> str | None:
    """The first cast that may make a moment of now out of a text, in an analysed plan in which
    functions made of others are replaced by these."""
    for part in parts:
        if part.kind != "Cast" or part.said("dataType") not in _TIMES:
            continue
        (child,) = parts.held(part, "child")
        if child.kind == "Literal":
            if child.said("dataType").startswith("string") and _MOMENT.match(child.said("value")):
                return f"cast('{child.said('value')}' AS {part.said('dataType')})"
        elif child.kind not in _ROWS_OWN and child.java.foldable():
            kind = str(child.java.dataType().typeName())
            if kind.startswith("string"):
                return f"a text that is worked out and cast to {part.said('dataType')}"
    return None
