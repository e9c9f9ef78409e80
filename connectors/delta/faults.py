"""Errors of Spark and Delta, read from the JVM.

PySpark converts an error by asking Spark for the message of its class. Spark does not know Delta's
classes, and raises another error about that. Hence the first error of the chain is read here.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import ParseException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from tidegate.engine.core.text.printable import shortened
from tidegate.rules.errors import EngineError

# ConnectionError: a call of a JVM that has ended. The machine refuses it before py4j sees it.
SPARK_ERRORS = (PySparkException, Py4JError, ConnectionError)

# Spark would log every refused text as JSON on stderr. Whoever catches the error reports it.
PySparkLogger.getLogger("SQLQueryContextLogger").setLevel("CRITICAL")
PySparkLogger.getLogger("DataFrameQueryContextLogger").setLevel("CRITICAL")

# Parameters of error classes that hold names, types or versions, never a table's values.
_NAMES = frozenset(
    re.findall(
        r"\w+",
        """alternative ansiConfig checkpointVersion colName column columnName columnPath config
        configKey constraint constraintName currentVersion dataType earliestVersion endVersion
        expectedType feature field fieldName functionName identifier latestVersion logPath
        objectName operation precision routineName scale sourceType startVersion table
        tableIdentifier tableName targetType version versionList walkedTypePath""",
    )
)
_NAMES_OF = {  # error class -> parameters that hold names there, but values in other classes
    "CHECK_CONSTRAINT_VIOLATION": {"expression"},
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES": {"expression"},
    "SPARK_JOB_CANCELLED": {"jobId", "reason"},
}
# Classes of analysis errors that look at data. All others know the text and the schemas only.
_LOOK_AT_DATA = ("DELTA_REPLACE_WHERE_MISMATCH", "DELTA_CONSTRAINT_DATA", "DELTA_CONCURRENT")
_ANALYSIS = "org.apache.spark.sql.AnalysisException"
_ABOUT_PLACES = ("java.io.", "java.net.", "java.nio.file.", "org.apache.hadoop.")
# What a machine says of its disks and files. A failed task may name no other reason.
_OF_MACHINES = [
    os.strerror(getattr(errno, name))
    for name in ["ENOSPC", "EDQUOT", "EROFS", "EIO", "EACCES", "EMFILE", "ENFILE", "ESTALE"]
]
# A table's name in the database of `connectors.delta.catalog`: `tidegate_bank_..`.accounts
_INTERNAL = re.compile(r"(?:`?spark_catalog`?\.)?(?<![/\w])`?tidegate_\w+`?\.(?=`?\w)")
_VALUES_FOLLOW = re.compile(r" by row with values:.*")
FRAGMENT_MAX = 100  # characters of a SQL text in a message


@dataclass(frozen=True, slots=True)
class Fault:
    """One error of the JVM.

    condition: its error class, such as `UNRESOLVED_COLUMN.WITH_SUGGESTION`, or its Java class.
    message: one line for logs, without any value of a table: it names the value instead, as in `The
    value <expression> cannot be cast`. The failing part of the statement follows.
    details: all that Spark said, with values, for those who may see them.
    offset: the place in the SQL text, if known.
    """

    condition: str
    message: str
    details: str
    offset: int | None = None

    @property
    def line(self) -> str:
        """The first line of the details, for errors that are raised before any data is read."""
        return _line(self.details).removeprefix(f"[{self.condition}] ")


def fault(error: BaseException) -> Fault:
    """What Spark says of an error: the innermost cause that has an error class."""
    java = _origin(error)
    if java is None:
        return Fault(type(error).__name__, _line(str(error)), str(error))
    chain = [java]
    while (cause := chain[-1].getCause()) is not None and len(chain) < 20:
        chain.append(cause)
    for candidate in reversed(chain):
        if condition := _call(candidate, "getCondition"):
            details = _in_users_names(candidate.getMessage() or condition)
            message = _without_values(candidate, condition, details) + _of_machine(chain[-1])
            return Fault(condition, message, details, _offset(candidate))
    java = chain[-1]
    details = _in_users_names(java.getMessage() or java.toString())
    place = java.getClass().getName().startswith(_ABOUT_PLACES)
    name = java.getClass().getSimpleName()
    return Fault(name, _line(details) if place else "Spark failed with it", details)


def _without_values(java: Any, condition: str, details: str) -> str:
    """The first line of a message, with the failing part of the SQL text. A parameter that may be
    data is replaced by its name: `The value <expression> cannot be cast`."""
    is_analysis = is_instance_of(SparkContext._gateway, java, _ANALYSIS)
    if is_analysis and not condition.startswith(_LOOK_AT_DATA):
        return _line(details).removeprefix(f"[{condition}] ")
    known = _NAMES | _NAMES_OF.get(condition, frozenset())
    try:
        parameters = {str(k): str(v) for k, v in dict(java.getMessageParameters()).items()}
    except SPARK_ERRORS:
        return "its message may hold values"
    named = {k: _in_users_names(v) for k, v in parameters.items()}
    values = [(v, k) for k, v in named.items() if v and k not in known]
    for value, name in sorted(values, key=lambda pair: -len(pair[0])):
        details = details.replace(value, f"<{name}>")
    message = _VALUES_FOLLOW.sub("", _line(details).removeprefix(f"[{condition}] "))
    fragment = _fragment(java)
    return f"{message} (in `{fragment}`)" if fragment else message


def _of_machine(java: Any) -> str:
    """The machine's own reason below an error: `: No space left on device`. The rest of its message
    is left out: a path may hold values of partitions."""
    if not java.getClass().getName().startswith(_ABOUT_PLACES):
        return ""
    said = str(java.getMessage() or "")
    return next((f": {words}" for words in _OF_MACHINES if words in said), "")


def _in_users_names(text: str) -> str:
    return _INTERNAL.sub("", text)


def is_lost(error: BaseException) -> bool:
    """Whether an error says that the JVM or its Spark context is gone."""
    gone = isinstance(error, Py4JNetworkError | ConnectionError)
    return gone or "stopped SparkContext" in str(error)


def check_alive(error: BaseException) -> None:
    """Raises EngineError `spark-lost` if the JVM or its Spark context is gone: what became of the
    call is not known then."""
    if is_lost(error):
        raise _spark_lost(error) from error


def why_lost(spark: SparkSession, error: BaseException | None = None) -> EngineError | None:
    """`spark-lost` if the JVM or its context has ended, by the error or by Spark's own answer:
    waiting does not bring it back. None where Spark answers."""
    if isinstance(error, EngineError) and error.code == "spark-lost":
        return error
    try:
        context: Any = spark.sparkContext._jsc
        ended = context is None or context.sc().isStopped()
    except SPARK_ERRORS as refused:
        return _spark_lost(refused) if is_lost(refused) else None
    return _spark_lost("its context was stopped") if ended else None


def _spark_lost(why: BaseException | str) -> EngineError:
    reason = next(iter(str(why).splitlines()), type(why).__name__)
    return EngineError(
        "spark-lost",
        f"Spark is gone: {reason}",
        "nothing is lost: run again; look at the machine's memory, and at what stopped it",
    )


def _origin(error: BaseException | None) -> Any:
    """The first Java exception of a chain. Errors raised while it was converted come before it."""
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


def parse_error(error: ParseException, text: str) -> tuple[str, int]:
    """What Spark says of a text that it cannot parse: one line, and the offset in the text."""
    said = str(error).strip()
    head, _, position = said.split("== SQL")[0].strip().removesuffix(")").rpartition("(line ")
    line, _, column = position.partition(", pos ")
    if not (line.isdigit() and column.isdigit()):
        return _line(said) or "malformed SQL", 0
    before = text.splitlines(keepends=True)[: int(line) - 1]
    at = sum(map(len, before)) + int(column)
    message = head.split(" SQLSTATE")[0].strip()
    return message or "malformed SQL", min(at, len(text))


def _fragment(java: Any) -> str:
    """The part of the SQL text that an error is about."""
    return shortened(" ".join(str(_context(java, "fragment") or "").split()), FRAGMENT_MAX)


def _offset(java: Any) -> int | None:
    start = _context(java, "startIndex")
    return start if start is not None and start >= 0 else None


def _context(java: Any, name: str) -> Any:
    """A property of the place in the SQL text that an error is about, None where there is none."""
    try:
        return next((getattr(context, name)() for context in java.getQueryContext()), None)
    except SPARK_ERRORS:  # a column made in Python has no text
        return None


def _line(text: str) -> str:
    return text.split(" SQLSTATE")[0].strip().splitlines()[0].strip() if text.strip() else ""
