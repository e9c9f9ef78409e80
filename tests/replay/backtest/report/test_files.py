"""Files of reports: written whole or not at all, and checked before a run."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.replay.backtest.made import MARCH, backtest
from tidegate.engine.replay.backtest.report import check_file, check_reports, filed, write_whole
from tidegate.rules.errors import InputError


def listing(folder: Path) -> dict[str, str]:
    return {f.name: f.read_text() for f in folder.iterdir()}


def test_a_page_that_cannot_be_written_whole_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "page.html"
    write_whole(file, "before")

    def full(self: Path, text: str, **_: Any) -> None:
        with self.open("w") as opened:
            opened.write(text[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(file, "after, and longer")
    assert listing(tmp_path) == {"page.html": "before"}


def test_a_link_stays_one_and_a_pipe_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link, real = tmp_path / "page.html", tmp_path / "there" / "real.html"
    link.symlink_to(real)
    check_file(link, "--html")
    write_whole(link, "new")
    assert link.is_symlink()
    assert listing(tmp_path / "there") == {"real.html": "new"}
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "through")
    reader.join()
    assert read == ["through"]
    assert pipe.is_fifo()


def test_what_is_open_already_goes_on_behind_the_page(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    with file.open("w") as out:
        at = tmp_path / "stdout"
        at.symlink_to(f"/proc/self/fd/{out.fileno()}")
        check_file(at, "--html")
        write_whole(at, "page\n")
        assert file.stat().st_ino == os.fstat(out.fileno()).st_ino
    assert file.read_text() == "page\n"


@pytest.mark.parametrize("name", ["no/page.html", "file/page.html", "folder", "x" * 300])
def test_what_cannot_be_written_is_refused_before_a_run(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"^--html: "):
        check_file(tmp_path / name, "--html")
    check_file(tmp_path / "page.html", "--html")
    assert {f.name for f in tmp_path.iterdir()} == {"file", "folder"}


def test_a_folder_of_reports_is_checked_before_a_run_and_not_made(tmp_path: Path) -> None:
    check_reports(tmp_path / "new" / "reports")
    assert listing(tmp_path) == {}
    (tmp_path / "file").write_text("")
    for name in ("file", "file/reports"):
        with pytest.raises(InputError, match="reports cannot be written: Not a directory"):
            check_reports(tmp_path / name)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "index.html").write_text("<h1>my pages</h1>")
    with pytest.raises(InputError, match="is no index of reports"):
        check_reports(tmp_path / "own")
    filed(tmp_path / "reports", backtest([], "pay"), made_at=MARCH)
    check_reports(tmp_path / "reports")
