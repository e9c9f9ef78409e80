"""Which worker runs which file of tests, and in which order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from xdist.workermanage import WorkerController

from tests.support.schedule import LongestFirst, Recorder, recorded

FILES = {"a.py": 1, "b.py": 9, "c.py": 3, "lake.py": 0, "sink.py": 0}


class Worker:
    """What a scheduler asks of a worker; `ran` is what it was given, by number."""

    def __init__(self) -> None:
        self.gateway = SimpleNamespace(id="gw")
        self.given: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, numbers: list[int]) -> None:
        self.given += numbers

    def shutdown(self) -> None:
        self.shutting_down = True


def lives(lake: float, sink: float) -> list[list[str]]:
    """The files of each of two workers, of which the first one is never done with its own."""
    options = {"tx": ["popen", "popen"]}
    config = SimpleNamespace(getvalue=options.get, option=SimpleNamespace(loadscopereorder=True))
    schedule = LongestFirst(cast(pytest.Config, config))
    schedule.seconds |= {**FILES, "lake.py": lake, "sink.py": sink}
    schedule.spark |= {"lake.py", "sink.py"}
    tests = [f"{file}::test_{n}" for file in FILES for n in range(4)]
    workers: list[Any] = [Worker(), Worker()]
    for worker in workers:
        schedule.add_node(cast(WorkerController, worker))
        schedule.add_node_collection(worker, tests)
    schedule.schedule()
    for number in workers[1].given:  # grows
        schedule.mark_test_complete(workers[1], number)
    return [[*dict.fromkeys(tests[n].split(":")[0] for n in w.given)] for w in workers]


def test_the_longest_file_is_first_and_those_with_spark_are_on_one_worker() -> None:
    assert lives(lake=5, sink=20) == [["sink.py"], ["b.py", "c.py", "a.py"]]
    assert lives(lake=5, sink=4) == [["lake.py"], ["b.py", "c.py", "a.py"]]


def test_a_worker_starts_a_second_spark_where_much_is_left() -> None:
    assert lives(lake=50, sink=70) == [["sink.py"], ["b.py", "c.py", "a.py", "lake.py"]]


def test_what_is_recorded_is_read() -> None:
    recorder = Recorder()
    for file, keywords in (("a.py", {}), ("lake.py", {"spark": 1}), ("short.py", {})):
        for test in range(3):
            seconds = 0.1 if file == "short.py" else 2.25
            report = SimpleNamespace(
                nodeid=f"{file}::test_{test}", duration=seconds, keywords=keywords
            )
            recorder.pytest_runtest_logreport(cast(pytest.TestReport, report))
    assert recorder.text() == "plain 6.8 a.py\nspark 6.8 lake.py\n"
    assert recorded(recorder.text()) == ({"a.py": 6.8, "lake.py": 6.8}, {"lake.py"})
