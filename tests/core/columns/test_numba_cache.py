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

import numba
import pytest
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher
from numba.core.event import Event, EventStatus

from tests.support.house import kernel_modules
from tidegate.engine.core.columns import numba_cache
from tidegate.engine.core.columns.numba_cache import Compiling
from tidegate.engine.detect.events.kernels import instance_order

ROOT = Path(__file__).parents[3]
SCRIPT = """
import numpy as np
from tidegate.engine.detect.events.kernels import instance_order
instance_order.skip_ticks(np.zeros(1, np.int64), 0, np.zeros(1, np.int16))
print(sum(instance_order.skip_ticks.stats.cache_hits.values()))
"""


NOWHERE = "/dev/null/folder"  # that nobody can write, not even root


def hits(checkout: Path, cache: Path, **more: str) -> int:
    """How often a kernel was found compiled, in a process that runs the sources in `checkout`."""
    environment = os.environ | {"PYTHONPATH": str(checkout), "XDG_CACHE_HOME": str(cache), **more}
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


def test_where_nothing_else_can_be_written_kernels_are_kept_in_a_folder_of_this_user(
    tmp_path: Path,
) -> None:
    """As in executors whose user has no home. A folder in which others may write is not trusted."""
    nowhere = {"NUMBA_CACHE_DIR": NOWHERE, "TMPDIR": str(tmp_path)}
    found = [hits(ROOT, Path(NOWHERE), **nowhere) for _ in range(2)]
    (kept,) = tmp_path.iterdir()
    assert (found, kept.stat().st_mode & 0o777) == ([0, 1], 0o700)
    kept.chmod(0o777)
    with pytest.raises(PermissionError, match="is not this user's alone"):
        numba_cache._of_this_user(kept)


def test_where_nothing_can_be_written_kernels_are_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numba_cache, "kernel_folder", lambda: Path(NOWHERE))
    own = f"{numba_cache.__name__}.{numba_cache.KernelFolder.__name__}"
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", own)
    made = numba_cache.njit(instance_order.skip_ticks.py_func)
    assert isinstance(made._cache, NullCache)


def test_processes_that_begin_at_the_same_time_compile_once(tmp_path: Path) -> None:
    """As do the first tasks of a machine's executors."""
    gated = SCRIPT.replace(
        "instance_order.skip", "print(flush=True); input(); instance_order.skip", 1
    )
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    some = [
        subprocess.Popen([sys.executable, "-c", gated], cwd=ROOT, env=environment, **pipes)
        for _ in range(2)
    ]
    for one in some:
        one.stdout.readline()
    for one in some:
        one.stdin.write(b"\n")
        one.stdin.flush()
    assert sorted(int(one.communicate()[0]) for one in some) == [0, 1]


def test_a_kernel_that_cannot_be_compiled_holds_up_nobody() -> None:
    def wrong(_: int) -> int:
        return [] + 1

    kernel = numba_cache.njit(wrong)
    assert isinstance(kernel._cache, numba_cache.KernelCache)
    with pytest.raises(numba.TypingError):
        kernel(1)
    assert not any(numba_cache.KernelCache._held.values())


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
    [(numba_cache._writable, True, 1), (numba_cache._writable, False, 0), (of_another, True, 0)],
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
