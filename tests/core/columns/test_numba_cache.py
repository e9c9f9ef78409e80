"""What is compiled once is used by every copy of the same sources, and by no other."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from numba.core.dispatcher import Dispatcher

from tidegate.engine.core.columns.numba_cache import kernel_modules

ROOT = Path(__file__).parents[3]
SCRIPT = """
import numpy as np
from tidegate.engine.core.columns import hashing
hashing._mix(np.uint64(7))
print(sum(hashing._mix.stats.cache_hits.values()))
"""


def hits(checkout: Path, cache: Path) -> int:
    """How often a kernel was found compiled, in a process that runs the sources in `checkout`."""
    environment = os.environ | {"PYTHONPATH": str(checkout), "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_a_second_checkout_compiles_nothing_again_until_a_source_differs(tmp_path: Path) -> None:
    checkouts = [tmp_path / "one", tmp_path / "two"]
    for checkout in checkouts:
        shutil.copytree(ROOT / "tidegate", checkout / "tidegate", symlinks=True)
        for folder in ("engine", "rules"):
            shutil.copytree(ROOT / folder, checkout / folder)
    assert hits(checkouts[0], tmp_path) == 0
    assert hits(checkouts[1], tmp_path) == 1
    with (checkouts[1] / "engine/detect/events/kernels/joins.py").open("a") as file:
        file.write("# changed\n")
    assert hits(checkouts[1], tmp_path) == 0
    assert hits(checkouts[0], tmp_path) == 1


def test_other_threads_go_on_while_a_kernel_runs() -> None:
    """Else the lease is not renewed during a long step."""
    kernels = []
    for file, _ in kernel_modules():
        name = ".".join(file.relative_to(ROOT / "tidegate" / "engine").with_suffix("").parts)
        module = importlib.import_module(f"tidegate.engine.{name}")
        kernels += [v for v in vars(module).values() if isinstance(v, Dispatcher)]
    assert len(kernels) > 50
    assert all(kernel.targetoptions["nogil"] for kernel in kernels)
