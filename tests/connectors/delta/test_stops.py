"""Tables that cannot go on (G10, G12): each stop names table, version, reason and remedy."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.capture import Capturing, needs, total
from tests.support.lake import Lake
from tests.support.rulebooks import event, rulebook, table
from tidegate.connectors.delta.feed import DeltaFeed
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Start


@pytest.fixture(scope="module")
def seed(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Table `t`: created at version 0, one row inserted at each of the versions 1 to 3."""
    lake = Lake(spark, tmp_path_factory.mktemp("seed"))
    lake.create("t", "id INT, n INT")
    for version in (1, 2, 3):
        lake.sql(f"INSERT INTO {{t}} VALUES ({version}, {version})")
    return lake


@pytest.fixture
def copy(seed: Lake, tmp_path: Path) -> Lake:
    """A copy of its own of the seed's table."""
    shutil.copytree(seed.path("t"), tmp_path / "t")
    return Lake(seed.spark, tmp_path)


def loop(lake: Lake, **options: Any) -> Capturing:
    book = rulebook(
        tables=[table("t", lake.path("t"), **options)], events=[event("i", "t", "insert")]
    )
    return Capturing(book, needs(book, "id"), DeltaFeed(lake.spark))


def remove(lake: Lake, *versions: int) -> None:
    for version in versions:
        lake.log("t", version).unlink()
        lake.log("t", version).with_suffix(".crc").unlink(missing_ok=True)


def checkpoint(lake: Lake) -> None:
    java = lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog  # type: ignore[union-attr]
    java.forTableWithSnapshot(lake.spark._jsparkSession, lake.path("t"))._1().checkpoint()


def restarted(before: Capturing) -> Capturing:
    """The engine after a restart: the same state, nothing known of the tables."""
    return Capturing(
        before.book,
        needs(before.book, "id"),
        DeltaFeed(before.feed._session),
        before.state,  # type: ignore[attr-defined]
    )


def stop(engine: Capturing) -> EngineError:
    with pytest.raises(EngineError) as stopped:
        engine.drain()
    assert "table `t`" in stopped.value.message
    assert stopped.value.hint
    return stopped.value


def at_version(lake: Lake, version: int, **options: Any) -> Capturing:
    """A loop whose cursor stands at a version, as after a restart."""
    engine = loop(lake, **options)
    state = engine.state
    engine.drain()
    cursor = replace(engine.state.cursors["t"], version=version, digest=None)
    engine.state = replace(engine.state, cursors={"t": cursor}, watermark=1)
    assert state is not engine.state
    return restarted(engine)


def test_a_damaged_commit_file_stops_by_version(copy: Lake) -> None:
    engine = at_version(copy, 1)
    copy.log("t", 2).write_text('{"commitInfo":{"operat')
    copy.log("t", 2).with_name(f".{2:020d}.json.crc").unlink(missing_ok=True)
    assert (stopped := stop(engine)).code == "log-damaged"
    assert "version 2" in stopped.message


def test_everything_is_read_from_the_start(copy: Lake) -> None:
    assert total(loop(copy).drain(), "i") == Counter([(1,), (2,), (3,)])


@pytest.mark.parametrize(
    ("cursor", "missing", "code", "named"),
    [
        (1, [2], "log-gap", "version 3, but not version 2"),
        (0, [2], "log-gap", "version 3, but not version 2"),
        (3, [3], "table-truncated", "ends at version 2, but version 3"),
    ],
)
def test_g10_missing_log_files_stop(
    copy: Lake, cursor: int, missing: list[int], code: str, named: str
) -> None:
    engine = at_version(copy, cursor)
    remove(copy, *missing)
    stopped = stop(engine)
    assert stopped.code == code
    assert named in stopped.message
    assert "tidegate reset t --from" in stopped.hint
    assert engine.state.cursors["t"].version == cursor


