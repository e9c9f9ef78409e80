"""Examples are the same in each run of the short suite, whatever else runs in it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def drawn() -> list[int]:
    found: list[int] = []

    @settings(max_examples=200, database=None)
    @given(number=st.integers())
    def some(number: int) -> None:
        found.append(number)

    some()
    return found


def test_what_has_been_imported_changes_no_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if settings.default is None or not settings.default.derandomize:
        pytest.skip("examples are others in each run")
    before = drawn()
    constants = [10**6 + n for n in range(500)]
    (tmp_path / "imported_meanwhile.py").write_text(f"NUMBERS = {constants}\n")
    monkeypatch.syspath_prepend(tmp_path)
    import_module("imported_meanwhile")
    assert drawn() == before
