"""`python -m docs.site`: the site, in `site/`, from the pages that it lays into `build/pages/`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from docs.site.generated import ROOT
from docs.site.pages import write

FROM_A_FILE = """<script>
if (location.protocol === "file:")
  for (const name of ["href", "src"])
    for (const each of document.querySelectorAll(`[${name}^="/"]`))
      each.setAttribute(name, each.getAttribute(name).slice(1))
</script>
"""
"""What makes 404.html find its style and pages where the site is opened from files. A server shows
that page for any path, so it names everything from the root, which files do not have."""


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build `folder/site`. What `zensical` warns of, such as a dead link, is an error."""
    for name in ("build/pages", "site"):
        shutil.rmtree(folder / name, ignore_errors=True)
    write(folder / "build" / "pages")
    if folder != ROOT:
        shutil.copy(ROOT / "mkdocs.yml", folder)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    if built.returncode == 0:
        lost = folder / "site" / "404.html"
        text = lost.read_text(encoding="utf-8")
        lost.write_text(text.replace("</body>", f"{FROM_A_FILE}</body>"), encoding="utf-8")
    return built


def main() -> int:
    """Build it beside this checkout's other output."""
    built = build(ROOT)
    print(built.stdout + built.stderr, end="")
    if built.returncode == 0:
        print(f"open {ROOT / 'site' / 'index.html'}")
    return built.returncode


if __name__ == "__main__":
    sys.exit(main())
