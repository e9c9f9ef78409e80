"""Faults at each call of store, feed, sink and conditions: the end is the same."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, product, zip_longest
from pathlib import Path

import pytest

from tests.simulate.scenario import (
    BESIDE_PORTS,
    FAULTS,
    NOT_COUNTED,
    Calls,
    Fault,
    Stores,
    assert_complete,
)
from tidegate.engine.core import ledger, ports

PARTS = 4
PORTS = {
    **dict.fromkeys(("Feed", "Sink", "Conditions"), ports),
    **{name.title(): ledger for name in vars(ledger.Ledger) if not name.startswith("_")},
}


def some(made: Sequence[str]) -> Iterator[list[Fault]]:
    """A fault of each method, in lives of four of different kinds: one in each quarter of a life,
    where what the one before has left is long at work."""
    bounds = [part * len(made) // PARTS for part in range(PARTS + 1)]
    called = {part: {*made[slice(*part)]} for part in pairwise(bounds)}
    fails: dict[tuple[int, int], list[str]] = {part: [] for part in called}
    for name in sorted({*made}, key=lambda name: (sum(name in c for c in called.values()), name)):
        min((fails[part] for part in called if name in called[part]), key=len).append(name)
    for life, names in enumerate(zip_longest(*fails.values())):
        yield [
            Fault(name, FAULTS[(life + part) % len(FAULTS)], bounds[part])
            for part, name in enumerate(names)
            if name is not None
        ]


def each(made: Sequence[str]) -> Iterator[list[Fault]]:
    """Every fault at every call, each in a life of its own."""
    for (number, name), kind in product(enumerate(made), FAULTS):
        yield [Fault(name, kind, number)]


def run_all(
    folder: Path, choose: Callable[[Sequence[str]], Iterable[list[Fault]]]
) -> Counter[tuple[str, str]]:
    """How often which method failed how; whatever then ends otherwise fails with its faults."""
    stores = Stores(folder)
    undisturbed = Calls()
    right = stores.scenario(undisturbed).live()
    assert_complete(right)
    assert stores.scenario(Calls()).live() == right
    tried: Counter[tuple[str, str]] = Counter()
    wrong: dict[tuple[Fault, ...], object] = {}
    for faults in choose(undisturbed.made):
        calls = Calls([*faults])
        try:
            found = stores.scenario(calls).live()
            assert calls.failed == faults, f"only {calls.failed} came"
            if differs := {k: (found[k], right[k]) for k in right if found[k] != right[k]}:
                wrong[tuple(faults)] = differs
        except Exception as error:
            wrong[tuple(faults)] = f"{type(error).__name__}: {error}"
        tried.update((fault.method, fault.kind) for fault in faults)
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


def test_g16b_a_fault_at_each_method_changes_nothing_of_the_end(tmp_path: Path) -> None:
    tried = run_all(tmp_path, some)
    assert reachable() <= {name for name, _ in tried}
    assert {fault for _, fault in tried} == set(FAULTS)
    assert tried.total() >= len(reachable())


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_g16b_every_fault_at_every_call_changes_nothing_of_the_end(tmp_path: Path) -> None:
    tried = run_all(tmp_path, each)
    assert {(name, fault) for name in reachable() for fault in FAULTS} <= tried.keys()
    assert tried.total() >= 6 * 100
