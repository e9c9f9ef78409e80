"""One fault at each call of store, feed, sink and conditions in turn: the end is the same."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle, product
from pathlib import Path

import pytest

from tests.simulate.scenario import (
    BESIDE_PORTS,
    FAULTS,
    NOT_COUNTED,
    Calls,
    Stores,
    assert_complete,
)
from tidegate.engine.core import ledger, ports

PORTS = {
    **dict.fromkeys(("Feed", "Sink", "Conditions"), ports),
    **{name.title(): ledger for name in vars(ledger.Ledger) if not name.startswith("_")},
}


def some(made: Sequence[str]) -> Iterator[tuple[int, str]]:
    """One in 400 calls of each method from the first on, each with the next fault in turn."""
    seen, faults = Counter[str](), cycle(FAULTS)
    for number, name in enumerate(made):
        if seen[name] % 400 == 0:
            yield number, next(faults)
        seen[name] += 1


def run_all(
    folder: Path, choose: Callable[[Sequence[str]], Iterable[tuple[int, str]]]
) -> Counter[tuple[str, str]]:
    """How often which method failed how; whatever then ends otherwise fails with its number."""
    stores = Stores(folder)
    undisturbed = Calls()
    right = stores.scenario(undisturbed).live()
    assert_complete(right)
    assert stores.scenario(Calls()).live() == right
    tried: Counter[tuple[str, str]] = Counter()
    wrong = {}
    for number, fault in choose(undisturbed.made):
        name = undisturbed.made[number]
        calls = Calls(number, fault)
        try:
            found = stores.scenario(calls).live()
            if differs := {k: (found[k], right[k]) for k in right if found[k] != right[k]}:
                wrong[number, name, fault] = differs
        except Exception as error:
            wrong[number, name, fault] = f"{type(error).__name__}: {error}"
        assert calls.made[number] == name
        tried[name, fault] += calls.failed
    assert wrong == {}
    print(f"{tried.total()} faults, {len(undisturbed.made)} calls")
    return tried


def reachable() -> set[str]:
    """Every method of the ports that the scenario has to call, and what stands beside them."""
    found = {
        f"{port}.{name}"
        for port, module in PORTS.items()
        for name, value in vars(getattr(module, port)).items()
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    }
    assert found >= set(NOT_COUNTED)
    return (found - set(NOT_COUNTED)) | BESIDE_PORTS


def test_g16b_one_fault_at_any_call_changes_nothing_of_the_end(tmp_path: Path) -> None:
    tried = run_all(tmp_path, some)
    assert reachable() <= {name for name, _ in tried}
    assert {fault for _, fault in tried} == set(FAULTS)
    assert tried.total() >= len(reachable())


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_g16b_every_fault_at_every_call_changes_nothing_of_the_end(tmp_path: Path) -> None:
    tried = run_all(tmp_path, lambda made: product(range(len(made)), FAULTS))
    assert {(name, fault) for name in reachable() for fault in FAULTS} <= tried.keys()
    assert tried.total() >= 6 * 100
