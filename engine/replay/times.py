"""Instants of a trace: seconds as JSON numbers, or ISO 8601 text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.parameters import INSTANT
from tidegate.engine.core.text.times import micros_of_seconds, micros_text, of_text
from tidegate.engine.core.values import Int64

_SECOND = 1_000_000
_EXACT = 2.0**51
_BEGIN, _END = -62_135_596_800 * _SECOND, 253_402_300_800 * _SECOND - 1  # of what dates can hold


def of_numbers(values: Sequence[float], lines: Sequence[bytes]) -> Int64:
    """Seconds -> microseconds, rounded half-even. `lines` are the JSON objects {"time": ..} that
    the numbers stand in: where the nearest double cannot tell, the digits decide."""
    scaled = np.array(values, dtype=np.float64) * 1e6
    near = np.rint(scaled)
    plain = (np.abs(scaled) < _EXACT) & (np.abs(scaled - near) < 0.25)
    found: Int64 = np.where(plain, near, 0.0).astype(np.int64)
    for i in np.flatnonzero(~plain).tolist():
        found[i] = micros_of_seconds(json.loads(lines[i], parse_float=Decimal)["time"])
    return found


def of_texts(values: Sequence[str], zone: str = "UTC") -> Int64:
    """ISO 8601; without offset the local time of a zone (S11: a repeated one taken first, a skipped
    one moved forward). Raises `ValueError`."""
    texts = pa.array(values, pa.string())
    for with_offset in (True, False):
        try:
            found = texts.cast(pa.timestamp("us", "UTC")) if with_offset else _local(texts, zone)
            return np.array(found.cast(pa.int64()).to_numpy())
        except pa.ArrowInvalid:  # others among them, or a skipped one
            continue
    return np.array([of_text(value, zone) for value in values], dtype=np.int64)


def _local(texts: pa.Array, zone: str) -> pa.Array:
    found = texts.cast(pa.timestamp("us"))
    if zone == "UTC":
        return found
    return pc.assume_timezone(found, zone, ambiguous="earliest", nonexistent="raise")


def in_zone(row: Mapping[str, Any], columns: Iterable[pa.Field], zone: str) -> dict[str, Any]:
    """A row as JSON has it, its timestamps without offset as instants: local times of a zone, as
    `of_texts` reads them. A text that is none stays as it is."""
    found = dict(row)
    for column in columns if zone != "UTC" else ():  # what else has no offset is UTC
        value = found.get(column.name)
        if column.type == INSTANT and isinstance(value, str):
            with suppress(ValueError, OverflowError):
                at = datetime.fromisoformat(value)
                found[column.name] = at if at.tzinfo else at.replace(tzinfo=ZoneInfo(zone), fold=0)
        elif pa.types.is_struct(column.type) and isinstance(value, dict):
            found[column.name] = in_zone(value, column.type, zone)
    return found


def printed(micros: Int64, *, iso: bool) -> pa.Array:
    """As JSON texts: the shortest decimal number of seconds (3, not 3.0), or ISO 8601 with `Z`."""
    if iso and len(micros) and (micros.min() < _BEGIN or micros.max() > _END):
        return pa.array([f'"{micros_text(at)}Z"' for at in micros.tolist()])
    if iso:
        texts = pa.array(micros).cast(pa.timestamp("us")).cast(pa.string())
        short = pc.utf8_slice_codeunits(texts, 0, -7)
        texts = pc.if_else(pc.ends_with(texts, ".000000"), short, texts)
        texts = pc.replace_substring(texts, " ", "T")
        return pc.binary_join_element_wise('"', texts, 'Z"', "")
    whole, rest = np.divmod(np.abs(micros), _SECOND)
    fraction = pc.utf8_lpad(pa.array(rest).cast(pa.string()), 6, "0")
    texts = pc.binary_join_element_wise(pa.array(whole).cast(pa.string()), fraction, ".")
    texts = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
    return pc.binary_join_element_wise(pc.if_else(pa.array(micros < 0), "-", ""), texts, "")


def printed_one(at: int, *, iso: bool) -> str:
    """As `printed`, one instant."""
    if iso:
        return f'"{micros_text(at)}Z"'
    whole, rest = divmod(abs(at), _SECOND)
    sign = "-" if at < 0 else ""
    return f"{sign}{whole}.{rest:06}".rstrip("0").rstrip(".")
