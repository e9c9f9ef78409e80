"""Every row that actions wrote leads to a firing, and the firing to the row's commit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.crash.conftest import finish
from tests.crash.lake import BOOK, Lake
from tests.crash.traced import untraced
from tidegate.engine.control.firings import list_firings
from tidegate.engine.replay.why.ask import why
from tidegate.engine.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_g16_rows_of_actions_lead_to_firings_and_back(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.build(spark)
    finish(spark, lake)
    lake.move(spark, (0, 1, 130), (1, 2, 60))
    finish(spark, lake)
    lake.move(spark, (2, 1, -30))
    finish(spark, lake)
    assert sum(lake.rows("effects").values()) == 6
    assert untraced(lake) == []
    with open_store(lake.store, create=False) as store:
        (returned,) = [f for f in list_firings(lake.store, BOOK) if f["rule"] == "returned"]
        story = why(store, None, returned["firing_id"][:10])
        (noted,) = story.effects
        assert noted.rule == "noted"
        causes = why(store, None, noted.firing_id).causes
        assert [one.firing_id for one in causes] == [story.firing_id]
        first, second = story.constituents
        assert (first.table, second.table) == ("moves", "moves")
        assert (first.bucket or 0) < (second.bucket or 0)
        with store.database.write() as connection:
            connection.exec_driver_sql(
                "UPDATE outbox SET effect_version = 99 WHERE effect_version = "
                "(SELECT min(effect_version) FROM outbox WHERE target = 'effects')"
            )
    assert untraced(lake)
