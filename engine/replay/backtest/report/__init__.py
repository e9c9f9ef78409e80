"""What a backtest has found, for people: on a terminal, as a page, and as a folder of pages.

What the command calls:

    show(found, difference=None, *, width=100)        lines for a terminal
    page(found, difference=None, *, made_at)          one HTML file, as text
    filed(folder, found, difference=None, *, made_at) the page in a folder with an index; its path
    json_lines(difference)                            JSON lines of a difference
    write_whole(file, text)                           a page into a file
    check_file(file, option), check_reports(folder)   whether pages can be written, before a run

With `difference`, `found` is its `one`. `made_at`: the time of the run, microseconds.
"""

from tidegate.engine.core.text.files import write_whole
from tidegate.engine.replay.backtest.report.difference_json import json_lines
from tidegate.engine.replay.backtest.report.files import check_file, unwritable
from tidegate.engine.replay.backtest.report.folder import check_reports, filed
from tidegate.engine.replay.backtest.report.page import page
from tidegate.engine.replay.backtest.report.terminal import show

__all__ = [
    "check_file",
    "check_reports",
    "filed",
    "json_lines",
    "page",
    "show",
    "unwritable",
    "write_whole",
]
