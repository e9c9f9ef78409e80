"""Predicates of event types as Spark columns that never end a job (G25)."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, SparkSession

from tidegate.connectors.delta.plans import Plans


def expression(session: SparkSession, text: str) -> Column:
    """`text` as one expression, never pasted, under the session's own settings: what was judged.

    Raises `pyspark.errors.ParseException`.
    """
    plans = Plans(session)
    return plans.column(plans.expression(text))


def tried(session: SparkSession, text: str) -> Column:
    """The predicate as a boolean column: true; false, also where it is null; null where it raises.

    `text` is parsed as one expression, never pasted. Raises `pyspark.errors.ParseException`.
    """
    jvm: Any = session._jvm
    sql = jvm.org.apache.spark.sql
    expressions = sql.catalyst.expressions
    plans = Plans(session)
    predicate = plans.expression(text)
    boolean = sql.types.DataTypes.BooleanType
    truth, falsehood = (expressions.Literal.create(value, boolean) for value in (True, False))
    decided = expressions.TryEval(expressions.If(predicate, truth, falsehood))
    return plans.column(decided)
