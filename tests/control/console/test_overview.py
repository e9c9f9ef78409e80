"""What the first page says beside its troubles."""

from __future__ import annotations

from dataclasses import replace
from typing import get_type_hints

import pytest

from tests.control.planted import HOUR, MINUTE, Planted
from tests.support import make
from tests.support.make import SECOND
from tidegate.engine.control.console import overview
from tidegate.engine.core.lifecycle import CATCHING_UP
from tidegate.engine.core.text.times import of_text
from tidegate.engine.core.values import Site


def test_it_says_whether_it_runs_and_what_it_does(planted: Planted) -> None:
    planted.commit()
    planted.say(CATCHING_UP, commits=214, oldest=planted.now - 12 * MINUTE, doing="reading")
    doing = planted.overview()["doing"]
    assert doing["state"] == "catching up"
    assert doing["said"].startswith(
        "catching up: 214 commits, the oldest of 12 min ago; reading (process "
    )
    assert (doing["version"], doing["standby"], doing["stopped"]) == (1, None, None)


def test_fired_is_not_detected_and_an_hour_is_named_by_its_ends(planted: Planted) -> None:
    """Of two rules one fires, and of the other the condition fails; an hour before, both fired."""
    hour = planted.now - planted.now % HOUR
    for bucket, at, condition in ((1, hour - MINUTE, "held"), (2, planted.now, "failed")):
        plan = planted.plan(watermark_before=at - SECOND, watermark=at, now=at)
        some = [make.firings("pay", 3, bucket), make.firings("block", 2, bucket)]
        failed = some[1].firings.set_column(
            some[1].firings.schema.get_field_index("condition"), "condition", [[condition] * 2]
        )
        some[1] = replace(some[1], firings=failed)
        planted.commit(plan, fired=some)
    now = planted.now + SECOND
    this, before, *rest = planted.overview(now)["hours"]
    assert (this["fired"], this["condition_failed"]) == (3, 2)
    assert (before["fired"], before["condition_failed"]) == (5, 0)
    assert of_text(str(this["from"])) == hour == of_text(str(before["to"]))
    assert of_text(str(this["to"])) == now
    assert len(rest) == 22
    assert not any(row["fired"] for row in rest)


@pytest.mark.parametrize(
    ("site", "by", "because"),
    [
        (Site(), "driver", ""),
        (Site(False, "detect: auto, and the driver has room"), "driver", ": detect: auto, and the"),
        (Site(True, "detect: spark"), "executors", ": detect: spark"),
    ],
)
def test_who_detected_the_last_bucket_and_why(
    planted: Planted, site: Site, by: str, because: str
) -> None:
    assert planted.overview()["doing"]["detected_said"] is None
    planted.commit(planted.plan(site=site))
    doing = planted.overview()["doing"]
    assert doing["detected"] == {"by": by, "because": site.why}
    said = f"the last bucket was detected by the {by}{because}"
    assert str(doing["detected_said"]).startswith(said)


def test_losing_ground_and_the_lags_of_the_last_buckets(planted: Planted) -> None:
    for n in range(25):
        at = planted.now - (25 - n) * SECOND
        planted.commit(
            planted.plan(watermark_before=at - (n + 2) * SECOND, watermark=at - n * SECOND, now=at)
        )
    planted.say(CATCHING_UP, commits=3, oldest=planted.now, losing_since=planted.now - MINUTE)
    behind = planted.overview()["behind"]
    assert [row["lag_seconds"] for row in behind["lags"]] == [float(n) for n in range(5, 25)]
    assert of_text(behind["losing_ground_since"] or "") == planted.now - MINUTE
    assert "three buckets in a row" in behind["how"]


def test_what_is_next_needs_no_event_graph(planted: Planted) -> None:
    planted.commit()
    planted.say("idle", next_timer=planted.now + MINUTE)
    found = planted.overview()["next"]
    assert of_text(found["timer"] or "") == planted.now + MINUTE
    assert [(row["clock"], row["rules"]) for row in found["clocks"]] == [("closing", ["report"])]


def test_the_value_has_the_fields_that_it_says(planted: Planted) -> None:
    found = planted.overview()
    hints = get_type_hints(overview.Overview)
    assert found.keys() == hints.keys()
    for name in ("doing", "behind", "next", "size", "rules"):
        assert found[name].keys() == get_type_hints(hints[name]).keys()  # type: ignore[literal-required]
