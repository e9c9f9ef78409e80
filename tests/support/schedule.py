"""Which worker takes which file of tests next: the longest first, by seconds that were recorded.

`seconds.txt` has a line for each file that takes a while, `spark` or `plain`. To start Spark and
to warm it up takes half a minute: one worker takes its files, and the others help at the end, if
that pays. `make record` writes the file anew.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

RECORDED = Path(__file__).parents[1] / "seconds.txt"
SECONDS_MIN = 0.5  # a file that takes less is not recorded
SPARK_SECONDS = 40.0  # what a worker's first test with Spark takes more than others


class LongestFirst(LoadFileScheduling):
    """Files by their recorded seconds; those with Spark on the first worker."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self.seconds, self.spark = recorded(RECORDED.read_text(encoding="utf-8"))
        self.started: set[WorkerController] = set()  # those that have a Spark

    def _reschedule(self, node: WorkerController) -> None:
        if self.workqueue and not node.shutting_down and not self._pays(node):
            node.shutdown()
        super()._reschedule(node)

    def _pays(self, node: WorkerController) -> bool:
        """Whether a worker without Spark finds enough to do: a file without, or much with it."""
        if node in self.started or node is self.nodes[0]:
            return True
        if not self.spark.issuperset(self.workqueue):
            return True
        return sum(self.seconds[file] for file in self.workqueue) > SPARK_SECONDS

    def _assign_work_unit(self, node: WorkerController) -> None:
        with_spark = node is self.nodes[0]

        def rank(file: str) -> tuple[bool, float]:
            return (file in self.spark) == with_spark, self.seconds[file]

        file = max(self.workqueue, key=rank)
        if file in self.spark:
            self.started.add(node)
        self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)


def recorded(text: str) -> tuple[dict[str, float], set[str]]:
    """The seconds of each file, and which files use Spark. Others take no time."""
    lines = [line.split() for line in text.splitlines()]
    seconds = defaultdict(float, {file: float(time) for _, time, file in lines})
    return seconds, {file for kind, _, file in lines if kind == "spark"}


class Recorder:
    """Sums the seconds of each file, and writes them when the run ends."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.spark: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.split("::", 1)[0]
        self.seconds[file] = self.seconds.get(file, 0.0) + report.duration
        if "spark" in report.keywords:
            self.spark.add(file)

    def pytest_sessionfinish(self) -> None:
        RECORDED.write_text(self.text(), encoding="utf-8")

    def text(self) -> str:
        lines = [
            f"{'spark' if file in self.spark else 'plain'} {seconds:.1f} {file}\n"
            for file, seconds in sorted(self.seconds.items())
            if seconds >= SECONDS_MIN
        ]
        return "".join(lines)
