"""The store in memory with what tests ask of it beside: leases, and a failpoint behind each
transaction, as behind a database's commit."""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from tidegate.engine.core.failpoints import COMMITTED, failpoint
from tidegate.engine.core.values import Signal
from tidegate.engine.replay.memory import store as memory

Given, Found = ParamSpec("Given"), TypeVar("Found")


def transaction(method: Callable[Given, Found]) -> Callable[Given, Found]:
    """A method that writes."""

    @wraps(method)
    def committed(*given: Given.args, **more: Given.kwargs) -> Found:
        found = method(*given, **more)
        failpoint(COMMITTED)
        return found

    return committed


class MemoryStore(memory.MemoryStore):
    def of(self, rulebook: str, epoch: int = 0) -> MemoryLedger:
        return MemoryLedger(self, epoch)


class MemoryLedger(memory.MemoryLedger):
    def __init__(self, store: MemoryStore, epoch: int) -> None:
        super().__init__(store, epoch)
        self.lease = self

    @transaction
    def acquire(self, holder: str, seconds: int) -> int:
        self.store.epoch += 1
        return self.store.epoch

    @transaction
    def raise_signal(self, signal: Signal) -> bool:
        return self.store.keep(signal)

    commit = transaction(memory.MemoryLedger.commit)
    answer = transaction(memory.MemoryLedger.answer)
    settle = transaction(memory.MemoryLedger.settle)
    tell = transaction(memory.MemoryLedger.tell)
    do_otherwise = transaction(memory.MemoryLedger.do_otherwise)
    acted = transaction(memory.MemoryLedger.acted)
    begin = transaction(memory.MemoryLedger.begin)
    strike = transaction(memory.MemoryLedger.strike)
    forgive = transaction(memory.MemoryLedger.forgive)
