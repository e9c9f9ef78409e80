"""The pictures of the house show the code as it is."""

from __future__ import annotations

import pytest

from tests.support.pictures import FOLDER, pictures

DRAWN = pictures()


@pytest.mark.parametrize("name", DRAWN)
def test_the_picture_is_current(name: str) -> None:
    shown = (FOLDER / name).read_text(encoding="utf-8")
    assert shown == DRAWN[name], "draw it anew: .venv/bin/python -m tests.support.pictures"


def test_every_room_stands_in_the_picture_and_every_picture_in_a_page() -> None:
    assert "engine/quarantine" in DRAWN["house.svg"]
    assert "rules/eventscript" in DRAWN["rules.svg"]
    page = (FOLDER.parent / "architecture.md").read_text(encoding="utf-8")
    assert [name for name in DRAWN if f"(pictures/{name})" not in page] == []
