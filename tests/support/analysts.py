"""Analysts that know what a statement reads without reading it."""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from tidegate.engine.core.values import Reading
from tidegate.rules.errors import InputError, Place, Problem
from tidegate.rules.model import Rule, SignalAction, Sql, Webhook


class ListedAnalyst:
    """Every text is a list of the columns that it reads: for tests of what is asked of it."""

    def action(
        self,
        rule: Rule,
        action: Sql,
        event: pa.Schema,
        parameters: Sequence[str],
        *,
        resolve: bool = True,
    ) -> Reading:
        return Reading(frozenset(action.text.split()), target="alerts")

    def condition(
        self, rule: Rule, event: pa.Schema, per_firing: Sequence[str], *, resolve: bool = True
    ) -> Reading:
        assert rule.condition is not None
        return Reading(frozenset(rule.condition.text.split()))

    def fields(
        self,
        rule: Rule,
        action: SignalAction | Webhook,
        event: pa.Schema,
        per_firing: Sequence[str],
        types: Mapping[str, str],
    ) -> Reading:
        return Reading(frozenset(action.fields.values()))


class EveryIdAnalyst:
    """Each statement reads `id`, of commits `version`, and writes `out`; that of the rule `unfit`
    fits the first schema only."""

    def __init__(self, unfit: str = "") -> None:
        self.unfit = unfit

    def action(
        self,
        rule: Rule,
        action: Sql,
        event: pa.Schema,
        parameters: Sequence[str],
        *,
        resolve: bool = True,
    ) -> Reading:
        if not resolve:
            return Reading(frozenset(event.names), "out")
        if rule.name == self.unfit and "more" in event.names:
            raise InputError([Problem("sql-analysis", "too many columns", action.place)])
        return Reading(frozenset({"id" if "id" in event.names else "version"}), "out")

    def condition(self, *given: object, **more: object) -> Reading:
        return Reading(frozenset({"id"}))

    def sample(self, text: str, place: Place) -> tuple[Reading, pa.DataType]:
        return Reading(frozenset(), tables=frozenset({"t"})), pa.int64()

    def fields(self, *given: object) -> Reading:
        raise AssertionError
