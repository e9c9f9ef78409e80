"""`python -m docs.site`: the site, in `site/`, from the pages that it lays into `build/pages/`."""

from __future__ import annotations

import shutil
import subprocess
import sys

from docs.site.generated import ROOT
from docs.site.pages import write


def main() -> int:
    """Build it. What `zensical` warns of, such as a dead link, is an error."""
    for name in ("build/pages", "site"):
        shutil.rmtree(ROOT / name, ignore_errors=True)
    write(ROOT / "build" / "pages")
    built = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    return subprocess.run(built, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
