"""A store that is older than its effects, restored from a copy."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.simulate.judge import BOOK, AllHold, Analyst, judge
from tests.simulate.scenario import SinkMarkers, Stores
from tests.support.bench import Bench
from tidegate.engine.app.adopt import adopt, check_store
from tidegate.rules.errors import EngineError


class Plain(Bench):
    """An engine of the rulebook of every kind of action, which starts as an engine does."""

    def analyst(self) -> Analyst:
        return Analyst()

    def restart(self) -> None:
        self.conditions = AllHold()
        super().restart()
        check_store(self.book, self.store, SinkMarkers(self.sink), {"out"})


def test_g20_a_store_restored_from_a_copy_is_refused_by_name_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    stores = Stores(tmp_path)
    bench = Plain(stores.store, 2, BOOK)
    bench.drain()
    backup = stores.backup()
    bench.feed.commits = 3
    bench.drain()
    known, effects = stores.store.last_entry(), bench.sink.effects.copy()
    stores.restore(backup)
    with pytest.raises(EngineError) as refused:
        bench.restart()
    last = stores.store.last_entry()
    assert last < known
    assert refused.value.code == "store-behind-effects"
    assert f"table `out`: its marker tidegate/{stores.store.id}/loop/" in refused.value.message
    assert f"the highest number in this store is {last}" in refused.value.message
    epoch = stores.store.of("loop").lease.acquire("one", 600)
    adopt(bench.book, stores.store, epoch, SinkMarkers(bench.sink), repeat=True)
    bench.restart()
    bench.drain()
    repeated = Counter({(rule, 2): n for (rule, _), n in effects.items()})
    assert bench.sink.effects == effects + repeated
    assert judge(stores.store, bench.sink, 3)["stuck"] == 0
