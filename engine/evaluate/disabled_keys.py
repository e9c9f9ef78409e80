"""Leaves out the firings for keys for which a rule is disabled (`disabled_for`).

Example: `per: account_id`, `disabled_for: [7]`. Accounts 7 and 8 are detected; 8 fires.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidegate.engine.core.columns.hashing import row_hash
from tidegate.engine.core.text.json_text import key_text
from tidegate.engine.core.types.spark import spark_type
from tidegate.engine.core.values import Firings
from tidegate.rules.errors import InputError, Problem
from tidegate.rules.model import Rule


def silent_keys(rule: Rule, key: pa.Schema) -> pa.Table:
    """The keys for which a rule is disabled, in the types of its key columns. Raises InputError for
    a value of another type."""
    columns = {}
    for field in key:
        texts = [key_text(given[field.name]) for given in rule.disabled_for]
        try:
            columns[field.name] = pa.array(texts, pa.string()).cast(field.type)
        except pa.ArrowException:
            kind = spark_type(field.type)
            message = f"disabled_for: {', '.join(texts)}: not all are of the type {kind}"
            hint = f"write values of the column {field.name}"
            raise InputError([Problem("key-type", message, rule.place, hint)]) from None
    return pa.table(columns)


def without_silent(firings: Firings, silent: pa.Table) -> Firings:
    """The firings for all other keys."""
    if not silent.num_rows:
        return firings
    keys = row_hash(firings.firings.select(silent.column_names))
    known = row_hash(silent)
    left = ~(np.isin(keys[:, 0], known[:, 0]) & np.isin(keys[:, 1], known[:, 1]))
    return firings.some(pa.array(left))
