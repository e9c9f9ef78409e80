"""The page of errors is what the codes' file says."""

from __future__ import annotations

from tests.docs.pages import ROOT
from tidegate.engine.cli.help import errors_page


def test_the_page_of_errors_is_current() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert page == errors_page(), "write it anew: make pages"
