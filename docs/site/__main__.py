"""`python -m docs.site`: the site, in `site/`, from the pages that it lays into `build/pages/`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from docs.site.generated import ROOT
from docs.site.pages import write


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build `folder/site`. What `zensical` warns of, such as a dead link, is an error."""
    for name in ("build/pages", "site"):
        shutil.rmtree(folder / name, ignore_errors=True)
    write(folder / "build" / "pages")
    if folder != ROOT:
        shutil.copy(ROOT / "mkdocs.yml", folder)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603


def main() -> int:
    """Build it beside this checkout's other output."""
    built = build(ROOT)
    print(built.stdout + built.stderr, end="")
    if built.returncode == 0:
        print(f"open {ROOT / 'site' / 'index.html'}")
    return built.returncode


if __name__ == "__main__":
    sys.exit(main())
