"""Three rulebooks in one process with a Java of its own: `poison.yaml`, and two healthy ones.

    python -m tests.crash.poisoned FOLDER

runs them until nothing is left to do.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from tidegate.engine.app import Engines

BOOKS = ("poison.yaml", "first.yaml", "second.yaml")
CONF = {"spark.master": "local[2]", "spark.driver.memory": "1g"}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    logging.basicConfig(format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("tidegate").setLevel(logging.INFO)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    books = [str(folder / book) for book in BOOKS]
    with Engines(books, store=f"sqlite:///{folder}/store.db", spark_conf=CONF) as engines:
        engines.run(until_idle=True)
    print("all are idle")
