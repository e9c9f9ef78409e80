"""A folder of reports: one page a run, and an index of them.

The index is made anew of the pages that stand there, so that one that is moved in or deleted is
told rightly. No run overwrites the page of another, also where two end at the same time. A page or
an index appears whole or not at all.

Example: two runs over March leave

    bank-2026-03-01-to-2026-04-01-made-20260402T093000Z.html
    bank-2026-03-01-to-2026-04-01-made-20260402T093000Z-2.html
    index.html
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from urllib.parse import quote

from tidegate.engine.core.text.files import forget_drafts, write_new, write_whole
from tidegate.engine.core.text.layout import counted
from tidegate.engine.core.text.page import data, document, inert
from tidegate.engine.replay.backtest.against import Difference
from tidegate.engine.replay.backtest.model import Backtest
from tidegate.engine.replay.backtest.report.card import Card, card_in, card_of
from tidegate.engine.replay.backtest.report.files import check_folder, unwritable
from tidegate.engine.replay.backtest.report.page import page
from tidegate.rules.errors import InputError, Problem, word_place

INDEX = "index.html"
NAME_MAX = 80
"""Characters of the rulebook's name that a file's name has."""
_OPTION, _WHAT = "--reports", "reports cannot be written"
_ELEMENT = "backtests"
_MARK = f'<script type="application/json" id="{_ELEMENT}">'
_UNSAFE = re.compile("[^A-Za-z0-9_]+")
_NAMES = r"\w+-[0-9-]+-to-[0-9-]+-made-\d+T\d+Z(?:-\d+)?\.html"
_COLUMNS = ("made at", "rulebook", "from", "to", "fired", "condition not asked", "condition failed",
            "damped", "dead", "against", "firings that differ")  # fmt: skip
_STYLE = """
td { overflow-wrap: anywhere; min-width: 7rem; } td.number { text-align: right; min-width: 0; }
a { color: var(--c0); } :focus-visible { outline: 3px solid var(--c0); outline-offset: 2px; }
"""


def filed(
    folder: Path, found: Backtest, difference: Difference | None = None, *, made_at: int
) -> Path:
    """Write the page of a run into a folder, and its index anew. Returns the page's path. Raises
    `InputError`: the folder cannot be written, or has an index of something else."""
    text = page(found, difference, made_at=made_at)
    with unwritable(_WHAT, _OPTION):
        folder.mkdir(parents=True, exist_ok=True)
        _check_index(folder)
        forget_drafts(folder, _NAMES)
        file = write_new(_named(folder, _stem(card_of(found, difference, made_at))), text)
        _write_index(folder)
    return file


def check_reports(folder: Path) -> None:
    """Raise InputError as `filed` would, before there is anything to file. Nothing is made."""
    with unwritable(_WHAT, _OPTION):
        check_folder(folder)
        _check_index(folder)


def _check_index(folder: Path) -> None:
    file = folder / INDEX
    if not os.path.lexists(file):
        return
    if not file.is_file() or _MARK not in file.read_text(encoding="utf-8", errors="replace"):
        message = f"{file} is no index of reports, and would be overwritten"
        hint = "give a folder of its own"
        raise InputError([Problem("not-an-index", message, word_place(_OPTION), hint)])


def _stem(card: Card) -> str:
    """The name of a file without what tells it from others of the same second."""
    name = _UNSAFE.sub("_", card.rulebook)[:NAME_MAX] or "rulebook"
    begin, end = (_UNSAFE.sub("-", at.partition("T")[0]) for at in (card.begin, card.end))
    made = re.sub(r"[-:]|\.\d+", "", card.made_at)
    return f"{name}-{begin}-to-{end}-made-{made}"


def _named(folder: Path, stem: str) -> Iterator[Path]:
    """The names that a page may have: the first that is free is taken."""
    yield folder / f"{stem}.html"
    yield from (folder / f"{stem}-{number}.html" for number in count(2))


def _write_index(folder: Path) -> None:
    """Make the index; again if other pages stand there by then, or some are longer. So the last of
    several runs that end at the same time knows all of them."""
    told: dict[str, int] | None = None
    while told != (sizes := _sizes(folder)):
        told = sizes
        write_whole(folder / INDEX, _index(folder, [*sizes]))


def _sizes(folder: Path) -> dict[str, int]:
    """The sizes of the pages, by name in order. A page may stand there before it is whole."""
    found = {}
    for file in sorted(folder.glob("*.html")):
        with suppress(OSError):  # it was deleted meanwhile
            if file.name != INDEX:
                found[file.name] = file.stat().st_size
    return found


def _index(folder: Path, names: Sequence[str]) -> str:
    """The index of some files, newest first; those that are no reports are counted."""
    cards = [(name, card) for name in names if (card := card_in(folder / name))]
    cards.sort(key=lambda one: (one[1].made_at.rstrip("Z"), one[0]), reverse=True)
    body = [data(_ELEMENT, {"pages": len(cards)}), "<h1>Backtests</h1>"]
    others = len(names) - len(cards)
    if others:
        said = f"{counted(others, 'other page')} of this folder {'is' if others == 1 else 'are'}"
        body.append(f'<p class="note">{said} no report, or not a whole one.</p>')
    head = "".join(f'<th scope="col">{name}</th>' for name in _COLUMNS)
    rows = (f"<tr>{''.join(_cells(name, card))}</tr>" for name, card in cards)
    body += [
        '<div class="wide" tabindex="0"><table>',
        f"<thead><tr>{head}</tr></thead><tbody>",
        *rows,
    ]
    body.append("</tbody></table></div>" if cards else "</tbody></table></div><p>None yet.</p>")
    return document("backtests", body, style=_STYLE)


def _cells(name: str, card: Card) -> Iterator[str]:
    times = (card.made_at, card.begin, card.end)
    made, begin, end = (re.sub(r"\.\d+", "", at).replace("T", " ") for at in times)
    yield f'<td><a href="./{quote(name, safe="")}">{inert(made)}</a></td>'
    what = f"{inert(card.rulebook)}<br><span class='note'>{inert(card.label)}</span>"
    yield f"<td>{what}</td><td>{inert(begin)}</td><td>{inert(end)}</td>"
    numbers = (card.fired, card.unasked, card.condition_failed, card.damped, card.dead)
    yield from (f'<td class="number">{number:,}</td>' for number in numbers)
    differ = "" if card.differ is None else f"{card.differ:,}"
    yield f'<td>{inert(card.against or "")}</td><td class="number">{differ}</td>'
