"""The errors of a table that stop its rulebook (G7, G10): each with its reason and a remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tidegate.connectors.delta.commit import LoggedCommit
from tidegate.connectors.delta.faults import SPARK_ERRORS, fault
from tidegate.connectors.delta.jobs import OverrunError
from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.printable import shortened
from tidegate.rules.errors import EngineError


def reset_hint(table: str, version: int | None = None) -> str:
    """The command that goes on: from the head, or from a version."""
    now = f"`tidegate reset {table} --from now` (rules never see the commits that this skips)"
    if version is None:
        return f"go on from its head with {now}"
    return (
        f"go on with {now}, or with `tidegate reset {table} --from {version}` (commits before that "
        "version are skipped; commits that are read again are new occurrences)"
    )


def _stop(code: str, table: str, said: str, hint: str) -> EngineError:
    return EngineError(code, f"table `{table}`: {said}", hint)


def table_missing(table: str, location: str) -> EngineError:
    hint = "create it, or correct its `path:` or `table:` in the rulebook"
    return _stop("table-missing", table, f"there is no Delta table at {location}", hint)


def table_replaced(table: str, version: int, found: str, known: str) -> EngineError:
    said = f"it was replaced or created anew: from version {version} on its metadata id is {found},"
    said += f" the cursor's is {known}"
    return _stop("table-replaced", table, said, reset_hint(table, version))


def table_truncated(table: str, head: int, version: int) -> EngineError:
    said = f"its log ends at version {head}, but version {version} was read before"
    hint = f"put the missing log files back, or {reset_hint(table)}"
    return _stop("table-truncated", table, said, hint)


def log_rewritten(table: str, found: LoggedCommit, instant: int) -> EngineError:
    """`instant`: of the commit that was read under this version before."""
    return _stop(
        "log-rewritten",
        table,
        "its log was written anew, as after a copy of the table was put back: "
        f"version {found.version} was read as a commit of {json_text.instant(instant)}, and is "
        f"another one ({found.operation or 'unknown'} of {json_text.instant(found.instant)})",
        "the first version that differs is not known: "
        f"`tidegate reset {table} --from VERSION` reads that version and all after it (rows that "
        f"were read before come again, as new occurrences), `tidegate reset {table} --from now` "
        "goes on from its head (rows written since the copy was put back are lost)",
    )


def log_gap(table: str, version: int, next_version: int) -> EngineError:
    said = f"the log has version {next_version}, but not version {version}"
    hint = f"put the commit file back, or {reset_hint(table, next_version)}"
    return _stop("log-gap", table, said, hint)


def log_damaged(table: str, version: int, reason: str) -> EngineError:
    said = f"the log file of version {version} is damaged: {reason}"
    hint = "put the commit file back as it was: without it Delta cannot read the table either"
    return _stop("log-damaged", table, said, hint)


def version_gone(table: str, version: int, reason: str) -> EngineError:
    said = f"version {version} cannot be read any more: {reason}"
    hint = "raise delta.logRetentionDuration and delta.deletedFileRetentionDuration above the "
    hint += f"longest downtime, and {reset_hint(table)}"
    return _stop("version-gone", table, said, hint)


def feed_off(table: str, version: int) -> EngineError:
    hint = "turn it on with ALTER TABLE .. SET TBLPROPERTIES (delta.enableChangeDataFeed = true), "
    hint += f"then {reset_hint(table)}"
    return _stop("feed-off", table, f"the change data feed is off at version {version}", hint)


def table_restored(table: str, version: int) -> EngineError:
    hint = "write `on_restore: changes` (every row is deleted and inserted) or `on_restore: skip` "
    hint += f"into the rulebook, or {reset_hint(table, version + 1)}"
    return _stop("table-restored", table, f"version {version} is a RESTORE", hint)


def catalog_managed(table: str) -> EngineError:
    said = "its commits are managed by a catalog, so its log does not show them all"
    hint = "declare a table whose commits are in its own log"
    return _stop("catalog-managed", table, said, hint)


@contextmanager
def reading(table: str, first: int, last: int) -> Iterator[None]:
    """Turns Spark's error about versions [first, last] of a table into an EngineError."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise translated(table, first, last, error) from error


def undecided(source: str, error: BaseException) -> EngineError:
    """Spark's error about predicates over rows in memory."""
    found = fault(error)
    said = f"{source}: [{found.condition}] {found.message}"
    return EngineError("table-unreadable", said, "correct the `where`")


def read_overrun(what: str, where: Iterable[str], error: OverrunError) -> EngineError:
    """A missed deadline. `where`: the predicates of the read."""
    asked = ", ".join(f"`{shortened(text, 100)}`" for text in sorted(where))
    left = "; Java cannot end it: it keeps a core busy" if error.left else ""
    return EngineError(
        "read-overrun",
        f"{what}: {error} (statement_seconds_max){f' with {asked}' if asked else ''}{left}",
        "a regular expression that backtracks, such as (.*a){20}b, can take for ever on one "
        "row: correct the `where`, or raise statement_seconds_max",
    )


def is_gone(error: BaseException) -> bool:
    """Whether an error says that a version cannot be read any more."""
    condition = fault(error).condition
    return condition in ("DELTA_VERSION_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST") or (
        "BEYOND_DELETED_FILE_RETENTION" in condition
    )


def translated(table: str, first: int, last: int, error: BaseException) -> EngineError:
    """Spark's error about versions [first, last] of a table as an EngineError."""
    found, text = fault(error), str(error)
    condition = found.condition
    if "BEYOND_DELETED_FILE_RETENTION" in condition:
        return version_gone(table, first, "it is older than delta.deletedFileRetentionDuration")
    if condition.startswith("FAILED_READ_FILE") or "FILE_NOT_EXIST" in text:
        return version_gone(table, first, "its data files are gone (VACUUM)")
    if condition == "DELTA_MISSING_CHANGE_DATA":
        return feed_off(table, first)
    if "INCOMPATIBLE" in condition and "SCHEMA" in condition:
        return _stop(
            "schema-incompatible",
            table,
            f"a column was dropped, renamed or retyped since version {first}, and its feed cannot "
            "be read across that",
            "if a RESTORE took the column away, add it again (ALTER TABLE .. ADD COLUMNS): then "
            f"all commits can be read; else {reset_hint(table, last + 1)}",
        )
    if condition in ("DELTA_LOG_FILE_NOT_FOUND", "DELTA_VERSIONS_NOT_CONTIGUOUS"):
        said = f"a log file between versions {first} and {last} is gone ({found.message})"
        return _stop("log-gap", table, said, f"put it back, or {reset_hint(table)}")
    if condition == "ArithmeticException" and "long overflow" in found.details:
        said = f"versions {first} to {last} hold a time so old that its change feed cannot give it "
        said += "(its first year is -290307)"
        hint = f"correct the row, and {reset_hint(table, last + 1)}"
        return _stop("table-unreadable", table, said, hint)
    said = f"versions {first} to {last} cannot be read: [{condition}] {found.message}"
    hint = f"the cursor stays: repair the table and start again, or {reset_hint(table)}"
    return _stop("table-unreadable", table, said, hint)