@pytest.mark.long
def test_g10_a_log_cleaned_up_behind_the_cursor_stops(copy: Lake) -> None:
    engine = at_version(copy, 0)
    copy.sql("INSERT INTO {t} VALUES (4, 4)")
    checkpoint(copy)
    remove(copy, 0, 1, 2)
    stopped = stop(engine)
    assert stopped.code == "version-gone"
    assert "version 1" in stopped.message
    # `start: earliest` begins where the log can still be rebuilt from.
    assert total(loop(copy).drain(), "i") == Counter([(4,)])


def test_g10_feed_turned_off_stops_after_what_came_before(copy: Lake) -> None:
    engine = loop(copy, start="now")
    engine.drain()
    copy.sql("INSERT INTO {t} VALUES (4, 4)")
    copy.sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.enableChangeDataFeed = false)")
    copy.sql("INSERT INTO {t} VALUES (5, 5)")
    seen = restarted(engine).feed.head(engine.book.tables["t"], engine.state.cursors["t"])
    # All that is visible, or `--once` would end before the stop and say that all is done.
    assert ([c.version for c in seen.commits], seen.head) == ([4], 6)
    stopped = stop(engine)
    assert (stopped.code, "version 5" in stopped.message) == ("feed-off", True)
    assert engine.state.cursors["t"].version == 4
    for start in ("now", "snapshot"):
        assert stop(loop(copy, start=start)).code == "feed-off"


def test_g10_create_or_replace_is_another_table(copy: Lake) -> None:
    engine = loop(copy, start="now")
    engine.drain()
    copy.sql("INSERT INTO {t} VALUES (4, 4)")
    where = f"(id INT, n INT) USING delta LOCATION '{copy.path('t')}'"
    copy.sql("CREATE TABLE replaced USING delta LOCATION '" + copy.path("t") + "'")
    copy.sql("CREATE OR REPLACE TABLE replaced " + where)
    copy.sql("DROP TABLE replaced")
    for run in (engine, restarted(engine)):
        stopped = stop(run)
        assert stopped.code == "table-replaced"
        assert "from version 5 on" in stopped.message
        assert run.state.cursors["t"].version == 4


