"""The examples in docstrings are true: every `>>>` in `engine/detect` and `engine/replay` is run.

Kernels run as plain Python here, so that no example costs a compilation. An example knows numpy,
`kernels.columns`, `flat.line` and its own module.
"""

from __future__ import annotations

import os
import subprocess
import sys

RUN = """
import doctest, importlib, pathlib, sys
import numpy as np
import tidegate
from tidegate.engine.detect.events.graph.flat import line
from tidegate.engine.detect.events.kernels import columns

failed = attempted = 0
engine = pathlib.Path(tidegate.__file__).parent / "engine"
for file in sorted([*engine.glob("detect/**/*.py"), *engine.glob("replay/**/*.py")]):
    if ">>> " in file.read_text():
        name = ".".join(("tidegate.engine", *file.relative_to(engine).with_suffix("").parts))
        module = importlib.import_module(name.removesuffix(".__init__"))
        known = {"np": np, **vars(columns), **vars(line), **vars(module)}
        found = doctest.testmod(module, globs=known)
        failed, attempted = failed + found.failed, attempted + found.attempted
print(f"{attempted} examples, {failed} failed")
sys.exit(failed > 0 or attempted == 0)
"""


def test_examples() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    found = subprocess.run(
        [sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr
