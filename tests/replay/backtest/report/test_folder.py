"""A folder of reports and its index."""

from __future__ import annotations

import errno
import json
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.replay.backtest.made import DAY, MARCH, SECOND, backtest, firing
from tests.support.hostile_texts import HOSTILE
from tests.support.parsed_page import Page
from tidegate.engine.core.text.files import DRAFT_SECONDS
from tidegate.engine.core.text.page import document
from tidegate.engine.core.text.printable import in_line
from tidegate.engine.replay.backtest.against import compared
from tidegate.engine.replay.backtest.report import filed, folder, write_whole
from tidegate.engine.replay.backtest.report.card import Card, card_in, card_of, element
from tidegate.rules.errors import InputError

MADE_AT = MARCH + 40 * DAY
FOUND = backtest([firing("pay", "{}", MARCH + n) for n in range(1_200)], "pay")
OTHER = backtest([], "pay", label="registered version 3")


def index(at: Path) -> Page:
    return Page((at / "index.html").read_text(encoding="utf-8"))


def listed(at: Path) -> list[list[str]]:
    """The cells of each run, the link's target in front."""
    page, cells = index(at), index(at).texts("td")
    links = [unquote(own["href"] or "") for own in page.attributes("a")]
    width = len(page.texts("th"))
    rows = [cells[n : n + width] for n in range(0, len(cells), width)]
    return [[link, *row] for link, row in zip(links, rows, strict=True)]


