"""A test file as it is written: the rulebook, and cases of steps and expectations.

Values of columns stay as the YAML has them. A world types them by the schemas of its tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidegate.rules.errors import Place, Problem
from tidegate.rules.model import Rulebook


@dataclass(frozen=True, slots=True)
class Written:
    """A value of the YAML, and where it stands. `value`: None, bool, int, float, str, or a list or
    mapping of such."""

    value: Any
    place: Place


Row = Mapping[str, Written]
"""The columns of a row, or the fields of a signal, as far as they are written."""

_NO_COLUMNS = pa.schema([])


@dataclass(frozen=True, slots=True)
class Update:
    """`{where: account_id = 7, set: {balance: 0}}`. `where`: a Spark SQL predicate."""

    where: str
    place: Place
    set: Row


@dataclass(frozen=True, slots=True)
class Delete:
    """The rows that a Spark SQL predicate is true of."""

    where: str
    place: Place


@dataclass(frozen=True, slots=True)
class TableChange:
    """What one commit does to one table: to the rows that stand there before it. Inserted rows are
    neither updated nor deleted by it; a row that is updated is not deleted. `added`: new columns;
    such a commit does nothing else."""

    place: Place
    inserts: tuple[Row, ...] = ()
    updates: tuple[Update, ...] = ()
    deletes: tuple[Delete, ...] = ()
    added: pa.Schema = _NO_COLUMNS


@dataclass(frozen=True, slots=True)
class RaisedSignal:
    """A signal that a step raises."""

    event: str
    fields: Row
    place: Place


@dataclass(frozen=True, slots=True)
class Fail:
    """The next `times` attempts of a rule's actions fail."""

    rule: str
    times: int
    place: Place


@dataclass(frozen=True, slots=True)
class ExpectedRows:
    """Rows that are wanted, each with the fields that are to match. `exact`: no others (a list of
    firings, signals, webhooks, or emissions is exact). `asked`: `?` is written in place of rows;
    `--accept` fills it in."""

    rows: tuple[Row, ...]
    place: Place
    exact: bool = True
    asked: bool = False


@dataclass(frozen=True, slots=True)
class ExpectedCount:
    """A number that is wanted; None where `?` is written."""

    count: int | None
    place: Place


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a case expects after a step, or at its end. What is not listed is not checked.

    `firings`: by rule. `only`: no rule fired but those listed. `tables`: by table, its rows.
    `signals`: by event type, those that actions raised. `webhooks`: by rule, the fields that were
    sent. `emissions`: by event type of a script. `rejected`, `dead`: how many rows and entries.
    `asked`: the parts in whose place `?` is written, "" for the whole.
    """

    place: Place
    firings: Mapping[str, ExpectedRows] = field(default_factory=dict)
    only: bool = False
    tables: Mapping[str, ExpectedRows] = field(default_factory=dict)
    signals: Mapping[str, ExpectedRows] = field(default_factory=dict)
    webhooks: Mapping[str, ExpectedRows] = field(default_factory=dict)
    emissions: Mapping[str, ExpectedRows] = field(default_factory=dict)
    rejected: ExpectedCount | None = None
    dead: ExpectedCount | None = None
    asked: Mapping[str, Place] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `instant`: microseconds since the epoch, a whole millisecond, resolved from `at`,
    `after`, or `until`. A step without a time stands at the instant of the one before.

    Time goes on to the instant first: what is due until then happens. Then `tables` are committed,
    one commit each, in the order written, and `signals` raised, all at the instant. Then everything
    that is visible is taken. Then `expect` is compared.
    """

    place: Place
    instant: int
    tables: Mapping[str, TableChange] = field(default_factory=dict)
    signals: tuple[RaisedSignal, ...] = ()
    fail: Fail | None = None
    expect: Expectation | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One test. `tables`: the rows that are there before activation, which are no events.
    Activation is the instant of the first step."""

    name: str
    place: Place
    tables: Mapping[str, tuple[Row, ...]]
    steps: tuple[Step, ...]
    expect: Expectation | None

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """Those midway, and that at the end."""
        found = (*(step.expect for step in self.steps), self.expect)
        return tuple(each for each in found if each is not None)


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A `*.test.yaml`. `schemas`: of all declared tables: those of `schemas:`, else of the table's
    log, else inferred from the values that cases have. A table that only actions write may have no
    columns. `defaults`: by table, of columns that a row leaves out; the others are null. `text`:
    of the file."""

    file: Path
    book: Rulebook
    schemas: Mapping[str, pa.Schema]
    defaults: Mapping[str, Row]
    cases: tuple[Case, ...]
    warnings: tuple[Problem, ...] = ()
    text: str = ""
