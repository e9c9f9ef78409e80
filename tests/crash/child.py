"""An engine in a process of its own, to be ended at a failpoint: `python -m tests.crash.child DIR`.

It uses the Spark that the tests run already.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.crash.lake import Lake
from tests.support.gateway import running_session
from tidegate import Engine

if __name__ == "__main__":
    lake = Lake(Path(sys.argv[1]))
    with Engine(lake.rulebook, spark=running_session(), store=lake.store) as engine:
        engine.run(until_idle=True)
