"""What rules carry is noted once an hour, by its first bucket."""

from __future__ import annotations

from tests.support import make
from tests.support.make import HOUR, SECOND
from tidegate.engine.core.values import Load
from tidegate.engine.store import SqlStore

ROUND = make.BEGIN - make.BEGIN % HOUR


def test_the_first_bucket_of_an_hour_notes_what_is_carried(store: SqlStore) -> None:
    epoch = store.of("bank").lease.acquire("one", 60)
    for bucket, (minute, instances) in enumerate(
        [(5, 40), (10, 90), (65, 70), (66, 71), (185, 20)], 1
    ):
        at = ROUND + minute * 60 * SECOND
        plan = make.plan(bucket, watermark_before=at - SECOND, watermark=at, now=at)
        loads = {"pay": Load(instances, 2), "idle": Load(0, 0)}
        make.commit(store, epoch, plan, loads=loads)
    sizes = store.of("bank").sizes
    expected = {ROUND: 40, ROUND + HOUR: 70, ROUND + 3 * HOUR: 20}
    now = ROUND + 3 * HOUR + 5
    assert sizes.totals(now) == expected
    assert sizes.of_rules(["pay", "idle"], now) == {"pay": expected}
    assert sizes.of_rules([], now) == {}
    assert sizes.totals(ROUND + 24 * HOUR) == {ROUND + HOUR: 70, ROUND + 3 * HOUR: 20}
    make.purge(store, epoch, history=ROUND + 2 * HOUR)
    assert sizes.totals(now) == {ROUND + 3 * HOUR: 20}
