"""Commands run in this process, as a shell would: exit code, stdout, stderr."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tidegate.engine.cli.main import main

Tidegate = Callable[..., Result]

SIGNALS = """\
rulebook: doors
events:
  opened: {signal: {door: bigint, by: string}}
  closed: {signal: {door: bigint}}
rules:
  passed:
    on: opened ; closed
    per: door
    context: restricted
"""


@pytest.fixture
def tidegate() -> Tidegate:
    def run(*words: object) -> Result:
        return CliRunner().invoke(main, [str(word) for word in words])

    return run


@pytest.fixture
def doors(tmp_path: Path) -> Path:
    file = tmp_path / "doors.yaml"
    file.write_text(SIGNALS)
    return file
