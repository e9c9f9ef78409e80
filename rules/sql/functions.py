"""Spark's functions by name, as `SHOW FUNCTIONS` lists them; without Spark."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

LIST = "functions.txt"
_OF_THE_GRAMMAR = {"identifier", "timestampadd", "timestampdiff", "try_cast"}


@cache
def functions() -> dict[str, str]:
    """The group of each: `sum` is of `agg_funcs`."""
    lines = files("tidegate.rules.sql").joinpath(LIST).read_text(encoding="utf-8").splitlines()
    named = (line.split(" ", 1) for line in lines if not line.startswith("# "))
    return dict.fromkeys(_OF_THE_GRAMMAR, "-") | dict(named)


def aggregates(name: str) -> bool:
    """Whether a function is of many rows."""
    return functions().get(name.lower()) == "agg_funcs"