def test_each_run_has_a_page_and_the_newest_stands_first(tmp_path: Path) -> None:
    at = tmp_path / "new" / "reports"
    first = filed(at, FOUND, made_at=MADE_AT)
    second = filed(at, FOUND, compared(FOUND, OTHER), made_at=MADE_AT + SECOND // 2)
    third = filed(at, OTHER, made_at=MADE_AT - DAY)
    assert first.name == "bank-2026-03-01-to-2026-04-01-made-20260410T000000Z.html"
    assert second.name == "bank-2026-03-01-to-2026-04-01-made-20260410T000000Z-2.html"
    assert {path.name for path in at.iterdir()} == {
        first.name, second.name, third.name, "index.html"
    }  # fmt: skip
    span = ["2026-03-01 00:00:00Z", "2026-04-01 00:00:00Z"]
    assert listed(at) == [
        [f"./{second.name}", "2026-04-10 00:00:00Z", "bankbank.yaml", *span,
         "1,200", "0", "0", "0", "0", "registered version 3", "1,200"],
        [f"./{first.name}", "2026-04-10 00:00:00Z", "bankbank.yaml", *span,
         "1,200", "0", "0", "0", "0", "", ""],
        [f"./{third.name}", "2026-04-09 00:00:00Z", "bankregistered version 3", *span,
         "0", "0", "0", "0", "0", "", ""],
    ]  # fmt: skip


@pytest.fixture(params=["links", "no links"])
def file_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system with hard links, and one without."""

    def refused(*_: Any) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    if request.param == "no links":
        monkeypatch.setattr(os, "link", refused)


@pytest.mark.usefixtures("file_system")
def test_no_run_overwrites_another(tmp_path: Path) -> None:
    for number in range(5):
        filed(tmp_path, backtest([], f"r{number}"), made_at=MADE_AT)
    pages = [Page(f.read_text()) for f in tmp_path.iterdir() if f.name != "index.html"]
    assert sorted(page.texts("td")[0] for page in pages) == [f"r{n}" for n in range(5)]


@pytest.mark.usefixtures("file_system")
def test_runs_that_end_at_the_same_time_are_all_listed(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: filed(tmp_path, OTHER, made_at=MADE_AT), range(24)))
    assert len({*made}) == 24
    assert {row[0] for row in listed(tmp_path)} == {f"./{file.name}" for file in made}
    assert len([*tmp_path.iterdir()]) == 25


def test_a_page_that_becomes_whole_while_the_index_is_made_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are no links, a page stands there empty at first."""
    other = filed(tmp_path / "elsewhere", OTHER, made_at=MADE_AT - DAY)
    (tmp_path / other.name).touch()

    def written(file: Path, text: str) -> None:
        if not (tmp_path / other.name).stat().st_size:
            (tmp_path / other.name).write_bytes(other.read_bytes())
        file.write_text(text)

    monkeypatch.setattr(folder, "write_whole", written)
    made = filed(tmp_path, FOUND, made_at=MADE_AT)
    assert [row[0] for row in listed(tmp_path)] == [f"./{made.name}", f"./{other.name}"]


def test_the_index_is_made_of_what_stands_there(tmp_path: Path) -> None:
    gone, kept = (filed(tmp_path, FOUND, made_at=MADE_AT + n * SECOND) for n in range(2))
    elsewhere = filed(tmp_path / "elsewhere", OTHER, made_at=MADE_AT)
    moved = elsewhere.rename(tmp_path / "moved in & renamed?.html")
    gone.unlink()
    (tmp_path / "empty.html").write_text("")
    (tmp_path / "torn.html").write_text(kept.read_text()[:4_000].partition("fired")[0])
    (tmp_path / "binary.html").write_bytes(bytes(range(256)))
    (tmp_path / "folder.html").mkdir()
    os.mkfifo(tmp_path / "pipe.html")
    last = filed(tmp_path, OTHER, made_at=MADE_AT - DAY)
    assert [row[0] for row in listed(tmp_path)] == [
        f"./{name}" for name in (kept.name, moved.name, last.name)
    ]
    said = "5 other pages of this folder are no report, or not a whole one."
    assert said in index(tmp_path).texts("p")


def test_an_index_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<h1>my pages</h1>")
    with pytest.raises(InputError, match="is no index of reports") as raised:
        filed(tmp_path, FOUND, made_at=MADE_AT)
    assert "a folder of its own" in str(raised.value)
    assert [(f.name, f.read_text()) for f in tmp_path.iterdir()] == [
        ("index.html", "<h1>my pages</h1>")
    ]


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--reports.*cannot be written"):
        filed(tmp_path / "file", FOUND, made_at=MADE_AT)


def test_a_page_that_cannot_be_written_whole_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = filed(tmp_path, FOUND, made_at=MADE_AT)
    before = (tmp_path / "index.html").read_bytes()

    def full(self: Path, text: str, **_: Any) -> None:
        with self.open("w") as file:
            file.write(text[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError, match="No space left on device"):
        filed(tmp_path, FOUND, made_at=MADE_AT + SECOND)
    assert {f.name for f in tmp_path.iterdir()} == {kept.name, "index.html"}
    assert (tmp_path / "index.html").read_bytes() == before


def test_a_page_has_its_name_only_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = filed(tmp_path, FOUND, made_at=MADE_AT)
    seen: list[set[str]] = []
    write = Path.write_text

    def written(self: Path, text: str, **options: Any) -> int:
        before = {file.name for file in tmp_path.glob("*.html")}
        count = write(self, text, **options)
        seen.append(before | {file.name for file in tmp_path.glob("*.html")})
        return count

    monkeypatch.setattr(Path, "write_text", written)
    made = filed(tmp_path, OTHER, made_at=MADE_AT)
    assert seen[0] == {kept.name, "index.html"}
    assert seen[1] == {kept.name, "index.html", made.name}


def test_drafts_of_runs_that_were_killed_are_removed_after_a_day(tmp_path: Path) -> None:
    made = filed(tmp_path, FOUND, made_at=MADE_AT)
    drafts = [tmp_path / f".{name}.1-7" for name in (made.name, "index.html")]  # of others
    others = [
        tmp_path / name
        for name in (
            f"{drafts[0].name}.bak",
            drafts[0].name[1:],
            f".{made.name}.12",
            ".notes.html.12-34",
            ".notes-2026.12-34",
        )
    ]
    for file in (*drafts, *others):
        file.write_text("<p>")
        os.utime(file, (0, time.time() - DRAFT_SECONDS - 60))
    (alike := tmp_path / f".{made.name}.1-1").mkdir()
    os.utime(alike, (0, 0))
    young = tmp_path / f".{made.name}.1-2"
    young.write_text("<p>")
    filed(tmp_path, OTHER, made_at=MADE_AT)
    assert [file.exists() for file in drafts] == [False, False]
    assert all(file.exists() for file in (*others, alike, young))


def test_a_name_of_a_rulebook_never_leads_out_of_the_folder(tmp_path: Path) -> None:
    for n, name in enumerate(["../../etc/passwd", "a/b", "..", ".hidden", "", "x" * 400, *HOSTILE]):
        made = filed(tmp_path, backtest([], "pay", rulebook=name), made_at=MADE_AT + n * SECOND)
        assert made.parent == tmp_path
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*\.html", made.name)
        assert len(made.name) < 150
    assert len(listed(tmp_path)) == 6 + len(HOSTILE)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_card_is_inert(tmp_path: Path, text: str) -> None:
    """A file of others in the folder may say anything."""
    values = asdict(card_of(FOUND, compared(FOUND, OTHER), MADE_AT))
    said = {
        name: text if isinstance(value, str) and name != "zone" else value
        for name, value in values.items()
    }
    for name, card in (("tame.html", values), ("javascript:alert(1).html", said)):
        (tmp_path / name).write_text(document("t", [element(Card(**card))]), encoding="utf-8")
    filed(tmp_path, FOUND, made_at=MADE_AT)
    page = index(tmp_path)
    assert page.scripts == []
    shape = [(tag, sorted(own)) for tag, own in page.tags if tag in ("td", "a", "br", "span")]
    assert len(shape) == 3 * (11 + 3)
    assert shape == shape[:14] * 3
    hrefs = [own["href"] or "" for own in page.attributes("a")]
    assert all(href.startswith("./") and ":" not in href for href in hrefs)
    assert any(in_line(text).replace("T", " ") in cell for cell in page.texts("td"))


@pytest.mark.parametrize(
    "changed",
    [
        {"zone": "Nowhere/Else"},
        {"fired": "3"},
        {"fired": True},
        {"fired": 1.5},
        {"label": None},
        {"more": 1},
        {"differ": []},
    ],
)
def test_a_card_of_other_kinds_is_none(tmp_path: Path, changed: dict[str, Any]) -> None:
    values = asdict(card_of(FOUND, None, MADE_AT)) | changed
    file = tmp_path / "x.html"
    file.write_text(f'<script type="application/json" id="backtest">{json.dumps(values)}</script>')
    assert card_in(file) is None


def test_a_page_that_comes_while_the_index_is_written_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = filed(tmp_path / "elsewhere", OTHER, made_at=MADE_AT + SECOND)

    def writing(file: Path, text: str) -> None:
        if file.name == "index.html" and late.exists():
            late.rename(tmp_path / late.name)
        write_whole(file, text)

    monkeypatch.setattr(folder, "write_whole", writing)
    first = filed(tmp_path, FOUND, made_at=MADE_AT)
    assert [row[0] for row in listed(tmp_path)] == [f"./{late.name}", f"./{first.name}"]
