"""An error that nobody expects at each failpoint, and a store that is older than its effects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tidegate
from tests.simulate.judge import BOOK, AllHold, Analyst, judge
from tests.simulate.scenario import Calls, SinkMarkers, Stores, assert_complete
from tests.support.bench import Bench
from tidegate.engine.adopt import adopt, check_store
from tidegate.engine.failpoints import arm
from tidegate.rules.errors import EngineError

ENGINE = Path(tidegate.__file__).parent / "engine"
POINTS = sorted(
    {
        name
        for file in ENGINE.rglob("*.py")
        for name in re.findall(r'failpoint\("([\w.]+)"\)', file.read_text(encoding="utf-8"))
    }
)


@pytest.fixture(autouse=True)
def _unarmed() -> Iterator[None]:
    yield
    arm("")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return Stores(tmp_path_factory.mktemp("points"))


@pytest.fixture(scope="module")
def right(stores: Stores) -> dict[str, Any]:
    found = stores.scenario(Calls()).live()
    assert_complete(found)
    return found


@pytest.mark.parametrize("nth", [1, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("point", POINTS)
def test_g16b_an_error_at_a_point_loses_nothing_and_the_same_process_goes_on(
    stores: Stores, right: dict[str, Any], point: str, nth: int
) -> None:
    scenario = stores.scenario(Calls())
    arm(f"{point}=raise:{nth}")
    assert scenario.live() == right
    assert scenario.raised == (1 if nth == 1 or point != "pass.sealed" else 0)  # it has two passes


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
    epoch = stores.store.acquire("loop", "one", 600)
    adopt(bench.book, stores.store, epoch, SinkMarkers(bench.sink), repeat=True)
    bench.restart()
    bench.drain()
    repeated = Counter({(rule, 2): n for (rule, _), n in effects.items()})
    assert bench.sink.effects == effects + repeated
    assert judge(stores.store, bench.sink, 3)["stuck"] == 0
