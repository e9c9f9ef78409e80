"""`python -m tidegate`: the command line."""

from __future__ import annotations

from tidegate.engine.cli.main import main

main()
