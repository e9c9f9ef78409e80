"""What is compiled once is used by every copy of the same sources, and by no other."""

from __future__ import annotations

import importlib
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from numba.core.dispatcher import Dispatcher
from numba.core.event import Event, EventStatus

from tests.support.house import kernel_modules
from tidegate.engine.core.columns.numba_cache import Compiling, kernel_folder

ROOT = Path(__file__).parents[3]
SCRIPT = """
import numpy as np
from tidegate.engine.detect.events.kernels import instance_order
instance_order.skip_ticks(np.zeros(1, np.int64), 0, np.zeros(1, np.int16))
print(sum(instance_order.skip_ticks.stats.cache_hits.values()))
"""


def hits(checkout: Path, cache: Path) -> int:
    """How often a kernel was found compiled, in a process that runs the sources in `checkout`."""
    environment = os.environ | {"PYTHONPATH": str(checkout), "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two copies of the sources."""
    folder = tmp_path_factory.mktemp("checkouts")
    for checkout in (folder / "one", folder / "two"):
        shutil.copytree(ROOT / "tidegate", checkout / "tidegate", symlinks=True)
        for name in ("engine", "rules"):
            shutil.copytree(ROOT / name, checkout / name)
    return [folder / "one", folder / "two"]


def changed(checkout: Path, module: str) -> None:
    with (checkout / f"engine/detect/events/kernels/{module}.py").open("a") as file:
        file.write("# changed\n")


def test_a_second_checkout_compiles_nothing_again_until_a_source_differs(
    checkouts: list[Path], tmp_path: Path
) -> None:
    """`instance_order` is made of itself and of `columns`; `joins` is made of both."""
    one, two = checkouts
    assert hits(one, tmp_path) == 0
    changed(two, "joins")
    assert hits(two, tmp_path) == 1
    changed(two, "columns")
    assert hits(two, tmp_path) == 0
    assert hits(one, tmp_path) == 1


def test_other_threads_go_on_while_a_kernel_runs() -> None:
    """Else the lease is not renewed during a long step."""
    kernels = []
    for file in kernel_modules():
        name = ".".join(file.relative_to(ROOT / "tidegate" / "engine").with_suffix("").parts)
        module = importlib.import_module(f"tidegate.engine.{name}")
        kernels += [v for v in vars(module).values() if isinstance(v, Dispatcher)]
    assert len(kernels) > 50
    assert all(kernel.targetoptions["nogil"] for kernel in kernels)


def of_another() -> None: ...


@pytest.mark.parametrize(
    ("compiled", "terminal", "told"),
    [(kernel_folder, True, 1), (kernel_folder, False, 0), (of_another, True, 0)],
)
def test_that_the_detector_is_compiled_is_said_once_on_a_terminal(
    compiled: Callable[..., object],
    terminal: bool,
    told: int,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: terminal))
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(logging.getLogger("tidegate"), "level", logging.CRITICAL)  # as by `test`
    heard = Compiling()
    for _ in range(2):
        data = {"dispatcher": SimpleNamespace(py_func=compiled)}
        heard.on_start(Event("numba:compile", EventStatus.START, data))
    said = [record.getMessage().partition(",")[0] for record in caplog.records]
    assert said == ["compiling the detector for this machine"] * told
