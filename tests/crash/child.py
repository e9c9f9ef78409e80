"""An engine in a process of its own, to be ended at a failpoint. It uses the Spark of the tests."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tests.crash.lake import Lake
from tests.support.gateway import running_session
from tidegate import Engine
from tidegate.engine.core.failpoints import arm


def run(lake: Lake, failpoints: str, environment: Mapping[str, str]) -> None:
    os.environ.update(environment)
    arm(failpoints)
    with Engine(lake.rulebook, spark=running_session(), store=lake.store) as engine:
        engine.run(until_idle=True)
