"""An answer of `why-not` as an HTML page that needs nothing else: the ladder and the time line as
pictures, then each rung with its evidence."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from tidegate.engine.core.text.json_text import plain
from tidegate.engine.core.text.page import document, inert
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.replay.why_not.answer import WhyNot
from tidegate.engine.replay.why_not.picture import STYLE, ladder_picture, timeline_picture
from tidegate.engine.replay.why_not.words import key_phrase

VALUE_MAX = 2_000
"""Characters of a value that are shown."""


def page(answer: WhyNot) -> str:
    """The HTML document."""
    last, words, rule = answer.rungs[-1], answer.words, answer.asked
    of = f", {key_phrase(answer.key)}" if answer.key else ""
    question = "It fired" if last.ok else "Why it did not fire"
    title = f"{answer.rule}{of}"
    when = f"{words.dated(answer.since)} to {words.dated(answer.at)} ({words.zone})"
    text = rule.pattern.text
    if rule.pattern.where is not None:
        text += f", where {rule.pattern.where.text}"
    body = [
        f"<h1>{inert(f'{question}: {title}')}</h1>",
        f'<p class="note">{inert(when)}</p>',
        f"<p>Rule {inert(answer.rule)}: <code>{inert(text)}</code></p>",
        f'<p class="warning">{inert(last.sentence)}</p>',
        "<h2>The ladder</h2>",
        f'<div class="scroll">{ladder_picture(answer)}</div>',
        '<p class="legend">One question after another, up to the first no. Those that are dotted'
        " were not asked.</p>",
        *_timeline(answer),
        "<h2>Evidence</h2>",
        *_evidence(answer),
        *(f'<p class="note">{inert(note)}</p>' for note in answer.notes),
        *([f"<p><code>{inert(answer.command)}</code></p>"] if answer.command else []),
    ]
    return document(f"why not: {title}", body, style=STYLE)


def _timeline(answer: WhyNot) -> Iterator[str]:
    drawn = timeline_picture(answer)
    if not drawn:
        return
    said = "Dots are occurrences; crossed circles are rows that became none; diamonds are"
    said += " detections. Shaded is the time that is asked for. Distances grow with the logarithm"
    said += " of time. Point at anything to read it."
    if left_out := answer.timeline.left_out:
        said += f" {left_out:,} more are not drawn."
    yield f"<h2>What came{inert(answer.words.of_key)}</h2>"
    yield f'<div class="scroll">{drawn}</div><p class="legend">{said}</p>'


def _evidence(answer: WhyNot) -> Iterator[str]:
    yield '<div class="wide"><table><thead><tr>'
    yield from (f'<th scope="col">{name}</th>' for name in ("", "question", "answer", "evidence"))
    yield "</tr></thead><tbody>"
    for rung in answer.as_json()["rungs"]:
        said = dict(rung["evidence"])
        mark, sentence = "✓" if rung["ok"] else "✗", said.pop("said")
        cells = "".join(f"<div>{_pair(name, found)}</div>" for name, found in said.items())
        yield f"<tr><td>{mark}</td><td>{rung['rung']}</td><td>{inert(sentence)}</td>"
        yield f"<td>{cells}</td></tr>"
    yield "</tbody></table></div>"


def _pair(name: str, found: object) -> str:
    text = orjson.dumps(found, default=plain).decode()
    return f"{inert(name)} <code>{inert(shortened(text, VALUE_MAX))}</code>"
