"""The kernels' cache on disk. Numba looks at the file of a kernel and not at those of the kernels
that it calls: after one of them has changed, the others would go on as they were."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def forget_stale(package: Path) -> None:
    """Remove what was compiled below `package` if a source there has changed since."""
    compiled = list(package.glob("**/__pycache__/*.nbi"))
    if not compiled:
        return
    oldest = min(file.stat().st_mtime for file in compiled)
    if any(source.stat().st_mtime > oldest for source in package.glob("**/*.py")):
        for file in package.glob("**/__pycache__/*.nb?"):
            with suppress(OSError):  # of an installation that is not ours, or gone already
                file.unlink()