@pytest.mark.parametrize("again", [pytest.param(False, marks=pytest.mark.long), True])
def test_g10_a_table_created_anew_is_another_table(
    copy: Lake, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when its versions have passed the cursor's, with or without a restart in between."""
    engine = loop(copy, start="now")
    engine.drain()
    shutil.rmtree(copy.path("t"))
    assert stop(restarted(engine)).code == "table-missing"
    copy.create("t", "id INT, n INT")
    with monkeypatch.context() as later:  # nothing is new; the log is looked through at times
        later.setattr("tidegate.connectors.delta.feed._LOOK_SECONDS", -1)
        assert stop(engine).code == "table-replaced"
    for version in range(4 if again else 0):
        copy.append("t", (version, 0))
    for run in (engine, restarted(engine)):
        assert stop(run).code == "table-replaced"


def written_since(lake: Lake, *ids: int) -> None:
    for number in ids:
        lake.append("t", (number, 0))


def put_back(lake: Lake, backup: Path) -> None:
    shutil.rmtree(lake.path("t"))
    shutil.copytree(backup, lake.path("t"))


@pytest.mark.long
def test_g10_a_log_written_anew_after_a_copy_was_put_back_stops(copy: Lake, tmp_path: Path) -> None:
    """The id is the same, and the head has passed the cursor; with or without a restart between."""
    engine = loop(copy, start="now")
    engine.drain()
    backup = Path(shutil.copytree(copy.path("t"), tmp_path / "backup"))
    written_since(copy, 4, 5)
    assert total(engine.drain(), "i") == Counter([(4,), (5,)])
    put_back(copy, backup)
    written_since(copy, 14, 15, 16)
    for run in (engine, restarted(engine)):
        stopped = stop(run)
        assert stopped.code == "log-rewritten"
        assert "version 5 was read as a commit of 20" in stopped.message
        assert "is another one (WRITE of 20" in stopped.message
        assert "`tidegate reset t --from VERSION`" in stopped.hint
        assert "`tidegate reset t --from now`" in stopped.hint
        assert run.state.cursors["t"].version == 5


@pytest.mark.long
def test_g10_a_copy_put_back_as_it_was_goes_on(copy: Lake, tmp_path: Path) -> None:
    """What its files hold counts, not when they were written."""
    engine = loop(copy, start="now")
    engine.drain()
    backup = Path(shutil.copytree(copy.path("t"), tmp_path / "backup"))
    for file in (backup / "_delta_log").iterdir():
        os.utime(file, (1_000_000_000, 1_000_000_000))
    put_back(copy, backup)
    written_since(copy, 4)
    later = restarted(engine)
    for run in (engine, later):
        assert total(run.drain(), "i") == Counter([(4,)])


@pytest.mark.long
def test_g10_a_cleaned_up_log_is_not_taken_for_one_written_anew(copy: Lake) -> None:
    engine = loop(copy, start="now")
    engine.drain()
    written_since(copy, 4)
    checkpoint(copy)
    remove(copy, 0, 1, 2, 3)
    later = restarted(engine)
    for run in (engine, later):
        assert total(run.drain(), "i") == Counter([(4,)])


@pytest.mark.long
def test_g10_restore_stops_unless_the_rulebook_says_what_it_means(copy: Lake) -> None:
    loops = {mode: loop(copy, start="now", on_restore=mode) for mode in ("stop", "changes", "skip")}
    for engine in loops.values():
        engine.drain()
    copy.sql("DELETE FROM {t} WHERE id = 2")
    copy.sql("RESTORE TABLE {t} TO VERSION AS OF 3")
    copy.sql("INSERT INTO {t} VALUES (9, 9)")
    stopped = stop(loops["stop"])
    assert (stopped.code, "version 5" in stopped.message) == ("table-restored", True)
    assert "on_restore: changes" in stopped.hint
    assert (9,) in (changes := total(loops["changes"].drain(), "i"))
    assert (2,) in changes
    assert total(loops["skip"].drain(), "i") == Counter([(9,)])


def test_g10_vacuumed_files_stop(copy: Lake) -> None:
    engine = loop(copy)
    for file in Path(copy.path("t")).glob("*.parquet"):
        file.unlink()
    stopped = stop(engine)
    assert stopped.code == "version-gone"
    assert "VACUUM" in stopped.message
    assert "t" not in engine.state.cursors


def test_g10_a_missing_table_and_a_start_past_the_head(copy: Lake, tmp_path: Path) -> None:
    assert stop(loop(Lake(copy.spark, tmp_path / "nowhere"))).code == "table-missing"
    stopped = stop(loop(copy, start=Start("version", 9)))
    assert stopped.code == "start-version"
    assert "from 0 to 4" in stopped.hint


@pytest.mark.long
def test_g12_columns_come_and_unused_ones_go(lake: Lake) -> None:
    """Added columns are read from their commit on; a used column that is renamed stops."""
    path = lake.create("t", "id INT, n INT, unused INT", columnMapping__mode="name")
    book = rulebook(tables=[table("t", path)], events=[event("i", "t", "insert")])
    engine = Capturing(book, needs(book, "id", "n"), DeltaFeed(lake.spark))
    lake.sql("INSERT INTO {t} VALUES (1, 10, 0)")
    lake.sql("ALTER TABLE {t} ADD COLUMNS (extra STRING)")
    lake.sql("INSERT INTO {t} VALUES (2, 20, 0, 'x')")
    assert total(engine.drain(), "i") == Counter([(1, 10), (2, 20)])
    assert [(r.first, r.last) for plan in engine.plans for r in plan.ranges] == [(0, 1), (2, 3)]
    assert "extra" in engine.state.cursors["t"].schema

    lake.sql("ALTER TABLE {t} DROP COLUMN unused")
    lake.sql("INSERT INTO {t} VALUES (3, 30, 'x')")
    assert total(engine.drain(), "i") == Counter([(3, 30)])

    lake.sql("INSERT INTO {t} VALUES (4, 40, 'x')")
    lake.sql("ALTER TABLE {t} RENAME COLUMN n TO m")
    lake.sql("INSERT INTO {t} VALUES (5, 50, 'x')")
    stopped = stop(engine)
    assert stopped.code == "schema-incompatible"
    assert "version 7 drops or renames column `n`" in stopped.message
