"""A story as an HTML page that needs nothing else: the picture, then everything in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidegate.engine.core.text.json_text import shown
from tidegate.engine.core.text.layout import counted, pairs_text
from tidegate.engine.core.text.page import document, inert
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.replay.why.model import Constituent, Link, Story
from tidegate.engine.replay.why.picture import DOTS_MAX, STYLE, consumed, picture
from tidegate.engine.replay.why.text import (
    condition_sentence,
    edited,
    entry_sentences,
    fate,
    gone_sentences,
    headline,
    link_words,
)
from tidegate.engine.replay.why.times import Times, key_words

ROWS_MAX = 1_000
"""Constituents and links in a table."""
CELL_MAX = 1_000
"""Characters of a value in a table: `--format json` has all."""


def page(story: Story) -> str:
    """The HTML document."""
    times = Times(story)
    key = f" for {key_words(story.key)}" if story.key else ""
    title = f"{story.rule}{key}, {times.day} {times.at(story.end)}"
    body = [
        f"<h1>{inert(title)}</h1>",
        f"<p>{inert(headline(story, times))}</p>",
        *([f"<p>{inert(story.sentence)}</p>"] if story.sentence else []),
        *([f"<p>{inert(' '.join(story.sentences))}</p>"] if story.sentences else []),
        *([f'<p class="warning">{inert(edited(story))}</p>'] if story.edited else []),
        f'<div class="scroll">{picture(story, times)}</div>',
        f'<p class="legend">{inert(_legend(story))}</p>',
        *_constituents(story, times),
        *_outcome(story, times),
        *_links("It came of", story.causes),
        *_links("Of it came", story.effects),
        *(f'<p class="note">{inert(n)}</p>' for n in (*story.notes, *gone_sentences(story))),
        f'<p class="note"><code>tidegate why {inert(story.firing_id)}</code></p>',
    ]
    return document(f"why: {title}", body, style=STYLE)


def _legend(story: Story) -> str:
    said = "The window is shaded, from the start to the end of the firing."
    if story.window:
        said += " It takes all its rows, and consumes none."
    elif consumed(story):
        said += f" What is crossed out is consumed: context {story.context}."
    elif story.context is not None:
        said += f" Nothing is consumed: context {story.context}."
    if len(story.constituents) > DOTS_MAX:
        said += f" The first {DOTS_MAX} of {len(story.constituents):,} occurrences are drawn."
    return f"{said} Distances grow with the logarithm of time. Point at anything to read it."


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    heads = "".join(f'<th scope="col">{inert(name)}</th>' for name in names)
    yield f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>'
    for row in rows:
        yield "<tr>" + "".join(f"<td>{inert(cell)}</td>" for cell in row) + "</tr>"
    yield "</tbody></table></div>"


def _constituents(story: Story, times: Times) -> Iterator[str]:
    names = ("event", "at", "from", "bucket", "waited, s", "row")
    yield f"<h2>{inert(counted(len(story.constituents), 'occurrence'))}</h2>"
    yield from _table(names, (_cells(one, times) for one in story.constituents[:ROWS_MAX]))
    yield from _first(len(story.constituents))


def _first(count: int) -> Iterator[str]:
    """What is said below a table or list that does not hold all."""
    if count > ROWS_MAX:
        yield f"<p>The first {ROWS_MAX:,} of {count:,}: --format json has all.</p>"


def _cells(one: Constituent, times: Times) -> tuple[str, ...]:
    source = f"script {one.script}" if one.script else ""
    if one.table is not None:
        source = f"{one.table} version {one.version}"
    elif one.signal is not None:
        source = f"signal {one.signal}"
    bucket = "" if one.bucket is None else str(one.bucket)
    waited = shown(one.waited_seconds)
    row = {name: shortened(shown(value), CELL_MAX) for name, value in one.row.items()}
    return one.event, times.at(one.time), source, bucket, waited, pairs_text(row)


def _outcome(story: Story, times: Times) -> Iterator[str]:
    yield "<h2>What became of it</h2>"
    if story.condition.text is not None:
        yield f"<p>{inert(condition_sentence(story.condition))}</p>"
    yield from (f"<p>{inert(sentence)}</p>" for sentence in fate(story))
    if story.entries:
        yield "<ul>"
        for entry in story.entries:
            said = (sentence.strip().rstrip(".") for sentence in entry_sentences(entry, times))
            yield f"<li>{inert('. '.join(said))}.</li>"
        yield "</ul>"


def _links(title: str, links: Sequence[Link]) -> Iterator[str]:
    if links:
        yield f"<h2>{title} {inert(counted(len(links), 'firing'))}</h2><ul>"
        yield from (f"<li>{inert(link_words(link))}</li>" for link in links[:ROWS_MAX])
        yield "</ul>"
        yield from _first(len(links))
