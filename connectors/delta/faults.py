"""Spark's and Delta's errors, read from the JVM.

PySpark's own conversion asks Spark for the message of Delta's error classes, which Spark does not
know, and then raises about that instead; so the first error of the chain is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from rules.errors import EngineError

SPARK_ERRORS = (PySparkException, Py4JError)

# Spark would log every refused text as JSON on stderr; whoever catches the error says it.
PySparkLogger.getLogger("SQLQueryContextLogger").setLevel("CRITICAL")
PySparkLogger.getLogger("DataFrameQueryContextLogger").setLevel("CRITICAL")


@dataclass(frozen=True, slots=True)
class Fault:
    """One error of the JVM: its error class (`DELTA_..`, `UNRESOLVED_COLUMN.WITH_SUGGESTION`, or
    the Java class), its first line, and the offset in the SQL text it is about, if known."""

    condition: str
    message: str
    offset: int | None = None
    details: str | None = None


def fault(error: BaseException) -> Fault:
    """What an error out of Spark says: of its causes, the innermost that has an error class."""
    java = _origin(error)
    if java is None:
        return Fault(type(error).__name__, _line(str(error)))
    chain = [java]
    while (cause := chain[-1].getCause()) is not None and len(chain) < 20:
        chain.append(cause)
    for candidate in reversed(chain):
        if condition := _call(candidate, "getCondition"):
            message = _line(candidate.getMessage() or condition)
            return Fault(condition, message.removeprefix(f"[{condition}] "), _offset(candidate))
    java = chain[-1]
    return Fault(java.getClass().getSimpleName(), _line(java.getMessage() or java.toString()))


def check_alive(error: BaseException) -> None:
    """Raises EngineError `spark-lost` if an error says that the JVM, or its context, is gone: then
    nothing is known of what was asked of it."""
    text = str(error)
    if isinstance(error, Py4JNetworkError) or "stopped SparkContext" in text:
        raise EngineError(
            "spark-lost",
            f"Spark is gone: {text.splitlines()[0] if text else type(error).__name__}",
            "nothing is lost: run again; see to the machine's memory, and to who stopped it",
        ) from error


def _origin(error: BaseException | None) -> Any:
    """The Java exception that came first: errors raised while it was converted hang before it."""
    found = None
    while error is not None:
        if isinstance(error, Py4JJavaError):
            found = error.java_exception
        elif getattr(error, "_origin", None) is not None:
            found = error._origin  # type: ignore[attr-defined]
        error = error.__context__
    return found


def _call(java: Any, method: str) -> str | None:
    try:
        value = getattr(java, method)()
    except SPARK_ERRORS:
        return None
    return str(value) if value else None


def _offset(java: Any) -> int | None:
    try:
        contexts = list(java.getQueryContext())
        start = contexts[0].startIndex() if contexts else -1
    except SPARK_ERRORS:  # a column made in Python has no text
        return None
    return start if start >= 0 else None


def _line(text: str) -> str:
    return text.split(" SQLSTATE")[0].strip().splitlines()[0].strip() if text.strip() else ""
